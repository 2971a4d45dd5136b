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
from .operation import ComputeOp, Operation
from .scan_op import ScanOp
from .tensor import Tensor


def format_dag(tensors: Sequence[Tensor]) -> str:
    """The DAG of `tensors` as text, with a newline after every line."""
    return "".join(f"{line}\n" for op in topological_order(tensors) for line in operation_lines(op))


def operation_lines(op: Operation) -> list[str]:
    """What an operation computes, a line for each output."""
    match op:
        case ComputeOp():
            return _compute_lines(op)
        case ExternOp():
            return [f"{op.output(n).name} = extern({', '.join(tensor.name for tensor in op.inputs)})" for n in range(op.num_outputs)]
        case ScanOp():
            return _scan_lines(op)
        case _:
            return [f"{op.name} = PLACEHOLDER [{', '.join(map(legacy_expr, op.output_shape(0)))}]"]


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
