"""Reverse mode differentiation of a computation: `gradient` adds tensors to the graph, scheduled like any others.

The adjoint of a tensor is the derivative of the output with respect to it, summed over all that read it. A reader
contributes a sum over those of its iterations that read an element; `index_equations` finds them from the element, so
that the adjoint of a matrix product is a matrix product, and that of a convolution a convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..arith.analyzer import Analyzer
from ..dataclass import dataclass, field
from ..errors import DeclarationError
from ..tir.arithmetic import all as all_of
from ..tir.arithmetic import cast, const
from ..tir.expr import EQ, IntImm, IterVar, PrimExpr, ProducerLoad, Select, Var
from ..tir.intrin import if_then_else
from ..tir.rewriting import substitute, walk
from .bounds import refuse_reads_outside
from .dag import post_dfs_order
from .declare import compute, reduce_axis
from .derivative import chain, derivative
from .extern import ExternOp
from .gradient_terms import Term, terms_of
from .index_equations import Equation, domain, solve
from .operation import ComputeOp, Operation
from .reducer import sum as sum_of
from .scan_op import ScanOp
from .tensor import Tensor

Shape = tuple[PrimExpr, ...]


def gradient(output: Tensor, inputs: Tensor | Sequence[Tensor], head: Tensor | None = None) -> list[Tensor]:
    """The derivatives of `output` with respect to each of `inputs`.

    Where a function has a corner, one side is taken: `abs` has slope 1 at 0; of equal operands of `max` and `min` the
    first one counts (a constant is the second), and so does the first of equal elements that `te.max` and `te.min`
    reduce. Integers, and steps such as `floor`, have gradient zero. Inputs may be tensors computed on the way.

    Args:
        output: what is differentiated.
        inputs: with respect to what; a tensor that `output` doesn't depend on has gradient zero.
        head: the derivative of some final result with respect to `output`, of shape `prefix + output.shape`.

    Returns:
        One tensor for each input, of its dtype: with a head of shape `prefix + input.shape`, the product of head and
        Jacobian; without one the Jacobian itself, of shape `output.shape + input.shape`.

    Raises:
        DeclarationError: if the head doesn't fit, or on the way to an input stands an intrinsic without a known
            derivative or a reduction that is neither sum, max nor min of one value.
    """
    wanted = list(inputs) if isinstance(inputs, Iterable) and not isinstance(inputs, Tensor) else [inputs]
    for tensor in (output, *wanted):
        if not isinstance(tensor, Tensor):
            raise DeclarationError(f"te.gradient: {tensor!r} is no tensor; it takes a tensor, a list of tensors and perhaps a head")
    refuse_reads_outside(post_dfs_order([output.op]))
    prefix = output.shape if head is None else _prefix(output, head)
    return _Backward(output, head, prefix).run(wanted)


def _prefix(output: Tensor, head: Tensor) -> Shape:
    if not isinstance(head, Tensor):
        raise DeclarationError(f"te.gradient: the head {head!r} is no tensor")
    expected = f"its shape ends in that of {output.name}, [{', '.join(map(str, output.shape))}], and its dtype is {output.dtype}"
    split = head.ndim - output.ndim
    fits = split >= 0 and all(_may_equal(a, b) for a, b in zip(head.shape[split:], output.shape, strict=True))
    if not fits or head.dtype != output.dtype:
        shape = ", ".join(map(str, head.shape))
        raise DeclarationError(f"te.gradient: the head {head.name} is {head.dtype} of shape [{shape}]; {expected}")
    return head.shape[:split]


def _may_equal(a: PrimExpr, b: PrimExpr) -> bool:
    return a is b or not (isinstance(a, IntImm) and isinstance(b, IntImm)) or a.value == b.value


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of an adjoint: the sum of `value` over `axes` where `guard` holds, in terms of the adjoint's indices."""

    value: PrimExpr
    guard: PrimExpr
    axes: tuple[IterVar, ...]

    def at(self, mapping: dict[Var, PrimExpr]) -> PrimExpr:
        """The piece at the indices that `mapping` gives."""
        value, guard = substitute(self.value, mapping), substitute(self.guard, mapping)
        if self.axes:
            return sum_of(value, axis=list(self.axes), where=guard)
        # not a Select: where the guard fails, the value may read out of bounds
        return if_then_else(guard, value, const(0.0, value.dtype))


