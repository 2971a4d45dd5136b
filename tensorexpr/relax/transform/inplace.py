"""DataflowUseInplaceCalls: elementwise operators write into an operand that nothing reads any more.

z = R.add(x, y)                        z = R.add(x, y)
a = R.multiply(z, y)             ->    a = R.call_tir_inplace(cls.multiply_inplace, (z, y), inplace_indices=[0], ...)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dataclass import replace
from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int
from ...tir.block import BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad
from ...tir.function import IRModule, PrimFunc
from ...tir.op_registry import Op
from ...tir.rewriting import walk as walk_loops
from ...tir.stmt import BufferStore, SeqStmt, Stmt
from ...tir.stmt_functor import Renaming
from ..analysis.aliases import OUTSIDE, Aliases, live_ranges
from ..block_builder import BlockBuilder
from ..expr import Binding, BindingBlock, Call, DataflowBlock, Var, VarBinding
from ..extents import simplified
from ..ops.row import Pattern, row_of
from ..struct_info import TensorStructInfo
from ..visitor import Mutator
from .grouping import same_shape
from .legalize import has_known_shapes, legalized
from .passes import each_function

Candidates = list[tuple[int, set[int]]]


def inplace_candidates(block: BindingBlock, inputs: Sequence[Var]) -> tuple[Candidates, Candidates]:
    """The bindings of a block that may write into operands, with the places of these.

    Args:
        block: of bindings.
        inputs: parameters of its function, which are never written.

    Returns:
        those of operands with as many elements as the result, and of these those of operands of its shape.
    """
    found: tuple[Candidates, Candidates] = ([], [])
    aliases, ranges = Aliases(block, inputs), live_ranges(block)
    memory = {var: aliases.memory(var) for var in {*ranges, *inputs}}
    for n, binding in enumerate(block.bindings):
        call = binding.value
        if not _is_elementwise(call) or not isinstance(binding, VarBinding):
            continue
        result = binding.var.struct_info
        for places, fits in zip(found, (_same_size, same_shape), strict=True):
            own = {
                place
                for place, arg in enumerate(call.args)
                if isinstance(arg, Var)
                and _is_like(arg, result, fits)
                and _is_dead(arg, n, memory, ranges)
                and _is_alone(arg, call, memory)
            }
            if own:
                places.append((n, own))
    return found


def _is_elementwise(call: Any) -> bool:
    row = row_of(call)
    is_known = isinstance(call, Call) and isinstance(call.struct_info, TensorStructInfo) and has_known_shapes(call)
    return row is not None and row.te is not None and is_known and row.pattern <= Pattern.BROADCAST


def _is_like(arg: Var, result: Any, fits: Any) -> bool:
    info = arg.struct_info
    return isinstance(info, TensorStructInfo) and info.dtype == result.dtype and fits(info, result)


def _same_size(a: TensorStructInfo, b: TensorStructInfo) -> bool:
    sizes: list[Any] = [1, 1]
    for n, info in enumerate((a, b)):
        for extent in info.extents or ():
            sizes[n] = sizes[n] * extent
    return as_int(simplified(sizes[0] - sizes[1])) == 0 if not all(isinstance(one, int) for one in sizes) else sizes[0] == sizes[1]


def _is_dead(arg: Var, n: int, memory: dict[Var, set[int]], ranges: dict[Var, tuple[int, int]]) -> bool:
    """Whether nothing behind binding `n` reads the memory of an operand, which was made in the block."""
    own = memory[arg]
    if OUTSIDE in own:
        return False
    sharing = [var for var, numbers in memory.items() if numbers & own and ranges.get(var, (-1, 0))[0] < n]
    return all(ranges.get(var, (-1, 0))[0] >= 0 and ranges[var][1] <= n for var in sharing)


def _is_alone(arg: Var, call: Call, memory: dict[Var, set[int]]) -> bool:
    """Whether no other operand lies in the memory of this one."""
    return not any(isinstance(one, Var) and one is not arg and memory[one] & memory[arg] for one in call.args)


def written_into(func: PrimFunc, place: int, result: int) -> PrimFunc | None:
    """A tensor function that writes a result into an argument; None if another element of that may be read when one is written.

    Args:
        func: of blocks.
        place: of the argument.
        result: its place among the parameters, which it leaves.
    """
    params = [param for n, param in enumerate(func.params) if n != result]
    own, target = func.buffer_map[func.params[place]], func.buffer_map[func.params[result]]
    if not isinstance(func.body, BlockRealize) or not writes_last(func.body.block.body, target, own):
        return None
    body = Renaming({target.data: own.data}, folding=False, buffers={target: own}).apply(func.body)
    buffer_map = {param: func.buffer_map[param] for param in params if param in func.buffer_map}
    return replace(func, params=tuple(params), body=body, buffer_map=buffer_map)


def writes_last(body: Stmt, target: Buffer, own: Buffer) -> bool:
    """Whether the last of some loops, alone, writes a buffer, and reads of another one the very element that it writes."""
    *before, last = body.seq if isinstance(body, SeqStmt) else (body,)
    if any(isinstance(node, BufferStore) and node.buffer is target for stmt in before for node in walk_loops(stmt)):
        return False
    nodes = list(walk_loops(last))
    stores = [node for node in nodes if isinstance(node, BufferStore)]
    if len(stores) != 1 or stores[0].buffer is not target:
        return False
    loads = [node for node in nodes if isinstance(node, BufferLoad) and node.buffer is own]
    ones = [as_int(extent) == 1 for extent in own.shape]
    return all(all(a is b or one for a, b, one in zip(load.indices, stores[0].indices, ones, strict=True)) for load in loads)


def inplace_call(mod: IRModule, call: Call, places: Sequence[int]) -> tuple[Call, IRModule]:
    """A call of an elementwise operator as one that writes into operands, and a module with its tensor function.

    Args:
        mod: which isn't changed.
        call: of one result.
        places: the operand, as of `R.call_tir_inplace`.

    Raises:
        DeclarationError: for an operator that can't be written so.
    """
    plain, scratch = legalized(call)
    made = None
    if isinstance(plain, Call) and plain.op == "relax.call_tir":
        operands = list(plain.args[1].fields)
        place = next((n for n, one in enumerate(operands) if one is call.args[places[0]]), -1)
        func: Any = scratch[plain.args[0]]
        made = written_into(func, place, len(operands)) if place >= 0 else None
    if made is None:
        raise DeclarationError(f"{call} can't be written into operand {places[0]}")
    builder = BlockBuilder.over(mod.clone())
    callee = builder.add_func(made, f"{plain.args[0].name_hint}_inplace")
    args = (callee, *plain.args[1:])
    return Call(Op.of("relax.call_tir_inplace"), args, {"inplace_indices": (place,)}, plain.sinfo_args), builder.get()


class _Inplace(Mutator):
    """Blocks whose candidates write into operands."""

    def __init__(self, mod: IRModule, inputs: Sequence[Var]) -> None:
        super().__init__()
        self._mod, self._inputs = mod, inputs

    def block(self, block: BindingBlock) -> BindingBlock:
        """The block; of several operands that may be written the last one is."""
        block = super().block(block)
        if not isinstance(block, DataflowBlock):
            return block
        made: list[Binding] = list(block.bindings)
        for n, places in inplace_candidates(block, self._inputs)[1]:
            try:
                call, mod = inplace_call(self._mod, made[n].value, [max(places)])
            except DeclarationError:
                continue
            self._mod.update(mod)
            made[n] = VarBinding(made[n].var, call)
        return DataflowBlock(tuple(made))


def DataflowUseInplaceCalls() -> ModulePass:
    """A pass: in dataflow blocks elementwise operators write into an operand of the result's shape and dtype that nothing reads any more.

    What was made outside of the block is never written. Where it pays is a matter of what follows: `relax.build` takes such calls as ones
    with results of their own as long as it can fuse them, and its memory plan puts these where it can.
    """
    return each_function("DataflowUseInplaceCalls", lambda func, mod: _Inplace(mod, func.params).function(func))
