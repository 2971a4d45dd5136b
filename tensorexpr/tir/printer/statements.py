"""Statements as TVMScript, line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...tir.arithmetic import is_const_int
from ..block import Block, BlockRealize
from ..buffer import Buffer
from ..expr import Call, IntImm, IterVar, PointerType, PrimExpr, Range, StringImm, Var
from ..rewriting import walk
from ..stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferBind,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    While,
)
from ..thread import VIRTUAL_TAGS, is_thread_tag
from .blocks import write_buffers, write_realization, write_unbound
from .expressions import SCRIPT, declared_type, index_parts, quoted, script_expr, script_map, script_value
from .options import MARK_BEGIN, MARK_END, MARK_LINE
from .placement import Placement
from .text import SUM, Names, render

_LOOPS = {
    ForKind.SERIAL: "T.serial",
    ForKind.PARALLEL: "T.parallel",
    ForKind.VECTORIZED: "T.vectorized",
    ForKind.UNROLLED: "T.unroll",
    ForKind.THREAD_BINDING: "T.thread_binding",
}


class StatementPrinter:
    """Writes statements as lines. Work waits on a stack: nesting may be as deep as memory allows."""

    def __init__(self, names: Names, placement: Placement, indent: int = 0) -> None:
        self.names = names
        self.lines: list[str] = []
        self.loops: dict[Var, For] = {}  # by variable, those around
        self.starts: dict[int, int] = {}  # by statement, how many lines were there before it
        self._placement = placement
        self._indent = indent
        self._counter = 0
        self._marked = 0  # how many of the statements around are marked
        self._trailing = ""  # the remark on the next line
        self._todo: list[tuple[Stmt, bool] | Callable[[], None]] = []

    def line(self, text: str) -> None:
        """Add one line at the current indentation."""
        self.lines.append(f"{MARK_LINE if self._marked else ''}{'    ' * self._indent}{text}{self._trailing}")
        self._trailing = ""

    def write(self, stmt: Stmt, last: bool = True) -> None:
        """Write `stmt`, by default as the last of its block."""
        self._todo.append((stmt, last))
        while self._todo:
            item = self._todo.pop()
            if callable(item):
                item()
            else:
                self._statement(*item)

    def _statement(self, stmt: Stmt, last: bool) -> None:
        """Write one statement; only the `last` of a block may let its body follow without indentation."""
        self._mark(stmt)
        self._declare()
        self.starts[id(stmt)] = len(self.lines)
        if isinstance(stmt, SeqStmt):
            tail = len(stmt.seq) - 1
            self._todo.extend((child, last and number == tail) for number, child in reversed(list(enumerate(stmt.seq))))
        else:
            _WRITERS[type(stmt)](self, stmt, last)

    def _mark(self, stmt: Stmt) -> None:
        """Mark what is marked in a statement, or all of it until it ends, and write the remark about it."""
        options = self.names.options
        self.names.at(stmt)
        if id(stmt) in options.marked:
            self._marked += 1
            self._todo.append(self._unmark)
        if options.remarks and not isinstance(stmt, BlockRealize):
            self._remark(stmt)

    def _unmark(self) -> None:
        self._marked -= 1

    def _remark(self, stmt: Stmt) -> None:
        """The remark about a statement: behind it if it has one line, else above it."""
        text = self.names.options.remarks.get(id(stmt))
        if text is None:
            return
        if isinstance(stmt, (BufferStore, Evaluate)):
            self._trailing = f"  # {text}"
        else:
            self.line(f"# {text}")

    def _declare(self) -> None:
        """Declare what the placement puts before the next statement, and count it."""
        for thing in self._placement.before.get(self._counter, ()):
            if isinstance(thing, Buffer):
                self.declare_buffer(thing)
            elif thing not in self.names:
                self.declare_var(thing)
        self._counter += 1

    def declare_var(self, var: Var) -> None:
        """Declare a variable that nothing defines."""
        name, pointer = self.names.define(var, var.name), var.type_annotation
        known = isinstance(pointer, PointerType) and pointer.storage_scope == "global"
        self.line(f"{name} = {declared_type(var)[:-1] + ', ' + quoted('global') + ')' if known else declared_type(var)}")

    def declare_buffer(self, buffer: Buffer, how: str = "T.Buffer") -> None:
        """Declare a buffer, over its data if that has a name already."""
        arguments = self.buffer_arguments(buffer, data=buffer.data in self.names)
        self.line(self.marked(buffer, f"{self.define_buffer(buffer)} = {how}({arguments})"))

    def marked(self, thing: Any, text: str) -> str:
        """The text of a thing, marked if the thing is."""
        return f"{MARK_BEGIN}{text}{MARK_END}" if id(thing) in self.names.options.marked else text

    def define_buffer(self, buffer: Buffer) -> str:
        """Name a buffer; the first one over some data also names the data, as ``A.data``."""
        name = self.names.define(buffer, buffer.name)
        if buffer.data not in self.names:
            self.names.alias(buffer.data, f"{name}.data")
        for number, stride in enumerate(buffer.strides):
            if isinstance(stride, Var) and stride not in self.names:
                self.names.alias(stride, f"{name}.strides[{number}]")
        return name

    def define_view(self, buffer: Buffer) -> str:
        """Name a buffer that stands for a part of another, and its offset if it is a variable."""
        name = self.define_buffer(buffer)
        offset = buffer.elem_offset
        if isinstance(offset, Var) and offset not in self.names:
            self.names.alias(offset, f"{name}.elem_offset")
        return name

    def buffer_arguments(self, buffer: Buffer, data: bool) -> str:
        """Shape and dtype of a buffer, and all else that isn't the default."""
        for var in (*buffer.strides, buffer.elem_offset):
            if isinstance(var, Var) and var not in self.names and not _is_usual(var, buffer):
                self.declare_var(var)
        marks, self.names.marks = self.names.marks, self.names.marks
        self.names.at(buffer)
        args = [self._tuple(buffer.shape)]
        self.names.marks = marks
        if buffer.dtype != self.names.options.buffer_dtype:
            args.append(quoted(buffer.dtype))
        if data:
            args.append(f"data={self.expr(buffer.data)}")
        if buffer.strides:
            args.append(f"strides={self._tuple(buffer.strides)}")
        # Constants are interned: this is any 0 of int32.
        if buffer.elem_offset is not IntImm("int32", 0) or buffer.offset_factor != 1:
            args.append(f"elem_offset={self._extent(buffer.elem_offset)}")
        if buffer.scope() != "global":
            args.append(f"scope={quoted(buffer.scope())}")
        if buffer.data_alignment != 64:
            args.append(f"align={buffer.data_alignment}")
        if buffer.offset_factor != 1:
            args.append(f"offset_factor={buffer.offset_factor}")
        if buffer.buffer_type == Buffer.AUTO_BROADCAST:
            args.append('buffer_type="auto"')
        if buffer.axis_separators:
            args.append(f"axis_separators=[{', '.join(map(self._extent, buffer.axis_separators))}]")
        return ", ".join(args)

    def _tuple(self, items: tuple[PrimExpr, ...]) -> str:
        """A tuple of extents; a variable without a name here is a stride that the buffer itself defines."""
        texts = [self._extent(item) for item in items]
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"

    def _extent(self, item: PrimExpr) -> str:
        return quoted(item.name) if isinstance(item, Var) and item not in self.names else self.expr(item)

    def expr(self, expr: PrimExpr) -> str:
        """An expression in the names of this place."""
        return script_expr(expr, self.names)

    def _block(self, header: str, body: Stmt) -> None:
        """A header line and `body` one level deeper."""
        self.line(header)
        self._indent += 1
        self.names.push()
        self._todo.append(self._leave)
        self._todo.append((body, True))

    def _leave(self) -> None:
        self._indent -= 1
        self.names.pop()

    def _scoped(self, last: bool, concise: str, with_header: str, body: Stmt) -> None:
        """A definition followed by its body: on the same level where the block ends with it, else inside a `with`."""
        if last:
            self.line(concise)
            self._todo.append((body, True))
        else:
            self._block(with_header, body)

    # One writer for each kind of statement.

    def _for(self, stmt: For, last: bool) -> None:
        loops = [stmt]
        while isinstance(inner := loops[-1].body, For) and self._joins_grid(loops, inner):
            loops.append(inner)
            # A loop that joins isn't visited by itself, and `Placement` numbers all statements in pre-order: it is counted here.
            self._declare()
        self.loops.update((loop.loop_var, loop) for loop in loops)
        extents = [self.expr(loop.extent) for loop in loops]
        header = f"T.grid({', '.join(extents)})" if len(loops) > 1 else self._loop_header(stmt, extents[0])
        self.names.push()
        variables = ", ".join(self.names.define(loop.loop_var, loop.loop_var.name) for loop in loops)
        self._todo.append(self.names.pop)
        self._block(f"for {variables} in {header}:", loops[-1].body)

    def _joins_grid(self, loops: list[For], inner: For) -> bool:
        """Plain serial loops nested directly, whose extents do not use the loops around, are one grid."""
        if not self.names.options.syntax_sugar or id(inner) in self.names.options.marked or not (_is_plain(loops[0]) and _is_plain(inner)):
            return False
        around = [loop.loop_var for loop in loops]
        return not any(node is var for node in walk(inner.extent) for var in around)

    def _loop_header(self, stmt: For, extent: str) -> str:
        plain = is_const_int(stmt.min, 0)
        args = [extent] if plain else [self.expr(stmt.min), self._stop(stmt.min, stmt.extent)]
        if stmt.kind == ForKind.SERIAL and not stmt.annotations:
            return f"range({', '.join(args)})"
        if stmt.thread_binding is not None:
            args.append(f"thread={quoted(stmt.thread_binding.thread_tag)}")
        if stmt.annotations:
            args.append(f"annotations={script_map(stmt.annotations, self.names)}")
        return f"{_LOOPS[stmt.kind]}({', '.join(args)})"

    def _stop(self, low: PrimExpr, extent: PrimExpr) -> str:
        if isinstance(low, IntImm) and isinstance(extent, IntImm):
            return self.expr(IntImm(low.dtype, low.value + extent.value))
        if is_const_int(low, 0):
            return self.expr(extent)
        return f"{render(low, SCRIPT, self.names, SUM)} + {render(extent, SCRIPT, self.names, SUM + 1)}"

    def _realize_block(self, stmt: BlockRealize, last: bool) -> None:
        # Counts the block, which is a statement inside of its realization.
        self._declare()
        self._open_block(stmt.block, "", stmt)
        write_realization(self, stmt)

    def _lone_block(self, block: Block, last: bool) -> None:
        """A block without its realization."""
        self._open_block(block, ", no_realize=True")
        write_unbound(self, block)

    def _open_block(self, block: Block, realized: str, stmt: BlockRealize | None = None) -> None:
        """The header of a block; what comes after its own lines waits on the stack."""
        if not realized and self.names.options.remarks:
            self._remark(block)
            self._remark(stmt or block)
        if id(block) in self.names.options.marked and stmt is not None:
            self._marked += 1
            self._todo.append(self._unmark)
        self.line(f"with T.block({quoted(block.name_hint)}{realized}):")
        self._indent += 1
        self.names.push()
        self._todo.append(self._leave)
        # A view that is a statement of its own would read as one of the block's.
        self._todo.append((block.body, not isinstance(block.body, BufferBind)))
        if block.init is not None:
            init = block.init
            # On top of the body, so written before it.
            self._todo.append(lambda: self._block("with T.init():", init))

    def write_root(self, stmt: BlockRealize) -> None:
        """Write the block of a whole function that says nothing but which buffers there are."""
        # Twice: the realization and its block have a number each.
        self._declare()
        self._declare()
        self.line('# with T.block("root"):')
        write_buffers(self, stmt.block)
        self.write(stmt.block.body)

    def _while(self, stmt: While, last: bool) -> None:
        self._block(f"while {self.expr(stmt.condition)}:", stmt.body)

    def _if(self, stmt: IfThenElse, last: bool) -> None:
        if stmt.else_case is not None:
            other = stmt.else_case
            # Under the first branch on the stack, so written after it.
            self._todo.append(lambda: self._block("else:", other))
        self._block(f"if {self.expr(stmt.condition)}:", stmt.then_case)

    def _store(self, stmt: BufferStore, last: bool) -> None:
        name = self.names.get(stmt.buffer, stmt.buffer.name)
        if stmt.predicate is None:
            parts = index_parts(stmt.indices)
            inside = "".join(part if isinstance(part, str) else render(part[0], SCRIPT, self.names, part[1]) for part in parts)
            self.line(f"{name}[{inside}] = {self.expr(stmt.value)}")
        else:
            indices = ", ".join(self.expr(index) for index in stmt.indices)
            self.line(f"{name}.vstore([{indices}], {self.expr(stmt.value)}, predicate={self.expr(stmt.predicate)})")

    def _realize(self, stmt: BufferRealize, last: bool, scope: str = "") -> None:
        name = self.names.get(stmt.buffer, stmt.buffer.name)
        bounds = ", ".join(self.slice_text(r) for r in stmt.bounds) or "()"
        guard = "" if is_const_int(stmt.condition, 1) else f", condition={self.expr(stmt.condition)}"
        notes = f", annotations={script_map(stmt.annotations, self.names)}" if stmt.annotations else ""
        text = f"T.realize({name}[{bounds}]{', ' if scope else ''}{scope}{guard}{notes})"
        self._scoped(last, text, f"with {text}:", stmt.body)

    def slice_text(self, bounds: Range) -> str:
        """``low:stop``."""
        return ":".join(self.ends(bounds))

    def ends(self, bounds: Range) -> tuple[str, str]:
        """Both ends of a range."""
        return self.expr(bounds.min), self._stop(bounds.min, bounds.extent)

    def _allocate(self, stmt: Allocate, last: bool) -> None:
        inner = stmt.body
        if isinstance(inner, DeclBuffer) and self._is_fresh(stmt, inner.buffer):
            # The declaration is written as part of the allocation; its number is taken here.
            self._counter += 1
            self._fresh_buffer(inner, last)
            return
        scope = stmt.buffer_var.type_annotation.storage_scope if stmt.buffer_var.type_annotation else "global"
        args = [f"[{', '.join(self.expr(e) for e in stmt.extents)}]", quoted(stmt.dtype), quoted(scope)]
        if not is_const_int(stmt.condition, 1):
            args.append(self.expr(stmt.condition))
        if stmt.annotations:
            args.append(f"annotations={script_map(stmt.annotations, self.names)}")
        self._binding(last, stmt.buffer_var, f"T.allocate({', '.join(args)})", stmt.body)

    def _allocate_const(self, stmt: AllocateConst, last: bool) -> None:
        """The elements are written out in one row, as a reader takes them."""
        elements = stmt.irmod_storage_idx if stmt.data is None else stmt.data.numpy().reshape(-1).tolist()
        args = [str(elements).replace("nan", 'float("nan")').replace("inf", 'float("inf")'), quoted(stmt.dtype)]
        args.append(f"[{', '.join(self.expr(e) for e in stmt.extents)}]")
        if stmt.annotations:
            args.append(f"annotations={script_map(stmt.annotations, self.names)}")
        self._binding(last, stmt.buffer_var, f"T.allocate_const({', '.join(args)})", stmt.body)

    def _producer_store(self, stmt: ProducerStore, last: bool) -> None:
        name = self.names.get(stmt.producer, stmt.producer.name)
        self.line(f"{name}[{', '.join(map(self.expr, stmt.indices)) or '()'}] = {self.expr(stmt.value)}")

    def _producer_realize(self, stmt: ProducerRealize, last: bool) -> None:
        box = ", ".join(self.slice_text(r) for r in stmt.bounds) or "()"
        guard = "" if is_const_int(stmt.condition, 1) else f", condition={self.expr(stmt.condition)}"
        text = f"T.realize({self.names.get(stmt.producer, stmt.producer.name)}[{box}], {quoted(stmt.storage_scope)}{guard})"
        self._scoped(last, text, f"with {text}:", stmt.body)

    def _is_fresh(self, stmt: Allocate, buffer: Buffer) -> bool:
        """True where an allocation and the buffer over it are one `T.decl_buffer` without data."""
        plain = is_const_int(stmt.condition, 1) and not stmt.annotations and self.names.options.syntax_sugar
        alike = len(stmt.extents) == len(buffer.shape) and all(a is b for a, b in zip(stmt.extents, buffer.shape, strict=True))
        return plain and alike and buffer.data is stmt.buffer_var and buffer.dtype == stmt.dtype

    def _fresh_buffer(self, stmt: DeclBuffer, last: bool) -> None:
        text = f"T.decl_buffer({self.buffer_arguments(stmt.buffer, data=False)})"
        if not last:
            self.names.push()
            self._todo.append(self.names.pop)
        name = self.define_buffer(stmt.buffer)
        self._scoped(last, f"{name} = {text}", f"with {text} as {name}:", stmt.body)

    def _let(self, stmt: LetStmt, last: bool) -> None:
        value, kind = self.expr(stmt.value), declared_type(stmt.var).removesuffix("()")
        usual = stmt.var.type_annotation is None and stmt.var.dtype == stmt.value.dtype
        text = f"T.LetStmt({value})" if usual else f"T.LetStmt({value}, {kind})"
        self._binding(last, stmt.var, value if last else text, stmt.body, f": {kind}")

    def _binding(self, last: bool, var: Var, value: str, body: Stmt, kind: str = "") -> None:
        """A name for `value` that lives as long as `body`; `kind` is its annotation where it is assigned."""
        # Inside a `with` the name ends where that does; as the last of a block it ends with the block.
        if not last:
            self.names.push()
            self._todo.append(self.names.pop)
        name = self.names.define(var, var.name)
        self._scoped(last, f"{name}{kind} = {value}", f"with {value} as {name}:", body)

    def _assert(self, stmt: AssertStmt, last: bool) -> None:
        check, message = self.expr(stmt.condition), self.expr(stmt.message)
        self._scoped(last, f"assert {check}, {message}", f"with T.Assert({check}, {message}):", stmt.body)

    def _attr(self, stmt: AttrStmt, last: bool) -> None:
        if isinstance(stmt.node, IterVar):
            axis = stmt.node
            key = "virtual_thread" if axis.thread_tag in VIRTUAL_TAGS else "thread_extent"
            # The parser gives the variable of T.launch_thread the dtype of the extent; another one needs T.attr.
            if key == stmt.attr_key and axis.var not in self.names and is_thread_tag(axis.thread_tag) and axis.dtype == stmt.value.dtype:
                self._binding(last, axis.var, f"T.launch_thread({quoted(axis.thread_tag)}, {self.expr(stmt.value)})", stmt.body)
                return
        inner = stmt.body
        if stmt.attr_key == "realize_scope" and isinstance(inner, BufferRealize) and inner.buffer is stmt.node:
            # The realization is written as part of the attribute; its number is taken here.
            self._counter += 1
            self._realize(inner, last, quoted(stmt.value.value) if isinstance(stmt.value, StringImm) else self.expr(stmt.value))
            return
        if isinstance(stmt.node, IterVar) and stmt.node.var not in self.names:
            self.declare_var(stmt.node.var)
        call = f"T.attr({script_value(stmt.node, self.names)}, {quoted(stmt.attr_key)}, {self.expr(stmt.value)})"
        self._scoped(last, call, f"with {call}:", stmt.body)

    def _decl_buffer(self, stmt: DeclBuffer, last: bool) -> None:
        if last:
            self.declare_buffer(stmt.buffer, "T.decl_buffer")
            self._todo.append((stmt.body, True))
            return
        arguments = self.buffer_arguments(stmt.buffer, data=stmt.buffer.data in self.names)
        self.names.push()
        self._todo.append(self.names.pop)
        self._block(f"with T.decl_buffer({arguments}) as {self.define_buffer(stmt.buffer)}:", stmt.body)

    def _bind(self, stmt: BufferBind, last: bool) -> None:
        source = stmt.source
        box = ", ".join(self.slice_text(r) for r in source.region) or "()"
        text = f"T.match_buffer({self.names.get(source.buffer, source.buffer.name)}[{box}], "
        text += f"{self.buffer_arguments(stmt.buffer, data=False)})"
        if not last:
            self.names.push()
            self._todo.append(self.names.pop)
        name = self.define_view(stmt.buffer)
        self._scoped(last, f"{name} = {text}", f"with {text} as {name}:", stmt.body)

    def _evaluate(self, stmt: Evaluate, last: bool) -> None:
        value = stmt.value
        if self.names.options.syntax_sugar and isinstance(value, Call) and value.op == "tir.ret":
            self.line(f"return {self.expr(value.args[0])}")
            return
        text = self.expr(value)
        self.line(text if isinstance(stmt.value, Call) else f"T.evaluate({text})")

    def _prefetch(self, stmt: Prefetch, last: bool) -> None:
        box = ", ".join(f"T.Range({self.expr(r.min)}, {self.expr(r.end)})" for r in stmt.bounds)
        self.line(f"T.prefetch({self.names.get(stmt.buffer, stmt.buffer.name)}, [{box}])")


