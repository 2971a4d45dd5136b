"""Calls in place in `relax.build`: those that it can fuse get results of their own, and others overwrite nothing that is read later.

A graph has values, and `R.call_tir_inplace` says that nobody needs the one that it overwrites any more. That holds for the program as it
was written; what rewrites graphs doesn't count with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dataclass import replace
from ...lower.passes import ModulePass
from ...tir.block import Block, BlockRealize
from ...tir.buffer import BufferRegion, decl_buffer
from ...tir.expr import Var as Symbol
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.op_registry import Op
from ...tir.rewriting import post_order_rewrite
from ...tir.stmt import BufferStore
from ..analysis.aliases import OUTSIDE, Aliases
from ..block_builder import BlockBuilder
from ..expr import Binding, BindingBlock, Call, ExternFunc, MatchCast, SeqExpr, Tuple, Var, VarBinding
from ..struct_info import TensorStructInfo
from ..visitor import Mutator, walk
from .inplace import writes_last
from .passes import each_function

_INPLACE = "relax.call_tir_inplace"


def out_of_place(func: PrimFunc, place: int) -> PrimFunc | None:
    """A tensor function with a result of its own behind its arguments, or None if it can't have one: it reads what it has written.

    Args:
        func: of blocks, which writes into an argument.
        place: of that argument.
    """
    own = func.buffer_map.get(func.params[place])
    if own is None or not isinstance(func.body, BlockRealize) or not writes_last(func.body.block.body, own, own):
        return None
    result = decl_buffer(own.shape, own.dtype, f"{own.name}_result")

    def rule(node: Any) -> Any:
        if isinstance(node, BufferStore) and node.buffer is own:
            return replace(node, buffer=result)
        if isinstance(node, Block) and any(one.buffer is own for one in node.writes):
            return replace(node, writes=tuple(BufferRegion(result, one.region) if one.buffer is own else one for one in node.writes))
        return None

    handle = Symbol(result.name, "handle")
    behind = max(n for n, param in enumerate(func.params) if param in func.buffer_map) + 1
    params = (*func.params[:behind], handle, *func.params[behind:])
    return replace(func, params=params, body=post_order_rewrite(func.body, rule), buffer_map={**func.buffer_map, handle: result})


class _OutOfPlace(Mutator):
    """Calls that overwrite what was made in their block, as ones with results of their own."""

    def __init__(self, mod: IRModule, inputs: Sequence[Var]) -> None:
        super().__init__()
        self._builder, self._mod, self._inputs = BlockBuilder.over(mod), mod, inputs
        self._apart: set[Var] = set()

    def block(self, block: BindingBlock) -> BindingBlock:
        """The block; what comes from outside, as a cache does, is overwritten as the program says."""
        if not any(isinstance(b.value, Call) and b.value.op == _INPLACE for b in block.bindings):
            return super().block(block)
        aliases = Aliases(block, self._inputs)
        given = {OUTSIDE, *(number for var in self._inputs for number in aliases.memory(var))}
        self._apart |= {binding.var for binding in block.bindings if not aliases.memory(binding.var) & given}
        return super().block(block)

    def binding(self, binding: Binding) -> list[Binding]:
        """The binding; a call is looked at with the operands that it had."""
        call = binding.value
        found = self._plain(call) if isinstance(binding, VarBinding) and isinstance(call, Call) and call.op == _INPLACE else None
        return super().binding(binding if found is None else VarBinding(binding.var, found))

    def _plain(self, call: Call) -> Call | None:
        places, args = call.attrs["inplace_indices"], call.args[1]
        callee: Any = self._mod[call.args[0]] if isinstance(call.args[0], GlobalVar) else None
        is_one = len(places) == 1 and isinstance(args, Tuple) and isinstance(callee, PrimFunc)
        if not is_one or args.fields[places[0]] not in self._apart or not isinstance(call.struct_info, TensorStructInfo):
            return None
        made = out_of_place(callee, places[0])
        if made is None:
            return None
        private = made.without_attr("global_symbol") if "global_symbol" in made.attrs else made
        new = self._builder.add_func(private, call.args[0].name_hint.removesuffix("_inplace"))
        return Call(Op.of("relax.call_tir"), (new, *call.args[1:]), None, call.sinfo_args)


def OutOfPlace() -> ModulePass:
    """A pass: elementwise calls that overwrite what was made in their block get results of their own, so that they can be fused.

    The memory plan puts these where the operand was, if it can.
    """
    return each_function("OutOfPlace", lambda func, mod: _OutOfPlace(mod, func.params).function(func))


class _Keeper(Mutator):
    """Sequences in which what is read after it was overwritten is copied before."""

    def __init__(self, inputs: Sequence[Var]) -> None:
        super().__init__()
        self._inputs = inputs

    def rewrite(self, expr: Any) -> Any:
        """A sequence with copies, if it needs any."""
        if not isinstance(expr, SeqExpr) or not any(isinstance(b.value, Call) and b.value.op == _INPLACE for b in expr.bindings()):
            return expr
        bindings = list(expr.bindings())
        aliases = Aliases(BindingBlock(tuple(bindings)), self._inputs)
        places = {binding.var: n for n, binding in enumerate(bindings)}
        kept: dict[int, list[tuple[Var, Var]]] = {}
        for n, binding in enumerate(bindings):
            if isinstance(binding.value, Call) and binding.value.op == _INPLACE:
                old = [var for var in _overwritten(binding.value, aliases) if isinstance(var.struct_info, TensorStructInfo)]
                later = {one for value in (*(b.value for b in bindings[n + 1 :]), expr.body) for one in walk(value) if isinstance(one, Var)}
                lost = [var for var in old if var in later and places.get(var, -1) < n]
                kept[n] = [(var, type(var)(f"{var.name_hint}_before", var.struct_info)) for var in lost]
        return _with_copies(expr, kept) if any(kept.values()) else expr


def _overwritten(call: Call, aliases: Aliases) -> Sequence[Var]:
    """The variables that may be the memory that a call overwrites."""
    args: Any = call.args[1]
    written = [args.fields[n] for n in call.attrs["inplace_indices"] if n >= 0] if isinstance(args, Tuple) else [args]
    own = [var for var in written if isinstance(var, Var)]
    memory = {number for var in own for number in aliases.memory(var)} - {OUTSIDE}
    return [*dict.fromkeys((*own, *(var for var in aliases.sets if aliases.memory(var) & memory)))]


def _with_copies(sequence: SeqExpr, kept: dict[int, list[tuple[Var, Var]]]) -> SeqExpr:
    """A sequence with copies in front of bindings by number, which what follows reads in place of what is copied."""
    names = Mutator()
    blocks, n = list[BindingBlock](), 0
    for block in sequence.blocks:
        made = list[Binding]()
        for binding in block.bindings:
            pairs = kept.get(n, [])
            for var, copy in pairs:
                source, info = names.visit(var), (var.struct_info,)
                made.append(VarBinding(copy, Call(Op.of("relax.call_pure_packed"), (ExternFunc("vm.builtin.copy"), source), None, info)))
            value = names.visit(binding.value)
            if isinstance(binding, MatchCast):
                made.append(MatchCast(binding.var, value, binding.struct_info))
            else:
                made.append(VarBinding(binding.var, value))
            names = Mutator({**names._variables, **dict(pairs)}) if pairs else names
            n += 1
        blocks.append(type(block)(tuple(made)))
    return SeqExpr(tuple(blocks), names.visit(sequence.body))


def KeepOverwritten() -> ModulePass:
    """A pass: values that are read after a call in place has overwritten them are copied before."""
    return each_function("KeepOverwritten", lambda func, mod: _Keeper(func.params).function(func))
