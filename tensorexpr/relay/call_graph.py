"""Which functions of a module call which (`relay.analysis.CallGraph`)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..errors import DeclarationError
from ..tir.function import GlobalVar, IRModule
from .expr import Function
from .to_graph import recursive
from .visitor import operands


class CallGraph:
    """The calls between functions of a module, also where one is passed on without being called.

    Args:
        module: the module.
    """

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._calls: dict[str, Counter[str]] = {}
        for var, func in module.functions_items():
            # A call that two others use is one; two calls of one function are two.
            found: Counter[str] = Counter()
            seen = set[int]()
            waiting: list[Any] = [func] if isinstance(func, Function) else []
            while waiting:
                node = waiting.pop()
                for one in operands(node):
                    if isinstance(one, GlobalVar) and one in module:
                        found[one.name_hint] += 1
                    elif id(one) not in seen:
                        seen.add(id(one))
                        waiting.append(one)
            self._calls[var.name_hint] = found

    def _name(self, var: Any) -> str:
        name: str = getattr(var, "name_hint", var)
        if name not in self._calls:
            raise DeclarationError(f"the module has no function {name!r}; it has {', '.join(self._calls)}")
        return name

    def ref_count(self, var: Any) -> int:
        """How often other functions of the module mention one.

        Args:
            var: a GlobalVar or a name.

        Raises:
            DeclarationError: for a function that there isn't.
        """
        name = self._name(var)
        return sum(found[name] for found in self._calls.values())

    def global_call_count(self, var: Any) -> int:
        """How often a function mentions functions of the module."""
        return self._calls[self._name(var)].total()

    def is_recursive(self, var: Any) -> bool:
        """Whether a function calls itself, directly or by others."""
        return self._name(var) in recursive(self.module)

    def print_var(self, var: Any) -> str:
        """What a function calls, and how often others mention it, as text."""
        name = self._name(var)
        lines = [f"Call graph node: {name}, #refs = {self.ref_count(name)}"]
        return "\n".join([*lines, *(f"  call site {n}: {count} x {one}" for n, (one, count) in enumerate(self._calls[name].items()))])

    def __str__(self) -> str:
        return "\n".join(map(self.print_var, self._calls))


__all__ = ["CallGraph"]
