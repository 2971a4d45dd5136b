"""Memory written out: results become tensors that are made before the call, in storages that values share over time.

`relax.build` doesn't need these passes, as it plans stretches of kernels itself (`runtime.stretch`); it runs what they make.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...arith.analyzer import Analyzer
from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...tir.arithmetic import as_int, const
from ...tir.dtype import parse_dtype
from ...tir.expr import PrimExpr, Range
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.op_registry import Op
from ..expr import Binding, BindingBlock, Call, ExternFunc, Function, PrimValue, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from ..extents import simplified
from ..ops.calls import VOID
from ..ops.memory import alloc_storage, alloc_tensor, alloc_tensor_in, kill_storage, kill_tensor
from ..runtime.memory import Lifetime, place
from ..runtime.stretch import VIEWS
from ..struct_info import ShapeExpr, StructInfo, TensorStructInfo, TupleStructInfo, symbols_of
from ..visitor import Mutator, walk
from .dataflow import without_dataflow
from .passes import each_function

_PASSING = ("relax.call_tir", "relax.call_tir_inplace", "relax.call_tir_with_grad", "relax.call_dps_packed")


class _Destinations(Mutator):
    """Calls that pass destinations, with tensors made for these."""

    def binding(self, binding: Binding) -> list[Binding]:
        """The tensors, the call, and the value, which is the tensors."""
        (made,) = super().binding(binding)
        call = made.value
        if not isinstance(made, VarBinding) or not isinstance(call, Call) or not isinstance(call.op, Op) or call.op not in _PASSING:
            return [made]
        info = call.sinfo_args[0]
        infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
        places = call.attrs.get("inplace_indices") or [-1] * len(infos)
        before: list[Binding] = []
        inputs = list(self._fields(call.args[1], before))
        results: list[Any] = []
        for one, number in zip(infos, places, strict=True):
            if number >= 0:
                results.append(inputs[number])
                continue
            if not isinstance(one, TensorStructInfo) or one.extents is None or not one.dtype:
                raise DeclarationError(f"CallTIRRewrite: {made.var.name_hint} is {one}: its shape and dtype have to be stated")
            results.append(_bound("alloc", alloc_tensor(one.extents, one.dtype), before, one))
        own = [one for one, number in zip(results, places, strict=True) if number < 0]
        extra = [PrimValue(value) for value in call.args[2].values] if len(call.args) > 2 else []
        is_kernel = isinstance(call.args[0], GlobalVar)
        effect = Call(call.args[0], [*inputs, *own, *extra], None, () if is_kernel else VOID, VOID if is_kernel else None)
        _bound("_", effect, before, VOID)
        return [*before, VarBinding(made.var, Tuple(tuple(results)) if isinstance(info, TupleStructInfo) else results[0])]

    def _fields(self, args: Any, before: list[Binding]) -> Iterable[Any]:
        if isinstance(args, Tuple):
            return args.fields
        info = args.struct_info
        fields = info.fields if isinstance(info, TupleStructInfo) else ()
        return [_bound("lv", TupleGetItem(args, n), before, one) for n, one in enumerate(fields)]


def _bound(name: str, value: Any, into: list[Binding], info: StructInfo) -> Var:
    into.append(VarBinding(Var(name, info), value))
    return into[-1].var


def CallTIRRewrite() -> ModulePass:
    """A pass: `y = R.call_tir(f, (x,), ...)` becomes `alloc = R.builtin.alloc_tensor(...)`, `f(x, alloc)`, `y = alloc`.

    Raises:
        DeclarationError: for results whose shapes or dtypes aren't stated.
    """
    return each_function("CallTIRRewrite", lambda func, mod: _Destinations().function(without_dataflow(func)))


class _Planner(Mutator):
    """Sequences whose tensors lie in one storage, where their sizes are known."""

    def __init__(self, mod: IRModule, bounds: Mapping[str, int]) -> None:
        super().__init__()
        self._mod = mod
        self._bounds = bounds
        self._outside: frozenset[Var] = frozenset()

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block of bindings, with its storage first."""
        return self._planned(super().block(block))

    def rewrite(self, expr: Any) -> Any:
        """A sequence; what its last value uses isn't planned, which is known here only."""
        return expr

    def _planned(self, block: BindingBlock) -> BindingBlock:
        lives = lifetimes(block, self._mod, self._outside)
        sizes = {var: bytes_of(var.struct_info, self._bounds) for var in lives}
        chosen = [var for var in lives if sizes[var] is not None]
        if not chosen:
            return block
        arena = place([Lifetime(sizes[var] or 0, *lives[var]) for var in chosen])
        offsets = dict(zip(chosen, arena.offsets, strict=True))
        bindings: list[Binding] = []
        storage = _bound("storage", alloc_storage(arena.size), bindings, alloc_storage(arena.size).struct_info)
        for binding in block.bindings:
            if binding.var in offsets:
                shape, dtype = binding.value.args[:2]
                binding = VarBinding(binding.var, alloc_tensor_in(storage, offsets[binding.var], shape, dtype))
            bindings.append(binding)
        return type(block)(tuple(bindings))

    def function(self, func: Function) -> Function:
        """A function; what more than one block or an inner function uses, or what is returned, isn't planned."""
        outer = self._outside
        self._outside = outer | _escaping(func)
        made = super().function(func)
        self._outside = outer
        return made


