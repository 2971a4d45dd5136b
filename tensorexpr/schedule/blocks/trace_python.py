"""A trace's Python text applied to a schedule: read as instructions, never executed.

b0 = sch.get_block(name="C", func_name="main")
l1, l2 = sch.get_loops(block=b0)
sch.reorder(l2, l1)
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...errors import RecordError
from ...tir import expr as nodes
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import any as any_of
from ...tir.arithmetic import const
from .instruction import KINDS

if TYPE_CHECKING:
    from .schedule import Schedule

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod},
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    **{ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge},
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne},
}
_DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"all": all_of, "any": any_of, "Not": nodes.Not}


def apply_python(text: str, sch: Schedule) -> None:
    """Do to a schedule what the printed text of a trace says.

    Raises:
        RecordError: if a line is no instruction.
        ScheduleError: if an instruction is illegal on this schedule.
    """
    try:
        statements = ast.parse(text).body
    except SyntaxError as error:
        raise RecordError(f"this is no text of a trace: {error}") from None
    # a trace prints as one function around the lines
    if len(statements) == 1 and isinstance(statements[0], ast.FunctionDef):
        statements = statements[0].body
    values: dict[str, Any] = {}
    for statement in statements:
        _apply(statement, sch, values)


def _apply(statement: ast.stmt, sch: Schedule, values: dict[str, Any]) -> None:
    if isinstance(statement, ast.Pass):
        return
    call = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
    if not isinstance(call, ast.Call) or _owner(call.func) != "sch":
        raise RecordError(f"a line of a trace calls a primitive, unlike {ast.unparse(statement)[:80]!r}")
    assert isinstance(call.func, ast.Attribute)
    # a text may call primitives alone, not whatever else the schedule has
    if call.func.attr not in {primitive.method for primitive in KINDS.values()}:
        raise RecordError(f"no primitive is called {call.func.attr[:40]!r}")
    keywords = {keyword.arg: _value(keyword.value, values) for keyword in call.keywords if keyword.arg is not None}
    found = getattr(sch, call.func.attr)(*(_value(value, values) for value in call.args), **keywords)
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]
        names = [target] if isinstance(target, ast.Name) else list(getattr(target, "elts", ()))
        made = [found] if isinstance(target, ast.Name) else list(found)
        if len(names) != len(made):
            raise RecordError(f"{ast.unparse(statement)[:80]} gives {len(made)} values here")
        values.update(zip((name.id for name in names), made, strict=True))


def _owner(func: ast.expr) -> str:
    return func.value.id if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else ""


def _function(names: list[str], body: ast.expr, values: Mapping[str, Any]) -> Callable[..., Any]:
    """A function of some names, which those who ask for its signature are told."""

    def function(*given: Any) -> Any:
        return _value(body, {**values, **dict(zip(names, given, strict=True))})

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return function


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """An argument: numbers, texts, lists, mappings, handles by their names, index arithmetic and functions of it."""
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name) if name in values:
            return values[name]
        case ast.List(items):
            return [_value(item, values) for item in items]
        case ast.Tuple(items):
            return tuple(_value(item, values) for item in items)
        case ast.Dict(keys, items):
            return {_value(key, values): _value(item, values) for key, item in zip(keys, items, strict=True) if key is not None}
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, values)
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, values), _value(right, values))
        case ast.Compare(left, [op], [right]) if type(op) in _COMPARISONS:
            return _COMPARISONS[type(op)](_value(left, values), _value(right, values))
        case ast.Call(ast.Attribute(ast.Name("T"), name), [number], []) if name in _DTYPES:
            return const(_value(number, values), name)
        case ast.Call(ast.Attribute(ast.Name("tir"), name), items, []) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(item, values) for item in items))
        case ast.Lambda(args, body):
            names = [arg.arg for arg in args.args]
            return _function(names, body, values)
    raise RecordError(f"this is no argument of a trace: {ast.unparse(node)[:80]}")
