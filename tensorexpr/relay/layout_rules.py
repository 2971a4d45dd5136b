"""Operators in another layout of their data: which operands take it, what attributes are then, and the layouts of results.

    split(x, 2, axis=3) with x of NHWC as NCHW      split(x', 2, axis=1), two results of NCHW that stand for NHWC

A rule gets a call and a `Move`, and returns None for what needs its own layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..dataclass import dataclass, field
from ..relax.struct_info import TensorStructInfo, TupleStructInfo
from ..tir.arithmetic import as_int
from ..tir.data_layout import layout
from ..topi.transform import parse_layout
from .kinds import kind_of
from .lets import known_info
from .ty import type_of

RULE = "FInferCorrectLayout"
_SIMPLE = 1  # the kinds ELEMWISE and BROADCAST


@dataclass(frozen=True)
class Move:
    """From a layout that axes are counted in to another one.

    Args:
        layout: that the data is in, such as "NCHW".
        plain: that the call is of, such as "NHWC".
    """

    layout: str
    plain: str

    @property
    def order(self) -> list[int] | None:
        """The axes of `plain` in the order of `layout`; None with blocks."""
        return (
            [self.plain.index(one) for one in self.layout] if sorted(self.layout) == sorted(self.plain) and self.layout.isalpha() else None
        )

    @property
    def ndim(self) -> int:
        """How many axes `plain` has."""
        return len(parse_layout(self.plain))

    def places(self, axis: int) -> list[int]:
        """Where an axis is, and its blocks; nothing for what is in blocks already."""
        letter = parse_layout(self.plain)[axis][0]
        return [n for n, (name, _) in enumerate(parse_layout(self.layout)) if name.upper() == letter] if self.plain.isalpha() else []

    def axis(self, axis: int) -> int | None:
        """Where an axis is; None if it is in blocks."""
        found = self.places(axis)
        return found[0] if len(found) == 1 else None

    def axes(self, axes: Sequence[int]) -> tuple[int, ...] | None:
        """Where several axes are."""
        found = [self.axis(one) for one in axes]
        return None if None in found else tuple(found)  # type: ignore[arg-type]

    def reduced(self, axes: Sequence[int], keepdims: bool) -> Move:
        """The same for data that lost some axes, or has an extent of 1 there."""
        gone = {self.plain[one] for one in axes}
        kept = [(name, size) for name, size in parse_layout(self.layout) if keepdims or name.upper() not in gone]
        text = "".join(f"{(1 if name.upper() in gone else size) or ''}{name}" if size else name for name, size in kept)
        return Move(text, self.plain if keepdims else "".join(one for one in self.plain if one not in gone))


@dataclass(frozen=True)
class Followed:
    """A call in another layout.

    Args:
        attrs: what its attributes are then, where they are others.
        data: the numbers of its operands that take the layout.
        results: of each the layouts; None for one that has none. Without any the result has no layout.
    """

    attrs: Mapping[str, Any] = field(default_factory=dict)
    data: Sequence[int] = (0,)
    results: Sequence[Move | None] = ()


LayoutRule = Callable[[Any, Move], "Followed | None"]


def _results(call: Any, move: Move) -> list[Move | None]:
    """The layouts of results that have as many axes as the data."""
    info = known_info(call)
    fields = info.fields if isinstance(info, TupleStructInfo) else (info,)
    return [move if isinstance(one, TensorStructInfo) and one.ndim == move.ndim else None for one in fields]


def _by_axis(call: Any, move: Move) -> Followed | None:
    """What works along one axis."""
    given = call.attrs["axis"]
    if given is None:
        return None
    found = move.axes([given] if as_int(given) is not None else given)
    if found is None:
        return None
    return Followed({"axis": found[0] if as_int(given) is not None else found}, (0,), _results(call, move))


def _simple(call: Any, move: Move) -> Followed | None:
    """Elements by elements, whose shapes broadcast."""
    return Followed({}, range(len(call.args)), (move,))


def _reduced(call: Any, move: Move) -> Followed | None:
    given, ndim = call.attrs["axis"], move.ndim
    axes = list(range(ndim)) if given is None else [given] if as_int(given) is not None else list(given)
    moved = [one for axis in axes for one in move.places(axis)]
    if not moved or (len(moved) > len(axes) and call.op in ("argmax", "argmin")):
        return None
    gone = [n for n in range(ndim) if (n in [one % ndim for one in axes]) is not bool(call.attrs.get("exclude"))]
    attrs = {} if given is None else {"axis": moved[0] if as_int(given) is not None and len(moved) == 1 else tuple(moved)}
    # Of a variance the mean is an operand, too.
    return Followed(attrs, range(len(call.args)), (move.reduced(gone, bool(call.attrs.get("keepdims"))),))


def _squeezed(call: Any, move: Move) -> Followed | None:
    extents = [as_int(one) for one in getattr(known_info(call.args[0]), "extents", None) or ()]
    given = call.attrs["axis"]
    axes = [n for n, one in enumerate(extents) if one == 1] if given is None else [given] if as_int(given) is not None else list(given)
    moved = move.axes(axes)
    if moved is None or (given is None and None in extents):
        return None
    return Followed({"axis": tuple(sorted(moved))}, (0,), (move.reduced(axes, False),))


def _transposed(call: Any, move: Move) -> Followed | None:
    ndim = move.ndim
    moved = move.axes(list(range(ndim))[::-1] if call.attrs["axes"] is None else call.attrs["axes"])
    return None if moved is None or move.order is None else Followed({"axes": moved})


def _sliced(call: Any, move: Move) -> Followed | None:
    given, extents = call.attrs, [as_int(one) for one in getattr(known_info(call.args[0]), "extents", None) or ()]
    if given["axes"] is not None:
        moved = move.axes(given["axes"])
        return None if moved is None else Followed({"axes": moved}, (0,), (move,))
    if move.order is None or given["slice_mode"] != "end" or None in extents:
        return None
    attrs = {}
    for name, missing in (("begin", [0] * len(extents)), ("end", extents), ("strides", [1] * len(extents))):
        values = list(given[name] or ())
        values += missing[len(values) :]
        attrs[name] = tuple(values[one] for one in move.order)
    return Followed(attrs, (0,), (move,))


def _padded(call: Any, move: Move) -> Followed | None:
    widths = [(0, 0)] * len(parse_layout(move.layout))
    for axis, pair in enumerate(call.attrs["pad_width"]):
        places = move.places(axis)
        if len(places) == 1:
            widths[places[0]] = pair
        elif any(map(int, pair)) or not places:
            return None
    return Followed({"pad_width": tuple(widths)}, (0,), (move,))


def _alike(call: Any, move: Move) -> Followed | None:
    """Cut to the extents of another tensor."""
    moved = move.axes(call.attrs["axes"] or ())
    return None if moved is None else Followed({"axes": moved} if moved else {}, (0, 1), (move,))


def _in_layout(call: Any, move: Move) -> Followed | None:
    """What has an attribute for the layout; windows of H and W don't mind blocks of channels."""
    given = call.attrs
    splits = any(size and name.upper() in "DHW" for name, size in parse_layout(move.layout))
    if given["layout"] != move.plain or given.get("out_layout") not in (None, "", move.plain) or splits:
        return None
    return Followed({"layout": move.layout}, (0,), (move,))


