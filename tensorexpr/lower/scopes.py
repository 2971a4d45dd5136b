"""What an analyzer knows inside loops and under conditions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..arith.analyzer import Analyzer
from ..tir.expr import PrimExpr, Range
from ..tir.stmt import For


@contextmanager
def inside_loop(analyzer: Analyzer, loop: For) -> Iterator[None]:
    """Inside the `with` block the loop's variable is in its range."""
    outer = analyzer.facts
    analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), allow_override=True)
    try:
        yield
    finally:
        analyzer.facts = outer


@contextmanager
def under_conditions(analyzer: Analyzer, scopes: list[For | PrimExpr]) -> Iterator[None]:
    """Inside the `with` block all of these loops surround the code and all of these conditions hold."""
    outer = analyzer.facts
    try:
        for scope in scopes:
            if isinstance(scope, For):
                analyzer.bind(scope.loop_var, Range.from_min_extent(scope.min, scope.extent), allow_override=True)
            else:
                with analyzer.constraint_scope(scope):
                    inner = analyzer.facts
                analyzer.facts = inner
        yield
    finally:
        analyzer.facts = outer
