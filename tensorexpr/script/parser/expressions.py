"""Reads expressions: syntax tree -> value (see `values`). The table at the end says which reader a node has."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import ModuleType
from typing import Any, NoReturn, cast

from ...errors import TensorExprError
from ...tir.arithmetic import as_int
from ...tir.arithmetic import cast as cast_value
from ...tir.attrs import FrozenMap
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, ExprOp, IntImm, IterVar, PrimExpr, Var
from ...tir.structural import structural_equal
from . import python
from .buffers import FIELDS, METHODS
from .context import Context
from .frames import let_expression
from .language import PYTHON
from .old_forms import INSTEAD
from .operators import BINARY, BOOL, COMPARE, UNARY, apply
from .scope import Scope
from .source import Source, suggestion
from .values import BUILDING, Access, Bounds, Builder, Namespace, Number, as_expr, is_python

_CONSTANTS = (bool, int, float, str, type(None))
_signature = lru_cache(2048)(inspect.signature)


class ExpressionReader:
    """Reads expressions at one place of a program."""

    def __init__(self, source: Source, scope: Scope, context: Context, modules: Mapping[str, Namespace]) -> None:
        self._source = source
        self._scope = scope
        self._context = context
        self._modules = modules  # by the name of the Python module
        self._emitted: list[Any] = []  # statements of functions of Python that were called
        self._lets: dict[str, list[PrimExpr]] = {}

    def value(self, node: ast.AST) -> Any:
        """What `node` is worth.

        Raises:
            ParseError: at the place that can't be read.
        """
        reader = _READERS.get(type(node))
        if reader is None:
            self.fail(node, f"{_called(node)} has no place in a script")
        return reader(self, node)

    def expr(self, node: ast.AST) -> PrimExpr:
        """What `node` is worth, as an expression."""
        return cast(PrimExpr, self.at(node, as_expr, self.value(node)))

    def at(self, node: ast.AST, build: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a builder; what it refuses is an error at `node`."""
        try:
            return build(*args, **kwargs)
        except (TensorExprError, ValueError, LookupError, ArithmeticError) as error:
            raise self._source.error(node, str(error)) from error
        except (TypeError, AttributeError) as error:  # a value of another kind than the builder takes
            raise self._source.error(node, f"this takes other values: {error}") from error

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raise an error at `node`."""
        raise self._source.error(node, message)

    # One reader for each kind of node.

    def _constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, _CONSTANTS):
            self.fail(node, f"{node.value!r} is no constant of a script; expected a number or a string")
        return node.value

    def _name(self, node: ast.Name) -> Any:
        known, value = self._scope.find(node.id)
        if not known:
            value = PYTHON.get(node.id)
            if value is None:
                self.fail(node, f"{node.id!r} is not defined here{suggestion(node.id, self._scope.names())}")
        # A module that stands for the language is its words: `tir.exp` is T.exp.
        return self._modules.get(value.__name__, value) if isinstance(value, ModuleType) else _python_function(value)

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, Namespace):
            found = owner.find(node.attr)
            if found is None and owner.name == "T" and node.attr in INSTEAD:
                self.fail(node, f"T.{node.attr} belongs to earlier releases; {INSTEAD[node.attr]}")
            if found is None:
                self.fail(node, f"{owner.name} has no {node.attr!r}{suggestion(node.attr, owner.entries)}")
            return found
        if isinstance(owner, ModuleType):
            return self._of_module(node, owner)
        if isinstance(owner, Access):
            owner = self.at(node, as_expr, owner)
        if isinstance(owner, Buffer):
            return self._of_buffer(node, owner)
        if isinstance(owner, ExprOp):
            return self._of_expr(node, owner)
        if isinstance(owner, Builder):
            self.fail(node, f"{owner.name} is a name of the language and has no {node.attr!r}")
        return self.at(node, python.attribute, owner, node.attr)

    def _of_module(self, node: ast.Attribute, module: ModuleType) -> Any:
        # `self` for what isn't there: a module may well hold None.
        value = getattr(module, node.attr, self)
        full = f"{module.__name__}.{node.attr}"
        if full in self._modules:
            return self._modules[full]
        if value is self:
            self.fail(node, f"module {module.__name__} has no {node.attr!r}{suggestion(node.attr, vars(module))}")
        return value

    def _of_buffer(self, node: ast.Attribute, buffer: Buffer) -> Any:
        if node.attr in FIELDS:
            return FIELDS[node.attr](buffer)
        if node.attr in METHODS:
            return Builder(f"{buffer.name}.{node.attr}", METHODS[node.attr], owner=buffer)
        self.fail(node, f"buffer {buffer.name} has no {node.attr!r}{suggestion(node.attr, (*FIELDS, *METHODS))}")

    def _of_expr(self, node: ast.Attribute, owner: ExprOp) -> Any:
        expr = owner.asobject()
        if node.attr == "dtype":
            return expr.dtype
        if node.attr == "astype":
            return Builder("astype", partial(cast_value, expr))
        if isinstance(owner, IterVar) and node.attr in ("var", "dom"):
            return getattr(owner, node.attr)
        self.fail(node, f"an expression has no {node.attr!r}{suggestion(node.attr, ('dtype', 'astype'))}")

    def _call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        if not isinstance(function, Builder):
            args, kwargs = self._arguments(node)
            with BUILDING[0](self._context) as (made, as_value):  # the function may use the words of the language
                value = as_value(self.at(node, python.call, function, *args, **kwargs))
            self._emitted.extend(made)
            return value
        if function.name == "T.Let":
            return self._let_expression(node)
        args, kwargs = self._arguments(node)
        args[:0] = [self._context] if function.in_context else [] if function.owner is None else [function.owner]
        signature = _signature(function.function)
        if args and "dtype" in kwargs and next(iter(signature.parameters), "") == "dtype":  # T.reinterpret(x, dtype="int32")
            args.insert(0, kwargs.pop("dtype"))
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            self.fail(node, f"{function.name}: {error}; it is {_usage(function)}")
        return self.at(node, function.function, *args, **kwargs)

    def _arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                args.extend(self._items(arg.value))
            else:
                args.append(self.value(arg))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.fail(keyword.value, "arguments are written out in a script; ** has no place in it")
            kwargs[keyword.arg] = self.value(keyword.value)
        return args, kwargs

    def _items(self, node: ast.AST) -> list[Any]:
        value = self.value(node)
        if not isinstance(value, (list, tuple)):
            self.fail(node, "expected a tuple or a list after *")
        return list(value)

    def _let_expression(self, node: ast.Call) -> Any:
        """``T.Let(body, where={x: value})``, which defines x for the body alone."""
        where = next((keyword.value for keyword in node.keywords if keyword.arg == "where"), None)
        if len(node.args) != 1 or not isinstance(where, ast.Dict):
            self.fail(node, "expected T.Let(body, where={x: value})")
        # Outside of the scope that comes: in T.Let(x, where={x: x + 1}) the x of the value is that around.
        values = [self.expr(value) for value in where.values]
        self._scope.push()
        bound: dict[Var, PrimExpr] = {}
        for key, value in zip(where.keys, values, strict=True):
            if not isinstance(key, ast.Name):
                self.fail(key or where, "expected the name of a variable")
            var = Var(key.id, value.dtype)
            self._scope.define(key.id, var)
            bound[var] = value
        body = self.expr(node.args[0])
        self._scope.pop()
        return self._shared(node, let_expression(body, bound))

    def _shared(self, node: ast.Call, made: PrimExpr) -> PrimExpr:
        """The expression that the same text made before, if it is equal: where a program has one twice it is one."""
        # by the text first: comparing each T.Let with all before it would be quadratic in their number
        before = self._lets.setdefault(ast.dump(node), [])
        found = next((expr for expr in before if structural_equal(expr, made)), made)
        if found is made:
            before.append(made)
        return found

    def _binary(self, node: ast.BinOp) -> Any:
        """Chains such as a + b + c + ... are as deep as they are long, so their left side is followed in a loop."""
        # The left operand of the innermost link is the first to be read, as in Python.
        chain: list[ast.BinOp] = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        value = self.value(chain[-1].left)
        for link in reversed(chain):
            if type(link.op) not in BINARY:
                self.fail(link, "@ has no meaning on expressions; expected + - * / // % ** << >> & | ^")
            value = self.at(link, apply, BINARY[type(link.op)], value, self.value(link.right))
        return value

    def _unary(self, node: ast.UnaryOp) -> Any:
        return self.at(node, apply, UNARY[type(node.op)], self.value(node.operand))

    def _bool(self, node: ast.BoolOp) -> Any:
        value = self.value(node.values[0])
        for other in node.values[1:]:
            # As Python: what decides the whole is the result, and what follows isn't read.
            if is_python(value) and bool(value) is isinstance(node.op, ast.Or) and not isinstance(value, Number):
                return value
            value = self.at(node, apply, BOOL[type(node.op)], value, self.value(other))
        return value

    def _compare(self, node: ast.Compare) -> Any:
        """``0 <= i < n`` is the conjunction of its parts."""
        result: Any = None
        left = self.value(node.left)
        for op, operand in zip(node.ops, node.comparators, strict=True):
            if type(op) not in COMPARE:
                self.fail(node, "expected one of == != < <= > >= between expressions")
            right = self.value(operand)
            one = self.at(node, apply, COMPARE[type(op)], left, right)
            result = one if result is None else self.at(node, apply, BOOL[ast.And], result, one)
            left = right
        return result

    def _conditional(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        # Of an expression nothing is known yet: it would take both arms, evaluated or not as the program means.
        if not isinstance(test, Number):
            self.fail(node, "`a if c else b` chooses by constants only; write T.if_then_else(c, a, b) or T.Select(c, a, b)")
        return self.value(node.body if test else node.orelse)

    def _subscript(self, node: ast.Subscript) -> Any:
        owner = self.value(node.value)
        index = node.slice
        if isinstance(owner, Buffer):
            items = self._indices(index, owner)
            if any(isinstance(item, Bounds) for item in items):
                return Access(owner, tuple(items))
            return self.at(node, lambda: BufferLoad(owner, tuple(map(as_expr, items))))
        if isinstance(owner, Builder) and owner.name in ("T.Buffer", "T.Ptr"):
            return self.at(node, owner.function, *(self._items(index) if _is_pair(index) else [self.value(index)]))
        if is_python(owner):
            return self.at(node, python.element, owner, self._key(index))
        self.fail(node, f"{ast.unparse(node.value)} can't be indexed; expected a buffer")

    def _indices(self, index: ast.AST, buffer: Buffer) -> list[Any]:
        """The indices of an access, those of a tuple with a star one by one."""
        parts: list[Any] = []
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(part, ast.Starred):
                parts.extend(self._items(part.value))
            else:
                # How many indices there are so far says which dimension this one is of.
                extent = buffer.shape[len(parts)] if len(parts) < buffer.ndim else 0
                found = self._index(part, extent)
                parts.extend(found if isinstance(found, (tuple, list)) else [found])
        return parts

    def _key(self, node: ast.AST) -> Any:
        """What a list or a mapping is indexed with."""
        if not isinstance(node, ast.Slice):
            return self.value(node)
        return slice(*(None if part is None else self.value(part) for part in (node.lower, node.upper, node.step)))

    def _index(self, node: ast.AST, extent: Any) -> Any:
        """One index of a buffer; a slice without an end goes to the end of the dimension, which has `extent` elements."""
        if not isinstance(node, ast.Slice):
            return self.value(node)
        step = 1 if node.step is None else as_int(self.value(node.step))
        if step is None or step < 1:
            self.fail(node, "the step of a slice is a positive constant; for another one write T.Ramp(first, step, lanes)")
        return Bounds(0 if node.lower is None else self.value(node.lower), extent if node.upper is None else self.value(node.upper), step)

    def _sequence(self, node: ast.Tuple | ast.List) -> Any:
        items: list[Any] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                items.extend(self._items(item.value))
            else:
                items.append(self.value(item))
        return items if isinstance(node, ast.List) else tuple(items)

    def _dict(self, node: ast.Dict) -> Any:
        if any(key is None for key in node.keys):
            self.fail(node, "a dict is written out in a script; ** has no place in it")
        pairs = [(self.value(key), self.value(value)) for key, value in zip(node.keys, node.values, strict=True) if key is not None]
        return FrozenMap({key: _attribute_value(value) for key, value in pairs})

    def _joined(self, node: ast.JoinedStr) -> str:
        """An f-string of what is known while the script is read."""
        parts = (self._formatted(part) if isinstance(part, ast.FormattedValue) else str(self.value(part)) for part in node.values)
        return "".join(parts)

    def _formatted(self, node: ast.FormattedValue) -> str:
        value = self.value(node.value)
        form = "" if node.format_spec is None else self.value(node.format_spec)
        shown: dict[int, Callable[[Any], str]] = {ord("r"): repr, ord("s"): str, ord("a"): ascii}
        converted = shown[node.conversion](value) if node.conversion in shown else value
        return cast(str, self.at(node, python.formatted, converted, form))

    def _lambda(self, node: ast.Lambda) -> Any:
        """A function of expressions, for T.comm_reducer and T.index_map."""
        args = node.args
        if args.kwonlyargs or args.vararg or args.kwarg or args.defaults:
            self.fail(node, "parameters of a lambda have neither defaults nor stars here")
        names = [arg.arg for arg in (*args.posonlyargs, *args.args)]

        def function(*values: Any) -> Any:
            self._scope.push()
            for name, value in zip(names, values, strict=True):
                self._scope.define(name, value)
            made = self.value(node.body)
            self._scope.pop()
            return made

        # T.comm_reducer counts the parameters, and `*values` would hide their number.
        vars(function)["__signature__"] = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names])
        return function

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        return list(self._elements(node.generators, lambda: self.value(node.elt)))

    def _dict_comprehension(self, node: ast.DictComp) -> Any:
        return FrozenMap(dict(self._elements(node.generators, lambda: (self.value(node.key), self.value(node.value)))))

    def _elements(self, generators: Sequence[ast.comprehension], make: Callable[[], Any]) -> Iterator[Any]:
        """What `make` gives for each combination of the variables of a comprehension."""
        if not generators:
            yield make()
            return
        first, *rest = generators
        for item in self.at(first.iter, python.items_of, self.value(first.iter)):
            # A scope for each element: a name that a body defines anew must not meet that of the one before.
            self._scope.push()
            self._unpack(first.target, item)
            if all(bool(self.value(test)) for test in first.ifs):
                yield from self._elements(rest, make)
            self._scope.pop()

    def _unpack(self, target: ast.AST, value: Any) -> None:
        """Give the names of a target their values."""
        if isinstance(target, ast.Name):
            self._scope.define(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (list, tuple)) and len(target.elts) == len(value):
            for part, item in zip(target.elts, value, strict=True):
                self._unpack(part, item)
        else:
            self.fail(target, "expected a name, or as many names as there are values")


def _attribute_value(value: Any) -> Any:
    """Bools of attributes are Python's."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_attribute_value, value))
    return bool(value.value) if isinstance(value, IntImm) and value.dtype == "bool" else value


