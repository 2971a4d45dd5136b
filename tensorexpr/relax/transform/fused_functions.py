"""Groups of bindings as functions: what each takes and returns, what it is called, and the order of its callers."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...dataclass import dataclass
from ...errors import DeclarationError
from ...tir.attrs import FrozenMap
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar, IRModule
from ..expr import Binding, Call, Constant, DataflowBlock, DataflowVar, Function, PrimValue, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from ..ops.row import row_of
from ..struct_info import (
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
    with_symbols,
)
from ..visitor import Mutator, walk

PRIMITIVE = "Primitive"


@dataclass(eq=False)
class Composite:
    """A group that becomes a function even of one binding.

    Args:
        attrs: of the function.
        bind_constants: whether constants stand in it.
        suffix: of its name.
    """

    attrs: Mapping[str, Any]
    bind_constants: bool = True
    suffix: str = ""


def grouped(block: DataflowBlock, groups: Sequence[Any], mod: IRModule, bind_numbers: bool) -> DataflowBlock:
    """A block with calls of functions in place of groups of two or more bindings; the functions are added to the module.

    Args:
        block: of bindings.
        groups: of each binding the group that it is in.
        mod: where functions are added.
        bind_numbers: whether constants of one element stand in the functions.

    Raises:
        DeclarationError: if a group reads what is made of its own results outside of it.
    """
    units: dict[Any, list[int]] = {}
    for number, group in enumerate(groups):
        units.setdefault(group, []).append(number)
    if all(len(unit) == 1 and not isinstance(group, Composite) for group, unit in units.items()):
        return block
    made: list[Binding] = []
    readers: dict[Var, set[int]] = {}
    for number, binding in enumerate(block.bindings):
        for var in _variables(binding.value):
            readers.setdefault(var, set()).add(number)
    for unit in _in_order(block, list(units.values())):
        members = [block.bindings[number] for number in unit]
        group = groups[unit[0]] if isinstance(groups[unit[0]], Composite) else None
        within = set(unit)
        # What bindings outside of the group read, and what outlives the block.
        elsewhere = {b.var for b in members if not isinstance(b.var, DataflowVar) or not readers.get(b.var, within) <= within}
        found = _function(members, elsewhere, mod, group, bind_numbers) if len(unit) > 1 or group is not None else None
        made += members if found is None else found
    return DataflowBlock(tuple(made))


def _in_order(block: DataflowBlock, units: Sequence[Sequence[int]]) -> Iterable[Sequence[int]]:
    """Groups, each behind those that it reads; else by their last binding."""
    place = {number: n for n, unit in enumerate(units) for number in unit}
    made_by = {binding.var: place[number] for number, binding in enumerate(block.bindings)}
    needed: list[set[int]] = [set() for _ in units]
    readers: list[set[int]] = [set() for _ in units]
    for number, binding in enumerate(block.bindings):
        for var in _variables(binding.value):
            producer = made_by.get(var, place[number])
            if producer != place[number]:
                needed[place[number]].add(producer)
                readers[producer].add(place[number])
    # Of those that are ready the one whose last binding stood first: what isn't grouped keeps its order.
    ready = [(units[n][-1], n) for n in range(len(units)) if not needed[n]]
    heapq.heapify(ready)
    count = 0
    while ready:
        _, n = heapq.heappop(ready)
        count += 1
        yield units[n]
        for reader in readers[n]:
            needed[reader].discard(n)
            if not needed[reader]:
                heapq.heappush(ready, (units[reader][-1], reader))
    if count != len(units):
        raise DeclarationError("FuseOps: a group reads what is made of its own results outside of it")


def _variables(expr: Any) -> Iterable[Var]:
    return (node for node in walk(expr) if isinstance(node, Var))


def _function(
    members: Sequence[Binding], elsewhere: set[Var], mod: IRModule, group: Composite | None, bind_numbers: bool
) -> list[Binding] | None:
    """Bindings that call a new function of the members; None for members that no function can hold."""
    own = {binding.var for binding in members}
    outputs = [binding.var for binding in members if binding.var in elsewhere]
    inputs: dict[Any, Var] = {}
    for binding in members:
        for node in walk(binding.value):
            if node in inputs or node in own:
                continue
            if isinstance(node, Var):
                inputs[node] = Var(node.name_hint, node.struct_info)
            # Weights are parameters, so that layers of one shape share a kernel.
            elif isinstance(node, Constant) and not (group.bind_constants if group else bind_numbers and node.data.ndim == 0):
                inputs[node] = Var(f"param_{len(inputs)}", node.struct_info)
    known = {extent for param in inputs.values() for extent in _extents(param.struct_info) if isinstance(extent, Symbol)}
    used = {symbol for binding in members for symbol in symbols_of(binding.var.struct_info)}
    used.update(symbol for param in inputs.values() for symbol in symbols_of(param.struct_info))
    # Numbers that kernels are told, too.
    used.update(symbol for binding in members for node in walk(binding.value) for symbol in _told(node))
    unsettled = sorted(used - known, key=lambda symbol: symbol.name)
    # What codes for others is called with tensors alone.
    if not outputs or (unsettled and group is not None) or (group is None and not all(map(_is_known, inputs.values()))):
        return None
    if unsettled:
        # Of [(h + 1) // 2] nobody can tell h: the caller says it. A kernel needs no more than the extents, see `tensor_function.Sizes`.
        inputs[ShapeExpr(tuple(unsettled))] = Var("sizes", ShapeStructInfo(tuple(unsettled)))
    # Symbols of its own: each caller has other values for them.
    fresh = {symbol: type(symbol)(symbol.name, symbol.dtype) for symbol in used}
    mutator = _Inside(inputs, fresh)
    params = tuple(mutator.define_param(given, param) for given, param in inputs.items())
    body: list[Binding] = []
    for binding in members:
        kept = mutator.binding(binding)
        body += kept if binding.var not in outputs else [VarBinding(mutator.outliving(kept[0].var, binding.var), kept[0].value)]
    results = [mutator.visit(var) for var in outputs]
    result: Any = results[0] if len(results) == 1 else Tuple(tuple(results))
    func = Function(
        params, SeqExpr((DataflowBlock(tuple(body)),), result), attrs=FrozenMap({**({} if group is None else group.attrs), PRIMITIVE: 1})
    )
    name = free_name(mod, "_".join(["fused", *filter(None, (_name(member, group is not None) for member in members))]))
    callee = GlobalVar(free_name(mod, name + group.suffix) if group is not None else name)
    mod.update_func(callee, func)  # type: ignore[arg-type]
    info: StructInfo = outputs[0].struct_info if len(outputs) == 1 else TupleStructInfo(tuple(var.struct_info for var in outputs))
    call = Call(callee, tuple(inputs), None, None, info)
    if len(outputs) == 1:
        return [VarBinding(outputs[0], call)]
    several = DataflowVar("lv", info)
    return [VarBinding(several, call), *(VarBinding(var, TupleGetItem(several, n)) for n, var in enumerate(outputs))]


def _is_known(param: Var) -> bool:
    """Whether a kernel can take it: it isn't a tensor whose extents show when it is there."""
    return not isinstance(param.struct_info, TensorStructInfo) or param.struct_info.extents is not None