def _joined(call: Any, move: Move) -> Followed | None:
    """Tensors one behind the other, also in blocks: then each has whole ones."""
    places = move.places(call.attrs["axis"])
    return Followed({"axis": places[0]}, (0,), (move,)) if places else None


def _two_quantized(call: Any, move: Move) -> Followed | None:
    return Followed({}, (0, 1), (move,)) if call.attrs["lhs_axis"] == call.attrs["rhs_axis"] == -1 else None


_RULES: dict[str, LayoutRule] = {
    **dict.fromkeys(
        ("nn.softmax", "nn.log_softmax", "nn.l2_normalize", "nn.batch_norm", "nn.layer_norm", "nn.instance_norm", "nn.group_norm", "split",
         "topk", "argsort", "sort", "cumsum", "cumprod", "nn.lrn", "qnn.requantize", "qnn.quantize", "qnn.dequantize"), _by_axis,
    ),
    **dict.fromkeys(("sum", "mean", "max", "min", "prod", "all", "any", "argmax", "argmin", "variance", "logsumexp"), _reduced),
    **dict.fromkeys(("concatenate", "qnn.concatenate"), _joined),
    **dict.fromkeys(("qnn.add", "qnn.mul", "qnn.subtract"), _two_quantized),
    "squeeze": _squeezed, "transpose": _transposed, "strided_slice": _sliced, "nn.pad": _padded, "slice_like": _alike,
}  # fmt: skip


def _by_user(rule: Any, call: Any, move: Move) -> Followed | None:
    """What a program's rule says; None if it asks for another layout than the data has."""
    count = len(call.args)
    found = rule(call.attrs, [layout(move.layout)] * count, [layout(move.plain)] * count, [type_of(known_info(one)) for one in call.args])
    asked = [one.name for one in found.input_layouts]
    results = [Move(one.name, move.plain) for one in found.output_layouts]
    return Followed(dict(found.new_attrs), range(count), results) if set(asked) == {move.layout} else None


def followed(call: Any, move: Move) -> Followed | None:
    """How a call of an operator is in another layout of its data; None if it needs its own."""
    by_user = call.op.get_attr(RULE)
    if by_user is not None:
        return _by_user(by_user, call, move)
    rule = _RULES.get(str(call.op))
    if rule is not None:
        return rule(call, move)
    if isinstance(call.attrs.get("layout"), str):
        return _in_layout(call, move)
    kind = kind_of(call.op)
    return _simple(call, move) if kind is not None and kind <= _SIMPLE and "axis" not in call.attrs else None


__all__ = ["Followed", "LayoutRule", "Move", "followed"]
