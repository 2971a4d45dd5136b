"""CheckExtents: what only numbers of a run tell, whether a reshape, a repetition or a squeeze fits, is looked at before it runs.

    lv = R.reshape(x, (a, b))       _ = R.match_cast(R.shape([12]), R.Shape([a * b]))
                                    lv = R.reshape(x, (a, b))

Kernels trust the shapes of their results: one of more elements than there are would read what isn't the tensor's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.expr import IntImm, PrimExpr
from ...tir.expr import Var as Symbol
from ..expr import Binding, Call, MatchCast, Var
from ..ops.manipulate import product
from ..relations import same_extents
from ..struct_info import ShapeExpr, ShapeStructInfo, TensorStructInfo
from ..visitor import Mutator
from .passes import each_function


def _open_pairs(call: Call) -> Iterator[tuple[PrimExpr, PrimExpr]]:
    """Numbers that have to be equal for a call, and aren't known to be."""
    old, new = (info.extents if isinstance(info, TensorStructInfo) else None for info in (call.args[0].struct_info, call.struct_info))
    if old is None or new is None:
        return
    if call.op == "relax.reshape":
        pairs = [(product(old), product(new))]
    elif call.op == "relax.squeeze":
        axes = call.attrs["axis"]
        pairs = [] if axes is None else [(old[int(axis)], IntImm("int64", 1)) for axis in axes]
    else:
        # From the last axis on: an extent that is repeated is 1.
        ends = zip(reversed(old), reversed(new), strict=False)
        pairs = [((a - 1) * (b - a), IntImm("int64", 0)) for a, b in ends if as_int(a) != 1 and same_extents(a, b) is not True]
    for a, b in pairs:
        if same_extents(a, b) is None:
            # A symbol alone on the right would be given its number instead of being compared with it.
            yield (a, b) if not isinstance(b, Symbol) else (b, a) if not isinstance(a, Symbol) else (a - b, IntImm("int64", 0))


class _Checks(Mutator):
    def binding(self, binding: Binding) -> list[Binding]:
        """A binding, behind the checks that it needs."""
        made = super().binding(binding)
        call = made[-1].value if made else None
        if not isinstance(call, Call) or call.op not in ("relax.reshape", "relax.broadcast_to", "relax.squeeze"):
            return made
        name = f"{str(call.op).removeprefix('relax.')}_{made[-1].var.name_hint}"
        checks: list[Any] = []
        for found, wanted in _open_pairs(call):
            info = ShapeStructInfo((wanted,))
            checks.append(MatchCast(Var(name, info), ShapeExpr((found,)), info))
        return [*checks, *made]


def CheckExtents() -> ModulePass:
    """A pass: reshapes, repetitions and squeezes whose extents are values are checked when the graph runs."""
    return each_function("CheckExtents", lambda func, mod: _Checks().function(func))
