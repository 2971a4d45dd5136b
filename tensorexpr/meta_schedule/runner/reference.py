"""The arrays to run programs with, made by a process of their own while the first programs are built."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from ...errors import TuningError
from ...log import once
from ...target import Target
from ...tir.dtype import parse_dtype
from ...tir.function import IRModule
from ...tir.serialize.module_graph import module_to_graph
from ...tune.measure.arrays import StoredArray
from ...tune.measure.pool import Job, WorkerPool
from ...tune.measure.process import Launch
from ...tune.measure.protocol import Frame
from ..arg_info import ArgInfo, shapes_of

logger = logging.getLogger(__name__)
MODULE = "tensorexpr.meta_schedule.runner.reference_worker"
LIMIT_SECONDS = 60.0
_MEMORY_BYTES = 8 << 30


class Reference:
    """Inputs and expected results of a program, in files of a folder.

    Args:
        workload: the program as it was written; None for arrays without results.
        args_info: its arguments.
        target: what it is run for.
        folder: where the files are, of this program alone.
        outputs: places of the arguments that are written, where there is no workload to tell.
    """

    def __init__(
        self, workload: IRModule | None, args_info: Sequence[ArgInfo], target: Target, folder: Path, outputs: Sequence[int] = ()
    ) -> None:
        self.target = target
        self.folder = folder
        self._infos = shapes_of(args_info)
        self._outputs = list(outputs)
        self._module = None if workload is None else module_to_graph(workload)
        self._arrays: list[StoredArray] | None = None
        self._pool = self._made(verify=True)

    @property
    def array_bytes(self) -> int:
        """Bytes of all arguments."""
        return sum(prod(info.shape) * parse_dtype(info.dtype).itemsize for info in self._infos)

    def _made(self, verify: bool) -> WorkerPool:
        self.folder.mkdir(exist_ok=True)
        task: dict[str, Any] = {"type": "task", "folder": str(self.folder), "seed": 0, "verify": verify, "target": str(self.target)}
        infos = [info.as_json() for info in self._infos]
        launch = Launch(MODULE, memory_bytes=_MEMORY_BYTES + 4 * self.array_bytes)
        return WorkerPool(
            launch,
            1,
            str(self.folder),
            Frame({**task, "module": self._module, "args_info": infos, "outputs": self._outputs}),
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
