"""What a compile worker hands back, and the protocol of what makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from ...dataclass import dataclass
from ...errors import TuningError
from ...tir.expr import Var
from .protocol import Frame

if TYPE_CHECKING:
    from ...schedule.tree import AxisExpression

DEFAULT_PLUG = "tensorexpr.tune.measure.compiling:make_compiler"


@dataclass(frozen=True)
class ArrayArgument:
    """An array parameter of a compiled candidate, as its packed entry takes it.

    `layout` has the indices of the elements of the task's array over its own ones, as steps write them; None if they are the same.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    layout: tuple[AxisExpression, ...] | None = None

    @staticmethod
    def from_json(data: Sequence[Any]) -> ArrayArgument:
        """The argument that `to_json` wrote."""
        name, dtype, shape, layout = data
        return ArrayArgument(name, dtype, tuple(shape), None if layout is None else _tuples(layout))

    def to_json(self) -> list[Any]:
        """The argument as JSON."""
        return [self.name, self.dtype, list(self.shape), self.layout]

    def packed(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The task's array in the layout that the code wants.

        Raises:
            TuningError: if that has another shape than the code says.
        """
        if self.layout is None:
            return array
        # Few programs have layouts of their own, and each measuring process starts twice as fast without the schedules.
        from ...arith.index_map import IndexMap
        from ...schedule.axis_expression import decode

        axes = tuple(Var(f"i{axis}", "int32") for axis in range(array.ndim))
        made: np.ndarray[Any, Any] = IndexMap(axes, tuple(decode(index, axes) for index in self.layout)).map_ndarray(array)
        if made.shape != self.shape:
            raise TuningError(f"the code takes {self.name} packed as {list(self.shape)}, its layout makes {list(made.shape)}")
        return made


@dataclass(frozen=True)
class CompiledCandidate:
    """Object code of one candidate.

    Args:
        object_code: the bytes of an object file.
        entry: the symbol to call, `int32_t entry(const uint64_t *words)` with one address per argument.
        arguments: its arrays in order.
        errors: the messages of the codes that the entry returns, from 1.
        timings: seconds by step.
        spills: see `spills.spills_in_object`.
        ir_lines: lines of LLVM IR.
    """

    object_code: bytes
    entry: str
    arguments: tuple[ArrayArgument, ...]
    errors: tuple[str, ...]
    timings: Mapping[str, float]
    spills: int
    ir_lines: int

    def header(self) -> dict[str, Any]:
        """All but the object code as JSON."""
        return {
            "entry": self.entry,
            "arguments": [argument.to_json() for argument in self.arguments],
            "errors": list(self.errors),
            "timings": dict(self.timings),
            "spills": self.spills,
            "ir_lines": self.ir_lines,
        }

    @staticmethod
    def from_frame(frame: Frame) -> CompiledCandidate:
        """The candidate of a "compiled" frame."""
        header = frame.header
        arguments = tuple(map(ArrayArgument.from_json, header["arguments"]))
        rest = (header["timings"], header["spills"], header["ir_lines"])
        return CompiledCandidate(frame.blobs[0], header["entry"], arguments, tuple(header["errors"]), *rest)


class Compiler(Protocol):
    """Compiles candidates of one task."""

    def __call__(self, trace: Sequence[Any], opt_level: int) -> CompiledCandidate:
        """The object code of the program that the trace (as JSON) makes.

        Raises:
            ScheduleError, LoweringError, RecordError: if the trace makes no program.
            Exception: anything else counts as a failure of the compiler.
        """
        ...


@runtime_checkable
class CompilerOfOthers(Protocol):
    """A compiler of candidates of other computations too, of the same inputs and results: those of templates may depend on knobs."""

    def of(self, dag: Any) -> Compiler:
        """The compiler of candidates of a computation (as JSON)."""


MakeCompiler = Callable[[Mapping[str, Any]], Compiler]


def load_plug(name: str) -> MakeCompiler:
    """The function that `module:function` names.

    Raises:
        TuningError: if there is none.
    """
    module, _, function = name.partition(":")
    try:
        found: MakeCompiler = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise TuningError(f"no {name!r} (module:function) to compile candidates with: {error}") from error
    return found


def check_arguments(found: Sequence[ArrayArgument], wanted: Sequence[ArrayArgument]) -> None:
    """Check that compiled code takes the arrays of the task.

    Raises:
        TuningError: naming the first that differs.
    """
    # the entry takes bare addresses: with another number or other types it would read beside what it was given
    if len(found) != len(wanted):
        raise TuningError(f"the code takes {len(found)} arrays, the task has {len(wanted)}")
    for position, (code, task) in enumerate(zip(found, wanted, strict=True)):
        if code.dtype != task.dtype or (code.shape != task.shape and code.layout is None):
            raise TuningError(f"argument {position}: the code takes {_described(code)}, the task has {_described(task)}")


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _described(array: ArrayArgument) -> str:
    return f"{array.name}: {array.dtype}{list(array.shape)}"
