"""Statements as strict JSON: nested lists that begin with the statement's name, over a table of expression rows.

    {"rows": [...], "pointers": [["C", "float32", "global"]], "buffers": [["C", 0, "float32", [3], [], 4, 64, 1]],
     "body": ["For", 7, 8, 9, 0, {}, ["BufferStore", 0, 12, [7], null]]}

Numbers are rows of `ExprWriter`, but that of a buffer or pointer is its place in the table of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import RecordError
from ..attrs import EMPTY, FrozenMap
from ..buffer import Buffer, pointer_var
from ..dtype import parse_dtype, scalar_dtype
from ..expr import PrimExpr, StringImm, Var
from ..rewriting import walk
from ..stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from ..storage_scope import SCOPE_KINDS, is_storage_scope
from .reader import ExprReader, Limits
from .rows import shown
from .writer import ExprWriter

JSON = Any
_DEPTH = 200
_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED)
_FIELDS = ("rows", "pointers", "buffers", "body")


class _Writer:
    """Writes one statement; expressions go to `rows`, buffers and pointers to their tables."""

    def __init__(self, body: Stmt, buffers: Sequence[Buffer], variables: Mapping[Var, str]) -> None:
        # In order of first use, those of `buffers` first: their places in the table are their numbers.
        self.pointers = dict.fromkeys((*(b.data for b in buffers), *_pointers(body)))
        names = {**variables, **{pointer: f"p{number}" for number, pointer in enumerate(self.pointers)}}
        self.rows = ExprWriter(names, buffer=self.buffer)
        self.buffers: dict[Buffer, int] = {}
        self.table: list[JSON] = []

    def buffer(self, buffer: Buffer) -> int:
        """The number of a buffer, written if it isn't in the table yet."""
        if buffer not in self.buffers:
            shape, strides = (list(map(self.rows.expr, part)) for part in (buffer.shape, buffer.strides))
            offset, data = self.rows.expr(buffer.elem_offset), list(self.pointers).index(buffer.data)
            # Behind the rows of its shape, which the reader needs before the buffer.
            self.buffers[buffer] = len(self.table)
            self.table.append([buffer.name, data, buffer.dtype, shape, strides, offset, buffer.data_alignment, buffer.offset_factor])
        return self.buffers[buffer]

    def stmt(self, stmt: Stmt) -> JSON:
        """The statement as nested lists."""
        at, name = self.rows.expr, type(stmt).__name__
        match stmt:
            case SeqStmt():
                return [name, [self.stmt(one) for one in stmt.seq]]
            case For() if stmt.thread_binding is None:
                head = [name, at(stmt.loop_var), at(stmt.min), at(stmt.extent), int(stmt.kind), _plain(stmt.annotations)]
                return [*head, self.stmt(stmt.body)]
            case While():
                return [name, at(stmt.condition), self.stmt(stmt.body)]
            case BufferStore():
                mask = None if stmt.predicate is None else at(stmt.predicate)
                return [name, self.buffer(stmt.buffer), at(stmt.value), [at(index) for index in stmt.indices], mask]
            case Allocate():
                extents = [at(extent) for extent in stmt.extents]
                place = list(self.pointers).index(stmt.buffer_var)
                return [name, place, stmt.dtype, extents, at(stmt.condition), self.stmt(stmt.body)]
            case DeclBuffer():
                return [name, self.buffer(stmt.buffer), self.stmt(stmt.body)]
            case IfThenElse():
                other = None if stmt.else_case is None else self.stmt(stmt.else_case)
                return [name, at(stmt.condition), self.stmt(stmt.then_case), other]
            case LetStmt():
                return [name, at(stmt.var), at(stmt.value), self.stmt(stmt.body)]
            case AssertStmt():
                return [name, at(stmt.condition), at(stmt.message), self.stmt(stmt.body)]
            case AttrStmt() if isinstance(stmt.node, PrimExpr):
                return [name, at(stmt.node), stmt.attr_key, at(stmt.value), self.stmt(stmt.body)]
            case Evaluate():
                return [name, at(stmt.value)]
        raise RecordError(f"{name} has no JSON form: a statement in a file is made of loops, stores, conditions, lets and calls")


def _pointers(body: Stmt) -> list[Var]:
    """The pointer variables that a statement mentions."""
    found: dict[Var, None] = {}
    for node in walk(body):
        if isinstance(node, Var) and node.dtype == "handle":
            found[node] = None
        buffer = getattr(node, "buffer", None)
        if isinstance(buffer, Buffer):
            found[buffer.data] = None
    return list(found)


