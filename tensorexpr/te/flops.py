"""The floating point (or integer) operations of a computation, counted from its definition."""

from __future__ import annotations

from collections.abc import Sequence

from ..arith.analyzer import Analyzer
from ..tir.dtype import parse_dtype
from ..tir.expr import (
    BinaryExpr,
    Call,
    Cast,
    CmpExpr,
    FloatImm,
    IntImm,
    IterVar,
    LogicalExpr,
    Not,
    PrimExpr,
    ProducerLoad,
    Reduce,
    Select,
    Var,
)
from ..tir.rewriting import walk
from .dag import topological_order
from .extern import ExternOp
from .operation import ComputeOp, Operation
from .scan_body import Box, step_boxes
from .scan_op import ScanOp
from .tensor import Tensor

_CODES = {"bfloat": "float", "bool": "uint"}


def flop_count(tensors: Sequence[Tensor]) -> float:
    """Operations done to compute `tensors` and all they are made of; -1 where extents are symbolic or calls opaque.

    Elements times operators for each. Every iteration of a reduction counts its combiner too. Operators on another
    kind of number than the first output's (index arithmetic) and calls themselves are free. The attribute `FLOP` of
    an operation replaces its count.
    """
    total = 0.0
    ops = topological_order(tensors)
    steps = _scan_steps(ops)
    for op in ops:
        if isinstance(op, ExternOp):
            if "FLOP" not in op.attrs:
                return -1.0
            total += float(int(op.attrs["FLOP"]))
        if isinstance(op, ComputeOp):
            count = _operation_flops(op, steps.get(op))
            if count is None:
                return -1.0
            total += count
    return total


def _scan_steps(ops: Sequence[Operation]) -> dict[Operation, tuple[ScanOp, Box]]:
    """The operations that scans compute, each with the box of a step."""
    return {op: (scan, box) for scan in ops if isinstance(scan, ScanOp) for op, box in step_boxes(scan).items()}


def _elements(op: ComputeOp, step: tuple[ScanOp, Box] | None) -> float | None:
    """How many elements are computed: all, or those of a step as often as there are steps."""
    if step is None:
        return _extents(op.axis)
    scan, box = step
    analyzer = Analyzer()
    result = _extents(scan.axis)
    for interval in box:
        extent = analyzer.simplify(interval.max - interval.min + 1)
        result = None if result is None or not isinstance(extent, IntImm) else result * extent.value
    return result


def _operation_flops(op: ComputeOp, step: tuple[ScanOp, Box] | None = None) -> float | None:
    given = op.attrs.get("FLOP")
    if given is not None:
        return float(int(given))
    elements = _elements(op, step)
    counts = [_expression_flops(body, _code(op.output_dtype(0))) for body in op.body]
    known = [count for count in counts if count is not None]
    return None if elements is None or len(known) < len(counts) else elements * sum(known)


def _extents(axes: Sequence[IterVar]) -> float | None:
    result = 1.0
    for axis in axes:
        if axis.dom is None or not isinstance(axis.dom.extent, IntImm):
            return None
        result *= axis.dom.extent.value
    return result


def _code(dtype: str) -> str:
    code = parse_dtype(dtype).code
    return _CODES.get(code, code)


def _expression_flops(root: PrimExpr, kind: str) -> float | None:
    """Operators of `kind` in `root`, a shared subexpression as often as it is written."""
    counts: dict[int, float | None] = {}

    def total(parts: Sequence[PrimExpr]) -> float | None:
        found = [counts[id(part)] for part in parts]
        known = [count for count in found if count is not None]
        return sum(known) if len(known) == len(found) else None

    def count(node: PrimExpr) -> float | None:
        match node:
            case IntImm() | FloatImm() | Var() | ProducerLoad():
                return 0.0
            case BinaryExpr(a=a, b=b) | CmpExpr(a=a, b=b) | LogicalExpr(a=a, b=b):
                inner, parts = total((a, b)), (a, b)
            case Not(a=a):
                inner, parts = total((a,)), (a, a)
            case Cast(value=value):
                return total((value,))
            case Call(args=args):
                return total(args)
            case Select(condition, yes, no):
                arms = (counts[id(yes)], counts[id(no)])
                test = counts[id(condition)]
                # only one arm is wanted; the longer one counts
                return None if test is None or None in arms else test + max(arm for arm in arms if arm is not None)
            case Reduce():
                return _reduction_flops(node, kind, total(node.source))
            case _:
                return None
        own = any(_code(part.dtype) == kind for part in parts)
        return None if inner is None else inner + own

    for node in walk(root):
        if isinstance(node, PrimExpr):
            counts[id(node)] = count(node)
    return counts[id(root)]


def _reduction_flops(node: Reduce, kind: str, source: float | None) -> float | None:
    combine = [_expression_flops(result, kind) for result in node.combiner.result]
    iterations = _extents(node.axis)
    known = [count for count in combine if count is not None]
    if iterations is None or source is None or len(known) < len(combine):
        return None
    return iterations * (sum(known) + source)