def _is_usual(var: Var, buffer: Buffer) -> bool:
    """True for a stride or offset that a string can declare."""
    return type(var) is Var and var.dtype == (buffer.shape[0].dtype if buffer.shape else "int32")


def _is_plain(stmt: For) -> bool:
    return stmt.kind == ForKind.SERIAL and is_const_int(stmt.min, 0) and not stmt.annotations and stmt.thread_binding is None


_WRITERS: Mapping[type[Stmt], Callable[[StatementPrinter, Any, bool], None]] = {
    For: StatementPrinter._for,
    While: StatementPrinter._while,
    IfThenElse: StatementPrinter._if,
    BufferStore: StatementPrinter._store,
    BufferBind: StatementPrinter._bind,
    BufferRealize: StatementPrinter._realize,
    Allocate: StatementPrinter._allocate,
    AllocateConst: StatementPrinter._allocate_const,
    ProducerStore: StatementPrinter._producer_store,
    ProducerRealize: StatementPrinter._producer_realize,
    LetStmt: StatementPrinter._let,
    AssertStmt: StatementPrinter._assert,
    AttrStmt: StatementPrinter._attr,
    DeclBuffer: StatementPrinter._decl_buffer,
    Evaluate: StatementPrinter._evaluate,
    Prefetch: StatementPrinter._prefetch,
    BlockRealize: StatementPrinter._realize_block,
    Block: StatementPrinter._lone_block,
}
