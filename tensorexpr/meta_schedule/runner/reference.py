"""The arrays to run programs with, made by a process of their own while the first programs are built."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from ...dataclass import dataclass
from ...errors import TuningError
from ...log import once
from ...runtime.engine import check_runs_here
from ...target import Target
from ...tir.dtype import parse_dtype
from ...tir.function import IRModule
from ...tir.serialize.module_graph import module_to_graph
from ...tune.measure.arrays import StoredArray
from ...tune.measure.pool import Job, WorkerPool
from ...tune.measure.process import Launch
from ...tune.measure.protocol import Frame
from ...tune.measure.results import MeasureOptions
from ...tune.measure.workers import Workers
from ..arg_info import ArgInfo, TensorInfo, shapes_of

logger = logging.getLogger(__name__)
MODULE = "tensorexpr.tune.measure.module_reference_worker"
LIMIT_SECONDS = 60.0
_MEMORY_BYTES = 8 << 30


@dataclass(frozen=True)
class ProgramSubject:
    """A program whose schedules are measured: a `tune.measure.places.Subject`.

    Args:
        module: as it was written, by `tir.serialize.module_graph`; None for arrays without results.
        infos: its arguments.
        target: what it is run for.
        outputs: places of the arguments that are written, where there is no module to tell.
    """

    module: str | None
    infos: tuple[TensorInfo, ...]
    target: Target
    outputs: tuple[int, ...] = ()

    @property
    def array_bytes(self) -> int:
        """Bytes of all arguments."""
        return sum(prod(info.shape) * parse_dtype(info.dtype).itemsize for info in self.infos)

    def spec(self) -> Frame:
        """What another machine needs to make the arrays."""
        infos = [info.as_json() for info in self.infos]
        said = {"module": self.module, "args_info": infos, "outputs": list(self.outputs), "target": str(self.target.resolved())}
        return Frame({"type": "subject", "kind": "tir", **said})

    def arrays_in(self, options: MeasureOptions, folder: Path, workers: Workers | None = None) -> Reference:
        """What makes the arrays here: a process of its own in any case, as each task has one."""
        return Reference(self, folder)


def program_of(workload: IRModule | None, args_info: Sequence[ArgInfo], target: Target, outputs: Sequence[int] = ()) -> ProgramSubject:
    """A program as it is measured; arguments as of `ProgramSubject`."""
    module = None if workload is None else module_to_graph(workload)
    return ProgramSubject(module, tuple(shapes_of(args_info)), target, tuple(outputs))


def subject_of(spec: Frame) -> ProgramSubject:
    """The program that `ProgramSubject.spec` describes, on the machine that measures it.

    Raises:
        TargetError: if this machine can't run code of its target.
    """
    header = spec.header
    target = Target(header["target"])
    check_runs_here(target)
    infos = [ArgInfo.from_json(item) for item in header["args_info"]]
    return ProgramSubject(header["module"], tuple(shapes_of(infos)), target, tuple(header["outputs"]))


class Reference:
    """Inputs and expected results of a program, in files of a folder of its own."""

    def __init__(self, subject: ProgramSubject, folder: Path) -> None:
        self._subject, self._folder = subject, folder
        self._arrays: list[StoredArray] | None = None
        self._pool = self._made(verify=True)

    @property
    def pids(self) -> list[int]:
        """The process id of the worker, if it runs."""
        return self._pool.pids

    def _made(self, verify: bool) -> WorkerPool:
        subject, folder = self._subject, str(self._folder)
        task: dict[str, Any] = {"type": "task", "folder": folder, "seed": 0, "verify": verify, "target": str(subject.target)}
        infos = [info.as_json() for info in subject.infos]
        launch = Launch(MODULE, memory_bytes=_MEMORY_BYTES + 4 * subject.array_bytes)
        return WorkerPool(
            launch,
            1,
            folder,
            Frame({**task, "module": subject.module, "args_info": infos, "outputs": list(subject.outputs)}),
            LIMIT_SECONDS,
        )

    def start(self) -> None:
        """Start the process, without waiting for it; nothing if the arrays are there already."""
        if self._arrays is None:
            self._pool.start()

    def arrays(self) -> list[StoredArray]:
        """The arguments in order; waits until they are there. Where the program can't be run, or takes too long, there are no
        expected results, and a warning says why.

        Raises:
            TuningError: if even inputs can't be made.
        """
        if self._arrays is None:
            try:
                answer = self._asked()
            except TuningError as error:
                once(logger, f"programs can't be verified: running the unscheduled one failed: {str(error)[:300]}")
                self._pool.close()
                # a new process, which only makes inputs and doesn't run the program
                self._pool = self._made(verify=False)
                answer = self._asked()
            if answer["reason"]:
                once(logger, f"programs can't be verified: {answer['reason']}")
            # they are in files: the process isn't needed any more
            self._arrays = [StoredArray.from_json(item) for item in answer["arrays"]]
            self.close()
        return self._arrays

    def _asked(self) -> dict[str, Any]:
        self._pool.submit(Job(0, Frame({"type": "arrays"}), LIMIT_SECONDS))
        for answer in self._pool.answers():
            if isinstance(answer.reply, Frame) and answer.reply.type == "arrays":
                return dict(answer.reply.header)
            raise TuningError(f"arrays to run programs with can't be made: {answer.reply}")
        raise TuningError("arrays to run programs with can't be made: no answer came")

    def close(self) -> None:
        """Kill the process if it still runs."""
        self._pool.close()
