"""Types of parameters that don't state them: those of weights follow from what an operator, or a function that is called, asks of them.

nn.conv2d(%data, %weight, channels=16, kernel_size=[3, 3])    with %data: Tensor[(1, 3, 8, 8), float32]
%weight: Tensor[(16, 3, 3, 3), float32]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import DeclarationError, TypeMismatchError
from ..tir.op_registry import Op
from ..topi.transform import parse_layout
from .expr import Call, Function, Var
from .ops.row import ROWS, dtype, shape
from .ty import TensorType
from .visitor import ExprMutator, walk

Extents = Mapping[str, tuple[Any, ...]]


def _conv(data: str, kernel: str, turned: bool = False) -> Callable[..., Extents]:
    """Weights of convolutions; of transposed ones the first extent is that of the operand's channels."""

    def extents(given: Mapping[str, Any]) -> Extents:
        layout, channels, windows = given["kernel_layout"], given["channels"], given["kernel_size"]
        if channels is None or windows is None:
            return {}
        axes = parse_layout(given["data_layout"])
        inner, groups = shape(given[data])[axes.index(("C", 0))] * dict(axes).get("c", 1), given["groups"]
        sizes = windows if isinstance(windows, (tuple, list)) else (windows,)
        found = dict(zip((one for one in "DHW" if one in layout), sizes, strict=True))
        # Of one channel each: a group has as many weights as results.
        outer, depth = (inner, channels // groups) if groups == inner != 1 else (channels, inner // groups)
        found.update({"I": inner, "O": channels // groups} if turned else {"O": outer, "I": depth})
        places = parse_layout(layout)
        blocks = {name.upper(): size for name, size in places if size}
        return {kernel: tuple(size or found[name] // blocks.get(name, 1) for name, size in places)}

    return extents


def _deformable(given: Mapping[str, Any]) -> Extents:
    """Weights, and two offsets for each tap at each place of the result."""
    found = dict(_conv("data", "weight")(given))
    layout, windows = given["data_layout"], given["kernel_size"]
    if windows is None:
        return found
    whole, pads = shape(given["data"]), list(given["padding"]) * (4 // len(given["padding"]))
    extents = {"N": whole[layout.index("N")], "C": 2 * windows[0] * windows[1] * given["deformable_groups"]}
    for n, letter in enumerate("HW"):
        room = whole[layout.index(letter)] + pads[n] + pads[n + 2] - given["dilation"][n] * (windows[n] - 1) - 1
        extents[letter] = room // given["strides"][n] + 1
    return {**found, "offset": tuple(extents[one] for one in layout)}


def _along(*names: str) -> Callable[..., Extents]:
    """A number for each place of an axis."""

    def extents(given: Mapping[str, Any]) -> Extents:
        whole = shape(given["data"])
        return dict.fromkeys(names, (whole[given["axis"]],))

    return extents


def _dense(given: Mapping[str, Any]) -> Extents:
    return {"weight": (given["units"], shape(given["data"])[-1])} if given["units"] is not None else {}


def _matmul(given: Mapping[str, Any]) -> Extents:
    units, inner = given["units"], shape(given["tensor_a"])[-2 if given["transpose_a"] else -1]
    return {} if units is None else {"tensor_b": (units, inner) if given["transpose_b"] else (inner, units)}


_RULES: dict[str, Callable[[Mapping[str, Any]], Extents]] = {
    "nn.dense": _dense, "nn.matmul": _matmul, "nn.bias_add": _along("bias"), "nn.prelu": _along("alpha"),
    "nn.deformable_conv2d": _deformable,
    "nn.batch_norm": _along("gamma", "beta", "moving_mean", "moving_var"),
    **{f"nn.{one}_norm": _along("gamma", "beta") for one in ("layer", "group", "instance")},
    **{f"nn.conv{n}d": _conv("data", "weight") for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": _conv("data", "weight", True) for n in (1, 2, 3)},
}  # fmt: skip


def _open(expr: Any) -> bool:
    return isinstance(expr, Var) and expr.struct_info_annotation is None


class _Typing(ExprMutator):
    """Puts variables with types in place of parameters."""

    def __init__(self, params: tuple[Any, ...], known: Mapping[Any, Var]) -> None:
        super().__init__()
        self.open, self.known = {param for param in params if _open(param)}, dict(known)
        self.memo_map.update(known)

    def visit_call(self, call: Any) -> Any:
        """A call, whose weights get the types that it asks for."""
        rule = _RULES.get(str(call.op)) if isinstance(call, Call) and isinstance(call.op, Op) else None
        if rule is not None and any(arg in self.open and arg not in self.known for arg in call.args):
            row = ROWS[call.op]
            made = row.bound(Call(call.op, [self.visit(arg) for arg in call.args], call.attrs))
            try:
                asked, kind = rule(made), dtype(made[next(iter(row.arguments))])
            except (DeclarationError, TypeMismatchError):
                asked, kind = {}, ""  # its operand isn't known yet, or doesn't fit, which is said where the call is looked at
            for name, arg in zip(row.arguments, call.args, strict=False):  # a call may lack arguments at the end
                if name in asked:
                    self.settle(arg, TensorType(asked[name], kind))
        elif isinstance(call.op, Function) and any(arg in self.open and arg not in self.known for arg in call.args):
            for param, arg in zip(self.visit(call.op).params, call.args, strict=False):  # another number is told where it is looked at
                self.settle(arg, param.type_annotation)
        return super().visit_call(call)

    def visit_function(self, fn: Function) -> Any:
        """A function in the body, whose own parameters get types as well."""
        return super().visit_function(with_parameter_types(fn))

    def settle(self, arg: Any, found: Any) -> None:
        """Know the type of an argument, if it is a parameter whose type isn't known yet."""
        if found is not None and arg in self.open and arg not in self.known:
            self.known[arg] = self.memo_map[arg] = Var(arg.name_hint, found)


def with_parameter_types(func: Function) -> Function:
    """A function whose parameters have the types that operators ask of them; those that no operator tells stay without."""
    known: dict[Any, Var] = {}
    while any(map(_open, func.params)):
        typing = _Typing(func.params, known)
        for node in walk(func.body):
            typing.visit(node)
        # What came to be known was used before, maybe: the last round has found nothing more.
        if len(typing.known) == len(known):
            params = tuple(known.get(param, param) for param in func.params)
            return replace(func, params=params, body=typing.visit(func.body)) if known else func
        known = typing.known
    return func
