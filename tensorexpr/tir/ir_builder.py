"""Write loop nests by hand: `ib = tir.ir_builder.create()`, statements in order, `ib.get()` at the end.

ib = tir.ir_builder.create()
A, B = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
with ib.for_range(0, n, name="i") as i:
    with ib.if_scope(i > 0):
        B[i] = A[i] + A[i - 1]
    with ib.else_scope():
        B[i] = A[i]
body = ib.get()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from .arithmetic import as_int, cast, convert, floordiv, floormod, to_bool
from .attrs import FrozenMap
from .buffer import Buffer, decl_buffer, pointer_var
from .dtype import parse_dtype, scalar_dtype
from .expr import Add, BufferLoad, ExprOp, IntImm, IterVar, PrimExpr, Ramp, StringImm, Var
from .intrin import likely
from .stmt import Allocate, AssertStmt, AttrStmt, BufferStore, Evaluate, For, ForKind, IfThenElse, LetStmt, Stmt, While, seq

_KINDS = {
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "vectorized": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
    "unrolled": ForKind.UNROLLED,
}
_TRUE = IntImm("bool", 1)
_MOST_ELEMENTS = (1 << 31) - 1  # every int32 index is within it
Around = Callable[[Stmt], Stmt]


class BufferVar:
    """Memory that is indexed like an array: `x[i]` is an expression, `x[i] = value` emits a store.

    A buffer of several dimensions takes one index for each, or a single one that counts its elements row by row. An
    index may be a vector (`tir.Ramp`); the element is then a vector too.
    """

    def __init__(self, builder: IRBuilder, buffer: Buffer, content_type: str | None = None) -> None:
        self._builder = builder
        self._buffer = buffer
        if content_type not in (None, buffer.dtype):
            raise TypeMismatchError(f"the elements of {buffer.name} are {buffer.dtype}, not {content_type}")

    @property
    def dtype(self) -> str:
        """The element type."""
        return self._buffer.dtype

    @property
    def data(self) -> Var:
        """The pointer, for calls of foreign functions."""
        return self._buffer.data

    @property
    def buffer(self) -> Buffer:
        """The buffer behind it."""
        return self._buffer

    def asobject(self) -> Buffer:
        """The buffer behind it."""
        return self._buffer

    def __getitem__(self, index: Any) -> PrimExpr:
        buffer, indices = self._place(index)
        return BufferLoad(buffer, indices)

    def __setitem__(self, index: Any, value: Any) -> None:
        wanted = scalar_dtype(self.dtype)
        stored = convert(value) if isinstance(value, ExprOp) else cast(convert(value), wanted)
        if scalar_dtype(stored.dtype) != wanted:
            raise TypeMismatchError(
                f"a store of {stored} ({stored.dtype}) to {self._buffer.name}, whose elements are {wanted}; "
                f"convert it with .astype({wanted!r})"
            )
        # How many elements the value fills, which may be vectors themselves.
        lanes = parse_dtype(stored.dtype).lanes // parse_dtype(self.dtype).lanes
        buffer, indices = self._place(_spread(index, lanes) if lanes > 1 else index)
        self._builder.emit(BufferStore(buffer, cast(stored, buffer.access_dtype(indices)), indices))

    def _place(self, index: Any) -> tuple[Buffer, tuple[PrimExpr, ...]]:
        """The buffer to access, and an index for each of its dimensions."""
        items = tuple(index) if isinstance(index, (tuple, list)) else (index,)
        if any(isinstance(item, slice) for item in items):
            raise DeclarationError(f"{self._buffer.name} can't be indexed by a Python slice; use a tir.Ramp for a vector, or a loop")
        indices, shape = tuple(convert(item) for item in items), self._buffer.shape
        if len(indices) == len(shape):
            return self._buffer, indices
        if len(indices) != 1:
            raise DeclarationError(
                f"{self._buffer.name} has {len(shape)} dimensions, indexed with {len(indices)}: "
                "give one index for each, or a single one that counts elements row by row"
            )
        if parse_dtype(indices[0].dtype).lanes == 1:
            return self._buffer, _unravelled(indices[0], shape)
        if self._buffer.strides:
            raise DeclarationError(f"{self._buffer.name} has strides, so a vector needs an index per dimension")
        return _flat_view(self._buffer), indices

    def __repr__(self) -> str:
        return f"BufferVar({self._buffer!r})"


def _spread(index: Any, lanes: int) -> tuple[Any, ...]:
    """Where a vector goes that is stored at `index`: from there on, unless the index says for each lane."""
    items = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    indices = tuple(item if isinstance(item, slice) else convert(item) for item in items)
    if any(not isinstance(item, slice) and parse_dtype(item.dtype).lanes > 1 for item in indices) or isinstance(indices[-1], slice):
        return indices
    return (*indices[:-1], Ramp(indices[-1], IntImm(indices[-1].dtype, 1), lanes))


def _unravelled(index: PrimExpr, shape: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """The indices of element number `index`, row by row."""
    found: list[PrimExpr] = []
    # A buffer without elements is indexed by loops that never run, and nothing is divided by its extents of 0.
    for extent in (1 if as_int(own) == 0 else own for own in reversed(shape[1:])):
        found.append(floormod(index, extent))
        index = floordiv(index, extent)
    return (index, *reversed(found)) if shape else ()


def _flat_view(buffer: Buffer) -> Buffer:
    """The elements of a compact buffer in a row."""
    size: PrimExpr = IntImm("int32", 1)
    for extent in buffer.shape:
        size = size * extent
    return Buffer(buffer.data, buffer.dtype, (size,), (), buffer.elem_offset, buffer.name, buffer.data_alignment, buffer.offset_factor)


class IRBuilder:
    """Collects statements; scopes are `with` blocks. Make one with `create()`."""

    def __init__(self) -> None:
        self._scopes: list[list[Stmt | Around]] = [[]]

    def emit(self, stmt: Stmt | PrimExpr | Around) -> None:
        """Append a statement, an expression that is evaluated for its effect, or what goes around all that follows in this scope."""
        if isinstance(stmt, PrimExpr):
            stmt = Evaluate(stmt)
        if not isinstance(stmt, Stmt) and not callable(stmt):
            raise DeclarationError(f"ib.emit takes a statement or an expression, not {stmt!r}")
        self._scopes[-1].append(stmt)

    def get(self) -> Stmt:
        """The statement so far.

        Raises:
            DeclarationError: inside a `with` block of a scope.
        """
        if len(self._scopes) != 1:
            raise DeclarationError(f"ib.get inside {len(self._scopes) - 1} open scope(s); call it after the outermost `with` block")
        return _closed(self._scopes[0])

    @contextmanager
    def _scope(self, finish: Callable[[Stmt], None]) -> Iterator[None]:
        """Collect what the `with` block emits and hand it to `finish`; nothing is emitted if the block raises."""
        self._scopes.append([])
        try:
            yield
        except BaseException:
            self._scopes.pop()
            raise
        finish(_closed(self._scopes.pop()))

    @contextmanager
    def for_range(self, begin: Any, end: Any, name: str = "i", dtype: str | None = None, kind: str = "serial") -> Iterator[Var]:
        """A loop over [begin, end); the `with` block gets its variable.

        Args:
            dtype: of the variable; that of the bounds if None.
            kind: "serial", "parallel", "vectorize" or "unroll".

        Raises:
            DeclarationError: for another kind, or bounds that are no integers.
        """
        if kind not in _KINDS:
            raise DeclarationError(f"loop {name}: no kind {kind!r}; kinds: serial, parallel, vectorize, unroll")
        low, high = convert(begin), convert(end)
        if any(not parse_dtype(bound.dtype).is_int or parse_dtype(bound.dtype).lanes > 1 for bound in (low, high)):
            raise DeclarationError(f"loop {name}: it runs from {low} ({low.dtype}) to {high} ({high.dtype}); bounds are integers")
        # n for range(i, i + n), whatever i is, with nothing to simplify.
        extent = high if as_int(low) == 0 else high.b if isinstance(high, Add) and high.a is low else high - low
        wanted = dtype or extent.dtype
        var = Var(name, wanted)
        with self._scope(lambda body: self.emit(For(var, cast(low, wanted), cast(extent, wanted), _KINDS[kind], body))):
            yield var

    @contextmanager
    def while_loop(self, condition: Any) -> Iterator[None]:
        """A loop that runs as long as the condition holds."""
        test = to_bool(condition)
        with self._scope(lambda body: self.emit(While(test, body))):
            yield

    @contextmanager
    def if_scope(self, cond: Any) -> Iterator[None]:
        """What runs where the condition holds."""
        test = to_bool(cond)
        with self._scope(lambda body: self.emit(IfThenElse(test, body))):
            yield

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """What runs where the condition of the `if_scope` right before does not hold.

        Raises:
            DeclarationError: if no `if_scope` stands right before.
        """
        last = self._scopes[-1][-1] if self._scopes[-1] else None
        if not isinstance(last, IfThenElse) or last.else_case is not None:
            raise DeclarationError("ib.else_scope stands right after the `with` block of an ib.if_scope, and once")
        # The body is collected in a scope of its own, so the `if` still stands there when it ends.
        place = len(self._scopes[-1]) - 1

        def finish(body: Stmt) -> None:
            self._scopes[-1][place] = IfThenElse(last.condition, last.then_case, body)

        with self._scope(finish):
            yield

    @contextmanager
    def new_scope(self) -> Iterator[None]:
        """A scope of its own: what is allocated, bound or asserted in it lasts to its end."""
        with self._scope(self.emit):
            yield

    def let(self, var_name: str, value: Any) -> Var:
        """A variable for a value, up to the end of this scope."""
        bound = convert(value)
        var = Var(var_name, bound.dtype)
        self.emit(lambda body: LetStmt(var, bound, body))
        return var

    def assert_scope(self, condition: Any, message: str) -> None:
        """What follows in this scope runs only if the condition holds; else the call of the function raises the message."""
        test = to_bool(condition)
        self.emit(lambda body: AssertStmt(test, StringImm(message), body))

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """An attribute of `node` for what follows in this scope."""
        worth = StringImm(value) if isinstance(value, str) else convert(value)
        subject = node.data if isinstance(node, BufferVar) else node
        self.emit(lambda body: AttrStmt(subject, attr_key, worth, body))

    def allocate(
        self, dtype: str, shape: Any, name: str = "buf", scope: str = "", axis_separators: Sequence[int] | None = None
    ) -> BufferVar:
        """Storage of `shape` elements up to the end of this scope.

        Args:
            shape: extents, or one extent.
            scope: "global" (the default) or "local".
            axis_separators: where the axes of the memory begin, if it has several.
        """
        buffer = decl_buffer(shape, dtype, name, scope=scope or "global", axis_separators=axis_separators)
        self.emit(lambda body: Allocate(buffer.data, dtype, buffer.shape, _TRUE, body, FrozenMap()))
        return BufferVar(self, buffer)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """Memory behind a fresh pointer variable that somebody else defines; how many elements it has is not known."""
        data = pointer_var(name, content_type, scope or "global")
        return BufferVar(self, decl_buffer((_MOST_ELEMENTS,), content_type, name, data))

    def buffer_ptr(self, buf: Buffer, shape: Any = None) -> BufferVar:
        """A buffer to be indexed; with `shape`, its elements in another shape of a compact layout.

        Raises:
            DeclarationError: for a new shape of a buffer with strides.
        """
        if shape is None:
            return BufferVar(self, buf)
        if buf.strides:
            raise DeclarationError(f"{buf.name} has strides, so its elements can't be taken in another shape; leave `shape` out")
        return BufferVar(
            self, decl_buffer(shape, buf.dtype, buf.name, buf.data, None, buf.elem_offset, "", buf.data_alignment, buf.offset_factor)
        )

    def likely(self, expr: Any) -> PrimExpr:
        """A condition that holds but at a border."""
        return likely(expr.var if isinstance(expr, IterVar) else expr)


def _closed(items: Sequence[Stmt | Around]) -> Stmt:
    """The statements in order, each scope-wide one around what follows it."""
    rest: Stmt = seq()
    for item in reversed(items):
        rest = seq(item, rest) if isinstance(item, Stmt) else item(rest)
    return rest


def create() -> IRBuilder:
    """A new builder."""
    return IRBuilder()
