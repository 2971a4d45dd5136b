"""A compute DAG as text, one line for each output, in the notation that tuning logs use:

A = PLACEHOLDER [1024, 1024]
matmul(i, j) += (A[i, k]*B[k, j])
out(i, j) = (matmul[i, j] + C[i, j])
"""

from __future__ import annotations

from collections.abc import Sequence

from ..tir.expr import Add, Max, Min, PrimExpr, Reduce, Select
from ..tir.printer import legacy_expr
from .dag import topological_order
from .extern import ExternOp
from .operation import ComputeOp
from .scan_op import ScanOp
from .tensor import Tensor


def format_dag(tensors: Sequence[Tensor]) -> str:
    """The DAG of `tensors` as text, with a newline after every line."""
    lines: list[str] = []
    for op in topological_order(tensors):
        if isinstance(op, ComputeOp):
            lines.extend(_compute_lines(op))
        elif isinstance(op, ExternOp):
            lines.extend(f"{op.output(n).name} = extern({', '.join(tensor.name for tensor in op.inputs)})" for n in range(op.num_outputs))
        elif isinstance(op, ScanOp):
            lines.extend(_scan_lines(op))
        else:
            lines.append(f"{op.name} = PLACEHOLDER [{', '.join(map(legacy_expr, op.output_shape(0)))}]")
    return "".join(f"{line}\n" for line in lines)


def _compute_lines(op: ComputeOp) -> list[str]:
    head = f"{op.name}({', '.join(axis.name for axis in op.axis)})"
    return [f"{head}{f'.v{i}' if op.num_outputs > 1 else ''}{_definition(body)}" for i, body in enumerate(op.body)]


def _scan_lines(op: ScanOp) -> list[str]:
    """One line for each state: what its first rows are, and the others in terms of the placeholder that stands for it."""
    parts = zip(op.init, op.update, op.state_placeholder, strict=True)
    return [
        f"{op.output(i).name} = SCAN [init {init.name}, update {update.name}, state {state.name}]"
        for i, (init, update, state) in enumerate(parts)
    ]


def _definition(body: PrimExpr) -> str:
    if not isinstance(body, Reduce):
        return f" = {legacy_expr(body)}"
    combination = body.combiner.result[body.value_index]
    match combination:
        case Add():
            return f" += {legacy_expr(body.source[0])}"
        case Max():
            return f" max= {legacy_expr(body.source[0])}"
        case Min():
            return f" min= {legacy_expr(body.source[0])}"
        case Select():
            return f" {legacy_expr(combination)}= ({','.join(map(legacy_expr, body.source))})"
        case _:
            return f"reduce{legacy_expr(combination)}"
