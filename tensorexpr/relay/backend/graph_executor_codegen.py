"""The parts of a built network one by one, as programs of TVM's first releases ask for them: graph, kernels, parameters."""

from __future__ import annotations

from typing import Any

from ...target import Target
from ...tir.function import IRModule, PrimFunc
from ..build_module import build
from .executor_factory import graph_json
from .te_compiler import get


class GraphExecutorCodegen:
    """Compiles a function: `graph, kernels, params = GraphExecutorCodegen(None, target).codegen(mod, mod["main"])`.

    Args:
        mod: accepted.
        target: what for; of a list or mapping the first.
    """

    def __init__(self, mod: Any, target: Any) -> None:
        one = next(iter(target.values())) if isinstance(target, dict) and "kind" not in target else target
        self.target = Target.target_or_current(one[0] if isinstance(one, (list, tuple)) else one)

    def codegen(self, *given: Any) -> tuple[str, dict[Target, IRModule], dict[str, Any]]:
        """The graph as JSON, a module of its kernels by the target, and the parameters that are left: none, as constants are the graph's.

        Args:
            given: the function, or its module and the function.

        Raises:
            DeclarationError, TypeMismatchError: for operands that don't fit.
        """
        whole = given[0].clone() if len(given) > 1 else IRModule()
        whole.update_func("main", given[-1])
        executable = build(whole, self.target).module
        lowered = get().lower(whole, self.target).funcs
        kernels: dict[Any, Any] = {var: func for var, func in lowered.functions_items() if isinstance(func, PrimFunc)}
        return graph_json(executable), {self.target: IRModule(kernels)}, {}


__all__ = ["GraphExecutorCodegen"]