def _escaping(func: Function) -> frozenset[Var]:
    """Variables that sequences return, or that are used outside of the block that binds them."""
    found: set[Var] = set()
    for node in walk(func):
        if isinstance(node, SeqExpr):
            found.update(one for one in walk(node.body) if isinstance(one, Var))
            for block in node.blocks:
                inside = {binding.var for binding in block.bindings}
                for binding in block.bindings:
                    # Branches and inner functions: when they read a value isn't told by the places of the block's bindings.
                    nested = binding.value if not isinstance(binding.value, (Call, Tuple, TupleGetItem, Var)) else None
                    found.update(one for one in walk(nested) if isinstance(one, Var) and one in inside)
                found.update(one for one in _uses_elsewhere(node, block) if one in inside)
    return frozenset(found)


def _uses_elsewhere(sequence: SeqExpr, block: BindingBlock) -> Iterable[Var]:
    for other in sequence.blocks:
        if other is not block:
            for binding in other.bindings:
                yield from (one for one in walk(binding.value) if isinstance(one, Var))


def lifetimes(block: BindingBlock, mod: IRModule, outside: frozenset[Var] = frozenset()) -> dict[Var, tuple[int, int]]:
    """The first and last binding of a block that use each tensor made in it, those aside that somebody may keep."""
    roots: dict[Var, frozenset[Var]] = {}
    lives: dict[Var, tuple[int, int]] = {}
    kept: set[Var] = set()
    for n, binding in enumerate(block.bindings):
        value = binding.value
        used = frozenset(root for node in walk(value) if isinstance(node, Var) for root in roots.get(node, ()))
        for root in used:
            lives[root] = lives[root][0], n
        if isinstance(value, Call) and value.op == "relax.builtin.alloc_tensor":
            roots[binding.var], lives[binding.var] = frozenset((binding.var,)), (n, n)
        elif not isinstance(value, Call) or value.op in VIEWS:
            roots[binding.var] = used  # another name for it
        # What may keep or return an argument ends all that is known of its lifetime.
        elif not _keeps_nothing(value, mod):
            kept |= used
        if binding.var in outside:
            kept |= roots.get(binding.var, frozenset())
    return {var: life for var, life in lives.items() if var not in kept}


def _keeps_nothing(call: Call, mod: IRModule) -> bool:
    """Whether a call only reads and writes its arguments."""
    if isinstance(call.op, GlobalVar):
        return isinstance(mod[call.op], PrimFunc)
    return call.op in _FREE or (isinstance(call.op, ExternFunc) and call.struct_info == VOID)


_FREE = ("relax.memory.kill_tensor", "relax.memory.kill_storage", "relax.shape_of", "relax.print", "relax.assert_op")


def bytes_of(info: StructInfo, bounds: Mapping[str, int]) -> int | None:
    """The bytes of a tensor, or the most that it may have by the bounds of its symbols; None if they aren't known.

    Args:
        info: of the tensor.
        bounds: of symbols by their names.
    """
    if not isinstance(info, TensorStructInfo) or info.extents is None or not info.dtype:
        return None
    size: PrimExpr = const(parse_dtype(info.dtype).itemsize, "int64")
    for extent in info.extents:
        size = size * extent
    analyzer = Analyzer()
    for symbol in symbols_of(info):
        if symbol.name not in bounds:
            return None
        analyzer.bind(symbol, Range(1, bounds[symbol.name] + 1))
    number = as_int(analyzer.simplify(size))
    if number is not None:
        return number
    # Beyond is the analyzer's infinity, or a size that no memory has.
    most = analyzer.const_int_bound(size).max_value
    return None if most >= 1 << 60 else int(most)


def StaticPlanBlockMemory() -> ModulePass:
    """A pass: tensors that CallTIRRewrite made lie in one storage per block, where those that live at one time don't overlap.

    Symbolic sizes are planned by the function's attribute "tir_var_upper_bound", numbers by names of symbols. What is returned, used in
    other blocks, or passed to functions that may keep it isn't planned.
    """

    def run(func: Function, mod: IRModule) -> Function:
        bounds = {str(name): int(as_int(value) or 0) for name, value in dict(func.attrs.get("tir_var_upper_bound", {})).items()}
        return _Planner(mod, bounds).function(func)

    return each_function("StaticPlanBlockMemory", run)