def _python_function(value: Any) -> Any:
    """Functions of Python that scripts may call, wherever they were imported from."""
    return next((PYTHON[name] for name in PYTHON if value is _BUILTINS[name]), value)


_BUILTINS = {"range": range, "min": min, "max": max, "abs": abs, **{name: function for name, (function, _) in python.BUILTINS.items()}}


def _is_pair(index: ast.AST) -> bool:
    """The two forms of T.Buffer[...]: a shape and a dtype, or a shape alone."""
    last = index.elts[-1] if isinstance(index, ast.Tuple) and len(index.elts) == 2 else None
    return isinstance(last, ast.Constant) and isinstance(last.value, str)


def _called(node: ast.AST) -> str:
    """A kind of syntax by its name."""
    return {"Starred": "*", "Await": "await", "Yield": "yield"}.get(type(node).__name__, f"`{type(node).__name__}`")


def _usage(function: Builder) -> str:
    """How a builder is called."""
    parameters = list(_signature(function.function).parameters.values())[1 if function.in_context or function.owner else 0 :]
    shown = (str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters)
    return f"{function.name}({', '.join(shown)})"


_READERS: Mapping[type[ast.AST], Callable[[ExpressionReader, Any], Any]] = {
    ast.Constant: ExpressionReader._constant,
    ast.Name: ExpressionReader._name,
    ast.Attribute: ExpressionReader._attribute,
    ast.Call: ExpressionReader._call,
    ast.BinOp: ExpressionReader._binary,
    ast.UnaryOp: ExpressionReader._unary,
    ast.BoolOp: ExpressionReader._bool,
    ast.Compare: ExpressionReader._compare,
    ast.IfExp: ExpressionReader._conditional,
    ast.Subscript: ExpressionReader._subscript,
    ast.Tuple: ExpressionReader._sequence,
    ast.List: ExpressionReader._sequence,
    ast.Dict: ExpressionReader._dict,
    ast.JoinedStr: ExpressionReader._joined,
    ast.Lambda: ExpressionReader._lambda,
    ast.ListComp: ExpressionReader._comprehension,
    ast.GeneratorExp: ExpressionReader._comprehension,
    ast.DictComp: ExpressionReader._dict_comprehension,
}
