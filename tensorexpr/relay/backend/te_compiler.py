"""The compiler of functions that are a kernel or a few, by the names under which programs ask for it; `select_implementation`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dataclass import dataclass
from ...errors import ArgumentError
from ...relax.build import build as build_graph
from ...relax.transform.pipeline import LAST_GRAPH_PHASE
from ...runtime.ndarray import NDArray
from ...target import Target, TargetLike
from ...tir.function import IRModule
from ...tir.structural_digest import structural_hash
from ..build_module import bound_graph, build
from ..machine import VirtualMachine
from ..strategies import get_valid_implementations, select_implementation


@dataclass(frozen=True, eq=False)
class CachedFunc:
    """A function of Relay that is lowered.

    Args:
        target: what for.
        funcs: a module of its kernels, and of the graph "main" that calls them.
    """

    target: Target
    funcs: IRModule

    def same_as(self, other: object) -> bool:
        """Whether it is that very one."""
        return self is other


class TECompiler:
    """Lowers and builds functions of Relay, each of them once for a target."""

    def __init__(self) -> None:
        self._lowered: dict[Any, CachedFunc] = {}

    def clear(self) -> None:
        """Forget what was lowered. Kernels on disk stay, which are found by their contents."""
        self._lowered.clear()

    def lower(self, source_func: Any, target: TargetLike | None = None, mod_name: str = "default") -> CachedFunc:
        """The kernels of a function with their schedules, as loops; equal functions are one.

        Args:
            source_func: of Relay.
            target: what for; the current one if None.
            mod_name: accepted.

        Raises:
            DeclarationError, TypeMismatchError: for operands that don't fit.
        """
        chosen = Target.target_or_current(target)
        key = structural_hash(source_func, map_free_vars=True), str(chosen)
        if key not in self._lowered:
            with chosen:
                graph = bound_graph(source_func, None)
            self._lowered[key] = CachedFunc(chosen, build_graph(graph, chosen, upto=LAST_GRAPH_PHASE + 1))
        return self._lowered[key]

    def jit(self, source_func: Any, target: TargetLike | None = None) -> Callable[..., None]:
        """A function in machine code, which takes its arguments and arrays for its results: `f(x, y)`.

        Raises:
            ArgumentError: when it is called, for another number of arrays.
        """
        machine = VirtualMachine(build(source_func, target).module)
        names = machine.module.get_function_params("main")
        count = len(names)

        def call(*arrays: NDArray) -> None:
            if len(arrays) <= count:
                raise ArgumentError(f"the function takes {count} arrays and more for its results, not {len(arrays)} in all")
            machine.invoke_with_outputs("main", dict(zip(names, arrays, strict=False)), arrays[count:])

        return call


_compiler = TECompiler()


def get() -> TECompiler:
    """The compiler of the process."""
    return _compiler


__all__ = ["CachedFunc", "TECompiler", "get", "get_valid_implementations", "select_implementation"]
