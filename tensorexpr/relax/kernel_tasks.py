"""Tensor functions of a graph as tasks of the search, and the programs that records in scope have for them.

    fused_matmul_relu(x, w, b), w a constant in all calls     a task with the computation of the function, in which the layout of w is free

What a build asks for and what was tuned is one key: the hash of the computation, the shapes of its tensors, and which weights are passed
packed. A weight that is packed when the graph is built costs no time in a kernel, so that other programs are fast than where it isn't.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import WorkloadError
from ..target import Target
from ..te.dag import output_ops, topological_order
from ..te.identity import dag_key
from ..te.operation import ComputeOp, PlaceholderOp
from ..te.tensor import Tensor

if TYPE_CHECKING:
    from ..schedule.trace import Trace

_CONTEXTS, _TEMPLATES = "tensorexpr.auto_scheduler.dispatcher", "tensorexpr.autotvm.task.dispatcher"


def weights_of(tensors: Sequence[Tensor], constants: Sequence[int]) -> tuple[int, ...]:
    """Which constant arguments are weights: of two axes or more, and read by a reduction, which may want them in panels."""
    read = {tensor for op in topological_order(tensors) if isinstance(op, ComputeOp) and op.reduce_axis for tensor in op.input_tensors}
    return tuple(n for n in constants if isinstance(tensors[n].op, PlaceholderOp) and len(tensors[n].shape) > 1 and tensors[n] in read)


def workload_key(tensors: Sequence[Tensor], weights: Sequence[int]) -> str:
    """The key of a computation some of whose inputs are passed packed; without any the one that it has as a ComputeDAG."""
    shapes = [[str(extent) for extent in tensor.shape] for tensor in tensors]
    return json.dumps([dag_key(tensors), *shapes, *([["packed", *weights]] if weights else [])])


def with_free_layouts(tensors: Sequence[Tensor], weights: Sequence[int]) -> list[Tensor]:
    """The tensors of the same computation, which says that the layouts of its weights are free."""
    from ..schedule.layout_rewrite import ATTRIBUTE  # for a search alone: builds ask for programs, and load no schedules

    # Said by an operation that none reads, so that no other one is made anew; whoever asks collects what all operations say.
    last = output_ops(topological_order(tensors))[-1]
    if not weights or not isinstance(last, ComputeOp):
        return list(tensors)
    made = replace(last, attrs=last.attrs.set(**{ATTRIBUTE: tuple(tensors[n] for n in weights)}))
    return [made.output(tensor.value_index) if tensor.op is last else tensor for tensor in tensors]


def recorded_program(tensors: Sequence[Tensor], weights: Sequence[int], target: Target) -> Trace | None:
    """The program that the contexts in scope have for a tensor function: `auto_scheduler.ApplyHistoryBest` of itself, else those of
    AutoTVM of its operator. None without one.

    Args:
        tensors: of its computation.
        weights: arguments that are passed packed.
        target: what it will run on.
    """
    return _searched(tensors, weights, target) or _by_template(tensors, weights, target)


def _searched(tensors: Sequence[Tensor], weights: Sequence[int], target: Target) -> Trace | None:
    # A context that was entered has loaded its module; a build without one doesn't load the search.
    contexts: Any = sys.modules.get(_CONTEXTS)
    if contexts is None or not contexts.is_auto_scheduler_enabled():
        return None
    try:
        dag = contexts.ComputeDAG(with_free_layouts(tensors, weights))
    except WorkloadError:  # recurrences, which aren't searched
        return None
    asked = contexts.DispatchContext.current.query
    found: Trace | None = asked(target, workload_key(tensors, weights), dag)
    # Else what was tuned without packing: it is packed then all the same, where the program copies weights or reads them in tiles.
    return asked(target, None, dag) if found is None and weights else found


def has_templates() -> bool:
    """Whether a context of AutoTVM is in scope, whose records are of operators by their definitions."""
    contexts: Any = sys.modules.get(_TEMPLATES)
    return contexts is not None and not isinstance(contexts.DispatchContext.current, contexts.FallbackContext)


def _by_template(tensors: Sequence[Tensor], weights: Sequence[int], target: Target) -> Trace | None:
    if not has_templates():
        return None
    from .template_records import program_by_template  # templates and their spaces, for builds in a context of AutoTVM alone

    return program_by_template(tensors, weights, target)
