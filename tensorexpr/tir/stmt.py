"""Statements: the loop IR.

    stmt ::= For(loop_var, min, extent, kind, body, thread_binding, annotations)
           | While(condition, body)
           | BufferStore(buffer, value, indices, predicate)
           | BufferRealize(buffer, bounds, condition, body, annotations)  phase 0 only: storage before it is flattened
           | Allocate(buffer_var, dtype, extents, condition, body, annotations)
           | AllocateConst(buffer_var, dtype, extents, data_or_idx, body, annotations)
           | DeclBuffer(buffer, body)
           | BufferBind(buffer, source, body)                      phase 0 only: a view of a box of another buffer
           | SeqStmt(seq) | IfThenElse(condition, then_case, else_case)
           | LetStmt(var, value, body) | AssertStmt(condition, message, body)
           | AttrStmt(node, attr_key, value, body) | Evaluate(value)

Statements are frozen; identity is equality. `None` stands for "no else case".
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from types import NoneType
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

from ..dataclass import dataclass, replace
from ..errors import DeclarationError, TypeMismatchError
from .attrs import EMPTY, FrozenMap
from .buffer import Buffer, BufferRegion
from .constant_array import ConstantArray
from .dtype import DType, parse_dtype
from .expr import DataProducer, IntImm, IterVar, PrimExpr, Range, Var, each, refuse
from .interning import ADAPTERS, Built
from .node import Object

Subject: TypeAlias = Any
"""What an attribute is about: mostly a buffer, an axis or a variable; a number is a constant."""


class ForKind(IntEnum):
    """How a loop runs."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


class Stmt(Built, Object):
    """Base of all statements."""

    __slots__ = ("__weakref__",)

    # The few statements that have a place in a text: a slot for it would make all of them larger.
    _spans: ClassVar[WeakKeyDictionary[Stmt, Any]] = WeakKeyDictionary()

    @property
    def span(self) -> Any:
        """Where the statement stands in a text, an `ir.Span`; None for most."""
        return self._spans.get(self)

    def placed(self, span: Any) -> Stmt:
        """A copy of the statement that stands there."""
        copy: Stmt = replace(self)  # type: ignore[type-var]
        self._spans[copy] = span
        return copy

    def __str__(self) -> str:
        return self._printers["stmt"](self)

    __repr__ = __str__


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class For(Stmt):
    """`body` for loop_var in [min, min + extent). `annotations` carry pragmas such as unroll hints.

    The arguments of the releases up to 0.7, (loop_var, min, extent, kind, device_api, body), are taken too.
    """

    Serial: ClassVar[ForKind] = ForKind.SERIAL
    Parallel: ClassVar[ForKind] = ForKind.PARALLEL
    Vectorized: ClassVar[ForKind] = ForKind.VECTORIZED
    Unrolled: ClassVar[ForKind] = ForKind.UNROLLED

    loop_var: Var
    min: PrimExpr
    extent: PrimExpr
    kind: ForKind
    body: Stmt
    thread_binding: IterVar | None = None
    annotations: FrozenMap = EMPTY

    @staticmethod
    def _normal(args: tuple[Any, ...]) -> tuple[Any, ...]:
        # By position the older form has the body where thread_binding stands here, and its device_api is dropped.
        if isinstance(args[5], Stmt):
            args = (*args[:4], args[5], None, args[6])
        return args

    def __post_init__(self) -> None:
        dtype = self.loop_var.dtype
        if not parse_dtype(dtype).is_int:
            raise TypeMismatchError(f"a loop counts in integers, and {self.loop_var.name} is {dtype}")
        for name in ("min", "extent"):
            value = getattr(self, name)
            if value.dtype != dtype:
                # A Python number came as int32, whatever the variable is; anything else is meant as it stands.
                if not isinstance(value, IntImm):
                    raise TypeMismatchError(f"loop {self.loop_var.name} is {dtype}, its {name} {value} is {value.dtype}")
                object.__setattr__(self, name, IntImm(dtype, value.value))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class While(Stmt):
    """`body` as long as `condition` holds."""

    condition: PrimExpr
    body: Stmt


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class BufferStore(Stmt):
    """buffer[indices] = value; lanes where `predicate` is false stay as they are."""

    buffer: Buffer
    value: PrimExpr
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None = None

    def __post_init__(self) -> None:
        wanted = self.buffer.access_dtype(self.indices)
        if wanted != self.value.dtype:
            raise TypeMismatchError(f"a store of {self.value.dtype} to {self.buffer.name}, whose element there is {wanted}")


