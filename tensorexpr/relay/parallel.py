"""CombineParallel*: operators that read one tensor with weights of their own as one operator, and what follows all of them.

relu(conv2d(x, w1) + a), relu(conv2d(x, w2) + b)    y = relu(conv2d(x, concatenate((w1, w2))) + concatenate((a, b))), cut in two
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dataclass import dataclass
from ..relax import expr as graph
from ..tir.op_registry import Op
from .expr import Call, Function
from .kinds import kind_of
from .ops.nn import batch_matmul
from .ops.transform import concatenate, expand_dims, repeat, split, squeeze, stack, strided_slice
from .scale_axes import Readers
from .simplify import extents_of, is_call
from .visitor import SameTypes, walk

_BROADCAST = 1
Extents = tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """How operators of a name are combined.

    Args:
        name: of the operator.
        key: from a call what is equal of those that are combined; None for one that isn't.
        combined: one call for several.
        operand: one operand for those of several that follow, by these and the extents of the branches' results; None where there is none.
        parts: the results of branches, by the one for all and the extents of theirs.
    """

    name: str
    key: Callable[[Any], Any]
    combined: Callable[[Sequence[Any], Any, Sequence[Any]], Any]
    operand: Callable[[Sequence[Any], Sequence[Extents]], Any]
    parts: Callable[[Any, Sequence[Extents]], Sequence[Any]]


def _beside(axis: int, of_operands: int | None = None) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Results one behind the other along an axis: operands for them, and their parts. `of_operands` is the axis that those state."""

    def spread(arg: Any, extent: int) -> Any:
        """A number for each place of the last axis, where there is one for all."""
        own = extents_of(arg)
        if axis != -1 or own is None or own[-1:] not in ((), (1,)):
            return arg
        arg = arg if own else expand_dims(arg, -1)
        return repeat(arg, extent, max(len(own) - 1, 0))

    def operand(args: Sequence[Any], results: Sequence[Extents]) -> Any:
        spread_args = [spread(arg, whole[axis]) for arg, whole in zip(args, results, strict=True)]
        places = []
        for arg, whole in zip(spread_args, results, strict=True):
            own = extents_of(arg) or ()
            place = axis % len(whole) - (len(whole) - len(own))
            if place < 0 or own[place] != whole[axis]:
                return None
            places.append((place, own[:place], own[place + 1 :]))
        return concatenate(spread_args, places[0][0] if of_operands is None else of_operands) if len(set(places)) == 1 else None

    def parts(value: Any, results: Sequence[Extents]) -> Sequence[Any]:
        sizes = [one[axis] for one in results]
        before = axis % len(results[0])
        starts = [sum(sizes[:n]) for n in range(len(sizes))]
        return [
            strided_slice(value, [0] * before + [start], [-1] * before + [size], [1] * (before + 1), slice_mode="size")
            for start, size in zip(starts, sizes, strict=True)
        ]

    return operand, parts


def _but(attrs: Any, *names: str) -> tuple[Any, ...]:
    return tuple((name, value) for name, value in attrs.items() if name not in names)


def _conv(call: Any) -> Any:
    attrs, extents = call.attrs, extents_of(call.args[1])
    layouts = attrs["data_layout"], attrs["kernel_layout"]
    if extents is None or attrs["groups"] != 1 or attrs["out_layout"] not in ("", layouts[0]) or not "".join(layouts).isupper():
        return None
    place = layouts[1].index("O")
    # All the same axis: that of channels of the result.
    return (
        (_but(attrs, "channels", "kernel_size"), extents[:place], extents[place + 1 :], layouts[0].index("C"))
        if layouts[0] == "NCHW"
        else None
    )


def _all_convs(calls: Sequence[Any], data: Any, weights: Sequence[Any]) -> Any:
    place = calls[0].attrs["kernel_layout"].index("O")
    channels = sum((extents_of(one.args[1]) or ())[place] for one in calls)
    return Call(calls[0].op, (data, concatenate(list(weights), place)), {**calls[0].attrs, "channels": channels})


def _all_dense(calls: Sequence[Any], data: Any, weights: Sequence[Any]) -> Any:
    units = sum((extents_of(one.args[1]) or ())[0] for one in calls)
    return Call(calls[0].op, (data, concatenate(list(weights), 0)), {**calls[0].attrs, "units": units})


def _stacked_dense(calls: Sequence[Any], data: Any, weights: Sequence[Any]) -> Any:
    return batch_matmul(stack([data] * len(calls), 0), stack(list(weights), 0), calls[0].attrs["out_dtype"])


def _stacked_operand(args: Sequence[Any], results: Sequence[Extents]) -> Any:
    own = {extents_of(one) for one in args}
    if len(own) > 1 or None in own or not extents_of(args[0]):
        return None
    missing = len(results[0]) - len(extents_of(args[0]) or ())
    return stack([expand_dims(one, 0, missing) if missing else one for one in args], 0)


def _stacked_parts(value: Any, results: Sequence[Extents]) -> Sequence[Any]:
    found = split(value, len(results), 0)
    return [squeeze(found[n], [0]) for n in range(len(results))]


