"""The state of code generation: what a module shares, and the function that is being written.

Integer arithmetic that a loop doesn't change can be written in front of that loop (`once_at`); each loop keeps a memo
of its own for that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from ..dataclass import dataclass, field
from ..errors import CodegenError
from ..target import Target
from ..tir.attrs import IMPORT_LLVM
from ..tir.expr import IntImm, PrimExpr, StringImm, Var
from ..tir.stmt import Stmt
from .builder import FunctionText, ModuleText
from .debug_lines import DebugLines
from .memo import IMPURE, Memo
from .ranges import Ranges
from .types import INDEX, VALUE_TYPE, identifier

_T = TypeVar("_T")
_BEYOND_WORDS = ("int64", "uint64", "uint32")
Slot = tuple[Var, int]
ExprHandler = Callable[["FunctionContext", PrimExpr], str]
StmtHandler = Callable[["FunctionContext", Stmt], None]


@dataclass(slots=True)
class ModuleContext:
    """What all functions of a module share."""

    target: Target
    text: ModuleText
    expressions: Mapping[type, ExprHandler]
    statements: Mapping[type, StmtHandler]
    lane_functions: set[str] = field(default_factory=set)
    externs: set[str] = field(default_factory=set)
    imports: dict[str, None] = field(default_factory=dict)
    calls: Mapping[str, Callable[..., str]] = field(default_factory=dict)
    formulas: Mapping[str, Mapping[str, Callable[..., Any]]] = field(default_factory=dict)
    index: str = INDEX
    is_device: bool = False
    # Of each kernel: extents of its threads by tag (None: known at launch), bytes of its shared memory of either kind.
    launches: dict[str, dict[str, int | None]] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    dynamic: dict[str, int] = field(default_factory=dict)
    barriers: dict[str, int] = field(default_factory=dict)
    # What was said of the fragments of matrix units, by their variable, when they were loaded or filled.
    fragment_layouts: dict[Var, str] = field(default_factory=dict)
    fragment_shapes: dict[Var, tuple[PrimExpr, ...]] = field(default_factory=dict)
    symbols: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    debug: DebugLines | None = None

    def note_pragma(self, key: str, value: Any) -> None:
        """Keep what a pragma of a loop asks of the whole module."""
        if key == IMPORT_LLVM:
            self.imports[value.value if isinstance(value, StringImm) else value] = None

    def declare(self, name: str, result: str, *params: str, attributes: str = " nounwind") -> str:
        """Declare a function of the C library or OpenMP that the code calls; its global name."""
        if name in self.symbols:
            raise CodegenError(
                f"the module defines {name}, which is also a function of the system that it needs; set another global_symbol"
            )
        return self.text.declare(name, result, *params, attributes=attributes)


@dataclass(slots=True)
class Loop:
    """A loop around the place that is being written; `preheader` runs before it."""

    preheader: list[str]
    memo: dict[Hashable, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Capture:
    """A value of the enclosing function that an outlined body uses: its type here, its name there and here."""

    llvm_type: str
    outer: str
    name: str
    is_pointer: bool


class FunctionContext(Memo, Ranges):
    """One LLVM function in the making."""

    def __init__(self, module: ModuleContext, name: str, noalias: bool, parent: FunctionContext | None = None) -> None:
        Memo.__init__(self, noalias)
        Ranges.__init__(self, None if parent is None else parent.ranges)
        self.module = module
        self.name = name
        self.parent = parent
        self.text = FunctionText(module.text)
        self.values: dict[Var, str] = {}  # in the variable's own type
        self.wide: dict[Var, str] = {}  # as i64
        self.levels: dict[Var, int] = {}
        self.alignments: dict[Var, int] = {}
        self.registers: dict[Slot, str] = {}
        self.slot_types: dict[Slot, str] = {}
        self.mask_bits: dict[Var, int] = {} if parent is None else parent.mask_bits  # of masks between blocks, see `registers`
        self.assigned: dict[int, tuple[Slot, ...]] = {}
        self.loops: list[Loop] = []
        self.conditions = 0  # how many statements around the place that is being written are under one
        self.min_blocks = 0  # of a kernel, that a multiprocessor has at once
        self.mask: tuple[str, int] | None = None
        self.captures: list[Capture] = []
        # Codes count over the function with its outlined parts, which return them through it.
        self.errors: list[str] = [] if parent is None else parent.errors
        self.read_through: set[Var] = set() if parent is None else parent.read_through
        self.written_through: set[Var] = set() if parent is None else parent.written_through
        self.exits: list[tuple[str, str]] = []
        self.workspaces: list[tuple[str, int]] = []
        self.live: list[str] = []
        self.stack_bytes = 0
        self.parallel_count = 0
        self.nontemporal: set[Var] = set() if parent is None else parent.nontemporal
        self.only_ordinary_stores: bool = False if parent is None else parent.only_ordinary_stores
        self.wrote_nontemporal = False
        self.load_epoch = 0  # how often loads were told not to reuse what earlier ones gave

    # Values

    def value(self, expr: PrimExpr) -> str:
        """The SSA name (or constant) of an expression, written here if it isn't known yet."""
        # By identity, as equality would walk both trees; the statement, or `keep`, holds what is remembered.
        key = id(expr)
        found: str | None = self.memo.get(key)
        if found is not None:
            self.reads |= self._dependencies.get(key, 0)  # what uses it depends on the same memory
            return found
        handler = self.module.expressions.get(type(expr))
        if handler is None:
            raise CodegenError(f"In {self.name}: {type(expr).__name__} ({expr}) has no code; lower the function through phase 3 first")
        outer, self.reads = self.reads, 0
        found = handler(self, expr)
        reads = self.reads
        if not reads & IMPURE:
            self.remember(key, found, reads)
        self.reads = outer | reads
        return found

    def once_at(self, level: int, key: Hashable, make: Callable[[], _T]) -> _T:
        """As `once`, written in front of the loop at depth `level` + 1, where values of depth `level` are known."""
        if level >= len(self.loops):
            return self.once(key, make)
        loop = self.loops[level]
        text = self.text
        # A log of its own: a scope within the loop that ends doesn't undo what stands in front of the loop.
        saved = text.lines, self.memo, self._log
        text.lines, self.memo, self._log = loop.preheader, loop.memo, []
        try:
            return self.once(key, make)
        finally:
            text.lines, self.memo, self._log = saved

    def index_type(self, expr: PrimExpr) -> str:
        """The LLVM type of `index_value`: i64, where the platform counts so or 32 bits with a sign can't hold the values."""
        return INDEX if expr.dtype in _BEYOND_WORDS else self.module.index

    def index_as(self, kind: str, expr: PrimExpr) -> str:
        """`index_value` in a type."""
        value, have = self.index_value(expr), self.index_type(expr)
        if have == kind or isinstance(expr, IntImm):
            return value
        return self.text.value(f"{'trunc' if have == INDEX else 'sext'} {have} {value} to {kind}")

    def index_value(self, expr: PrimExpr) -> str:
        """A scalar integer expression in its `index_type`."""
        if isinstance(expr, IntImm):
            return str(expr.value)
        if isinstance(expr, Var):
            found = self.find_wide(expr)
            if found is not None:
                return found
        llvm_type, wanted = VALUE_TYPE[expr.dtype], self.index_type(expr)
        if llvm_type == wanted:
            return self.value(expr)
        extend = "sext" if expr.dtype.startswith("int") else "zext"
        return self.once(("wide", id(expr)), lambda: self.text.value(f"{extend} {llvm_type} {self.value(expr)} to {wanted}"))

    # Variables

    def bind(self, var: Var, value: str) -> None:
        """Let a variable stand for a value defined here."""
        self.values[var] = value
        self.levels[var] = len(self.loops)

    def find_wide(self, var: Var) -> str | None:
        """The form of a variable in its `index_type`, if there is one."""
        found = self.wide.get(var)
        if found is None and var not in self.values and self.parent is not None:
            outer = self.parent.find_wide(var)
            if outer is not None:
                found = self.wide[var] = self.capture(INDEX, outer, var.name)
                self.levels[var] = 0
        return found

    def variable(self, var: Var) -> str:
        """The value of a variable in its own type."""
        found = self.values.get(var)
        if found is not None:
            return found
        wide = self.find_wide(var)
        if wide is not None:
            llvm_type, have = VALUE_TYPE[var.dtype], self.index_type(var)
            return wide if llvm_type == have else self.text.value(f"trunc {have} {wide} to {llvm_type}")
        if self.parent is None:
            raise CodegenError(
                f"In {self.name}: the variable {var.name} is used, but nothing defines it; give a te.var as an argument of the function, "
                "and read along a te.reduce_axis only inside of te.sum(..., axis=...) and the like"
            )
        outer = self.parent.variable(var)
        found = self.values[var] = self.capture(VALUE_TYPE[var.dtype], outer, var.name)
        self.levels[var] = 0
        self.alignments[var] = self.parent.alignments.get(var, 0)
        return found

    def capture(self, llvm_type: str, outer: str, hint: str) -> str:
        """A value of the enclosing function as an argument of this one; constants pass through."""
        if not outer.startswith("%"):
            return outer
        name = f"%{identifier(hint)}.in{len(self.captures)}"
        self.captures.append(Capture(llvm_type, outer, name, llvm_type == "ptr"))
        return name

    # Scopes

    @contextmanager
    def masked(self, mask: str, lanes: int) -> Iterator[None]:
        """Guard every load by a vector mask: the arm of a vector conditional."""
        outer, self.mask = self.mask, (mask, lanes)
        try:
            with self.scope():
                yield
        finally:
            self.mask = outer

    # Errors

    def error_code(self, message: str) -> int:
        """The number that a function returns for a failure."""
        if message not in self.errors:
            self.errors.append(message)
        return self.errors.index(message) + 1

    def leave(self, code: str) -> None:
        """End the block by returning a code, giving back workspaces that are live here. A device has nobody to give it to: it stops."""
        if self.module.is_device:
            self.text.emit("call void @llvm.trap()")
            self.text.emit("unreachable")
            return
        for pointer in reversed(self.live):
            self.text.emit(f"call void @free(ptr {pointer})")
        self.exits.append((code, self.text.block))
        self.text.jump("return")
