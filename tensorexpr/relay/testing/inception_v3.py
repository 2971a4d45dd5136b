"""Inception v3 (Szegedy et al. 2015, "Rethinking the Inception architecture", table 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..expr import Function
from .init import Workload, create_workload
from .layers import Layers, function_of

# A branch is a list of steps: convolutions (channels, kernel, stride, pad), "mean" and "max" pools, or a tuple of branches side by side.
Step = Any
_ROW, _COLUMN = (1, 7), (7, 1)
_R, _C = (0, 3), (3, 0)


def _conv(channels: int, kernel: Any = 1, stride: int = 1, pad: Any = 0) -> Step:
    return channels, kernel, stride, pad


def _a(pooled: int) -> list[list[Step]]:
    """Figure 5: two 3x3 convolutions in place of a 5x5 one."""
    return [
        [_conv(64)],
        [_conv(48), _conv(64, 5, 1, 2)],
        [_conv(64), _conv(96, 3, 1, 1), _conv(96, 3, 1, 1)],
        ["mean", _conv(pooled)],
    ]


def _c(inner: int) -> list[list[Step]]:
    """Figure 6: convolutions of rows and of columns."""
    return [
        [_conv(192)],
        [_conv(inner), _conv(inner, _ROW, 1, _R), _conv(192, _COLUMN, 1, _C)],
        [_conv(inner), _conv(inner, _COLUMN, 1, _C), _conv(inner, _ROW, 1, _R), _conv(inner, _COLUMN, 1, _C), _conv(192, _ROW, 1, _R)],
        ["mean", _conv(192)],
    ]


def _both() -> tuple[Step, Step]:
    return _conv(384, (1, 3), 1, (0, 1)), _conv(384, (3, 1), 1, (1, 0))


def _e() -> list[list[Step]]:
    """Figure 7: rows and columns beside each other."""
    return [[_conv(320)], [_conv(384), [_both()]], [_conv(448), _conv(384, 3, 1, 1), [_both()]], ["mean", _conv(192)]]


_BLOCKS: tuple[list[list[Step]], ...] = (
    _a(32), _a(64), _a(64),
    [[_conv(384, 3, 2)], [_conv(64), _conv(96, 3, 1, 1), _conv(96, 3, 2)], ["max"]],
    _c(128), _c(160), _c(160), _c(192),
    [
        [_conv(192), _conv(320, 3, 2)],
        [_conv(192), _conv(192, _ROW, 1, _R), _conv(192, _COLUMN, 1, _C), _conv(192, 3, 2)],
        ["max"],
    ],
    _e(), _e(),
)  # fmt: skip


def _branch(make: Layers, x: Any, steps: Sequence[Step], name: str) -> Any:
    for number, step in enumerate(steps):
        called = f"{name}_{number}"
        match step:
            case "mean":
                x = make.mean_pool(x, 3, 1, 1)
            case "max":
                x = make.max_pool(x)
            case [(first, second)]:
                x = make.joined(*(make.unit(x, f"{called}_{side}", *one) for side, one in (("row", first), ("column", second))))
            case _:
                x = make.unit(x, called, *step)
    return x


def get_net(batch_size: int, num_classes: int, image_shape: Sequence[int], dtype: str) -> Function:
    """The network; pictures have at least 75 rows and columns, 299 in the paper."""
    make = Layers(dtype=dtype)
    value = make.picture(batch_size, image_shape)
    stem = [_conv(32, 3, 2), _conv(32, 3), _conv(64, 3, 1, 1), "max", _conv(80), _conv(192, 3), "max"]
    value = _branch(make, value, stem, "conv")
    for number, block in enumerate(_BLOCKS):
        value = make.joined(*(_branch(make, value, steps, f"mixed{number}_{place}") for place, steps in enumerate(block)))
    return function_of(make.classes(make.pooled(value), "fc1", num_classes))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, image_shape: Sequence[int] = (3, 299, 299), dtype: str = "float32"
) -> Workload:
    """The network as a module, and weights."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
