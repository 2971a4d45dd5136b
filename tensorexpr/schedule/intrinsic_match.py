"""Whether two computations are the same, and where the tensors of one of them lie in those of the other.

    ours: A[i, k + 8] * B[k + 8, j]    theirs: x[i, k] * y[k, j]    ->    x at A[0, 8], y at B[8, 0]

Both engines tensorize by it: stages against the operation that an intrinsic is declared by, blocks against a description.
They bring both sides to the same variables first. Then expressions are walked side by side: integers are the same by proof, sums
and products in either order, and reads if one distance for each operand explains all reads of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NoReturn, TypeAlias, cast

from ..arith.analyzer import Analyzer
from ..dataclass import dataclass, field, fields
from ..te.tensor import Tensor
from ..tir.arithmetic import cast as as_index
from ..tir.buffer import Buffer, BufferRegion
from ..tir.dtype import parse_dtype
from ..tir.expr import Add, BinaryExpr, BufferLoad, FloatImm, IntImm, Let, Mul, PrimExpr, ProducerLoad, Range, Reduce, StringImm, Var
from ..tir.rewriting import children, variables, walk
from ..tir.structural import structural_equal

Operand: TypeAlias = Tensor | Buffer


class Mismatch(Exception):
    """Why two computations are not the same."""


@dataclass(eq=False)
class Comparison:
    """What has been learnt about operands and scalars so far.

    Args:
        called: what the other side is, in messages: "the intrinsic".
        analyzer: knows the ranges of all variables.
        operands: of the other side; each stands for a part of one of our buffers.
        local: variables that no distance and no scalar may depend on: those that run inside.
        scalars: variables of the other side that stand for any expression.
    """

    called: str
    analyzer: Analyzer
    operands: Collection[Operand]
    local: set[Var]
    scalars: Collection[Var] = ()
    places: dict[Operand, tuple[Buffer, tuple[PrimExpr, ...]]] = field(default_factory=dict)
    values: dict[Var, PrimExpr] = field(default_factory=dict)

    def box(self, operand: Operand) -> BufferRegion:
        """Where the elements of an operand are.

        Raises:
            Mismatch: if it was never read or written.
        """
        if operand not in self.places:
            raise Mismatch(f"{self.called} never uses its buffer {operand.name}")
        buffer, offsets = self.places[operand]
        # of leading dimensions that the operand doesn't have, one place
        sizes = [IntImm("int32", 1)] * (len(offsets) - len(operand.shape)) + list(operand.shape)
        return BufferRegion(buffer, tuple(Range.from_min_extent(o, as_index(n, o.dtype)) for o, n in zip(offsets, sizes, strict=True)))

    def same(self, ours: PrimExpr, theirs: PrimExpr) -> None:
        """Learn from two expressions that they are the same.

        Raises:
            Mismatch: if they aren't.
        """
        if isinstance(theirs, (ProducerLoad, BufferLoad)):
            self.access(ours, theirs)
        elif isinstance(theirs, Var) and theirs in self.scalars:
            self._scalar(ours, theirs)
        elif isinstance(ours, Reduce) and isinstance(theirs, Reduce):
            self._reduction(ours, theirs)
        # Integers without loads are indices and conditions: the same by proof, whatever form they have.
        elif parse_dtype(theirs.dtype).is_int and ours.dtype == theirs.dtype and not (self._reads(ours) or self._reads(theirs)):
            if not self.analyzer.known_equal(ours, theirs):
                self.differ(ours, theirs)
        elif isinstance(ours, (Add, Mul)) and isinstance(theirs, BinaryExpr) and type(ours) is type(theirs):
            self.either_order(ours, theirs)
        else:
            self._node(ours, theirs)

    def _reads(self, expr: PrimExpr) -> bool:
        return any(isinstance(n, (BufferLoad, ProducerLoad)) or n in self.scalars for n in walk(expr))

    def _node(self, ours: PrimExpr, theirs: PrimExpr) -> None:
        alike = type(ours) is type(theirs) and ours.dtype == theirs.dtype and _attributes(ours) == _attributes(theirs)
        # variables are compared by identity, and each Let binds one of its own
        if not alike or isinstance(ours, Let):
            self.differ(ours, theirs)
        if isinstance(ours, (Var, IntImm, FloatImm, StringImm)):
            if ours is not theirs:
                self.differ(ours, theirs)
            return
        for a, b in zip(_operands(ours), _operands(theirs), strict=True):
            self.same(a, b)

    def either_order(self, ours: BinaryExpr, theirs: BinaryExpr) -> None:
        """Compare the operands of a sum or product."""
        # a failed attempt has learnt places which the other order must not inherit
        places, values = dict(self.places), dict(self.values)
        try:
            self.same(ours.a, theirs.a)
            self.same(ours.b, theirs.b)
            return
        except Mismatch as reason:
            first = reason
        self.places, self.values = places, values
        try:
            self.same(ours.a, theirs.b)
            self.same(ours.b, theirs.a)
        except Mismatch:
            # Of the order as written: that is the one that the user sees in the message.
            raise first from None

    def _reduction(self, ours: Reduce, theirs: Reduce) -> None:
        if not structural_equal(cast(Any, ours.combiner), cast(Any, theirs.combiner)) or len(ours.source) != len(theirs.source):
            results = (", ".join(map(str, r.combiner.result)) for r in (ours, theirs))
            raise Mismatch(f"the combiners differ: {' against '.join(results)}")
        for a, b in zip((*ours.source, ours.condition), (*theirs.source, theirs.condition), strict=True):
            self.same(a, b)

    def _scalar(self, ours: PrimExpr, scalar: Var) -> None:
        if ours.dtype != scalar.dtype or not variables(ours).isdisjoint(self.local):
            raise Mismatch(f"{ours} can't be the scalar {scalar.name}: it differs from element to element, or is no {scalar.dtype}")
        # expressions are interned, so the same one is the same object
        if self.values.setdefault(scalar, ours) is not ours:
            self.differ(ours, self.values[scalar])

    def access(self, ours: PrimExpr, theirs: ProducerLoad | BufferLoad) -> None:
        """Learn where an operand lies: all accesses of it are the same distance from its own indices.

        Raises:
            Mismatch: if they aren't.
        """
        operand = cast(Operand, theirs.producer if isinstance(theirs, ProducerLoad) else theirs.buffer)
        if operand not in self.operands:
            raise Mismatch(f"{self.called} uses {operand.name}, which is none of its parameters")
        if not isinstance(ours, BufferLoad) or ours.dtype != theirs.dtype or len(ours.indices) < len(theirs.indices):
            self.differ(ours, theirs)
        if ours.predicate is not None or (isinstance(theirs, BufferLoad) and theirs.predicate is not None):
            raise Mismatch("an access with a mask is nothing that can be compared")
        offsets = self._distance(ours.indices, theirs.indices)
        moving = next((offset for offset in offsets if not variables(offset).isdisjoint(self.local)), None)
        if moving is not None:
            self.differ(ours, theirs, f", which is no shift of it: they are {moving} apart")
        buffer, known = self.places.setdefault(operand, (ours.buffer, offsets))
        if buffer is not ours.buffer or not all(a is b or self.analyzer.known_equal(a, b) for a, b in zip(known, offsets, strict=True)):
            raise Mismatch(f"the accesses {ours} and those of {buffer.name} before can't both be of {self.called}'s operand {operand.name}")

    def _distance(self, ours: Sequence[PrimExpr], theirs: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        # An operand of fewer dimensions is a slice along the last ones: C[i, j] read as c[j] lies at C[i, 0].
        inner = [IntImm("int32", 0)] * (len(ours) - len(theirs)) + list(theirs)
        return tuple(self.analyzer.simplify(a - b) for a, b in zip(ours, inner, strict=True))

    def differ(self, ours: PrimExpr, theirs: PrimExpr, more: str = "") -> NoReturn:
        """Tell of two expressions that they aren't the same."""
        have, want = (f" ({one.dtype})" if ours.dtype != theirs.dtype else "" for one in (ours, theirs))
        raise Mismatch(f"{ours}{have} stands where {self.called} has {theirs}{want}{more}")


def _operands(expr: PrimExpr) -> list[PrimExpr]:
    return [child for child in children(expr) if isinstance(child, PrimExpr)]


def _attributes(expr: PrimExpr) -> list[Any]:
    """What tells two nodes of a class apart besides their operands, such as the name of a call; of tuples of operands their length."""
    values = [getattr(expr, one.name) for one in fields(cast(Any, expr)) if one.init]
    return [
        len(v) if isinstance(v, tuple) and any(isinstance(i, PrimExpr) for i in v) else v for v in values if not isinstance(v, PrimExpr)
    ]
