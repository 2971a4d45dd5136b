"""Simplify: all rules that make graphs smaller and never change more than rounding, until none fits."""

from __future__ import annotations

from typing import Any

from ...lower.passes import ModulePass
from ..expr import Call
from . import attention, decompose, fold_scale, identities, pads, reshapes, transposes
from .rewriting import Rewriter, Rules, rule_pass
from .simple import folded


def _known(graph: Rewriter, call: Call) -> Any:
    """What depends on constants alone."""
    return folded(call)


FOLD: Rules = {"": [_known]}


def Simplify() -> ModulePass:
    """A pass: constants are computed, and what is normalised, scaled, cast, padded, reshaped and transposed is so as seldom as can be."""
    tables = (attention.RULES, decompose.INFERENCE, identities.RULES, reshapes.RULES, transposes.RULES, pads.RULES, fold_scale.RULES)
    return rule_pass("Simplify", FOLD, *tables)
