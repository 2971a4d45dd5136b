"""Which variables of a block may be the same memory, and from where to where their values are needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...tir.op_registry import Op
from ..expr import BindingBlock, Call, DataflowVar, MatchCast, RelaxExpr, Tuple, TupleGetItem, Var
from ..ops.row import Pattern, row_of
from ..struct_info import StructInfo, TupleStructInfo
from ..visitor import walk

OUTSIDE = -1  # what memory of no variable of the block is called
_VIEWS = ("expand_dims", "flatten", "reshape", "squeeze", "memory.view", "memory.ensure_zero_copy", "builtin.stop_lift_params")
_MAKING = ("call_tir", "call_tir_with_grad", "call_dps_packed")


def live_ranges(block: BindingBlock) -> dict[Var, tuple[int, int]]:
    """Of each variable the number of the binding that defines it, -1 for one from outside, and of the last that reads it.

    What outlives the block, and what comes from outside, is needed until its end: the number of its bindings.
    """
    end = len(block.bindings)
    found = {binding.var: (n, n if isinstance(binding.var, DataflowVar) else end) for n, binding in enumerate(block.bindings)}
    for n, binding in enumerate(block.bindings):
        for var in (node for node in walk(binding.value) if isinstance(node, Var)):
            begin, last = found.get(var, (-1, end))
            found[var] = begin, max(last, n)
    return found


class Aliases:
    """Memory of the variables of a block by numbers.

    Args:
        block: of bindings.
        inputs: variables from outside whose memory is different.
    """

    def __init__(self, block: BindingBlock, inputs: Sequence[Var] = ()) -> None:
        self._count = 0
        self.elements: dict[int, list[set[int]]] = {}
        self.sets: dict[Var, set[int]] = {}
        for var in inputs:
            self.sets[var] = self._fresh(var.struct_info)
        for binding in block.bindings:
            found = self._of(binding.value)
            self.sets[binding.var] = found | {OUTSIDE} if isinstance(binding, MatchCast) and not found else found

    def memory(self, var: Var) -> set[int]:
        """All memory that a variable may be, elements of tuples with it."""
        return self._whole(self.sets.get(var, {OUTSIDE}))

    def _whole(self, numbers: Iterable[int]) -> set[int]:
        found, waiting = set[int](), list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += (one for element in self.elements.get(number, ()) for one in element)
        return found

    def _fresh(self, info: StructInfo) -> set[int]:
        number = self._count
        self._count += 1
        if isinstance(info, TupleStructInfo):
            self.elements[number] = [self._fresh(one) for one in info.fields]
        return {number}

    def _of(self, expr: Any) -> set[int]:
        match expr:
            case Var():
                return set(self.sets.get(expr, {OUTSIDE}))
            case Tuple(fields):
                (number,) = self._fresh(TupleStructInfo(()))
                self.elements[number] = [self._of(one) for one in fields]
                return {number}
            case TupleGetItem(whole, index):
                known = [self.elements[one] for one in self._of(whole) if one in self.elements]
                return set[int]().union(*(one[index] for one in known)) if known else {OUTSIDE}
            case Call():
                return self._called(expr)
        # Branches and functions inside may give what they read.
        inside = {one for node in walk(expr) if isinstance(node, Var) for one in self.sets.get(node, {OUTSIDE})}
        return inside or self._fresh(expr.struct_info if isinstance(expr, RelaxExpr) else TupleStructInfo(()))

    def _called(self, call: Call) -> set[int]:
        name = call.op.removeprefix("relax.") if isinstance(call.op, Op) else ""
        if name == "call_tir_inplace":
            return self._inplace(call)
        if name in _VIEWS:
            return self._of(call.args[0])
        row = row_of(call)
        if name in _MAKING or (row is not None and row.is_pure and (row.te is not None or row.pattern != Pattern.OPAQUE)):
            return self._fresh(call.struct_info)
        # A function may return what it was given, or a part of it.
        made = self._fresh(call.struct_info)
        given = set[int]().union(*(self._whole(self._of(arg)) for arg in call.args if isinstance(arg, (Var, Tuple, TupleGetItem))))
        found = self._whole(made) | given
        for number in self._whole(made):
            if number in self.elements:
                self.elements[number] = [set(found) for _ in self.elements[number]]
        return found

    def _inplace(self, call: Call) -> set[int]:
        info, args = call.struct_info, call.args[1]
        infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
        made = [
            self._fresh(one) if place < 0 else self._of(args.fields[place] if isinstance(args, Tuple) else TupleGetItem(args, place))
            for one, place in zip(infos, call.attrs["inplace_indices"], strict=True)
        ]
        if not isinstance(info, TupleStructInfo):
            return made[0]
        (number,) = self._fresh(TupleStructInfo(()))
        self.elements[number] = made
        return {number}
