"""The computation of a task: its operations, their cost, and how a trace becomes a schedule of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from ..errors import WorkloadError
from ..ir.base import load_json as LoadJSON
from ..ir.base import save_json as SaveJSON
from ..schedule.te_schedule import Schedule
from ..schedule.trace import Trace
from ..schedule.tree import ScheduleTree, initial_tree
from ..spaces.state import SketchState
from ..te import serialize
from ..te.access import AccessAnalysis
from ..te.bounds import refuse_reads_outside
from ..te.dag import output_ops, topological_order
from ..te.dag_text import format_dag
from ..te.flops import flop_count
from ..te.identity import dag_key
from ..te.operation import Operation, PlaceholderOp
from ..te.scan_op import ScanOp
from ..te.tensor import Tensor
from ..tir.printer.highlight import ShownAsText
from .layout_rewrite import LayoutRewriteOption, boundary_tensors, checked_option, rewrite_layouts, scheduled_operations, with_packed_inputs
from .loop_state import State
from .workload import workload_key_to_tensors


class ComputeDAG(ShownAsText):
    """A compute graph.

    Args:
        compute_or_sche: the tensors of the computation (inputs and outputs), a workload key, or a te schedule.
    """

    def __init__(self, compute_or_sche: Sequence[Tensor] | str | Schedule) -> None:
        self._ordered: tuple[Operation, ...] = ()
        if isinstance(compute_or_sche, str):
            self.tensors = workload_key_to_tensors(compute_or_sche)
        elif isinstance(compute_or_sche, Schedule):
            made = scheduled_operations(compute_or_sche.tree)
            self.tensors, self._ordered = boundary_tensors(compute_or_sche.tree, made), tuple(made.values())
        else:
            self.tensors = list(compute_or_sche) if isinstance(compute_or_sche, Iterable) else []
        if not self.tensors or not all(isinstance(tensor, Tensor) for tensor in self.tensors):
            raise WorkloadError(f"a ComputeDAG is made of tensors, a workload key or a schedule, not {compute_or_sche!r}")
        scans = ", ".join(op.name for op in self.ops if isinstance(op, ScanOp))
        if scans:
            raise WorkloadError(
                f"the computation has recurrences ({scans}), for which the search has no rules; "
                "schedule them by hand with te.create_schedule"
            )
        refuse_reads_outside(self.ops)

    @cached_property
    def ops(self) -> tuple[Operation, ...]:
        """All operations, producers first."""
        return self._ordered or topological_order(self.tensors)

    @cached_property
    def outputs(self) -> tuple[Operation, ...]:
        """What nothing reads, and the results asked for that others read; producers first."""
        asked = {tensor.op for tensor in self.tensors if not isinstance(tensor.op, PlaceholderOp)}
        unread = set(output_ops(self.ops))
        return tuple(op for op in self.ops if op in unread or op in asked)

    @cached_property
    def flop_ct(self) -> float:
        """The operations that computing it takes; -1 if that isn't known."""
        return flop_count(self.tensors)

    @cached_property
    def initial_tree(self) -> ScheduleTree:
        """The tree of the unscheduled program."""
        return initial_tree(self.outputs, self.ops)

    def hash_key(self) -> str:
        """A hash of the structure: equal for equal computations, whatever their names."""
        return dag_key(self.tensors)

    def workload_key(self) -> str:
        """The key of a computation that has no registered name: its hash and the shapes of its tensors."""
        shapes = [[str(extent) for extent in tensor.shape] for tensor in self.tensors]
        return json.dumps([self.hash_key(), *shapes])

    def schedule(self, trace: Trace | None = None) -> tuple[Schedule, list[Tensor]]:
        """The schedule of a trace, with the arguments to lower it.

        Raises:
            ScheduleError: if the trace does not fit.
        """
        made = Schedule(self.outputs, trace)
        return made, made.arguments(self.tensors)

    def get_init_state(self) -> State:
        """The unscheduled program, to be changed step by step."""
        return State(self)

    @property
    def init_state(self) -> State:
        """The unscheduled program, to be changed step by step."""
        return State(self)

    @cached_property
    def access_analyzer(self) -> AccessAnalysis:
        """What the sketch rules ask about stages; `print(dag.access_analyzer)` lists it."""
        return AccessAnalysis(self.ops)

    def infer_bound_from_state(self, state: State | SketchState | Trace) -> State:
        """The program with the ranges of all iterators, which steps that move stages leave open.

        Raises:
            ScheduleError: if it is illegal, has open sizes, or is no program of this computation.
        """
        if isinstance(state, State) and state.is_replayed:
            return State(state, self).with_bounds()
        trace = _trace_of(state)  # what a log has of a program needs a computation to be one
        return State(SketchState(trace.apply(self.initial_tree), trace), self).with_bounds()

    def print_python_code_from_state(self, state: State | SketchState | Trace) -> str:
        """The Python lines that schedule a program by hand.

        Raises:
            ScheduleError: if it is no program of this computation.
        """
        return Schedule(self.outputs, _trace_of(state)).as_python()

    def apply_steps_from_state(
        self, state: State | SketchState | Trace, layout_rewrite: LayoutRewriteOption | int = LayoutRewriteOption.NO_REWRITE
    ) -> tuple[Schedule, list[Tensor]]:
        """The schedule of a program, with the arguments to lower it.

        Args:
            state: the program; all its decisions are made.
            layout_rewrite: how inputs whose layout is free are passed. With REWRITE_FOR_PRE_TRANSFORMED the arguments have those
                that the caller packs, and `Schedule.layout_of` says how.

        Raises:
            ScheduleError: if it is no program of this computation.
            TuningError: for an option that isn't known.
        """
        option = checked_option(layout_rewrite, "apply_steps_from_state")
        return self.schedule(rewrite_layouts(_trace_of(state), self.initial_tree, option))

    def rewrite_layout_from_state(self, state: State | SketchState | Trace) -> ComputeDAG:
        """The computation with its layout-free inputs in the layouts in which a program reads them.

        Raises:
            ScheduleError: if it is no program of this computation.
        """
        schedule, _ = self.apply_steps_from_state(state, LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED)
        return ComputeDAG(with_packed_inputs(self.tensors, schedule.tree))

    def __str__(self) -> str:
        return format_dag(self.tensors)

    def print_min(self) -> str:
        """The computation without the data types of inputs, which `print` doesn't show either: the same text."""
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return ComputeDAG.loads, (self.dumps(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> ComputeDAG:
        # Tensors are compared by identity: a copy of them would be another computation.
        return ComputeDAG(self.tensors)

    def dumps(self) -> str:
        """The computation as JSON.

        Raises:
            RecordError: for attributes that JSON has no place for.
        """
        return serialize.dumps(self.tensors)

    @staticmethod
    def loads(text: str) -> ComputeDAG:
        """The computation that `dumps` wrote.

        Raises:
            RecordError: if the text is anything else.
        """
        return ComputeDAG(serialize.loads(text))

    def __repr__(self) -> str:
        return f"ComputeDAG({[tensor.name for tensor in self.tensors]})"


def get_shape_from_rewritten_layout(rewritten_layout: str, axis_names: Sequence[str]) -> list[int]:
    """The sizes of some axes of a layout such as "2N4c8h8c": the product of the numbers before each name.

    Raises:
        ValueError: for an axis that the layout hasn't.
    """
    sizes: dict[str, int] = {}
    # "8c8c" is an axis that was split twice, whose parts multiply.
    for size, name in re.findall(r"(\d+)([a-zA-Z]+)", rewritten_layout):
        sizes[name] = sizes.get(name, 1) * int(size)
    missing = [name for name in axis_names if name not in sizes]
    if missing:
        raise ValueError(f"the layout {rewritten_layout!r} has no axis {', '.join(missing)}; it has {', '.join(sizes)}")
    return [sizes[name] for name in axis_names]


def _trace_of(state: State | SketchState | Trace) -> Trace:
    if isinstance(state, State):
        return state.trace
    return state.trace if isinstance(state, SketchState) else state


__all__ = ["ComputeDAG", "LoadJSON", "SaveJSON", "get_shape_from_rewritten_layout"]
