"""The loops and blocks of one compute operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast as typing_cast

from ..arith.block_access import get_block_access_region
from ..arith.bounds import NEG_INF, POS_INF
from ..arith.index_analyzer import Analyzer
from ..dataclass import dataclass, field, replace
from ..errors import DeclarationError
from ..tir.arithmetic import all as all_of
from ..tir.arithmetic import cast, is_const_int
from ..tir.attrs import FrozenMap
from ..tir.block import Block, BlockRealize
from ..tir.buffer import Buffer
from ..tir.expr import GE, GT, LE, LT, BufferLoad, Call, IntImm, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Select, Var
from ..tir.rewriting import Node, post_order_rewrite, substitute, walk
from ..tir.stmt import BufferStore, For, ForKind, IfThenElse, LetStmt, Stmt, seq
from .dependent_axes import dependent_axes, within
from .index_dtype import retyped
from .operation import ComputeOp
from .tensor import Tensor

TRUE = IntImm("bool", 1)
# Comparisons are written with the smaller side first, as schedules' patterns and scripts expect.
_TURNED: dict[type[PrimExpr], type[LE] | type[LT]] = {GE: LE, GT: LT}


@dataclass(slots=True)
class BlockNames:
    """Names of blocks, each once in a function."""

    taken: set[str] = field(default_factory=set)

    def fresh(self, hint: str) -> str:
        """`hint`, with _1, _2, ... behind it if it is taken."""
        base = name = hint.replace(".", "_")
        count = 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name


@dataclass(frozen=True, eq=False)
class ComputeBlocks:
    """Makes the nest of `op`: one block for all values of a reduction, else one for each output.

    `buffers` hold the tensors. With an `index_dtype`, loops and indices are of it, and `sizes` stand for the variables in shapes.
    """

    op: ComputeOp
    buffers: Mapping[Tensor, Buffer]
    names: BlockNames
    annotations: FrozenMap
    index_dtype: str | None
    sizes: Mapping[Var, Var]

    def build(self) -> Stmt:
        """Loops over all axes around the blocks."""
        op = self.op
        outputs = [op.output(number) for number in range(op.num_outputs)]
        loops = [self._loop_axis(axis) for axis in (*op.axis, *op.reduce_axis)]
        body = op.body[0]
        if isinstance(body, Reduce):
            name = op.name if len(outputs) > 1 else outputs[0].name
            nest: Stmt = self._realize(loops, name, outputs, body)
        else:
            nest = seq(*(self._realize(loops, tensor.name, [tensor], op.body[n]) for n, tensor in enumerate(outputs)))
        for axis, dom in reversed(loops):
            nest = For(axis.var, dom.min, dom.extent, ForKind.SERIAL, nest)
        return nest

    def _loop_axis(self, axis: IterVar) -> tuple[IterVar, Range]:
        """A loop variable of its own, and its range."""
        dom = self._bounded(axis) or axis.dom or Range.from_min_extent(IntImm(axis.dtype, 0), IntImm(axis.dtype, 1))
        if self.index_dtype is not None:
            low, extent = (cast(retyped(e, self.sizes, self.index_dtype), self.index_dtype) for e in (dom.min, dom.extent))
            dom = Range.from_min_extent(low, extent)
        return replace(axis, var=Var(axis.name, dom.extent.dtype), dom=dom), dom

    def _bounded(self, axis: IterVar) -> Range | None:
        """The constant range around that of an axis which depends on others: a block's axes don't, so a condition does the rest."""
        if axis.dom is None or axis not in dependent_axes(self.op):
            return None
        analyzer = Analyzer()
        for other in (*self.op.axis, *self.op.reduce_axis):
            # an axis may depend on those before it only
            if other is axis:
                break
            if other.dom is not None:
                analyzer.bind(other.var, other.dom)
        low = analyzer.const_int_bound(axis.dom.min).min_value
        high = analyzer.const_int_bound(axis.dom.min + axis.dom.extent).max_value
        if low <= NEG_INF or high >= POS_INF:
            raise DeclarationError(
                f"create_prim_func: the range {axis.dom} of axis {axis.name} of {self.op.name} depends on other axes and has no constant "
                "bounds; a block has axes of its own, so give the sizes as numbers, or lower it through te.create_schedule"
            )
        # a range that is always empty keeps one value, which its condition refuses
        return Range.from_min_extent(IntImm(axis.dtype, low), IntImm(axis.dtype, max(1, high - low)))

    def _realize(self, loops: Sequence[tuple[IterVar, Range]], name: str, outputs: Sequence[Tensor], body: PrimExpr) -> Stmt:
        """One block, with axes of its own that are bound to the loops."""
        axes = tuple(IterVar(dom, Var(f"v_{axis.name}", axis.dtype), axis.iter_type) for axis, dom in loops)
        values: tuple[PrimExpr, ...] = tuple(axis.var for axis, _ in loops)
        originals = (*self.op.axis, *self.op.reduce_axis)
        mapping: dict[Var, PrimExpr] = {old.var: new.var for old, new in zip(originals, axes, strict=True)}
        indices = tuple(axis.var for axis in axes[: len(self.op.axis)])
        if not axes:  # a block has at least one axis
            axes, values = (IterVar(Range.from_min_extent(IntImm("int32", 0), IntImm("int32", 1)), Var("vi")),), (IntImm("int32", 0),)
        buffers = [self.buffers[tensor] for tensor in outputs]
        init, update = self._statements(body, buffers, indices, mapping)
        block = Block(axes, (), (), self.names.fresh(name), update, init, annotations=self.annotations)
        reads, writes, _ = get_block_access_region(block)
        return BlockRealize(values, TRUE, replace(block, reads=tuple(reads), writes=tuple(writes)))

    def _statements(
        self, body: PrimExpr, buffers: Sequence[Buffer], indices: tuple[PrimExpr, ...], mapping: Mapping[Var, PrimExpr]
    ) -> tuple[Stmt | None, Stmt]:
        """The init, if it is a reduction, and the body of a block."""
        if not isinstance(body, Reduce):
            return None, BufferStore(buffers[0], self._value(body, mapping), indices)
        starts = [self._value(value, mapping) for value in (body.init or body.combiner.identity_element)]
        init = seq(*(BufferStore(b, value, indices) for b, value in zip(buffers, starts, strict=True)))
        old = {var: BufferLoad(b, indices) for var, b in zip(body.combiner.lhs, buffers, strict=True)}
        new = {var: self._value(source, mapping) for var, source in zip(body.combiner.rhs, body.source, strict=True)}
        values = [substitute(result, {**old, **new}) for result in body.combiner.result]
        update = _stores(buffers, values, indices)
        inside = [part for axis in dependent_axes(self.op) for part in within(axis)]
        condition = _simple(self._value(all_of(body.condition, *inside), mapping))
        return init, update if is_const_int(condition, 1) else IfThenElse(condition, update)

    def _value(self, expr: PrimExpr, mapping: Mapping[Var, PrimExpr]) -> PrimExpr:
        """An expression of the declaration in terms of the block's axes and the buffers."""
        wide = self.index_dtype
        moved = substitute(expr, mapping) if wide is None else retyped(expr, {**self.sizes, **mapping}, wide)
        return post_order_rewrite(moved, self._in_block)

    def _in_block(self, node: Node) -> Node | None:
        if isinstance(node, ProducerLoad):
            return BufferLoad(self.buffers[typing_cast(Tensor, node.producer)], node.indices)
        if isinstance(node, (GE, GT)):
            return _TURNED[type(node)](node.b, node.a)
        if isinstance(node, Select):
            return replace(node, condition=_simple(node.condition))
        if isinstance(node, Call) and node.op == "tir.if_then_else":
            return replace(node, args=(_simple(node.args[0]), *node.args[1:]))
        return None


def _simple(condition: PrimExpr) -> PrimExpr:
    """A condition on indices alone, simplified; one on data stays, since data may overflow."""
    return condition if any(isinstance(node, BufferLoad) for node in walk(condition)) else Analyzer().simplify(condition)


def _stores(buffers: Sequence[Buffer], values: Sequence[PrimExpr], indices: tuple[PrimExpr, ...]) -> Stmt:
    """The stores of a reduction's next values; of several, every one is computed before the first is stored."""
    if len(values) == 1:
        return BufferStore(buffers[0], values[0], indices)
    names = [Var(f"v_{buffer.name}", value.dtype) for buffer, value in zip(buffers, values, strict=True)]
    stmt = seq(*(BufferStore(b, name, indices) for b, name in zip(buffers, names, strict=True)))
    # wrapped from the inside, so that the values are computed in their order
    for name, value in zip(reversed(names), reversed(values), strict=True):
        stmt = LetStmt(name, value, stmt)
    return stmt
