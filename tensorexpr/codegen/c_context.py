"""The state of writing C: what a file shares, and the function that is being written.

An expression is written where it is used, unless it is large and used more than once in its statement, or its order counts:
then a variable in front of the statement (within the arm of a condition: in that arm) takes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..dataclass import dataclass, field
from ..errors import CodegenError
from ..target import Target
from ..tir.expr import BufferLoad, Call, FloatImm, IntImm, PrimExpr, StringImm, Var
from ..tir.intrin import intrinsic_of
from ..tir.rewriting import children
from ..tir.stmt import Stmt
from .c_helpers import Helpers
from .c_types import Names, value_type
from .ranges import Ranges

# How tightly the operators of C bind.
PRIMARY, UNARY, PRODUCT, SUM, SHIFT, ORDER, EQUAL, AND, OR, CHOICE = 16, 14, 13, 12, 11, 10, 9, 5, 4, 3
# Nodes of an expression that are repeated rather than named.
_SMALL = 8
_LEAVES = (Var, IntImm, FloatImm, StringImm)
_IN_PLACE = ("tir.assume", "tir.prefetch", "tir.no_load_merge")  # without a value, so that nothing depends on their order


@dataclass(frozen=True, slots=True)
class Text:
    """C text and how tightly its outermost operator binds; `exact` is the value before it was rounded to a narrow float."""

    text: str
    level: int = PRIMARY
    exact: str = ""


ExprHandler = Callable[["CContext", PrimExpr], Text]
StmtHandler = Callable[["CContext", Stmt], None]


@dataclass(slots=True)
class CModule:
    """What all functions of a file share."""

    target: Target
    expressions: Mapping[type, ExprHandler]
    statements: Mapping[type, StmtHandler]
    symbols: frozenset[str]
    helpers: Helpers = field(default_factory=Helpers)
    externs: dict[str, str] = field(default_factory=dict)  # the declaration by name
    imports: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)


class CContext(Ranges):
    """One C function in the making."""

    def __init__(self, module: CModule, name: str, noalias: bool) -> None:
        super().__init__()
        self.module = module
        self.name = name
        self.noalias = noalias
        self.names = Names()
        self.lines: list[str] = []
        self.depth = 1
        self.variables: dict[Var, str] = {}
        self.elements: dict[Var, str] = {}  # of a pointer: the C type that it points to
        self.single: set[Var] = set()  # arrays of one element that are plain variables
        self.effects: set[str] = set()  # names of values of calls that do something
        self.read_through: set[Var] = set()
        self.written_through: set[Var] = set()
        self.errors: list[str] = []
        self.live: list[str] = []  # workspaces to give back on the way out
        self.stack_bytes = 0
        self.exit_label: str | None = None  # the end of the iteration of a parallel loop, which can't be left
        self._memo: list[dict[PrimExpr, Text]] = [{}]
        self._uses: Counter[PrimExpr] = Counter()
        self._weights: dict[PrimExpr, int] = {}
        self._ordered = False

    # Lines

    def emit(self, line: str) -> None:
        """A line at the depth of the block."""
        self.lines.append(f"{'  ' * self.depth}{line}")

    def directive(self, line: str) -> None:
        """A line for the preprocessor."""
        self.lines.append(line)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Lines between `head` and `tail`."""
        self.emit(head)
        self.depth += 1
        yield
        self.depth -= 1
        self.emit(tail)

    # Expressions

    @contextmanager
    def statement(self, *exprs: PrimExpr) -> Iterator[None]:
        """The expressions of one statement, which is written within."""
        outer = self._memo, self._uses, self._weights, self._ordered
        self._memo, self._uses, self._weights = [{}], Counter(exprs), {}
        impure = []
        stack, seen = list(exprs), set[PrimExpr]()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if is_impure(node):
                impure.append(node)
            inner = [child for child in children(node) if isinstance(child, PrimExpr)]
            self._uses.update(inner)
            stack += inner
        alone = [node for node in impure if node in exprs]
        reads = any(isinstance(node, BufferLoad) for node in seen)
        # A call that is all of the statement runs when its arguments are known; C doesn't say what else comes first.
        self._ordered = bool(impure) and (len(alone) < len(impure) or (len(exprs) > 1 and reads))
        yield
        self._memo, self._uses, self._weights, self._ordered = outer

    def value(self, expr: PrimExpr) -> Text:
        """An expression as C."""
        for known in reversed(self._memo):
            if expr in known:
                return known[expr]
        handler = self.module.expressions.get(type(expr))
        if handler is None:
            raise CodegenError(f"In {self.name}: {type(expr).__name__} ({expr}) has no C; lower the function through phase 3 first")
        made = handler(self, expr)
        if self._is_kept(expr):
            if is_impure(expr):
                self._memo = [{} for _ in self._memo]  # what was read before may have changed
            name = self.names.fresh("t")
            self.emit(f"const {value_type(expr.dtype)} {name} = {made.text};")
            made = Text(name)
            if is_impure(expr):
                self.effects.add(name)
            else:
                self._memo[-1][expr] = made
        return made

    def text(self, expr: PrimExpr, level: int = CHOICE) -> str:
        """An expression as an operand of an operator that binds as `level` says."""
        return within(self.value(expr), level)

    def bind(self, var: Var, hint: str | None = None) -> str:
        """A new name for a variable."""
        name = self.variables[var] = self.names.fresh(hint or var.name)
        return name

    def variable(self, var: Var) -> str:
        """The name of a variable."""
        if var not in self.variables:
            raise CodegenError(
                f"In {self.name}: the variable {var.name} is used, but nothing defines it; give a te.var as an argument of the function, "
                "or as the whole extent of some array, and read along a te.reduce_axis only inside of te.sum(..., axis=...) and the like"
            )
        return self.variables[var]

    def arm(self, expr: PrimExpr) -> tuple[list[str], Text]:
        """An expression that is evaluated under a condition: the lines in front of it, and its text."""
        outer, self.lines = self.lines, []
        self._memo.append({})
        self.depth += 1
        made = self.value(expr)
        self.depth -= 1
        self._memo.pop()
        lines, self.lines = self.lines, outer
        return lines, made

    def _is_kept(self, expr: PrimExpr) -> bool:
        if isinstance(expr, _LEAVES) or expr.dtype in ("handle", "void"):
            return False
        if self._ordered and (isinstance(expr, BufferLoad) or is_impure(expr)):
            return True
        return self._uses[expr] > 1 and self._weight(expr) > _SMALL

    def _weight(self, expr: PrimExpr) -> int:
        found = self._weights.get(expr)
        if found is None:
            inner = [child for child in children(expr) if isinstance(child, PrimExpr)]
            found = 1 + sum(1 if self._is_kept(child) else self._weight(child) for child in inner)
            self._weights[expr] = found
        return found

    # Errors

    def refuse(self, what: str) -> CodegenError:
        """The error of something that has no C."""
        return CodegenError(f"In {self.name}: {what} has no C; build for target llvm, which has code for it")

    def error_code(self, message: str) -> int:
        """The number that the function returns for a failure."""
        if message not in self.errors:
            self.errors.append(message)
        return self.errors.index(message) + 1

    def fail(self, message: str) -> None:
        """Lines that end the function with the code of `message`."""
        code, comment = self.error_code(message), message.replace("*/", "* /").replace("\n", " ")
        for name in reversed(self.live):
            self.emit(f"free({name});")
        if self.exit_label is None:
            self.emit(f"return {code};  /* {comment} */")
            return
        self.directive("#ifdef _OPENMP")
        self.directive("#pragma omp atomic write")
        self.directive("#endif")
        self.emit(f"{failed(self.exit_label)} = {code};  /* {comment} */")
        self.emit(f"goto {self.exit_label};")


def failed(label: str) -> str:
    """The variable that keeps the code of a failure inside of a parallel loop."""
    return f"failed_{label}"


def within(made: Text, level: int) -> str:
    """Text as an operand of an operator of a level."""
    return made.text if made.level >= level else f"({made.text})"


def is_impure(expr: PrimExpr) -> bool:
    """Whether an expression is a call that does something."""
    return isinstance(expr, Call) and expr.op not in _IN_PLACE and not intrinsic_of(expr).pure
