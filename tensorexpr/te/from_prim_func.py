"""From a function of blocks to tensors: the way back from `create_prim_func`.

A function is a computation of tensors if every block computes one buffer that no other block writes, or several that it reduces
together: each element once, from buffers that are complete by then, by an expression or by reducing one. How its loops run is not
looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..arith.iter_map import detect_iter_map
from ..dataclass import dataclass, replace
from ..errors import DeclarationError
from ..tir.arithmetic import as_int
from ..tir.block import Block, BlockRealize
from ..tir.buffer import Buffer
from ..tir.expr import Add, BufferLoad, FloatImm, IntImm, IterVar, Max, Min, Mul, PrimExpr, ProducerLoad, Range, Reduce, Var
from ..tir.function import PrimFunc
from ..tir.reduction_laws import GREATEST, LEAST, OPERATORS, accumulation, recognised, stores_at_once
from ..tir.rewriting import Node, post_order_rewrite, substitute, variables, walk
from ..tir.scopes import parts
from ..tir.stmt import BufferStore, For, IfThenElse, SeqStmt, Stmt
from .operation import ComputeOp, PlaceholderOp
from .reducer import Reducer, comm_reducer, greatest, least
from .reducer import max as te_max
from .reducer import min as te_min
from .reducer import sum as te_sum
from .tensor import Tensor

_PRODUCT = comm_reducer(lambda x, y: x * y, lambda dtype: IntImm(dtype, 1) if "int" in dtype else FloatImm(dtype, 1.0), "prod")
# The laws of single values, and the reduction each makes.
_REDUCERS: dict[str, Callable[..., Any]] = {
    **{OPERATORS[kind].name: reducer for kind, reducer in ((Add, te_sum), (Mul, _PRODUCT), (Max, te_max), (Min, te_min))},
    GREATEST.name: greatest,
    LEAST.name: least,
}


def tensors_of(func: PrimFunc) -> list[Tensor]:
    """The tensors of a function of blocks, one for each parameter in order: inputs and computed ones.

    Raises:
        DeclarationError: if it is no computation of tensors, or takes numbers; the message names the block and the reason.
    """
    if any(param not in func.buffer_map for param in func.params):
        raise DeclarationError("a scalar parameter has no place among tensors; specialise the function for its value")
    return [one for one in arguments_of(func) if isinstance(one, Tensor)]


def arguments_of(func: PrimFunc) -> list[Tensor | Var]:
    """The same for a function that takes numbers, too: these are variables in what is computed.

    Raises:
        DeclarationError: if it is no computation of tensors; the message names the block and the reason.
    """
    if not isinstance(func.body, BlockRealize):
        raise DeclarationError("the function has no blocks; only functions of blocks can be read as tensors")
    # parameters are known without a tensor: who reads one first makes it an input, who writes it first an output
    numbers = frozenset(param for param in func.params if param not in func.buffer_map)
    reader = _Reader({buffer: None for buffer in func.buffer_map.values()}, numbers)
    reader.statement(func.body.block.body, {})
    return [param if param in numbers else reader.tensor(func.buffer_map[param]) for param in func.params]


@dataclass(eq=False)
class _Reader:
    """The tensors of the buffers read and written so far; of a parameter not seen yet None."""

    tensors: dict[Buffer, Tensor | None]
    numbers: frozenset[Var]

    def tensor(self, buffer: Buffer) -> Tensor:
        """The tensor in a buffer; a parameter that nothing wrote before is an input."""
        found = self.tensors.get(buffer)
        if found is None:
            if buffer not in self.tensors:
                raise DeclarationError(f"{buffer.name} is read before a block writes it")
            found = self.tensors[buffer] = PlaceholderOp(buffer.name, buffer.shape, buffer.dtype).output(0)
        return found

    def statement(self, stmt: Stmt, loops: Mapping[Var, Range]) -> None:
        """Read the blocks of loops and sequences."""
        if isinstance(stmt, For):
            self.statement(stmt.body, {**loops, stmt.loop_var: Range.from_min_extent(stmt.min, stmt.extent)})
        elif isinstance(stmt, SeqStmt):
            for part in stmt.seq:
                self.statement(part, loops)
        elif isinstance(stmt, BlockRealize):
            self._block(stmt, loops)
        else:
            raise DeclarationError(f"a {type(stmt).__name__} stands outside of the blocks; only loops may")

    def _block(self, realize: BlockRealize, loops: Mapping[Var, Range]) -> None:
        block = realize.block
        try:
            _check_covered(realize, loops)
            buffers, op = _Computed(self, _with_names_of_loops(realize)).operation()
        except DeclarationError as error:
            raise DeclarationError(f"block {block.name_hint}: {error}") from None
        for number, buffer in enumerate(buffers):
            # a parameter that was read is a placeholder by now: a block that writes it later updates in place
            if self.tensors.get(buffer) is not None:
                raise DeclarationError(f"block {block.name_hint}: {buffer.name} was read or written before; each buffer is computed once")
            self.tensors[buffer] = op.output(number)


@dataclass(frozen=True, eq=False)
class _Computed:
    """One block as a compute operation."""

    reader: _Reader
    block: Block

    def operation(self) -> tuple[tuple[Buffer, ...], ComputeOp]:
        """The buffers that the block writes, and the operation that computes them: several by a reduction of as many values.

        Raises:
            DeclarationError: if it isn't of that kind.
        """
        reduced = [replace(axis, iter_type=IterVar.COMM_REDUCE) for axis in self.block.iter_vars if axis.iter_type == IterVar.COMM_REDUCE]
        several = stores_at_once(self.block.body)
        if several is not None and len(several) > 1:
            buffers, bodies = self._reductions(reduced)
            spatial = self._output_axes(several[0])
        else:
            store, where = _store_of(self.block.body)
            spatial = self._output_axes(store)
            buffers, bodies = (store.buffer,), (self._body(store, where, reduced),)
        return buffers, ComputeOp(self.block.name_hint, "", self.block.annotations, tuple(spatial), tuple(reduced), bodies)

    def _reductions(self, axes: Sequence[IterVar]) -> tuple[tuple[Buffer, ...], tuple[PrimExpr, ...]]:
        """Several values that are reduced together, such as the place and the value of a maximum."""
        found = recognised(self.block)
        if isinstance(found, str) or not axes:
            raise DeclarationError(found if isinstance(found, str) else "it writes several buffers, and reduces over no axis")
        terms = tuple(self._value(term, *found.buffers) for term in found.terms)
        # any start may stand in the init, so it is the identity of a combiner of its own
        reducer = comm_reducer(found.law.combine, lambda *_: found.initial, found.law.name)
        return found.buffers, reducer(terms, axis=list(axes))

    def _output_axes(self, store: BufferStore) -> list[IterVar]:
        """The axes that index the output, one for each of its dimensions."""
        known = {axis.var: axis for axis in self.block.iter_vars if axis.iter_type == IterVar.DATA_PAR}
        axes: list[IterVar] = []
        for index, extent in zip(store.indices, store.buffer.shape, strict=True):
            if isinstance(index, Var) and index in known:
                # taken out: A[i, i] would write the diagonal only
                axis = known.pop(index)
                # equal expressions are one object, so `is` compares symbolic extents too
                if axis.dom is None or as_int(axis.dom.min) != 0 or axis.dom.extent is not extent:
                    raise DeclarationError(f"axis {index.name} doesn't span its dimension of {store.buffer.name}")
                axes.append(axis)
            elif as_int(index) == 0 and as_int(extent) == 1:
                axes.append(IterVar(Range.from_min_extent(index, extent), Var("unit", index.dtype)))
            else:
                raise DeclarationError(f"{store.buffer.name} is written at {index}, which is no axis of its own")
        unused = [axis for axis in known.values() if axis.dom is None or as_int(axis.dom.extent) != 1]
        if unused:
            raise DeclarationError(f"{store.buffer.name} is written without axis {unused[0].var.name}, so more than once")
        return axes

    def _body(self, store: BufferStore, where: PrimExpr | None, reduced: Sequence[IterVar]) -> PrimExpr:
        if self.block.init is None:
            if where is not None or reduced:
                raise DeclarationError("it reduces, or writes under a condition, without an init")
            return self._value(store.value, store.buffer)
        if not reduced:
            raise DeclarationError("it has an init and no axis to reduce over")
        start, condition = _store_of(self.block.init)
        if condition is not None or start.buffer is not store.buffer or start.indices != store.indices:
            raise DeclarationError("its init writes something else than its body")
        found = accumulation(store)
        if found is None or found[0].name not in _REDUCERS:
            own = BufferLoad(store.buffer, store.indices)
            raise DeclarationError(f"{store.value} is no sum, product, maximum or minimum of the value so far, {own}, and another")
        return self._reduction(_REDUCERS[found[0].name], found[1], start.value, where, reduced, store.buffer)

    def _reduction(
        self,
        reducer: Reducer,
        source: PrimExpr,
        start: PrimExpr,
        where: PrimExpr | None,
        axes: Sequence[IterVar],
        buffer: Buffer,
    ) -> PrimExpr:
        value = self._value(source, buffer)
        condition = None if where is None else self._value(where, buffer)
        plain = reducer(value, list(axes), where=condition)
        assert isinstance(plain, Reduce)
        # the identity as a start is what a plain reduction means; equal expressions are one object
        if plain.combiner.identity_element[0] is start:
            return plain
        return reducer(value, list(axes), where=condition, init=self._value(start, buffer))

    def _value(self, expr: PrimExpr, *own: Buffer) -> PrimExpr:
        """An expression with loads of tensors in place of loads of buffers."""

        def rule(node: Node) -> Node | None:
            if not isinstance(node, BufferLoad):
                return None
            if node.buffer in own:
                raise DeclarationError(f"it reads {node.buffer.name}, which it writes")
            return ProducerLoad(self.reader.tensor(node.buffer), node.indices)

        fixed: dict[Var, PrimExpr] = {
            axis.var: axis.dom.min for axis in self.block.iter_vars if axis.dom is not None and as_int(axis.dom.extent) == 1
        }
        mentioned = {axis.var for axis in self.block.iter_vars}
        alien = {n for n in walk(expr) if isinstance(n, Var) and n.dtype != "handle"} - mentioned
        if any(var not in self.reader.numbers and not _is_size(var, self.reader.tensors) for var in alien):
            raise DeclarationError(f"it uses {', '.join(sorted(var.name for var in alien))} from outside of the block")
        # an axis of one value that indexes no output becomes no axis of the operation, so its value takes its place
        unit_axes = {var: value for var, value in fixed.items() if var not in variables_of_store(self.block)}
        return post_order_rewrite(substitute(expr, unit_axes), rule)


def variables_of_store(block: Block) -> set[Var]:
    """The variables in the indices at which a block writes."""
    stores = stores_at_once(block.body) or [_store_of(block.body)[0]]
    return {var for index in stores[0].indices for var in variables(index)}


def _is_size(var: Var, buffers: Mapping[Buffer, Any]) -> bool:
    """True for a variable in the shape of a buffer."""
    return any(var in variables(extent) for buffer in buffers for extent in buffer.shape)


def _with_names_of_loops(realize: BlockRealize) -> Block:
    """The block with axes of its own, which have the names of the loops that they are."""
    block = realize.block
    names = {axis.var: Var(value.name if isinstance(value, Var) else axis.var.name, axis.var.dtype) for axis, value in realize.bindings()}
    axes = tuple(replace(axis, var=names[axis.var]) for axis in block.iter_vars)
    init = None if block.init is None else substitute(block.init, names)
    # the regions name the old axes, and nobody reads them here
    return replace(block, iter_vars=axes, body=substitute(block.body, names), init=init, reads=(), writes=())


def _store_of(stmt: Stmt) -> tuple[BufferStore, PrimExpr | None]:
    """The only store of a statement, and the condition it stands under."""
    if isinstance(stmt, IfThenElse) and stmt.else_case is None and isinstance(stmt.then_case, BufferStore):
        return stmt.then_case, stmt.condition
    if isinstance(stmt, BufferStore) and stmt.predicate is None:
        return stmt, None
    inside = " of " + type(parts(stmt).bodies[0]).__name__ if parts(stmt).bodies else ""
    raise DeclarationError(f"its body is a {type(stmt).__name__}{inside}, not one store")


def _takes_whole_range(axis: IterVar, value: PrimExpr, loops: Mapping[Var, Range]) -> bool:
    """True if an axis is a loop over its own range, or has a range of one value and is that value."""
    if axis.dom is None:
        return False
    loop = loops.get(value) if isinstance(value, Var) else None
    # no loop at all: the axis has one value, and is given it
    if loop is None:
        return value is axis.dom.min and as_int(axis.dom.extent) == 1
    return loop.extent is axis.dom.extent and loop.min is axis.dom.min


def _check_covered(realize: BlockRealize, loops: Mapping[Var, Range]) -> None:
    """The loops run the block once for each combination of the values of its axes.

    Raises:
        DeclarationError: if they don't, or nobody knows.
    """
    axes, values = realize.block.iter_vars, realize.iter_values
    if realize.block.alloc_buffers or realize.block.match_buffers:
        raise DeclarationError("it has buffers of its own")
    always = isinstance(realize.predicate, IntImm) and bool(realize.predicate.value)
    own = [value for value in values if isinstance(value, Var) and value in loops]
    whole = all(_takes_whole_range(axis, value, loops) for axis, value in zip(axes, values, strict=True))
    # two axes that follow one loop see the diagonal only
    own_loops = len(set(own)) == len(own)
    # a loop that no axis follows would run the block again
    once = all(as_int(loops[var].extent) == 1 for var in loops if var not in own)
    # What `te.create_prim_func` writes: a loop for each axis. It needs no analysis, which takes most of the time of reading a function.
    if always and whole and own_loops and once:
        return
    # for io, ii: i = io * 4 + ii where io * 4 + ii < 10
    found = detect_iter_map(values, loops, None if always else realize.predicate)
    if not found.indices:
        raise DeclarationError(f"its loops don't run each instance once: {found.errors[0] if found.errors else 'it has no axes'}")
    for axis, total in zip(axes, found.indices, strict=True):
        # i * 2 of four i has four values, but not the first four
        extent = (total.args[0].extent if total.args[0].scale == 1 else None) if total.args else 1
        if axis.dom is None or as_int(axis.dom.extent) != extent or as_int(total.base) != as_int(axis.dom.min):
            raise DeclarationError(f"its loops give axis {axis.var.name} other values than its range")
