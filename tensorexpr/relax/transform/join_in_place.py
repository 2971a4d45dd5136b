"""JoinInPlace: kernels write their results where a concatenation wants them, so that no kernel copies them there.

    a = conv(x); b = pool(x); c = concat(a, b)        c1 = conv(x) as c1[.., :64]; c = pool(x) as c1[.., 64:]

The first kernel makes the whole of which it writes a part, the others write theirs in place. What else reads a part reads it there, and
what comes from elsewhere is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass, field
from ...errors import DeclarationError
from ...lower.passes import ModulePass
from ...te.dag import post_dfs_order
from ...te.declare import compute
from ...te.operation import ComputeOp, PlaceholderOp
from ...te.tensor import Tensor
from ...tir.arithmetic import as_int
from ...tir.dtype import parse_dtype
from ...tir.expr import LT, PrimExpr, ProducerLoad
from ...tir.expr import Call as IntrinsicCall
from ...tir.expr import Var as Axis
from ...tir.function import GlobalVar, IRModule, PrimFunc
from ...tir.op_registry import Op
from ..expr import Binding, BindingBlock, Call, DataflowBlock, DataflowVar, Function, Tuple, Var, VarBinding
from ..ops.calls import call_tir_inplace
from ..regions import Region, regions_of, stated_regions
from ..struct_info import TensorStructInfo
from ..tensor_function import function_of_tensors, plain_tensors
from ..visitor import Mutator, walk
from .canonicalize import used_outside
from .passes import graph_pass
from .simple import DeadCodeElimination

_LINE = 64  # bytes: runs of fewer would share lines of a cache with those of other parts


def joined_parts(result: Tensor) -> tuple[int, list[tuple[Tensor, int]]] | None:
    """The axis and the tensors of a concatenation, each with the place where it begins; None for other computations.

    Example:
        C[i, j] = if_then_else(j < 8, A[i, j], B[i, j - 8]), A of 8 columns; two reads of one tensor that continue each other are one.
    """
    found = _choices(result)
    if found is None:
        return None
    axis, reads = found
    variables = [one.var for one in result.op.axis]
    parts: list[tuple[Tensor, int, int]] = []  # where each begins and ends
    begin = 0
    for load, end in reads:
        tensor: Any = load.producer
        goes_on = bool(parts) and parts[-1][0] is tensor
        first = parts.pop()[1] if goes_on else begin
        if len(load.indices) != len(variables) or as_int(Analyzer().simplify(load.indices[axis] - variables[axis])) != -first:
            return None
        if any(a is not b for n, (a, b) in enumerate(zip(load.indices, variables, strict=True)) if n != axis):
            return None
        parts.append((tensor, first, end))
        begin = end
    shape = [as_int(extent) for extent in result.shape]
    for tensor, first, end in parts:
        if [as_int(extent) for extent in tensor.shape] != [*shape[:axis], end - first, *shape[axis + 1 :]]:
            return None
    return (axis, [(tensor, first) for tensor, first, _ in parts]) if len(parts) > 1 else None


def _choices(result: Tensor) -> tuple[int, list[tuple[ProducerLoad, int]]] | None:
    """The axis along which a computation chooses among loads, and these, each up to an index; None if it is anything else."""
    op = result.op
    if not isinstance(op, ComputeOp) or op.num_outputs != 1 or op.reduce_axis:
        return None
    places = {one.var: place for place, one in enumerate(op.axis)}
    axes, reads = set[int](), list[tuple[Any, int | None]]()
    expr: PrimExpr = op.body[0]
    while isinstance(expr, IntrinsicCall) and expr.op == "tir.if_then_else":
        cond, chosen, expr = expr.args
        if not isinstance(cond, LT) or not isinstance(cond.a, Axis) or cond.a not in places:
            return None
        axes.add(places[cond.a])
        reads.append((chosen, as_int(cond.b)))
    if len(axes) != 1:
        return None
    (axis,) = axes
    reads.append((expr, as_int(result.shape[axis])))
    known = [(load, end) for load, end in reads if isinstance(load, ProducerLoad) and end is not None]
    return (axis, known) if len(known) == len(reads) else None


def _extents(tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(as_int(extent) or 0) for extent in tensor.shape)


@dataclass
class _Join:
    """A concatenation whose parts are written in place.

    Args:
        var: what it is called.
        binding: its place in the block.
        last: the place of the binding that writes the last part.
        extents: of the whole.
        parts: by variable, where each begins.
        given: those that are computed or copied at the end, as no other kernel writes them: of which tensors of the concatenation.
        args: what these tensors are computed of.
        current: the whole as far as it is written.
    """

    var: Var
    binding: int
    last: int
    extents: tuple[int, ...]
    parts: dict[Var, tuple[int, ...]]
    given: list[tuple[Tensor, tuple[int, ...]]]
    args: Mapping[Tensor, Any]
    current: Var | None = field(default_factory=lambda: None)


class _Kernels:
    """The tensor functions of a module, and those of their computations with arguments in larger tensors."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self._made: dict[Any, GlobalVar] = {}
        self._tensors: dict[str, list[Tensor] | None] = {}

    def tensors(self, binding: Binding) -> list[Tensor] | None:
        """The tensors of what a binding computes with one result; None if loops aren't ours to place."""
        call: Any = binding.value if isinstance(binding, VarBinding) else None
        if not isinstance(call, Call) or call.op != "relax.call_tir" or len(call.args) != 2 or not isinstance(call.args[0], GlobalVar):
            return None
        name = call.args[0].name_hint
        if name not in self._tensors:
            self._tensors[name] = self._computation(self.mod[name])
        return self._tensors[name]

    def _computation(self, func: Any) -> list[Tensor] | None:
        if not isinstance(func, PrimFunc) or "global_symbol" in func.attrs or func.attrs.get("tir.is_scheduled") or regions_of(func):
            return None
        try:
            tensors = plain_tensors(func)
        except DeclarationError:
            return None
        results = [one for one in tensors if not isinstance(one.op, PlaceholderOp)]
        known = all(as_int(extent) is not None for one in tensors for extent in one.shape)
        return tensors if known and len(results) == 1 and tensors[-1] is results[0] else None

    def placed(self, callee: GlobalVar, regions: Mapping[int, Region]) -> GlobalVar:
        """The function of the same computation whose arguments at these places are parts."""
        key = callee.name_hint, tuple(sorted(regions.items()))
        if key not in self._made:
            self._made[key] = self.add(stated_regions(self.mod[callee], regions), callee.name_hint)
        return self._made[key]

    def inputs(self, tensor: Tensor) -> list[Tensor]:
        """The arguments of a kernel that a part of its concatenation is computed of."""
        return [op.output(0) for op in post_dfs_order([tensor.op]) if isinstance(op, PlaceholderOp)]

    def part(self, tensor: Tensor) -> tuple[GlobalVar, list[Tensor]]:
        """The function that computes a part of a concatenation, or copies an argument of it, and what it is computed of."""
        is_given = isinstance(tensor.op, PlaceholderOp)
        given = self.inputs(tensor)
        key: Any = (*map(as_int, tensor.shape), tensor.dtype) if is_given else tensor
        if key not in self._made:
            made = compute(tensor.shape, lambda *i: tensor[i], "copy") if is_given else tensor
            self._made[key] = self.add(function_of_tensors(given, [made]), made.op.name)
        return self._made[key], given

    def add(self, func: PrimFunc, name: str) -> GlobalVar:
        """A function under a name of its own."""
        taken = {var.name_hint for var in self.mod.get_global_vars()}
        free = next(one for n in range(len(taken) + 1) if (one := f"{name}_{n}" if n else name) not in taken)
        self.mod.update_func(free, func)
        return self.mod.get_global_var(free)


