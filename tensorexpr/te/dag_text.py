"""A compute DAG as text, one line for each output, in the notation that tuning logs use:

A = PLACEHOLDER [1024, 1024]
matmul(i, j) += (A[i, k]*B[k, j])
out(i, j) = (matmul[i, j] + C[i, j])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import DeclarationError
from ..tir.dtype import parse_dtype
from ..tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Call,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    ProducerLoad,
    Reduce,
    Select,
    StringImm,
    Sub,
    Var,
)
from ..tir.rewriting import walk
from .dag import topological_order
from .operation import ComputeOp
from .tensor import Tensor

_INFIX: dict[type[PrimExpr], str] = {
    Add: " + ",
    Sub: " - ",
    Mul: "*",
    Div: "/",
    Mod: " % ",
    EQ: " == ",
    NE: " != ",
    LT: " < ",
    LE: " <= ",
    GT: " > ",
    GE: " >= ",
    And: " && ",
    Or: " || ",
}
_PREFIX: dict[type[PrimExpr], str] = {Min: "min", Max: "max", FloorDiv: "floordiv", FloorMod: "floormod"}
_FLOAT_SUFFIX = {16: "h", 32: "f", 64: ""}


def format_dag(tensors: Sequence[Tensor]) -> str:
    """The DAG of `tensors` as text, with a newline after every line."""
    lines: list[str] = []
    for op in topological_order(tensors):
        if isinstance(op, ComputeOp):
            lines.extend(_compute_lines(op))
        else:
            lines.append(f"{op.name} = PLACEHOLDER [{', '.join(map(format_expr, op.output_shape(0)))}]")
    return "".join(f"{line}\n" for line in lines)


def _compute_lines(op: ComputeOp) -> list[str]:
    head = f"{op.name}({', '.join(axis.name for axis in op.axis)})"
    return [f"{head}{f'.v{i}' if op.num_outputs > 1 else ''}{_definition(body)}" for i, body in enumerate(op.body)]


def _definition(body: PrimExpr) -> str:
    if not isinstance(body, Reduce):
        return f" = {format_expr(body)}"
    combination = body.combiner.result[body.value_index]
    match combination:
        case Add():
            return f" += {format_expr(body.source[0])}"
        case Max():
            return f" max= {format_expr(body.source[0])}"
        case Min():
            return f" min= {format_expr(body.source[0])}"
        case Select():
            return f" {format_expr(combination)}= ({','.join(map(format_expr, body.source))})"
        case _:
            return f"reduce{format_expr(combination)}"


def format_expr(root: PrimExpr) -> str:
    """An expression in the notation of compute DAGs: parentheses around every operator.

    Raises:
        DeclarationError: for nodes that no tensor computation has.
    """
    texts: dict[int, str] = {}
    for node in walk(root):
        if isinstance(node, PrimExpr):
            texts[id(node)] = _node_text(node, lambda part: texts[id(part)])
    return texts[id(root)]


def _node_text(node: PrimExpr, text: Callable[[PrimExpr], str]) -> str:
    kind = type(node)
    if kind in _INFIX:
        return f"({text(node.a)}{_INFIX[kind]}{text(node.b)})"  # type: ignore[attr-defined]
    if kind in _PREFIX:
        return f"{_PREFIX[kind]}({text(node.a)}, {text(node.b)})"  # type: ignore[attr-defined]
    match node:
        case Var(name=name):
            return name
        case IntImm():
            return str(node.value) if node.dtype == "int32" else f"({node.dtype}){node.value}"
        case FloatImm():
            return f"{node.value:g}{_FLOAT_SUFFIX[parse_dtype(node.dtype).bits]}"
        case StringImm(value=value):
            return f'"{value}"'
        case ProducerLoad(producer=producer, indices=indices):
            return f"{producer.name}[{', '.join(map(text, indices))}]"
        case Not(a=a):
            return f"!{text(a)}"
        case Cast(dtype=dtype, value=value):
            return f"{dtype}({text(value)})"
        case Select(condition, yes, no):
            return f"select({text(condition)}, {text(yes)}, {text(no)})"
        case Call(op=op, args=args):
            return f"{op}({', '.join(map(text, args))})"
        case Let(var=var, value=value, body=body):
            return f"(let {var.name} = {text(value)} in {text(body)})"
        case _:
            raise DeclarationError(f"{kind.__name__} has no notation in a compute DAG; it can't stand in a tensor computation")