def _all_batches(calls: Sequence[Any], data: Any, weights: Sequence[Any]) -> Any:
    return Call(calls[0].op, (data, concatenate(list(weights), 1)), calls[0].attrs)


CONV2D = Kind("nn.conv2d", _conv, _all_convs, *_beside(1))
DENSE = Kind("nn.dense", lambda call: (_but(call.attrs, "units"), (extents_of(call.args[1]) or (0, 0))[1]), _all_dense, *_beside(-1))
STACKED_DENSE = Kind(
    "nn.dense",
    lambda call: (_but(call.attrs, "units"), extents_of(call.args[1])) if len(extents_of(call) or ()) == 2 else None,
    _stacked_dense, _stacked_operand, _stacked_parts,
)  # fmt: skip
BATCH_MATMUL = Kind(
    "nn.batch_matmul",
    lambda call: (_but(call.attrs), (extents := extents_of(call.args[1]) or (0, 0, 0))[0], extents[2])
    if call.attrs["transpose_b"] and not call.attrs["transpose_a"] else None,
    _all_batches, *_beside(-1, -1),
)  # fmt: skip


@dataclass(eq=False)
class _Group:
    """Branches that are computed as one: the calls of each, operators by operators."""

    steps: list[list[Any]]


class Combined(SameTypes):
    """Puts parts of one result in place of those of branches.

    Args:
        func: the function.
        kind: of operators.
        least: how many branches there are at least.
    """

    def __init__(self, func: Function, kind: Kind, least: int) -> None:
        super().__init__()
        self._kind, self._params = kind, {id(param) for param in func.params}
        readers = Readers(func)
        groups: dict[Any, list[Any]] = {}
        for node in readers.order:
            key = kind.key(node) if is_call(node, kind.name) and extents_of(node) is not None else None
            if key is not None:
                groups.setdefault((id(node.args[0]), key), []).append(node)
        self._ends: dict[int, tuple[_Group, int]] = {}
        for calls in groups.values():
            if len(calls) >= least and self._are_apart(calls, [call.args for call in calls]):
                group = _Group([calls])
                while (more := self._next(group, readers)) is not None:
                    group.steps.append(more)
                self._ends.update({id(call): (group, n) for n, call in enumerate(group.steps[-1])})
        self._made: dict[_Group, Sequence[Any]] = {}

    def _are_apart(self, calls: Sequence[Any], operands: Sequence[Sequence[Any]]) -> bool:
        """Whether operands are there before any of the calls: parameters of the function, and what is made of these without them."""
        own = set(map(id, calls))
        nodes = [node for args in operands for arg in args for node in walk(arg)]
        return not any(id(node) in own or (isinstance(node, graph.Var) and id(node) not in self._params) for node in nodes)

    def _next(self, group: _Group, readers: Readers) -> list[Any] | None:
        """The calls that follow in all branches; None where they differ."""
        last = group.steps[-1]
        if not all(readers.single(one) for one in last):
            return None
        calls = [readers.of[id(one)][0] for one in last]
        first = calls[0]
        if not isinstance(first, graph.Call) or not isinstance(first.op, Op) or len({id(one) for one in calls}) < len(calls):
            return None
        kind, places = kind_of(first.op), [n for n, one in enumerate(first.args) if one is last[0]]
        if kind is None or kind > _BROADCAST or len(places) != 1 or first.op.startswith("annotation."):
            return None
        for one, before in zip(calls, last, strict=True):
            is_same = isinstance(one, graph.Call) and one.op == first.op and one.attrs == first.attrs and len(one.args) == len(first.args)
            if not is_same or one.args[places[0]] is not before or extents_of(one) != extents_of(before):
                return None
        others = [[arg for n, arg in enumerate(one.args) if n != places[0]] for one in calls]
        results = [extents_of(one) or () for one in calls]
        fits = all(self._kind.operand(args, results) is not None for args in zip(*others, strict=True))
        return calls if fits and self._are_apart([one for step in (*group.steps, calls) for one in step], others) else None

    def visit_call(self, call: Any) -> Any:
        """A part of the result, for the last call of a branch."""
        found = self._ends.get(id(call))
        if found is None:
            return super().visit_call(call)
        group, number = found
        if group not in self._made:
            self._made[group] = self._computed(group)
        return self._made[group][number]

    def _computed(self, group: _Group) -> Sequence[Any]:
        first, *others = group.steps
        value = self._kind.combined(first, self.visit(first[0].args[0]), [self.visit(one.args[1]) for one in first])
        for before, calls in zip(group.steps, others, strict=False):
            results = [extents_of(one) or () for one in calls]
            columns = zip(*(call.args for call in calls), strict=True)
            args = [
                value if column[0] is before[0] else self._kind.operand([self.visit(one) for one in column], results) for column in columns
            ]
            value = Call(calls[0].op, args, calls[0].attrs)
        return self._kind.parts(value, [extents_of(one) or () for one in group.steps[-1]])


__all__ = ["BATCH_MATMUL", "CONV2D", "DENSE", "STACKED_DENSE", "Combined", "Kind"]