def _plain(annotations: FrozenMap) -> JSON:
    found = {key: value.value if isinstance(value, StringImm) else value for key, value in annotations.items()}
    if not all(isinstance(value, (bool, int, str)) for value in found.values()):
        raise RecordError(f"the annotations {found} have no JSON form: their values are numbers and strings")
    return found


def stmt_to_json(body: Stmt, buffers: Sequence[Buffer], variables: Mapping[Var, str]) -> dict[str, JSON]:
    """A statement as a document for `stmt_from_json`.

    Args:
        buffers: defined outside; they come first in the document's table of buffers.
        variables: scalars that are defined outside, by the names that stand for them.

    Raises:
        RecordError: for statements that have no place in a file.
    """
    writer = _Writer(body, buffers, variables)
    for buffer in buffers:
        writer.buffer(buffer)
    written = writer.stmt(body)
    pointers = [[v.name, _element(v), v.type_annotation.storage_scope if v.type_annotation else "global"] for v in writer.pointers]
    return {"rows": writer.rows.rows, "pointers": pointers, "buffers": writer.table, "body": written}


def _element(pointer: Var) -> str:
    return pointer.type_annotation.element_type.dtype if pointer.type_annotation else "float32"


class _Reader(ExprReader):
    """Reads the rows of a document, then its statements."""

    def __init__(self, data: Mapping[str, JSON], variables: Mapping[str, Var], limits: Limits | None) -> None:
        # Here already: the pointers below are read by checks that ask for the limits.
        self._limits = limits or Limits()
        self.pointers = [self._pointer(item) for item in self.list(data["pointers"])]
        self._table, self._built = self.list(data["buffers"]), dict[int, Buffer]()
        names = {**variables, **{f"p{number}": pointer for number, pointer in enumerate(self.pointers)}}
        # Last, as it builds all rows, which refer to pointers and buffers.
        super().__init__(data["rows"], names, None, None, limits)

    def _pointer(self, item: JSON) -> Var:
        if not isinstance(item, list) or len(item) != 3 or not is_storage_scope(self.text(item[2])):
            raise RecordError(f"a pointer is [name, dtype, scope] with a scope of {', '.join(SCOPE_KINDS)}")
        return pointer_var(self.text(item[0]), self.dtype(item[1]), item[2])

    def pointer(self, number: JSON) -> Var:
        """The pointer at a place of its table."""
        return self.pointers[self.integer(number, 0, len(self.pointers) - 1)]

    def stored(self, value: JSON) -> Buffer:
        """The buffer at a place of its table, whose rows come before those that read it."""
        number = self.integer(value, 0, len(self._table) - 1)
        if number not in self._built:
            row = self._table[number]
            if not isinstance(row, list) or len(row) != 8:
                raise RecordError("a buffer is [name, pointer, dtype, shape, strides, offset, alignment, offset factor]")
            name, data, dtype, shape, strides, offset, alignment, factor = row
            extents, steps = self._integers(shape), self._integers(strides)
            if steps and len(steps) != len(extents):
                raise RecordError(f"buffer {shown(name)} has {len(extents)} dimensions and {len(steps)} strides")
            start = self._integers([offset])[0]
            sizes = self.integer(alignment, 1, 4096), self.integer(factor, 1, 1 << 20)
            # A power of two has no bit in common with the number below it.
            if sizes[0] & (sizes[0] - 1):
                raise RecordError(f"the alignment {sizes[0]} is no power of two")
            self._built[number] = Buffer(self.pointer(data), self.dtype(dtype), extents, steps, start, self.text(name), *sizes)
        return self._built[number]

    def _integers(self, numbers: JSON) -> tuple[PrimExpr, ...]:
        found = self.exprs(numbers)
        if not all(parse_dtype(expr.dtype).is_int and parse_dtype(expr.dtype).lanes == 1 for expr in found):
            raise RecordError("shapes, strides and offsets are integers")
        return found

    def stmt(self, data: JSON, depth: int = 0) -> Stmt:
        """The statement of nested lists."""
        name = data[0] if isinstance(data, list) and data else data
        arity, read = _STATEMENTS.get(name, (0, None)) if isinstance(name, str) else (0, None)
        # Bodies are read by recursion; a file must not exhaust the stack.
        if read is None or depth > _DEPTH:
            raise RecordError(f"{shown(name)} is no statement, or nested deeper than {_DEPTH}")
        if len(data) != arity + 1:
            raise RecordError(f"{name} has {arity} fields, not {len(data) - 1}")
        made = read(self, lambda body: self.stmt(body, depth + 1), *data[1:])
        if not isinstance(made, Stmt):
            raise RecordError(f"{name} is malformed")
        return made


