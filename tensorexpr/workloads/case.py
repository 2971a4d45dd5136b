"""What a suite is made of: a named case is a registered workload with its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..auto_scheduler.workload import make_workload_key, workload_key_to_tensors
from ..dataclass import dataclass
from ..te.flops import flop_count
from ..te.operation import PlaceholderOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.dtype import parse_dtype


class Drawn(NamedTuple):
    """How input `number` of a case is drawn: evenly from `low` on, below `high`; with `rising` these are its first and its last value.

    Without one floats are small numbers around 0, and integers any: of indices, roots and ordered rows they would be none.
    """

    number: int
    low: float
    high: float
    rising: bool = False


@dataclass(frozen=True)
class Case:
    """One computation to measure.

    Args:
        name: unique in its suite, such as "C2D-0-b16".
        workload: the name of a registered workload.
        args: its arguments: numbers, strings and tuples of them.
        constants: positions of arguments of the kernel that stay the same from call to call (weights).
        draws: of inputs that can't hold any numbers.
    """

    name: str
    workload: str
    args: tuple[Any, ...]
    constants: tuple[int, ...] = ()
    draws: tuple[Drawn, ...] = ()

    @property
    def key(self) -> str:
        """The workload's key: what records call this computation."""
        return make_workload_key(self.workload, self.args)

    def tensors(self) -> list[Tensor]:
        """Inputs and then outputs, freshly declared."""
        return workload_key_to_tensors(self.key)

    def flops(self) -> float:
        """Arithmetic of one call, counted on the definition; 0 of loops that have no count, such as a sort's."""
        return max(0.0, float(flop_count(outputs_of(self.tensors()))))

    def bytes_touched(self) -> int:
        """Bytes of all arguments: what a call moves at least if nothing is in a cache."""
        return sum(_size(tensor) for tensor in self.tensors())


def outputs_of(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors that are computed."""
    return [tensor for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)]


def _size(tensor: Tensor) -> int:
    count = 1
    for extent in tensor.shape:
        count *= as_int(extent) or 0
    return count * max(1, parse_dtype(tensor.dtype).bits // 8)
