"""Which kinds of nodes a program has: `Feature.fLet in relay.analysis.detect_feature(mod)`."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ..relax import expr as graph
from ..tir.function import GlobalVar, IRModule
from ..tir.op_registry import Op
from .adt import Constructor, Match
from .expr import Function, Let
from .references import RefCreate, Reference, RefRead, RefWrite
from .visitor import operands, walk


class Feature(IntEnum):
    """Kinds of nodes, by TVM's numbers."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_KINDS: dict[type, Feature] = {
    graph.Var: Feature.fVar, GlobalVar: Feature.fGlobalVar, graph.Constant: Feature.fConstant, graph.Tuple: Feature.fTuple,
    graph.TupleGetItem: Feature.fTupleGetItem, Function: Feature.fFunction, graph.Call: Feature.fCall, Let: Feature.fLet,
    graph.If: Feature.fIf, Constructor: Feature.fConstructor, Match: Feature.fMatch,
}  # fmt: skip
_REFERENCES: dict[type, Feature] = {RefCreate: Feature.fRefCreate, RefRead: Feature.fRefRead, RefWrite: Feature.fRefWrite}
_ATOMS = (graph.Var, GlobalVar, graph.Constant, Constructor)


def detect_feature(a: Any, b: IRModule | None = None) -> set[Feature]:
    """What a program has.

    Args:
        a: an expression, or a module, all functions of which are looked at.
        b: a module whose functions are looked at besides.

    Returns:
        kinds of nodes; `fGraph` says that one is used several times without a name, `fLetRec` that a function calls itself by its Let.
    """
    mods = [one for one in (a, b) if isinstance(one, IRModule)]
    roots = [func for mod in mods for _, func in mod.functions_items() if isinstance(func, Function)]
    found: set[Feature] = set()
    for root in roots if isinstance(a, IRModule) else [a, *roots]:
        uses: dict[Any, int] = {}
        for node in walk(root):
            kinds = _REFERENCES if isinstance(node, Reference) else _KINDS  # which are calls, too
            found.update(feature for kind, feature in kinds.items() if isinstance(node, kind))
            if isinstance(node, graph.Call) and isinstance(node.op, Op) and not isinstance(node, Reference):
                found.add(Feature.fOp)
            if isinstance(node, Let) and any(one is node.var for one in walk(node.value)):
                found.add(Feature.fLetRec)
            for one in operands(node):
                uses[one] = uses.get(one, 0) + 1
        if any(count > 1 and not isinstance(node, _ATOMS) for node, count in uses.items()):
            found.add(Feature.fGraph)
    return found


__all__ = ["Feature", "detect_feature"]