class _Lowered(Mutator):
    """Tensors with storages of their own."""

    def binding(self, binding: Binding) -> list[Binding]:
        """The storage, and the tensor in it."""
        (made,) = super().binding(binding)
        call = made.value
        if not isinstance(call, Call) or call.op != "relax.builtin.alloc_tensor":
            return [made]
        before: list[Binding] = []
        size: PrimExpr = const(parse_dtype(call.args[1].value).itemsize, "int64")
        for extent in call.args[0].values:
            size = size * extent
        storage = alloc_storage(ShapeExpr((simplified(size),)))
        var = _bound("storage", storage, before, storage.struct_info)
        return [*before, VarBinding(made.var, alloc_tensor_in(var, 0, call.args[0], call.args[1]))]


def LowerAllocTensor() -> ModulePass:
    """A pass: each tensor that is made by itself lies in a storage of its own."""
    return each_function("LowerAllocTensor", lambda func, mod: _Lowered().function(func))


class _Killer(Mutator):
    """Sequences that say after which binding nobody uses a tensor or storage."""

    def rewrite(self, expr: Any) -> Any:
        """A sequence with kills."""
        return _killed(expr) if isinstance(expr, SeqExpr) else expr


def _killed(sequence: SeqExpr) -> SeqExpr:
    made: dict[Var, Any] = {}
    alias: dict[Var, Var] = {}
    last: dict[Var, int] = {}
    bindings = list(sequence.bindings())

    def root(var: Var) -> Var:
        while var in alias:
            var = alias[var]
        return var

    for n, binding in enumerate(bindings):
        value = binding.value
        for node in walk(value):
            if isinstance(node, Var) and root(node) in made:
                # By its root: a use of any name of a tensor keeps it.
                last[root(node)] = n
        if isinstance(value, Var):
            alias[binding.var] = value
        elif isinstance(value, Call) and value.op in (*_KILLED, *VIEWS):
            made[binding.var], last[binding.var] = kill_storage if value.op == _KILLED[0] else kill_tensor, n
        elif not isinstance(value, Call) or value.struct_info != VOID:
            for node in walk(value):  # an element or a result that may be it
                if isinstance(node, Var):
                    made.pop(root(node), None)
    for node in walk(sequence.body):
        if isinstance(node, Var):
            made.pop(root(node), None)
    ended: dict[int, list[Binding]] = {}
    for var, kill in made.items():
        _bound("_", kill(var), ended.setdefault(last[var], []), VOID)
    # Numbers go on from block to block, as those of `bindings` do.
    blocks, n = [], 0
    for block in sequence.blocks:
        inside: list[Binding] = []
        for binding in block.bindings:
            inside += [binding, *ended.get(n, ())]
            n += 1
        blocks.append(type(block)(tuple(inside)))
    return SeqExpr(tuple(blocks), sequence.body)


_KILLED = ("relax.memory.alloc_storage", "relax.memory.alloc_tensor")


def KillAfterLastUse() -> ModulePass:
    """A pass: after the last use of each tensor and storage stands that nobody uses it any more."""
    return each_function("KillAfterLastUse", lambda func, mod: _Killer().function(func))


def estimate_memory_usage(mod: IRModule) -> str:
    """How much memory the results of calls take in each function, all by themselves and planned, as text.

    Sizes that aren't known are left out.
    """
    lowered = CallTIRRewrite()(mod)
    planned = StaticPlanBlockMemory()(lowered)
    lines = ["Memory usage estimation:"]
    for var, func in lowered.functions_items():
        if isinstance(func, Function):
            before, after = (_sizes(one) for one in (func, planned[var.name_hint]))
            lines.append(f"- Function {var.name_hint}:")
            lines += [
                f" * {how} memory planning, there are {len(sizes)} constant-size memory allocation(s) with total size "
                f"{sum(sizes) / 2**30:.4} GB."
                for how, sizes in (("Without", before), ("With", after))
            ]
    return "\n".join(lines)


def _sizes(func: Any) -> Sequence[int]:
    """The bytes of all that a function allocates."""
    found: list[int | None] = []
    for node in walk(func.body):
        if isinstance(node, Call) and node.op == "relax.builtin.alloc_tensor":
            found.append(bytes_of(node.struct_info, {}))
        elif isinstance(node, Call) and node.op == "relax.memory.alloc_storage":
            extents = [as_int(one) for one in node.args[0].values]
            found.append(None if None in extents else math.prod(int(one or 0) for one in extents))
    return [one for one in found if one is not None]


__all__ = [
    "CallTIRRewrite", "KillAfterLastUse", "LowerAllocTensor", "StaticPlanBlockMemory", "estimate_memory_usage",
]  # fmt: skip