class _Blocks(Mutator):
    """Dataflow blocks whose concatenations are written in place."""

    def __init__(self, kernels: _Kernels, outside: set[Var]) -> None:
        super().__init__()
        self._kernels, self._outside = kernels, outside

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block with what it joins in place."""
        made = super().block(block)
        if not isinstance(made, DataflowBlock):
            return made
        joins = list(self._joins(made))
        return DataflowBlock(tuple(self._rewritten(made, joins))) if joins else made

    def _joins(self, block: BindingBlock) -> Iterator[_Join]:
        """The concatenations that are worth it: half of their elements at least need no copy."""
        home = {binding.var: n for n, binding in enumerate(block.bindings)}
        users: dict[Var, list[int]] = {}
        for n, binding in enumerate(block.bindings):
            for node in {id(node): node for node in walk(binding.value) if isinstance(node, Var)}.values():
                users.setdefault(node, []).append(n)
        taken: set[Var] = set()
        for n, binding in enumerate(block.bindings):
            tensors = self._kernels.tensors(binding)
            found = None if tensors is None else joined_parts(tensors[-1])
            if tensors is None or found is None:
                continue
            axis, parts = found
            args = dict(zip(tensors, binding.value.args[1].fields, strict=False))
            extents = _extents(tensors[-1])
            join = _Join(binding.var, n, n, extents, {}, [], args)
            moved, size = 0, parse_dtype(tensors[-1].dtype).itemsize
            for tensor, first in parts:
                begins = tuple(first if place == axis else 0 for place in range(len(extents)))
                var: Any = args.get(tensor)  # none of what is computed in the concatenation's kernel
                may = isinstance(var, DataflowVar) and var not in taken | self._outside and var not in join.parts
                may = may and prod(_extents(tensor)[axis:]) * size >= _LINE and self._moves(var, block, home, users)
                # No kernel takes one array twice, to read a part of it and to write another.
                if may and not any(home[a] in users.get(b, ()) for one in join.parts for a, b in ((one, var), (var, one))):
                    join.parts[var] = begins
                    moved += prod(_extents(tensor))
                else:
                    join.given.append((tensor, begins))
            read = {args[one] for tensor, _ in join.given for one in self._kernels.inputs(tensor)}
            if 2 * moved >= prod(extents) and read.isdisjoint(join.parts):
                taken |= {*join.parts, binding.var}
                join.last = n if join.given else max(home[var] for var in join.parts)
                yield join

    def _moves(self, var: Var, block: BindingBlock, home: Mapping[Var, int], users: Mapping[Var, Sequence[int]]) -> bool:
        """Whether a kernel of this block makes a value, and nothing but kernels reads it."""
        return var in home and all(self._kernels.tensors(block.bindings[n]) for n in (home[var], *users[var]))

    def _rewritten(self, block: BindingBlock, joins: Sequence[_Join]) -> Iterator[Binding]:
        """The bindings with calls that read and write parts."""
        parts = {var: (join, begins) for join in joins for var, begins in join.parts.items()}
        by_place = {join.binding: join for join in joins}

        def call(callee: GlobalVar, args: Sequence[Any], target: tuple[_Join, tuple[int, ...]] | None, info: Any) -> Call:
            """A call of a kernel on what its arguments are now, writing a part or a tensor of its own."""
            regions = {n: (home[0].extents, home[1]) for n, arg in enumerate(args) if (home := parts.get(arg)) is not None}
            given: Any = tuple(parts[arg][0].current if n in regions else arg for n, arg in enumerate(args))
            if target is None:
                placed = self._kernels.placed(callee, regions) if regions else callee
                return Call(_CALL, (placed, Tuple(given)), None, info)
            join, begins = target
            placed = self._kernels.placed(callee, {**regions, len(args): (join.extents, begins)})
            whole = TensorStructInfo(join.extents, info.dtype)
            if join.current is None:
                return Call(_CALL, (placed, Tuple(given)), None, whole)
            # The whole stands where the result stood: behind the other arguments.
            return call_tir_inplace(placed, Tuple((*given, join.current)), len(args), whole)

        def bound(join: _Join, n: int, value: Call) -> Binding:
            join.current = join.var if n == join.last and not waiting[join.binding] else DataflowVar("whole", value.struct_info)
            return VarBinding(join.current, value)

        waiting = {join.binding: list(join.given) for join in joins}
        for n, binding in enumerate(block.bindings):
            value = binding.value
            if n in by_place:
                while waiting[n]:
                    tensor, begins = waiting[n].pop(0)
                    callee, given = self._kernels.part(tensor)
                    info = TensorStructInfo(tensor.shape, tensor.dtype)
                    yield bound(by_place[n], n, call(callee, [by_place[n].args[one] for one in given], (by_place[n], begins), info))
            elif binding.var in parts:
                join, begins = parts[binding.var]
                yield bound(join, n, call(value.args[0], value.args[1].fields, (join, begins), value.sinfo_args[0]))
            elif self._kernels.tensors(binding) is not None:
                new = call(value.args[0], value.args[1].fields, None, value.sinfo_args[0])
                yield binding if new.args[0] is value.args[0] else VarBinding(binding.var, new)
            else:
                yield binding


_CALL = Op.of("relax.call_tir")


def JoinInPlace() -> ModulePass:
    """A pass: parts of concatenations are written where these want them, if kernels make half of the elements at least."""

    def run(mod: IRModule) -> IRModule:
        made = mod.clone()
        kernels = _Kernels(made)
        for var, func in mod.functions_items():
            if isinstance(func, Function):
                made.update_func(var, _Blocks(kernels, used_outside(func)).function(func))
        return DeadCodeElimination()(made) if any(made[var] is not func for var, func in mod.functions_items()) else mod

    return graph_pass("JoinInPlace", run)
