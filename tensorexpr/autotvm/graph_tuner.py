"""TVM's tuners of layouts between a graph's kernels, by name: here what they write for a graph is the best record of each of its tasks.

Where TVM's kernels hand blocks of channels to each other, layouts cost conversions, and the best kernels together aren't those that are
best alone. Kernels of graphs here read and write what the graph's values are, whatever blocks a record asks for: what is packed is packed
within the kernel, or, of weights, when the graph is built. No conversion lies between two kernels, so that each node's best is the graph's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import TuningError
from ..tir.arithmetic import as_int
from ..tune.measure import MeasureErrorNo
from .logs import encode
from .task.dispatcher import beats, pairs_of
from .task.relay_integration import extract_from_program

_logger = logging.getLogger(__name__)


class DPTuner:
    """The best records of a graph's tasks.

        tuner = DPTuner(mod["main"], {"data": (1, 3, 224, 224)}, "tasks.log", [relay.op.get("nn.conv2d")], "llvm")
        tuner.run()
        tuner.write_opt_sch2record_file("graph.log")     # for autotvm.apply_graph_best("graph.log")

    Args:
        graph: a function or a module of Relay, or of relax.
        input_shapes: shapes of its inputs by name; they have to be those of the graph.
        records: a log, or pairs of inputs and results.
        target_ops: operators, or their names, whose tasks are chosen for.
        target: what it is built for.
        max_sch_num, dtype, verbose, log_file, log_level, name: accepted; nothing here depends on them.

    Raises:
        TuningError: for another shape of an input.
        RecordError: if the log can't be read.
    """

    def __init__(
        self, graph: Any, input_shapes: Mapping[str, Sequence[int]], records: Any, target_ops: Sequence[Any], target: Any,
        max_sch_num: int = 20, dtype: str = "float32", verbose: bool = True, log_file: str | None = None, log_level: int = logging.DEBUG,
        name: str | None = None,
    ) -> None:  # fmt: skip
        del max_sch_num, dtype, verbose, log_file, log_level, name
        _check_inputs(graph, input_shapes)
        self._nodes = [task.workload for task in extract_from_program(graph, {}, target, ops=target_ops)]
        self._best: dict[Any, tuple[Any, Any]] = {}
        for made, result in pairs_of(records):
            workload = made.task.workload
            if result.error_no == MeasureErrorNo.NO_ERROR and (workload not in self._best or beats(result, self._best[workload][1])):
                self._best[workload] = (made, result)
        self._chosen: list[tuple[Any, Any]] = []

    def benchmark_layout_transform(self, **options: Any) -> None:
        """Times conversions in TVM. There is nothing to time here: kernels convert nothing for each other."""
        _logger.info("no conversions lie between the kernels of a graph, so that none is timed")

    def run(self, **options: Any) -> None:
        """Choose a record for each task of the graph that the log has one of; which have none is logged."""
        self._chosen = [self._best[workload] for workload in self._nodes if workload in self._best]
        for workload in self._nodes:
            if workload not in self._best:
                _logger.warning("%s has no record of %s", type(self).__name__, workload)

    def get_optimal_records(self) -> list[tuple[Any, Any]]:
        """What `run` has chosen, in the order of the graph."""
        return list(self._chosen)

    def write_opt_sch2record_file(self, record_file: str = "graph_opt_schedule.log") -> None:
        """Write what `run` has chosen as a log, for `autotvm.apply_graph_best`."""
        with open(record_file, "w", encoding="utf-8") as out:
            out.writelines(encode(*pair) + "\n" for pair in self._chosen)


class PBQPTuner(DPTuner):
    """As `DPTuner`: where nothing lies between kernels there is one best choice, whoever looks for it."""


def _check_inputs(graph: Any, shapes: Mapping[str, Sequence[int]]) -> None:
    """Refuse shapes that aren't those of the graph's inputs.

    Raises:
        TuningError: that says what fits.
    """
    func = graph["main"] if hasattr(graph, "functions") else graph
    known = {param.name_hint: param.struct_info for param in func.params}
    for name, shape in shapes.items():
        if name not in known:
            raise TuningError(f"the graph has no input {name!r}; it has {', '.join(known)}")
        extents = getattr(known[name].shape, "values", known[name].shape)
        there = tuple(extent if (size := as_int(extent)) is None else size for extent in extents)
        if there != tuple(shape):
            raise TuningError(f"input {name} is {tuple(shape)}, and ({', '.join(map(str, there))}) in the graph")
