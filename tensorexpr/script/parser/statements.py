"""Reads statements. The table at the end says which reader a kind of syntax has.

A definition such as ``A = T.allocate(...)`` surrounds all that follows it in its block, so the statements of a block are
collected in a list of statements and of what goes around the rest, and put together at its end.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from ...tir.arithmetic import const
from ...tir.buffer import Buffer
from ...tir.device_intrin import device_call
from ...tir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from ...tir.stmt import NOP, Evaluate, IfThenElse, LetStmt, Stmt, While
from .expressions import ExpressionReader
from .frames import assertion, typed_variable
from .language import MetaVar
from .loops import LOOPS, loop_nest
from .macros import DEEPEST, Macro
from .operators import BINARY, apply
from .scope import Scope
from .sequences import sequence
from .stores import store
from .values import Access, Around, Builder, Loops, LoopSpec, Namespace, Number, Opened, Pending, as_condition, as_expr, is_python

Item = Stmt | tuple[ast.AST, Around]  # a statement, or what goes around those that follow and the place that says so
_ALIASES = (Buffer, IterVar, Range, list, tuple, Mapping, str, Builder, Namespace)


class StatementReader(ExpressionReader):
    """Reads statements, block by block."""

    _depth = 0  # of macros around

    def body(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """The statements of a block, in a scope of their own."""
        self._scope.push()
        items = [item for node in nodes for item in self._statement(node)]
        self._scope.pop()
        return self._closed(items)

    def _closed(self, items: Sequence[Item]) -> Stmt:
        rest: list[Stmt] = []  # last statement first
        # From the end: a definition goes around all that follows it, which `rest` holds by then.
        for item in reversed(items):
            if isinstance(item, Stmt):
                rest.append(item)
            else:
                around = self.at(item[0], item[1], sequence(reversed(rest)))
                # None: a T.init or an arm of T.If keeps its body in the frame around, and leaves no statement here.
                rest = [around] if around is not None else []
        return sequence(reversed(rest))

    def _statement(self, node: ast.stmt) -> Iterable[Item]:
        reader = _READERS.get(type(node))
        if reader is None:
            self.fail(node, f"{_ADVICE.get(type(node), f'`{type(node).__name__}` has no place in a script')}")
        if isinstance(node, (ast.For, ast.While, ast.If)):
            self._context.begin()
        found = list(reader(self, node))
        made = [item if isinstance(item, Stmt) else (node, item) for item in self._emitted]  # by functions that it calls
        self._emitted.clear()
        if made or found:
            self._context.begin()
        return [*made, *found]

    # One reader for each kind of statement.

    def _pass(self, node: ast.stmt) -> Iterable[Item]:
        return ()

    def _expression(self, node: ast.Expr) -> Iterable[Item]:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # a docstring
        macro = self._macro(node.value)
        if macro is not None and isinstance(node.value, ast.Call):
            yield self._expanded(node.value, macro)
            return
        value = self.value(node.value)
        if isinstance(value, Pending):
            opened = self._open(node.value, value, "", False)
            if opened.around is None:
                self.fail(node, f"{value.what} makes something that has no name; assign it, as in x = {value.what}...")
            yield node, opened.around
        elif isinstance(value, Stmt):
            yield value
        elif isinstance(value, (PrimExpr, Access, *Number)):
            yield Evaluate(self.at(node, as_expr, value))
        elif isinstance(value, (Buffer, Builder, Namespace, Loops)):
            self.fail(node, "this has no effect; expected a store such as A[i] = ..., a definition, or a call")

    def _return(self, node: ast.Return) -> Iterable[Item]:
        """``return value``: the value that a function has for its callers."""
        value = None if node.value is None else self.value(node.value)
        if isinstance(value, (Stmt, Pending)):
            self.fail(node, "a function returns a number; write the statement by itself")
        if value is None:
            self.fail(node, "a function returns nothing, or a number; leave the return out, or write return value")
        yield Evaluate(device_call("ret", self.at(node, as_expr, value)))

    def _macro(self, node: ast.AST) -> Macro | None:
        """The macro that a call names, by itself or as an attribute of an object of Python."""
        if not isinstance(node, ast.Call):
            return None
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            return None
        known, found = self._scope.find(root.id)
        if known and root is not node.func and is_python(found):
            found = self.value(node.func)
        return found if isinstance(found, Macro) else None

    def _expanded(self, node: ast.Call, macro: Macro) -> Stmt:
        """The statements of a macro, with its parameters standing for the values of the call."""
        if self._depth >= DEEPEST:
            self.fail(node, f"macros are nested more than {DEEPEST} deep; does {macro.node.name} use itself?")
        args, kwargs = self._arguments(node)
        try:
            values = macro.values(args, kwargs)
        except TypeError as error:
            self.fail(node, f"the macro {macro.node.name}{macro.signature}: {error}")
        scope = Scope(macro.captured) if macro.hygienic else self._scope
        # With the macro's source, so that errors point into it; in the context of the call, whose block its statements belong to.
        reader = type(self)(macro.source, scope, self._context, self._modules)
        reader._depth = self._depth + 1
        scope.push()
        for name, value in values.items():
            scope.define(name, value)
        stmt = reader.body(macro.node.body)
        scope.pop()
        return stmt

    def _open(self, node: ast.AST, pending: Pending, name: str, in_with: bool) -> Opened:
        if pending.with_only and not in_with:
            self.fail(node, f"{pending.what} opens a block; write `with {pending.what}(...):` and indent what belongs to it")
        return cast(Opened, self.at(node, pending.make, name))

    def _assign(self, node: ast.Assign) -> Iterable[Item]:
        if len(node.targets) != 1:
            self.fail(node, "one assignment at a time; write a = b = ... as two")
        yield from self._bind(node.targets[0], node.value, self.value(node.value))

    def _bind(self, target: ast.AST, source: ast.AST, value: Any) -> Iterable[Item]:
        """``target = value``, where `source` says the value."""
        if isinstance(target, ast.Name):
            yield from self._define(target, source, value)
        elif isinstance(target, ast.Subscript):
            yield self._store(target, source, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            # T.axis.remap of one letter is no list, and `[vi] = T.axis.remap("S", [i])` takes it all the same.
            for part, item in self._paired(target, [value] if isinstance(value, Pending) else value):
                yield from self._bind(part, source, item)
        else:
            self.fail(target, "this can't be assigned; expected a name or an element such as A[i, j]")

    def _paired(self, target: ast.Tuple | ast.List, value: Any) -> list[tuple[ast.AST, Any]]:
        """Each name of a target with its value; one with a star takes those that the others leave."""
        if isinstance(value, MetaVar):
            value = [MetaVar(part) for part in value.value]
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        starred = [number for number, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        names, count = len(target.elts), len(values)
        if len(starred) > 1 or names - len(starred) > count or (not starred and names != count):
            self.fail(target, f"{names} names for {count} value{'s' * (count != 1)}")
        # What follows the starred name is counted from the end: of 5 values `a, *b, c` gives b the 3 in between.
        if starred:
            first, last = starred[0], count - (names - starred[0] - 1)
            values[first:last] = [values[first:last]]
        parts = (part.value if isinstance(part, ast.Starred) else part for part in target.elts)
        return list(zip(parts, values, strict=True))

    def _define(self, target: ast.Name, source: ast.AST, value: Any) -> Iterable[Item]:
        """A name for a value: a definition, another name of what is no number, or else a variable."""
        if self._scope.is_here(target.id) and self._scope.find(target.id)[1] is not value:
            self.fail(target, f"{target.id} is defined already in this block; take another name")
        if isinstance(value, Pending):
            opened = self._open(source, value, target.id, False)
            self._scope.define(target.id, opened.value)
            if opened.around is not None:
                yield source, opened.around
        elif isinstance(value, MetaVar):
            self._scope.define(target.id, value.value)
        elif isinstance(value, Var) and isinstance(source, ast.Call):
            self._scope.define(target.id, value)  # a fresh variable of te.var: the name of a size or an offset
        elif isinstance(value, _ALIASES) or (is_python(value) and not isinstance(value, Number)):
            self._scope.define(target.id, value)
        else:
            worth = cast(PrimExpr, self.at(source, as_expr, value))
            yield self._variable(target, source, Var(target.id, worth.dtype), worth)

    def _variable(self, target: ast.Name, source: ast.AST, var: Var, worth: PrimExpr) -> Item:
        if self._scope.is_outer(target.id) and isinstance(self._scope.find(target.id)[1], Var):
            self.fail(
                target, f"{target.id} is a variable of the block around and can't change; take another name, or a buffer of one element"
            )
        if isinstance(self._scope.find(target.id)[1], Buffer) and target.id in self._scope.names():
            self.fail(target, f"{target.id} is a buffer; store to its elements, as in {target.id}[...] = value, or take another name")
        self._scope.define(target.id, var)
        return source, lambda body: LetStmt(var, worth, body)

    def _store(self, target: ast.Subscript, source: ast.AST, value: Any) -> Stmt:
        place = self.value(target)
        # An element reads as a load; of that only the place is taken.
        if not isinstance(place, (BufferLoad, Access)):
            self.fail(target, "only elements of buffers can be stored to")
        indices = place.indices if isinstance(place, BufferLoad) else self.at(target, place.indices)
        return cast(Stmt, self.at(source, store, place.buffer, indices, value))

    def _annotated(self, node: ast.AnnAssign) -> Iterable[Item]:
        """``x: T.int32 = value``."""
        if not isinstance(node.target, ast.Name) or node.value is None:
            self.fail(node, "expected name: T.type = value")
        value = self.value(node.value)
        if isinstance(value, Pending):
            yield from self._define(node.target, node.value, value)
            return
        annotation = node.annotation
        if isinstance(annotation, ast.Subscript):  # T.let[T.int32]
            annotation = annotation.slice
        worth = cast(PrimExpr, self.at(node.value, as_expr, value))
        var = cast(Var, self.at(annotation, typed_variable, node.target.id, self.value(annotation), worth.dtype))
        # A literal takes the stated type: `x: T.int64 = 0` is no int32.
        if isinstance(value, Number):
            worth = cast(PrimExpr, self.at(node.value, const, value, var.dtype))
        if worth.dtype != var.dtype:
            self.fail(node.value, f"{node.target.id} is {var.dtype}, and its value {worth.dtype}; convert it with T.Cast")
        yield self._variable(node.target, node.value, var, worth)

    def _augmented(self, node: ast.AugAssign) -> Iterable[Item]:
        """``A[i] += value``."""
        if not isinstance(node.target, ast.Subscript) or type(node.op) not in BINARY:
            self.fail(node, "expected an element on the left, such as A[i] += value; variables can't change")
        old = self.value(node.target)
        yield self._store(node.target, node.value, self.at(node, apply, BINARY[type(node.op)], old, self.value(node.value)))

    def _for(self, node: ast.For) -> Iterable[Item]:
        header = self.value(node.iter)
        if not isinstance(header, Loops):
            self.fail(node.iter, f"expected the header of a loop: range, {', '.join(f'T.{name}' for name in LOOPS)}")
        if node.orelse:
            self.fail(node.orelse[0], "a loop has no else here; write what follows it behind it")
        self._scope.push()
        variables = self._loop_variables(node.target, header.specs)
        stmt = self.body(node.body)
        # Blocks find the loops around them here; this one ends with its body.
        for var in variables:
            del self._context.loops[var]
        stmt = loop_nest(variables, header.specs, stmt)
        self._scope.pop()
        yield stmt

    def _loop_variables(self, target: ast.AST, specs: Sequence[LoopSpec]) -> list[Var]:
        """The variables of the loops of one header; one name for several of them is a tuple."""
        if isinstance(target, ast.Name) and len(specs) > 1:
            found = [self._loop_variable(target, f"{target.id}_{number}", spec) for number, spec in enumerate(specs)]
            self._scope.define(target.id, tuple(found))
            return found
        if not isinstance(target, (ast.Tuple, ast.List)):
            return [self._loop_variable(target, "", spec) for spec in specs]
        found = []
        for part, spec in self._paired(target, list(specs)):
            if isinstance(spec, LoopSpec):
                found.append(self._loop_variable(part, "", spec))
                continue
            name = getattr(part, "id", "i")
            made = [self._loop_variable(part, f"{name}_{number}", one) for number, one in enumerate(spec)]
            self._scope.define(name, made)
            found += made
        return found

    def _loop_variable(self, target: ast.AST, name: str, spec: LoopSpec) -> Var:
        """The variable of one loop: `target` itself, or one by another name."""
        if not isinstance(target, ast.Name):
            self.fail(target, "expected the name of a loop variable")
        var = Var(name or target.id, spec.extent.dtype)
        self._scope.define(target.id, var)
        self._context.loops[var] = Range.from_min_extent(spec.min, spec.extent)
        return var

    def _while(self, node: ast.While) -> Iterable[Item]:
        if node.orelse:
            self.fail(node.orelse[0], "a loop has no else here; write what follows it behind it")
        condition = self._condition(node.test)
        yield While(condition, self.body(node.body))

    def _if(self, node: ast.If) -> Iterable[Item]:
        """A condition that is known while reading picks its branch."""
        test = self.value(node.test)
        if isinstance(test, Number):
            # The other branch isn't read at all, so it may name what doesn't exist; and the items stay in this block, as do definitions.
            taken = node.body if test else node.orelse
            return [item for child in taken for item in self._statement(child)]
        condition = self.at(node.test, as_condition, test)
        then = self.body(node.body)
        return [IfThenElse(condition, then, self.body(node.orelse) if node.orelse else None)]

    def _condition(self, node: ast.expr) -> PrimExpr:
        return cast(PrimExpr, self.at(node, as_condition, self.value(node)))

    def _assert(self, node: ast.Assert) -> Iterable[Item]:
        message = "" if node.msg is None else self.value(node.msg)
        pending = cast(Pending, self.at(node, assertion, self.value(node.test), message))
        opened = pending.make("")
        assert opened.around is not None
        yield node, opened.around

    def _with(self, node: ast.With) -> Iterable[Item]:
        """Each item is opened in turn, inside of those before it."""
        opened: list[tuple[ast.AST, Around]] = []
        self._scope.push()
        for item in node.items:
            value = self.value(item.context_expr)
            if not isinstance(value, Pending):
                self.fail(item.context_expr, 'expected a block, as in `with T.block("name"):`, or a definition such as T.allocate(...)')
            name = self._target(item)
            self._context.begin()
            made = self._open(item.context_expr, value, name, True)
            if made.around is None:
                self.fail(item.context_expr, f"{value.what} surrounds nothing; assign it: {name or 'x'} = {value.what}...")
            if name:
                self._scope.define(name, made.value)
            opened.append((item.context_expr, made.around))
        stmt: Stmt | None = self.body(node.body)
        # Innermost first. What follows a T.attr or an allocation may be nothing, which is a statement all the same.
        for place, around in reversed(opened):
            stmt = cast("Stmt | None", self.at(place, around, NOP if stmt is None else stmt))
        self._scope.pop()
        return () if stmt is None else (stmt,)

    def _target(self, item: ast.withitem) -> str:
        if item.optional_vars is None:
            return ""
        if not isinstance(item.optional_vars, ast.Name):
            self.fail(item.optional_vars, "expected a name after `as`")
        return item.optional_vars.id


_ADVICE: Mapping[type[ast.stmt], str] = {
    ast.Break: "a loop can't be left early; write a while loop with a condition",
    ast.Continue: "an iteration can't be left early; write an if around the rest of it",
    ast.FunctionDef: "functions can't be nested; write it beside this one, in the module",
    ast.Import: "modules are imported outside of the script",
    ast.ImportFrom: "modules are imported outside of the script",
}
_READERS: Mapping[type[ast.stmt], Callable[[StatementReader, Any], Iterable[Item]]] = {
    ast.Pass: StatementReader._pass,
    ast.Nonlocal: StatementReader._pass,
    ast.Global: StatementReader._pass,
    ast.Return: StatementReader._return,
    ast.Expr: StatementReader._expression,
    ast.Assign: StatementReader._assign,
    ast.AnnAssign: StatementReader._annotated,
    ast.AugAssign: StatementReader._augmented,
    ast.For: StatementReader._for,
    ast.While: StatementReader._while,
    ast.If: StatementReader._if,
    ast.With: StatementReader._with,
    ast.Assert: StatementReader._assert,
}
