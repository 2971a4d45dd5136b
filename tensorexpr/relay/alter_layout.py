"""AlterOpLayout: calls in the layouts that programs registered for their operators, with as few transforms between them as there can be.

A value in another layout is kept beside the transform that gives it back in its own. What takes any layout, such as a sum, is computed of
the former; all else uses the latter, and transforms that nobody uses are gone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ..dataclass import dataclass
from ..errors import DeclarationError, TypeMismatchError
from ..lower.passes import ModulePass, deep_recursion
from ..relax import expr as graph
from ..relax.relations import struct_info_base_check
from ..relax.struct_info import TensorStructInfo, TupleStructInfo
from ..tir.arithmetic import as_int
from ..tir.function import IRModule
from ..tir.op_registry import Op
from ..topi.transform import parse_layout
from .expr import Call, Function, Tuple, TupleGetItem
from .inference import typed
from .layout_rules import Move, followed
from .lets import known_info
from .ops.elementwise import add
from .ops.row import ROWS
from .ops.transform import expand_dims, layout_transform
from .ty import type_of
from .visitor import ExprMutator

_RULE = "FTVMAlterOpLayout"
_SAME = 2  # as far as shapes are known


@dataclass(frozen=True)
class _Layouts:
    """Of the operands of a call, None for those that have none, and of its result."""

    operands: tuple[str | None, ...]
    result: str


def _layouts(call: Any) -> _Layouts | None:
    """What the attributes of a call say; None for an operator without layouts."""
    given = call.attrs
    if "data_layout" in given and "kernel_layout" in given:
        data = (given["data_layout"],) * (2 if "deformable" in call.op else 1)  # with the offsets
        return _Layouts((*data, given["kernel_layout"]), given.get("out_layout") or given["data_layout"])
    if call.op in ("nn.dense", "nn.contrib_dense_pack"):
        return _Layouts(("NC", given.get("weight_layout", "NC")), "NC")
    if "layout" in given and isinstance(given["layout"], str):
        return _Layouts((given["layout"],), given.get("out_layout") or given["layout"])
    return None


@dataclass(frozen=True)
class _Altered:
    """A value in a layout of its own, and the layout that it stands for."""

    value: Any
    move: Move

    @property
    def layout(self) -> str:
        """The layout that it is in."""
        return self.move.layout

    @property
    def plain(self) -> str:
        """The layout that it stands for."""
        return self.move.plain


Rule = Callable[[Any, Any, Any, Any], Any]


class _Altering(ExprMutator):
    """Calls by rules.

    Args:
        rule_of: the rule of an operator; None for those that keep their layouts.
    """

    def __init__(self, rule_of: Callable[[Any], Rule | None]) -> None:
        super().__init__()
        self._rule_of = rule_of
        self._known: dict[int, _Altered] = {}
        self._transforms: list[Any] = []  # ids are keys, so what they belong to must live

    def visit_call(self, call: Any) -> Any:
        """The call by its operator's rule; else of operands in another layout, if it takes any."""
        made = super().visit_call(call)
        if not isinstance(made.op, Op):
            return made
        rule = self._rule_of(made.op)
        new = (
            None
            if rule is None
            else rule(made.attrs, made.args, [type_of(one.struct_info) for one in made.args], type_of(call.struct_info))
        )
        if new is not None:
            found = self._by_rule(made, new)
            if struct_info_base_check(call.struct_info, found.struct_info) < _SAME:
                raise DeclarationError(f"{found.struct_info} for {call.op}, where {call.struct_info} was")
            return found
        if made.op == "nn.bias_add" and id(made.args[0]) in self._known:
            made = as_sum(made)
        altered = next((self._known[id(one)] for one in _operands(made) if id(one) in self._known), None)
        found = None if altered is None else self._followed(made, altered)
        return made if found is None or not _same_info(made, found) else found

    def _by_rule(self, old: Any, new: Any) -> Any:
        """What a rule made, with operands and result in the layouts that it states."""
        had, wanted = _layouts(old), _layouts(new) if isinstance(new, graph.Call) and isinstance(new.op, Op) else None
        if had is None or wanted is None:
            return new
        pairs = [*zip(had.operands, wanted.operands, strict=False), *[(None, None)] * len(new.args)]
        args = [one if a is None or b is None else self._in(one, a, b) for one, (a, b) in zip(new.args, pairs, strict=False)]
        made = Call(new.op, args, new.attrs, span=getattr(old, "span", None))
        return self._plain(made, Move(wanted.result, had.result))

    def _plain(self, value: Any, move: Move | None) -> Any:
        """A value in its own layout, which remembers the one that it was computed in."""
        if move is None or move.layout == move.plain:
            return value
        found = layout_transform(value, move.layout, move.plain)
        self._known[id(found)] = _Altered(value, move)
        self._transforms.append(found)
        return found

    def _in(self, value: Any, had: str, wanted: str) -> Any:
        if had == wanted:
            return value
        _check_blocks(value, had, wanted)
        known = self._known.get(id(value))
        if known is None or known.plain != had:
            return layout_transform(value, had, wanted)
        return known.value if known.layout == wanted else layout_transform(known.value, known.layout, wanted)

    def _followed(self, call: Any, altered: _Altered) -> Any:
        """A call of values in another layout, whose results remember that; None if it needs its own layout."""
        found = followed(call, altered.move)
        if found is None:
            return None
        args = list(call.args)
        for place in found.data:
            fields = [self._beside(one, altered) for one in _fields(args[place])]
            if any(one is None for one in fields):
                return None
            args[place] = Tuple(fields) if isinstance(args[place], graph.Tuple) else fields[0]
        made = Call(call.op, args, {**call.attrs, **found.attrs}, span=getattr(call, "span", None))
        info = known_info(made)
        if isinstance(info, TupleStructInfo):
            results = [self._plain(TupleGetItem(made, n), move) for n, move in enumerate(found.results)]
            return Tuple(results)
        return self._plain(made, found.results[0] if found.results else None)

    def _beside(self, value: Any, altered: _Altered) -> Any:
        """An operand in the layout of another one; None if it can't be."""
        info = known_info(value)
        axes = parse_layout(altered.plain)
        if not isinstance(info, TensorStructInfo) or info.extents is None or len(info.extents) > len(axes):
            return None
        if not info.extents:
            return value
        known = self._known.get(id(value))
        if known is not None and (known.layout, known.plain) == (altered.layout, altered.plain):
            return known.value
        missing = len(axes) - len(info.extents)
        whole: dict[str, int | None] = {}
        for (name, _), extent in zip(axes, [1] * missing + [as_int(one) for one in info.extents], strict=True):
            before = whole.get(name.upper(), 1)
            whole[name.upper()] = None if extent is None or before is None else before * extent
        layout = ""
        for name, size in parse_layout(altered.layout):
            extent = whole[name.upper()]
            if size and (extent is None or (extent != 1 and extent % size)):
                return None
            layout += f"{(1 if extent == 1 else size) or ''}{name}" if size else name  # what broadcasts has blocks of 1
        return self._in(expand_dims(value, 0, missing) if missing else value, altered.plain, layout)