@dataclass(slots=True)
class _Backward:
    """One run from the output to the inputs."""

    output: Tensor
    head: Tensor | None
    prefix: Shape
    pieces: dict[Tensor, list[_Piece]] = field(default_factory=dict)
    indices: dict[Tensor, tuple[Var, ...]] = field(default_factory=dict)
    adjoints: dict[Tensor, Tensor] = field(default_factory=dict)

    def run(self, wanted: list[Tensor]) -> list[Tensor]:
        """The adjoints of the wanted tensors."""
        ops = post_dfs_order([self.output.op])
        needed = _leading_to(wanted, ops)
        # readers first: an adjoint is complete by the time its tensor passes it on
        for op in reversed(ops):
            for tensor in map(op.output, range(op.num_outputs)):
                reached = tensor is self.output or tensor in self.pieces
                if reached and isinstance(op, ExternOp) and any(t in needed for t in op.input_tensors):
                    raise DeclarationError(
                        f"gradient of {self.output.name}: it depends on the inputs through the extern {op.name}, whose statement has no "
                        "derivative here; declare that part as te.compute"
                    )
                if reached and isinstance(op, ScanOp) and any(t in needed for t in op.input_tensors):
                    raise DeclarationError(
                        f"gradient of {self.output.name}: it depends on the inputs through the scan {op.name}, through whose steps no "
                        "derivative is taken; write the steps out as te.compute, or differentiate one step and scan backwards"
                    )
                if reached and isinstance(op, ComputeOp):
                    self.pass_on(op, tensor, [t for t in op.input_tensors if t in needed])
        return [self.adjoint(tensor) for tensor in wanted]

    def pass_on(self, op: ComputeOp, tensor: Tensor, producers: list[Tensor]) -> None:
        """Add to the adjoints of `producers` what goes through `tensor`."""
        if not producers:
            return
        for term in terms_of(op, tensor.value_index, producers):
            # equal expressions are one object, so A[i] * A[i] has one load, whose derivative counts both
            loads = [node for node in walk(term.value) if isinstance(node, ProducerLoad)]
            for load in loads:
                change = derivative(term.value, load) if load.producer in producers else None
                if change is not None and isinstance(load.producer, Tensor):
                    self.pieces.setdefault(load.producer, []).append(self.piece(op, tensor, term, load, change))

    def piece(self, op: ComputeOp, tensor: Tensor, term: Term, load: ProducerLoad, change: PrimExpr) -> _Piece:
        """What the reads of `load` contribute to the adjoint of the tensor that it is an element of."""
        assert isinstance(load.producer, Tensor)
        # the reader's axes, spatial ones included, are summed over here, unless the element that is read determines them
        fresh = {axis.var: reduce_axis(axis.dom, axis.name) for axis in term.axes}
        renamed: dict[Var, PrimExpr] = {var: axis.var for var, axis in fresh.items()}
        target = self.indices_of(load.producer)
        before, own = target[: len(self.prefix)], target[len(self.prefix) :]
        position = [renamed[axis.var] for axis in op.axis]
        seeded = self.head is None and tensor is self.output  # the adjoint is then an identity: it fixes the iteration
        equations: list[Equation] = [*zip(position, before, strict=True)] if seeded else []
        equations += [(substitute(index, renamed), at) for index, at in zip(load.indices, own, strict=True)]
        solution = solve(equations, tuple(fresh.values()))
        analyzer = Analyzer({var: domain(reduce_axis((0, extent))) for var, extent in self.extents(load.producer)})
        for axis in solution.free:
            analyzer.bind(axis.var, domain(axis))
        guard = solution.guard(analyzer)
        with analyzer.constraint_scope(guard):
            # all that follows counts only where the guard holds, so it may be simplified there: i // 4 * 4 is i where i % 4 == 0
            guard = all_of(guard, analyzer.simplify(solution.apply(substitute(term.condition, renamed))))
            with analyzer.constraint_scope(guard):
                slope = analyzer.simplify(solution.apply(substitute(change, renamed)))
                # the adjoint of the output to itself is one where the equations hold, and needs no tensor
                above = None if seeded else analyzer.simplify(solution.apply(self.adjoint(tensor)(*before, *position)))
        value = slope if above is None else chain(above, slope)
        return _Piece(cast(value, load.producer.dtype), guard, solution.free)

    def extents(self, tensor: Tensor) -> list[tuple[Var, PrimExpr]]:
        """The indices of the adjoint of `tensor` with their extents."""
        return [*zip(self.indices_of(tensor), (*self.prefix, *tensor.shape), strict=True)]

    def indices_of(self, tensor: Tensor) -> tuple[Var, ...]:
        """The variables that stand for the indices of an adjoint while it is put together."""
        if tensor not in self.indices:
            shape = (*self.prefix, *tensor.shape)
            self.indices[tensor] = tuple(Var(f"i{d}", extent.dtype) for d, extent in enumerate(shape))
        return self.indices[tensor]

    def adjoint(self, tensor: Tensor) -> Tensor:
        """The derivative of the output with respect to `tensor`, all of whose readers have passed theirs on."""
        if tensor not in self.adjoints:
            if tensor is self.output and self.head is not None:
                self.adjoints[tensor] = self.head
            else:
                self.adjoints[tensor] = self.identity() if tensor is self.output else self.total(tensor)
        return self.adjoints[tensor]

    def identity(self) -> Tensor:
        """The derivative of the output with respect to itself."""
        ndim, dtype = self.output.ndim, self.output.dtype

        def body(*i: Var) -> PrimExpr:
            equal = all_of(*(EQ(a, b) for a, b in zip(i[:ndim], i[ndim:], strict=True)))
            return const(1, dtype) if ndim == 0 else Select(equal, const(1, dtype), const(0, dtype))

        return self.declare(self.output, "", body)

    def total(self, tensor: Tensor) -> Tensor:
        """The sum of the pieces; reductions get operations of their own unless there is just one piece."""
        pieces, target = self.pieces.get(tensor, []), self.indices_of(tensor)

        def at(piece: _Piece, i: tuple[Var, ...]) -> PrimExpr:
            return piece.at(dict(zip(target, i, strict=True)))

        if not pieces:
            return self.declare(tensor, "", lambda *i: const(0, tensor.dtype))
        if len(pieces) == 1:
            return self.declare(tensor, "", lambda *i: at(pieces[0], i))
        sums = {
            id(piece): self.declare(tensor, f".part{number}", lambda *i, piece=piece: at(piece, i))
            for number, piece in enumerate(pieces)
            if piece.axes
        }

        def body(*i: Var) -> PrimExpr:
            parts = [sums[id(piece)](*i) if piece.axes else at(piece, i) for piece in pieces]
            result = parts[0]
            for part in parts[1:]:
                result = result + part
            return result

        return self.declare(tensor, "", body)

    def declare(self, tensor: Tensor, suffix: str, body: Callable[..., PrimExpr]) -> Tensor:
        """A tensor of the shape of an adjoint."""
        return compute((*self.prefix, *tensor.shape), body, f"{self.output.name}.{tensor.name}.grad{suffix}")


def _leading_to(wanted: Sequence[Tensor], ops: Sequence[Operation]) -> set[Tensor]:
    """The tensors that wanted ones are, or go into; `ops` are in topological order."""
    needed = set(wanted)
    # one pass reaches all: producers stand before their readers
    for op in ops:
        if any(tensor in needed for tensor in op.input_tensors):
            needed.update(op.output(i) for i in range(op.num_outputs))
    return needed