Buffer._store = BufferStore


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class BufferRealize(Stmt):
    """`buffer` exists for `body`, with storage for the box `bounds`; indices count from the tensor's origin.

    `annotations`: `storage_align` holds triples (dimension, factor, offset) for the strides of the storage to keep,
    `double_buffer_scope` asks for two copies, of which one is filled while the other is read.
    """

    buffer: Buffer
    bounds: tuple[Range, ...]
    condition: PrimExpr
    body: Stmt
    annotations: FrozenMap = EMPTY


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Allocate(Stmt):
    """`buffer_var` points to fresh storage of prod(extents) elements of `dtype` for `body`."""

    buffer_var: Var
    dtype: DType
    extents: tuple[PrimExpr, ...]
    condition: PrimExpr
    body: Stmt
    annotations: FrozenMap = EMPTY

    def constant_size(self) -> int | None:
        """The number of elements if it is a constant."""
        total = 1
        for extent in self.extents:
            if not isinstance(extent, IntImm):
                return None
            total *= extent.value
        return total


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class AllocateConst(Stmt):
    """`buffer_var` points to an array of constants for `body`, which nothing writes.

    `data_or_idx` is the array (anything with elements is taken: lists, NumPy's and the runtime's arrays), or the number
    of one in the module's attribute "constants".
    """

    buffer_var: Var
    dtype: DType
    extents: tuple[PrimExpr, ...]
    data_or_idx: ConstantArray | int
    body: Stmt
    annotations: FrozenMap = EMPTY

    def __post_init__(self) -> None:
        shape = [extent.value for extent in self.extents if isinstance(extent, IntImm)]
        if len(shape) != len(self.extents):
            raise DeclarationError(f"the constant {self.buffer_var.name} has extents that are no numbers: {self.extents}")
        data = self.data_or_idx
        if not isinstance(data, (int, IntImm)) and not (
            isinstance(data, ConstantArray) and (data.dtype, data.shape) == (self.dtype, tuple(shape))
        ):
            object.__setattr__(self, "data_or_idx", ConstantArray(data, self.dtype, shape))

    @property
    def data(self) -> ConstantArray | None:
        """The array, if it is here."""
        return self.data_or_idx if isinstance(self.data_or_idx, ConstantArray) else None

    @property
    def irmod_storage_idx(self) -> int | None:
        """The number of the array in the module, if it is there."""
        return None if isinstance(self.data_or_idx, ConstantArray) else int(self.data_or_idx)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class ProducerStore(Stmt):
    """producer[indices] = value, where a tensor stands for its memory."""

    producer: DataProducer
    value: PrimExpr
    indices: tuple[PrimExpr, ...]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class ProducerRealize(Stmt):
    """The box `bounds` of a tensor exists for `body`."""

    producer: DataProducer
    bounds: tuple[Range, ...]
    condition: PrimExpr
    body: Stmt
    storage_scope: str = ""


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class DeclBuffer(Stmt):
    """`buffer` is a view of memory that exists already, for `body`."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class BufferBind(Stmt):
    """`buffer` stands for the box `source` of another buffer within `body`.

    Its data, and its strides and offset where they are variables, are defined here; strides and offset that are anything
    else must be those of the box. Variables in its shape are defined outside. With fewer dimensions than the box it
    leaves out leading ones, which must have extent 1.
    """

    buffer: Buffer
    source: BufferRegion
    body: Stmt

    def __post_init__(self) -> None:
        bound, of = self.buffer, self.source.buffer
        if bound.dtype != of.dtype:
            raise TypeMismatchError(f"buffer {bound.name} of {bound.dtype} can't stand for a part of {of.name}, which is {of.dtype}")
        if len(self.source.region) != of.ndim:
            raise DeclarationError(f"a box of {of.name} has {of.ndim} dimensions, not {len(self.source.region)}")
        if bound.ndim > of.ndim:
            raise DeclarationError(f"buffer {bound.name} has {bound.ndim} dimensions, more than the {of.ndim} of {of.name}")

    def defines(self) -> tuple[Var, ...]:
        """The variables that the box gives a value: the pointer, and strides and offset where they are variables."""
        # What is no variable is a demand on the box instead, see `scopes.parts`.
        found = (v for v in (*self.buffer.strides, self.buffer.elem_offset) if isinstance(v, Var))
        return tuple(dict.fromkeys((self.buffer.data, *found)))


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class SeqStmt(Stmt):
    """The statements in order; sequences within are flattened, and there are at least two (`stmt_seq` takes any number)."""

    seq: tuple[Stmt, ...]

    def __post_init__(self) -> None:
        if any(isinstance(s, SeqStmt) for s in self.seq):
            object.__setattr__(self, "seq", tuple(s for part in self.seq for s in (part.seq if isinstance(part, SeqStmt) else (part,))))
        if len(self.seq) < 2:
            raise DeclarationError(f"a SeqStmt holds at least two statements, not {len(self.seq)}; tir.stmt_seq(...) takes any number")

    def __getitem__(self, i: int) -> Stmt:
        return self.seq[i]

    def __len__(self) -> int:
        return len(self.seq)

    def __iter__(self) -> Iterator[Stmt]:
        return iter(self.seq)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class IfThenElse(Stmt):
    """`then_case` where the scalar `condition` holds, else `else_case`."""

    condition: PrimExpr
    then_case: Stmt
    else_case: Stmt | None = None

    def __post_init__(self) -> None:
        if parse_dtype(self.condition.dtype).code != "bool":
            raise TypeMismatchError(f"the condition of an if is {self.condition.dtype}, not bool")


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class LetStmt(Stmt):
    """`body` with `var` bound to `value`."""

    var: Var
    value: PrimExpr
    body: Stmt

    def __post_init__(self) -> None:
        if self.var.dtype != self.value.dtype:
            raise TypeMismatchError(f"{self.var.name} is {self.var.dtype}, the value that it is bound to, {self.value}, {self.value.dtype}")


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class AssertStmt(Stmt):
    """`condition` holds in `body`; checked where asserts are on."""

    condition: PrimExpr
    message: PrimExpr
    body: Stmt

    def __post_init__(self) -> None:
        if parse_dtype(self.condition.dtype).code != "bool":
            raise TypeMismatchError(f"an assert takes a condition, not {self.condition} ({self.condition.dtype})")


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class AttrStmt(Stmt):
    """An attribute of `node` that holds for `body` (pragmas, thread extents)."""

    node: Subject
    attr_key: str
    value: PrimExpr
    body: Stmt


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Evaluate(Stmt):
    """`value` for its side effect."""

    value: PrimExpr


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Prefetch(Stmt):
    """Bring the box `bounds` of a buffer near; without effect on what is computed."""

    buffer: Buffer
    bounds: tuple[Range, ...]


ADAPTERS.update({
    "Stmt": (Stmt, refuse("statement"), None),
    "Stmt | None": ((Stmt, NoneType), refuse("statement"), None),
    "tuple[Stmt, ...]": each(Stmt, refuse("statement")),
    "ForKind": (ForKind, ForKind, None),
    "Subject": (PrimExpr, lambda value: IntImm("int32", value) if type(value) is int else value, None),
})  # fmt: skip

NOP = Evaluate(IntImm("int32", 0))


def statements_of(stmt: Stmt) -> tuple[Stmt, ...]:
    """Those of a sequence, or the one."""
    return stmt.seq if isinstance(stmt, SeqStmt) else (stmt,)


def seq(*stmts: Stmt) -> Stmt:
    """The statements one after the other, flattened; no-ops are dropped."""
    flat: list[Stmt] = []
    for stmt in stmts:
        flat.extend(stmt.seq if isinstance(stmt, SeqStmt) else (stmt,))
    flat = [s for s in flat if not is_no_op(s)]
    if not flat:
        return NOP
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))


def is_no_op(stmt: Stmt) -> bool:
    """True for the evaluation of a constant."""
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, IntImm)
