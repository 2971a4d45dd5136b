"""The worker that loads candidates, checks what they compute and times them: `python -m tensorexpr.tune.measure.run_worker`.

It is the only process that runs generated code. A candidate may crash it, hang it or spoil it; the parent then starts another.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import fmean

from .arrays import StoredArray
from .bench import Bench, Kernel, WrongAnswer
from .child import connect, failure, parse_arguments, serve
from .compiled import ArrayArgument, check_arguments
from .errors import MeasureErrorNo
from .memory import OFFSET
from .protocol import Frame
from .timing import SPEED, TimingPolicy, calls_per_repeat, calmest, interleave


class RunService:
    """Measures the candidates of one task."""

    def __init__(self) -> None:
        self._bench: Bench | None = None
        self._arguments: tuple[ArrayArgument, ...] = ()
        self._policy = TimingPolicy()

    def task(self, frame: Frame) -> Frame:
        """Take the task: load its arrays."""
        header = frame.header
        arrays = [StoredArray.from_json(item) for item in header["arrays"]]
        self._arguments = tuple(ArrayArgument(array.name, array.dtype, array.shape) for array in arrays)
        self._policy = TimingPolicy(**header["policy"])
        folder = Path(header["folder"])
        if "device" in header:
            from .device_bench import DeviceBench  # measuring on a CPU loads nothing of GPUs

            self._bench = DeviceBench(arrays, folder, self._policy, int(header["device"]))
        else:
            self._bench = Bench(arrays, folder, self._policy, int(header["threads"]))
        return Frame({"type": "ready"})

    def run(self, frame: Frame) -> Frame:
        """Measure one candidate."""
        try:
            return self._run(frame)
        except WrongAnswer as error:
            return failure(error, MeasureErrorNo.WRONG_ANSWER.name)
        except Exception as error:
            return failure(error, MeasureErrorNo.RUNTIME_DEVICE.name)

    def _run(self, frame: Frame) -> Frame:
        assert self._bench is not None
        start = time.perf_counter()
        kernel = self._load(frame, 0)
        loaded = time.perf_counter() - start
        best = frame.header["best"]
        result = self._bench.measure(kernel, float("inf") if best is None else best)
        timing = result.timing
        answer = {
            "costs": list(timing.costs),
            "number": timing.number,
            "raced": timing.raced,
            "disturbed": timing.disturbed,
            "verified": result.verified,
            SPEED: self._bench.speed(),
            "timings": {"load": loaded, **result.seconds},
        }
        return Frame({"type": "measured", **answer})

    def interleave(self, frame: Frame) -> Frame:
        """Measure candidates that ran before, in turn; the answer has a list of costs for each: means over the offsets of the arrays.

        They were verified on arrays at the usual offset; at another one they are now.
        """
        bench = self._bench
        assert bench is not None
        offsets, rounds = bench.offsets(frame.header["offsets"]), int(frame.header["rounds"])
        placed = [[self._load(frame, index, offset) for offset in offsets] for index in range(len(frame.blobs))]
        numbers = [
            calls_per_repeat(max([cost, *(bench.check(kernel) for kernel in kernels if kernel.arrays.offset != OFFSET)]), self._policy)
            for kernels, cost in zip(placed, frame.header["costs"], strict=True)
        ]
        # a default binds this candidate's kernels; the variable itself would be the last one's in all of them
        runs = [lambda number, kernels=kernels: fmean(bench.run(kernel, number) for kernel in kernels) for kernels in placed]
        costs = calmest(interleave(runs, numbers, rounds + rounds // 2, bench.quiet), rounds) if runs else []
        return Frame({"type": "interleaved", "costs": costs, "numbers": numbers})

    def _load(self, frame: Frame, index: int, offset: int = OFFSET) -> Kernel:
        assert self._bench is not None
        described = frame.header["kernels"][index]
        found = [ArrayArgument.from_json(item) for item in described["arguments"]]
        check_arguments(found, self._arguments)
        return self._bench.load(frame.blobs[index], described["entry"], described["errors"], found, offset)


def main() -> int:
    """Serve until the tuner closes the pipe."""
    channel = connect(parse_arguments())
    service = RunService()
    serve(channel, {"task": service.task, "run": service.run, "interleave": service.interleave})
    return 0


if __name__ == "__main__":
    sys.exit(main())
