"""Constant weights in the layouts in which operators with loops of their own read them: what brings them into these is done once.

    W_panels[p, k, u] = W[k, p*16 + u]                        W_panels is an argument, which a build packs
    state = recurrence(..., W_panels)               ->        state = recurrence(..., W_panels)

Schedules find the layouts of weights that reductions read (`schedule.layout_rewrite`); of loops that are given nobody finds any, so that
the operator says which it is (`topi.nn.recurrent.PACKED`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..arith.index_map import IndexMap
from ..arith.index_map_graph import index_map_from_json
from ..te.dag import topological_order
from ..te.extern import ExternOp
from ..te.operation import ComputeOp, Operation, PlaceholderOp
from ..te.tensor import Tensor
from ..topi.nn.recurrent import PACKED


def with_stated_layouts(tensors: Sequence[Tensor], constants: Sequence[int]) -> tuple[list[Tensor], dict[int, IndexMap]]:
    """A computation that is given constant arguments in the layouts that it states, and these by the arguments' numbers.

    Args:
        tensors: inputs and outputs.
        constants: arguments that may be passed in any layout.
    """
    order, given, layouts = topological_order(tensors), dict[Operation, Tensor](), dict[int, IndexMap]()
    places = list(tensors)
    for n in constants:
        readers = [op for op in order if tensors[n] in op.input_tensors]
        if len(readers) != 1 or not isinstance(op := readers[0], ComputeOp) or PACKED not in op.attrs or op.output(0) in tensors:
            continue
        given[op] = places[n] = PlaceholderOp(tensors[n].op.name, op.output_shape(0), op.output_dtype(0)).output(0)
        layouts[n] = index_map_from_json(str(op.attrs[PACKED]))
    for op in dict.fromkeys(one.op for one in tensors):
        if not isinstance(op, ExternOp) or not given.keys() & {tensor.op for tensor in op.inputs}:
            continue
        reading = op  # what reads panels are loops of an operator's own
        for old, new in given.items():
            reading = reading.reading(old, new)
        places = [reading.output(one.value_index) if one.op is op else one for one in places]
    return places, layouts
