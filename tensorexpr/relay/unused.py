"""Values that nothing uses, and values in place of their variables."""

from __future__ import annotations

from typing import Any

from ..relax import expr as graph
from ..tir.function import IRModule
from ..tir.op_registry import Op
from .adt import Constructor
from .expr import Function, Let
from .lets import ATOMS
from .references import Reference
from .visitor import SameTypes, free_vars, has_effects, operands, walk


class _Used(SameTypes):
    def __init__(self, live: set[Any]) -> None:
        super().__init__()
        self._live = live

    def visit_let(self, let: Let) -> Any:
        """The body alone where nothing uses the variable."""
        return super().visit_let(let) if let.var in self._live else self.visit(let.body)


def _live(root: Any, may_act: bool) -> set[Any]:
    """The variables that are used by what is used, and those whose values act."""
    found, seen = set[Any](), set[int]()
    bound: dict[Any, Any] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Let):
            bound[node.var] = node.value
            waiting.append(node.body)
            if may_act and not isinstance(node.value, Function) and any(map(_may_act, walk(node.value))):
                waiting.append(node.var)
        elif isinstance(node, graph.Var):
            found.add(node)
            waiting += [bound[node]] if node in bound else []
        else:
            waiting += operands(node)
    return found


def _may_act(node: Any) -> bool:
    """Whether a node has effects, or calls what may have: a function of the program."""
    return isinstance(node, Reference) or (isinstance(node, graph.Call) and not isinstance(node.op, (Op, Constructor)))


def without_dead_values(func: Any, may_act: bool = False) -> Any:
    """A function without variables that nothing uses; with `may_act` those stay whose values may have effects."""
    return _Used(_live(func, may_act)).visit(func)


class _Inlined(SameTypes):
    def __init__(self, kept: set[Any], may_act: bool) -> None:
        super().__init__()
        self._kept, self.may_act = kept, may_act

    def visit_let(self, let: Let) -> Any:
        """The body with the value in place of the variable; a function that calls itself keeps its name, and effects keep their order."""
        is_kept = let.var in self._kept and not isinstance(let.value, (Function, *ATOMS))
        if is_kept or (isinstance(let.value, Function) and let.var in free_vars(let.value)) or self.may_act:
            return super().visit_let(let)
        self.memo_map[let.var] = self.visit(let.value)
        return self.visit(let.body)


def inlined(func: Any, may_act: bool = False, across: bool = False) -> Any:
    """A function whose values stand where they are used.

    Args:
        func: it.
        may_act: values stay where they are, so that effects keep their order.
        across: whether values go into functions, which then compute them whenever they are called.
    """
    inner = [] if across else [node for node in walk(func) if isinstance(node, Function) and node is not func]
    return _Inlined({var for one in inner for var in free_vars(one)}, may_act).visit(func)


def acts(mod: IRModule) -> bool:
    """Whether a function of a module has effects: then each call of a function may have."""
    return any(has_effects(func) for _, func in mod.functions_items() if isinstance(func, Function))


__all__ = ["acts", "inlined", "without_dead_values"]
