"""Values that nothing uses, and values in place of their variables."""

from __future__ import annotations

from typing import Any

from ..relax import expr as graph
from ..tir.function import IRModule
from ..tir.op_registry import Op
from .adt import Constructor
from .expr import Function, Let
from .references import Reference
from .visitor import SameTypes, free_vars, has_effects, walk


class _Used(SameTypes):
    def __init__(self, may_act: bool) -> None:
        super().__init__()
        self.may_act = may_act

    def visit_let(self, let: Let) -> Any:
        """The body alone where it doesn't use the variable."""
        made = super().visit_let(let)
        return made if not isinstance(made, Let) or made.var in free_vars(made.body) or self._acts(made.value) else made.body

    def _acts(self, value: Any) -> bool:
        """Whether what is bound has effects, or calls what may have: a function of the program."""
        return self.may_act and not isinstance(value, Function) and any(map(_may_act, walk(value)))


def _may_act(node: Any) -> bool:
    return isinstance(node, Reference) or (isinstance(node, graph.Call) and not isinstance(node.op, (Op, Constructor)))


def without_dead_values(func: Any, may_act: bool = False) -> Any:
    """A function without variables that nothing uses; with `may_act` those stay whose values may have effects."""
    return _Used(may_act).visit(func)


class _Inlined(SameTypes):
    def __init__(self, may_act: bool) -> None:
        super().__init__()
        self.may_act = may_act

    def visit_let(self, let: Let) -> Any:
        """The body with the value in place of the variable; a function that calls itself keeps its name, and effects keep their order."""
        if (isinstance(let.value, Function) and let.var in free_vars(let.value)) or self.may_act:
            return super().visit_let(let)
        self.memo_map[let.var] = self.visit(let.value)
        return self.visit(let.body)


def inlined(func: Any, may_act: bool = False) -> Any:
    """A function whose values stand where they are used; with `may_act` they stay where they are, so that effects keep their order."""
    return _Inlined(may_act).visit(func)


def acts(mod: IRModule) -> bool:
    """Whether a function of a module has effects: then each call of a function may have."""
    return any(has_effects(func) for _, func in mod.functions_items() if isinstance(func, Function))


__all__ = ["acts", "inlined", "without_dead_values"]