def _check_blocks(value: Any, had: str, wanted: str) -> None:
    """Raise where an axis isn't a multiple of its blocks: what is left of it would be dropped."""
    blocks = {name.upper(): size for name, size in parse_layout(wanted) if size}
    for name, extent in zip(had, value.struct_info.extents or (), strict=False) if had.isalpha() else ():
        known, size = as_int(extent), blocks.get(name, 1)
        if known is not None and known % size:
            raise DeclarationError(f"{wanted} of {had}: an axis {name} of {known} has no blocks of {size}")


def as_sum(call: Any) -> Any:
    """`bias_add` as a sum, which takes any layout."""
    behind = len(call.args[0].checked_type.shape) - 1
    behind -= call.attrs["axis"] % (behind + 1)
    return add(call.args[0], expand_dims(call.args[1], 1, behind) if behind else call.args[1])


def has_rules(attribute: str = _RULE) -> bool:
    """Whether programs registered any, of layouts or of what another attribute stands for."""
    return any(Op.of(name).get_attr(attribute) is not None for name in ROWS)


def _fields(arg: Any) -> Sequence[Any]:
    return arg.fields if isinstance(arg, graph.Tuple) else (arg,)


def _operands(call: Any) -> Sequence[Any]:
    """The tensors that a call computes with, also those in a tuple."""
    return [part for one in call.args for part in _fields(one)]


def _same_info(a: Any, b: Any) -> bool:
    """Whether a value may stand in place of another one; what its type states needn't be said again."""
    return struct_info_base_check(known_info(a), known_info(b)) >= _SAME


