"""Marks on values: `relay.annotation.compiler_begin(x, "mine")`."""

from ..ops.annotation import compiler_begin, compiler_end

__all__ = ["compiler_begin", "compiler_end"]
