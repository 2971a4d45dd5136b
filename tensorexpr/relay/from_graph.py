"""From functions of graphs to Relay's: names between go, and operators that Relay has are Relay's again.

What Relay has no word for keeps the operator of graphs (`relax.nn.gelu`), which `to_graph` takes as it is. Functions with effects, with
values that are checked when they run, or of symbols that such a check defines, stay functions of graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..relax import expr as graph
from ..relax.analysis import contains_impure_call
from ..relax.struct_info import ShapeExpr
from ..relax.visitor import bindings_of
from ..tir.arithmetic import as_int
from ..tir.function import IRModule
from ..tir.op_registry import Op
from .expr import Attrs, Call, Constant, Function, If, Let, Tuple, TupleGetItem, Var
from .ops.row import ROWS, plain

# Operators without attributes, of one name in both.
_SAME = """abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp floor isfinite isinf isnan log logical_not negative
    round rsqrt sigmoid sign sin sinh sqrt tan tanh zeros_like ones_like nn.relu add bitwise_and bitwise_or bitwise_xor equal
    floor_divide floor_mod greater greater_equal left_shift less less_equal logical_and logical_or logical_xor maximum minimum multiply
    not_equal power right_shift subtract where"""

# Of other operators: Relay's name, and its attributes by those of graphs; None where Relay can't say it.
Attributes = Callable[[Mapping[str, Any]], "dict[str, Any] | None"]


def _conv(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {**attrs, "out_layout": attrs["out_layout"] or "", "out_dtype": attrs["out_dtype"] or ""}


def _of_weights(call: Any, transposed: bool) -> dict[str, Any]:
    """Channels and windows of a convolution, as programs state them; nothing where extents of its weights aren't known."""
    layout, extents = call.attrs["kernel_layout"], [as_int(one) for one in call.args[1].struct_info.extents or ()]
    if not layout.isalpha() or not layout.isupper() or len(extents) != len(layout) or None in extents:
        return {"channels": None, "kernel_size": None}
    channels = extents[layout.index("O")] * (call.attrs["groups"] if transposed else 1)
    return {"channels": channels, "kernel_size": tuple(extents[n] for n, one in enumerate(layout) if one in "DHW")}


