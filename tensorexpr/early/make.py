"""Nodes as `make` of release 0.6 built them: by the class's name, where the order of arguments is that of today's class.

A loop takes its old arguments too: (loop_var, min, extent, kind, device_api, body).
"""

from __future__ import annotations

from typing import Any

from .. import tir

_SAME = """Add And AssertStmt AttrStmt Broadcast Cast Div EQ Evaluate FloorDiv FloorMod For GE GT IfThenElse LE LT Let LetStmt Max Min Mod
Mul NE Not Or Ramp Select Shuffle StringImm Sub"""


def _block(first: Any, rest: Any) -> tir.Stmt:
    """Two statements, one after the other."""
    return tir.SeqStmt((first, rest))


_BUILT = {"Block": _block, "UIntImm": tir.IntImm, "range_by_min_extent": tir.expr.Range.from_min_extent}


def __getattr__(name: str) -> Any:
    if name in _BUILT:
        return _BUILT[name]
    if name in _SAME.split():
        return getattr(tir, name)
    known = ", ".join(sorted([*_SAME.split(), *_BUILT]))
    raise AttributeError(f"make has no {name!r}: build nodes by their classes, such as tir.{name}; make has {known}")
