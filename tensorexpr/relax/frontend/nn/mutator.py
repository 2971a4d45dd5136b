"""Networks whose parts are replaced: weights by quantised ones, layers by others."""

from __future__ import annotations

from typing import Any

from .core import Effect, Module, ModuleList, Parameter


class Mutator:
    """Goes through a module and puts what its methods return in place of parts, which they get with their names.

    A method that isn't overridden goes on inside of the part; one that is calls `self.visit(name, node)` for that.
    """

    def visit_module(self, name: str, node: Module) -> Any:
        """What stands in place of a module."""
        return self.visit(name, node)

    def visit_modulelist(self, name: str, node: ModuleList) -> Any:
        """What stands in place of a list of modules."""
        return self.visit(name, node)

    def visit_effect(self, name: str, node: Effect) -> Any:
        """What stands in place of an effect."""
        return self.visit(name, node)

    def visit_param(self, name: str, node: Parameter) -> Any:
        """What stands in place of a parameter."""
        return node

    def visit(self, name: str, node: Any) -> Any:
        """A module, list or effect with its parts replaced, in place.

        Args:
            name: of it; "" for the outermost, whose parts have names without it.
            node: what is gone through.
        """
        parts = list(enumerate(node)) if isinstance(node, ModuleList) else list(vars(node).items())
        for key, part in parts:
            method = self._method(part)
            if method is None:
                continue
            made = method(f"{name}.{key}" if name else str(key), part)
            if isinstance(node, ModuleList):
                node[key] = made
            else:
                setattr(node, str(key), made)
        return node

    def _method(self, part: Any) -> Any:
        kinds = (ModuleList, "modulelist"), (Module, "module"), (Effect, "effect"), (Parameter, "param")
        return next((getattr(self, f"visit_{word}") for kind, word in kinds if isinstance(part, kind)), None)


__all__ = ["Mutator"]