def _pool(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {**attrs, "out_layout": attrs["out_layout"] or ""}


def _max_pool(attrs: Mapping[str, Any]) -> dict[str, Any]:
    # What counts in a mean says nothing of a maximum, and Relay's has no word for it.
    return _pool({key: value for key, value in attrs.items() if key != "count_include_pad"})


def _reduced(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {"axis": attrs["axis"], "keepdims": attrs["keepdims"], "exclude": False}


_OTHERS: dict[str, tuple[str, Attributes]] = {
    **{f"nn.conv{n}d": (f"nn.conv{n}d", _conv) for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": (f"nn.conv{n}d_transpose", _conv) for n in (1, 2, 3)},
    **{f"nn.{kind}_pool{n}d": (f"nn.{kind}_pool{n}d", rule) for kind, rule in (("max", _max_pool), ("avg", _pool)) for n in (1, 2, 3)},
    **{f"nn.adaptive_{kind}_pool{n}d": (f"nn.adaptive_{kind}_pool{n}d", _pool) for kind in ("max", "avg") for n in (1, 2, 3)},
    **{name: (name, _reduced) for name in ("max", "mean", "min", "prod", "sum")},
    "nn.softmax": ("nn.softmax", dict),
    "nn.log_softmax": ("nn.log_softmax", dict),
    "nn.leakyrelu": ("nn.leaky_relu", dict),
    "nn.prelu": ("nn.prelu", dict),
    "nn.batch_norm": ("nn.batch_norm", lambda attrs: {key: value for key, value in attrs.items() if key != "momentum"}),
    "permute_dims": ("transpose", dict),
    "astype": ("cast", dict),
    "concat": ("concatenate", dict),
    "split": ("split", dict),
    "squeeze": ("squeeze", dict),
    "divide": ("divide", dict),
}
_TWINS: dict[str, tuple[str, Attributes]] = {
    **{f"relax.{name}": (name, dict) for name in _SAME.split()},
    **{f"relax.{name}": made for name, made in _OTHERS.items()},
}


def _shape_attribute(call: Any, name: str, attribute: str) -> Any:
    """A call whose shape is an argument there and an attribute here; None if the shape isn't one of numbers."""
    target = call.args[1]
    if not isinstance(target, ShapeExpr) or any(as_int(one) is None for one in target.values):
        return None
    attrs = {attribute: tuple(as_int(one) for one in target.values), **({"allowzero": False} if name == "reshape" else {})}
    # A 0 is an extent there, and the operand's extent here.
    return None if 0 in attrs[attribute] else (name, attrs)  # type: ignore[operator]


def _twin(call: Any) -> tuple[str, dict[str, Any]] | None:
    """The operator of Relay, and its attributes, that say the same as a call of one of graphs."""
    if call.op in ("relax.reshape", "relax.broadcast_to"):
        name = str(call.op).removeprefix("relax.")
        return _shape_attribute(call, name, "newshape" if name == "reshape" else "shape")  # type: ignore[no-any-return]
    if call.op == "relax.divide" and not str(getattr(call.struct_info, "dtype", "")).startswith(("float", "bfloat")):
        return None
    if call.op not in _TWINS:
        return None
    name, attributes = _TWINS[call.op]
    made = attributes(call.attrs)
    if made is not None and name.startswith("nn.conv"):
        made.update(_of_weights(call, name.endswith("_transpose")))
    return None if made is None else (name, made)


def _call(name: str, args: Any, attrs: Mapping[str, Any]) -> Any:
    """A call with all attributes of an operator; None where the operator lacks one that is set."""
    row = ROWS[name]
    known = {p.name: p.default for p in row.signature.parameters.values() if p.name not in row.arguments}
    if any(key not in known and value is not None for key, value in attrs.items()):
        return None
    given = {key: attrs.get(key, default) for key, default in known.items()}
    return Call(Op.of(name), args, {key: None if value is row.signature.empty else plain(value) for key, value in given.items()})


def _product(args: list[Any]) -> Any:
    """A product of matrices as Relay says it: `matmul(x, transpose(w))` is `nn.dense(x, w)`; None for other ranks."""
    ranks = [getattr(one.struct_info, "ndim", -1) for one in args]
    if ranks == [3, 3]:
        return _call("nn.batch_matmul", args, {"transpose_b": False})
    if ranks != [2, 2]:
        return None
    right = args[1]
    if isinstance(right, Call) and right.op == "transpose":
        return _call("nn.dense", (args[0], right.args[0]), {})
    return _call("nn.matmul", args, {})


class _Reader:
    """Reads values of a function of a graph."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    def function(self, func: graph.Function) -> Function:
        params = [Var(one.name_hint, one.struct_info) for one in func.params]
        self.values.update(zip(func.params, params, strict=True))
        attrs = {key: value for key, value in func.attrs.items() if key != "global_symbol"}  # its name in the module
        return Function(tuple(params), self.sequence(func.body), None, (), Attrs(attrs))

    def sequence(self, seq: Any) -> Any:
        """The value of a sequence; functions that are bound to variables stay bound to them."""
        closures: list[tuple[Var, Any]] = []
        for binding in seq.bindings():
            if isinstance(binding.value, graph.Function):
                variable = Var(binding.var.name_hint, binding.value.struct_info)
                self.values[binding.var] = variable
                closures.append((variable, self.function(binding.value)))
            else:
                self.values[binding.var] = self.value(binding.value)
        found = self.value(seq.body)
        for variable, value in reversed(closures):
            found = Let(variable, value, found)
        return found

    def value(self, expr: Any) -> Any:
        match expr:
            case graph.Var():
                return self.values.get(expr, expr)
            case graph.Constant(data):
                made = self.values.get(expr)
                if made is None:
                    made = self.values[expr] = Constant(data)
                return made
            case graph.Tuple(fields):
                return Tuple([self.value(one) for one in fields])
            case graph.TupleGetItem(whole, index):
                return TupleGetItem(self.value(whole), index)
            case graph.If(cond, yes, no):
                return If(self.value(cond), self.sequence(yes), self.sequence(no))
            case graph.SeqExpr():
                return self.sequence(expr)
            case graph.Call():
                return self.call(expr)
        return expr

    def call(self, call: Any) -> Any:
        args = [self.value(one) for one in call.args]
        if not isinstance(call.op, Op):
            return Call(self.value(call.op), args, call.attrs)
        if call.op == "relax.matmul" and not call.attrs.get("out_dtype"):
            product = _product(args)
            if product is not None:
                return product
        # A bound may be an extent, min(max(x, 0), n), which Relay's attributes can't say.
        bounds = [getattr(getattr(one, "value", None), "value", None) for one in call.args[1:]] if call.op == "relax.clip" else []
        if len(numbers := [float(one) for one in bounds if one is not None]) == 2:
            return _call("clip", args[:1], {"a_min": numbers[0], "a_max": numbers[1]})
        twin = _twin(call)
        if twin is not None:
            name, attrs = twin
            made = _call(name, args[: 1 if name in ("reshape", "broadcast_to") else None], attrs)
            if made is not None:
                return made
        return graph.Call(call.op, args, call.attrs, call.sinfo_args)


def function_from_graph(func: graph.Function) -> Any:
    """A function of a graph as one of Relay's, or itself where Relay has no words for it."""
    kept = contains_impure_call(func) or any(isinstance(one, graph.MatchCast) for one in bindings_of(func))
    return func if kept else _Reader().function(func)


def from_graph(mod: IRModule) -> IRModule:
    """A module whose functions of graphs are Relay's, where these have words for them."""
    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, graph.Function):
            made.update_func(var, function_from_graph(func))
    return made


__all__ = ["from_graph", "function_from_graph"]