def altered(func: Function) -> Any:
    """A function with calls in the layouts that programs registered.

    Raises:
        DeclarationError: if what a rule returns doesn't fit, naming the rule.
    """
    try:
        with deep_recursion:
            return _Altering(lambda op: op.get_attr(_RULE)).visit(func)
    except DeclarationError as error:
        raise DeclarationError(f"AlterOpLayout: what a rule of {_RULE} returned doesn't fit: {error}") from None


# Layouts of weights where none is asked for, by that of data; of transposed convolutions the input's channels come first.
_WEIGHTS = {
    "NCW": "OIW", "NWC": "WIO", "NCHW": "OIHW", "NHWC": "HWIO HWOI", "HWNC": "HWOI", "NCDHW": "OIDHW", "NDHWC": "DHWIO",
}  # fmt: skip
_TRANSPOSED = {"NCW": "IOW", "NWC": "WOI", "NCHW": "IOHW", "NHWC": "HWIO HWOI", "NCDHW": "IODHW", "NDHWC": "DHWOI"}


class LayoutConfig:
    """What holds of `ConvertLayout` in a `with` statement.

    Args:
        skip_layers: the numbers of convolutions that keep their layouts.
    """

    current: ClassVar[list[LayoutConfig]] = []

    def __init__(self, skip_layers: Sequence[int] = ()) -> None:
        self.skip_layers = tuple(skip_layers)

    def __enter__(self) -> LayoutConfig:
        self.current.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.current.pop()


def converted(func: Function, layouts: Mapping[str, Sequence[str]]) -> Any:
    """A function whose operators are in layouts that are asked for; what has no wish takes the layout of its operands.

    Args:
        func: the function.
        layouts: {"nn.conv2d": ["NCHW16c", "OIHW16i16o"], "nn.max_pool2d": ["NHWC"]}: layouts of data and weights.

    Raises:
        DeclarationError: if channels aren't multiples of blocks, or there is no layout of weights.
    """
    skipped = LayoutConfig.current[-1].skip_layers if LayoutConfig.current else ()
    number = itertools.count()

    def rule_of(op: Any) -> Rule | None:
        asked = layouts.get(str(op))
        if asked is None or ("conv" in op and next(number) in skipped):
            return None
        return lambda attrs, args, types, result: _asked(op, attrs, args, asked)

    try:
        with deep_recursion:
            return _Altering(rule_of).visit(func)
    except (DeclarationError, TypeMismatchError) as error:
        raise DeclarationError(f"ConvertLayout: {dict(layouts)} doesn't fit: {error}") from None


def _asked(op: Any, attrs: Mapping[str, Any], args: Any, asked: Sequence[str]) -> Any:
    """A call in layouts that were asked for."""
    data, kernel = [*asked, "default"][:2]
    if "layout" in attrs:
        return Call(op, args, {**attrs, "layout": data, **({"out_layout": data} if "out_layout" in attrs else {})})
    if "data_layout" not in attrs:
        return None  # what has no layout of its own takes that of its operands
    if kernel == "default":
        known = _TRANSPOSED if "transpose" in op else _WEIGHTS
        if data not in known:
            raise DeclarationError(f"{op}: data of {data} take a layout of weights, such as OIHW16i16o; there is one of {', '.join(known)}")
        own, fitting = attrs["kernel_layout"], known[data].split()
        kernel = own if own in fitting else fitting[0]
    return Call(op, args, {**attrs, "data_layout": data, "kernel_layout": kernel, "out_layout": ""})


def AlterOpLayout() -> ModulePass:
    """Calls as rules of programs have them: `relay.op.register_alter_op_layout("nn.conv2d", f)`, f(attrs, inputs, types, result type).

    A rule returns a call in another layout, such as `relay.nn.conv2d(*inputs, data_layout="NCHW16c", ...)`, or None for no change. There
    are no rules but those: building a graph chooses layouts by what kernels read.
    """

    def on_module(mod: IRModule, ctx: Any) -> IRModule:
        made = typed(mod)
        for var, func in made.functions_items():
            if isinstance(func, Function):
                made.update_func(var, altered(func))
        return made

    return ModulePass("AlterOpLayout", lambda func, ctx: func, 3, by_user=False, module_func=on_module)


__all__ = ["AlterOpLayout", "LayoutConfig", "as_sum", "converted", "has_rules"]