def _told(node: Any) -> Iterable[Symbol]:
    return symbols_of(node.struct_info) if isinstance(node, (ShapeExpr, PrimValue)) else ()


def _extents(info: StructInfo) -> Sequence[Any]:
    if isinstance(info, PrimStructInfo):
        return () if info.value is None else (info.value,)
    return info.extents or () if isinstance(info, TensorStructInfo) else ()


class _Inside(Mutator):
    """Rewrites members with parameters in place of what they read from outside."""

    def define_param(self, given: Any, param: Var) -> Var:
        """The parameter for a variable or constant, with symbols of the new function."""
        made = Var(param.name_hint, with_symbols(param.struct_info, self._symbols))
        self._variables[given] = made
        return made

    def outliving(self, var: Var, given: Var) -> Var:
        """The variable of a result, which outlives the block."""
        made = Var(var.name_hint, var.struct_info)
        self._variables[given] = made
        return made

    def visit(self, expr: Any) -> Any:
        """An expression rewritten; constants that are parameters too."""
        if isinstance(expr, Constant):
            return self._variables.get(expr, expr)
        return super().visit(expr)


def _name(binding: Binding, whole: bool) -> str:
    """What a binding adds to the name of its function; operators by their `whole` names in what a pattern matched: relax_nn_conv2d."""
    call = binding.value
    if not isinstance(call, Call):
        return ""
    if isinstance(call.op, GlobalVar):
        return call.op.name_hint.removeprefix("fused_")
    row = row_of(call)
    known = "" if row is None else f"relax.{row.name}" if whole else row.name.rpartition(".")[2]
    return re.sub(r"\W", "_", call.args[0].name_hint if call.op == "relax.call_tir" else known)


def free_name(mod: IRModule, name: str) -> str:
    """The name, or with a number behind it if the module has such a function."""
    found, number = name, 0
    while found in mod:
        number += 1
        found = f"{name}{number}"
    return found