Body = Callable[[JSON], Stmt]


def _for(reader: _Reader, body: Body, var: JSON, low: JSON, extent: JSON, kind: JSON, annotations: JSON, inner: JSON) -> Stmt:
    if not isinstance(annotations, dict) or not all(isinstance(v, (bool, int, str)) for v in annotations.values()):
        raise RecordError("the annotations of a loop are numbers and strings")
    how = ForKind(reader.integer(kind, 0, max(map(int, _KINDS))))
    loop, begin, size = reader.variable(var), reader.scalar(low), reader.scalar(extent)
    if not loop.dtype == begin.dtype == size.dtype or not parse_dtype(loop.dtype).is_int:
        raise RecordError(f"a loop of {loop.dtype} from {begin.dtype} over {size.dtype}")
    return For(loop, begin, size, how, body(inner), annotations=FrozenMap(annotations) if annotations else EMPTY)


def _seq(reader: _Reader, body: Body, items: JSON) -> Stmt:
    inner = tuple(body(item) for item in reader.list(items))
    return SeqStmt(inner) if len(inner) > 1 and not any(isinstance(s, SeqStmt) for s in inner) else _refuse("a sequence holds two or more")


def _refuse(message: str) -> Stmt:
    raise RecordError(message)


def _store(reader: _Reader, body: Body, buffer: JSON, value: JSON, indices: JSON, mask: JSON) -> Stmt:
    at = reader.exprs(indices)
    if not all(parse_dtype(index.dtype).is_int for index in at):
        return _refuse("a store at an index that is no integer")
    return BufferStore(reader.stored(buffer), reader.expr(value), at, None if mask is None else reader.expr(mask))


def _allocate(reader: _Reader, body: Body, pointer: JSON, dtype: JSON, extents: JSON, condition: JSON, inner: JSON) -> Stmt:
    sizes, data = reader._integers(extents), reader.pointer(pointer)
    if _element(data) != scalar_dtype(reader.dtype(dtype)) and _element(data) != dtype:
        return _refuse(f"an allocation of {shown(dtype)} behind a pointer to {_element(data)}")
    return Allocate(data, reader.dtype(dtype), sizes, reader.expr(condition), body(inner))


def _let(reader: _Reader, body: Body, var: JSON, value: JSON, inner: JSON) -> Stmt:
    name, bound = reader.variable(var), reader.expr(value)
    return LetStmt(name, bound, body(inner)) if name.dtype == bound.dtype else _refuse(f"a let of {bound.dtype} as {name.dtype}")


def _condition(reader: _Reader, number: JSON) -> PrimExpr:
    condition = reader.expr(number)
    if condition.dtype != "bool":
        _refuse(f"a condition is {condition.dtype}")
    return condition


# By name: the number of fields and the function that reads them.
_STATEMENTS: dict[str, tuple[int, Callable[..., Any]]] = {
    "SeqStmt": (1, _seq),
    "For": (6, _for),
    "While": (2, lambda reader, body, condition, inner: While(_condition(reader, condition), body(inner))),
    "BufferStore": (4, _store),
    "Allocate": (5, _allocate),
    "DeclBuffer": (2, lambda reader, body, buffer, inner: DeclBuffer(reader.stored(buffer), body(inner))),
    "IfThenElse": (
        3,
        lambda reader, body, condition, yes, no: IfThenElse(_condition(reader, condition), body(yes), None if no is None else body(no)),
    ),
    "LetStmt": (3, _let),
    "AssertStmt": (
        3,
        lambda reader, body, condition, message, inner: AssertStmt(_condition(reader, condition), reader.expr(message), body(inner)),
    ),
    "AttrStmt": (
        4,
        lambda reader, body, node, key, value, inner: AttrStmt(reader.expr(node), reader.text(key), reader.expr(value), body(inner)),
    ),
    "Evaluate": (1, lambda reader, body, value: Evaluate(reader.expr(value))),
}


def stmt_from_json(data: JSON, outer: int, variables: Mapping[str, Var], limits: Limits | None = None) -> tuple[Stmt, tuple[Buffer, ...]]:
    """The statement of a document that `stmt_to_json` made, and the first `outer` buffers of its table.

    Raises:
        RecordError: for anything that is not exactly such a document.
    """
    if not isinstance(data, dict) or set(data) != set(_FIELDS):
        raise RecordError(f"a statement document has the fields {', '.join(_FIELDS)}")
    reader = _Reader(data, variables, limits)
    buffers = tuple(reader.stored(number) for number in range(outer))
    return reader.stmt(data["body"]), buffers
