"""How many operations of each kind a value takes: the first sixteen of the per-store features.

Address arithmetic is not counted: neither the indices of loads nor integers made of nothing but loop variables, such as the
two sides of a padding's condition. How many additions those take depends on how far an index was simplified, not on the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...tir.dtype import parse_dtype
from ...tir.expr import (
    Add,
    BinaryExpr,
    BufferLoad,
    Call,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    PrimExpr,
    ProducerLoad,
    Reduce,
    Select,
    Sub,
)
from ...tir.rewriting import children, substitute, walk

CALL_OPERATIONS = 16.0
"""A vector math function is about so many instructions."""

Counts = npt.NDArray[np.float64]
KINDS = ("mad", "addsub", "mul", "divmod", "cmp", "mathfunc", "otherfunc")
OPERATIONS = (*(f"float_{kind}" for kind in KINDS), *(f"int_{kind}" for kind in KINDS), "bool_op", "select_op")
_PLACES = {name: place for place, name in enumerate(OPERATIONS)}
# A multiplication and an addition are two operations, however they are executed: "mad" stays 0.
_BINARY: Mapping[type[BinaryExpr], str] = {
    Add: "addsub", Sub: "addsub", Mul: "mul", Div: "divmod", Mod: "divmod", FloorDiv: "divmod", FloorMod: "divmod",
    Min: "cmp", Max: "cmp",
}  # fmt: skip
_SELECTIONS = ("tir.if_then_else",)
_HINTS = ("tir.likely",)
_OTHER = ("tir.call_", "tir.tvm_")


def operations_of(body: PrimExpr) -> Counts:
    """[16]: the operations of one execution of a statement that stores `body`; of a reduction, of its update."""
    if not isinstance(body, Reduce):
        return _count(body, {})[0]
    update = substitute(body.combiner.result[body.value_index], dict(zip(body.combiner.rhs, body.source, strict=True)))
    # the accumulator is no load, but a value of a tensor: what is computed with it counts
    return _count(update, {id(old): (np.zeros(len(OPERATIONS)), True) for old in body.combiner.lhs})[0]


@lru_cache(maxsize=256)  # of the stages of a space, which is asked for again with each generation
def work_of(body: tuple[PrimExpr, ...]) -> float:
    """Arithmetic on values (not on indices) per execution of a statement."""
    count = 0.0
    for expr in body:
        wanted = parse_dtype(expr.dtype).code
        places = {node for load in walk(expr) if isinstance(load, ProducerLoad) for index in load.indices for node in walk(index)}
        for node in walk(expr):
            if node in places:
                continue
            if isinstance(node, (BinaryExpr, Call, Reduce)) and parse_dtype(node.dtype).code == wanted:
                count += CALL_OPERATIONS if isinstance(node, Call) and node.op != "tir.if_then_else" else 1.0
    return max(1.0, count)


def starting_operations(reduce: Reduce) -> Counts:
    """[16]: the operations of the value that a reduction starts from."""
    return operations_of((reduce.init or reduce.combiner.identity_element)[reduce.value_index])


def float_operations(counts: Counts) -> float:
    """Those on floats."""
    return float(counts[: len(KINDS)].sum())


def _count(node: PrimExpr, known: dict[int, tuple[Counts, bool]]) -> tuple[Counts, bool]:
    """The operations below a node, each occurrence for itself, and whether there is a value of a tensor below it."""
    # an expression is a graph with shared nodes: without the table each occurrence would be walked again
    found = known.get(id(node))
    if found is not None:
        return found
    counts = np.zeros(len(OPERATIONS))
    if isinstance(node, (ProducerLoad, BufferLoad)):
        return counts, True
    loads = False
    for child in children(node):
        if isinstance(child, PrimExpr):
            inside, has_load = _count(child, known)
            counts = counts + inside
            loads = loads or has_load
    name = _operation(node, loads)
    if name:
        counts[_PLACES[name]] += 1
    known[id(node)] = counts, loads
    return counts, loads


def _operation(node: PrimExpr, loads: bool) -> str:
    """What a node counts as; nothing for constants, casts and addresses."""
    match node:
        # before BinaryExpr, which Min and Max are too
        case Min() | Max() | CmpExpr():
            return f"{_class(node.a.dtype)}_cmp"
        case BinaryExpr():
            kind = _class(node.dtype)
            return f"{kind}_{_BINARY[type(node)]}" if kind == "float" or loads else ""
        case LogicalExpr() | Not():
            return "bool_op"
        case Select():
            return "select_op"
        case Call(op=op):
            if op in _SELECTIONS:
                return "select_op"
            return "" if op in _HINTS else f"{_class(node.dtype)}_{'otherfunc' if op.startswith(_OTHER) else 'mathfunc'}"
        case _:
            return ""


def _class(dtype: str) -> str:
    return "float" if parse_dtype(dtype).is_float else "int"
