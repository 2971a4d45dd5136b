"""A backend of `torch.compile`: `torch.compile(module, backend="tensorexpr")`.

Each graph that PyTorch hands over is built when it is first called with tensors of a shape, with weights as constants; weights that
change afterwards are noticed by PyTorch's count of changes, and the graph is built again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from ... import relax
from ...errors import TensorExprError, TypeMismatchError
from ...runtime.ndarray import NDArray, array, from_dlpack
from ...target import Target
from ...tir.function import IRModule
from . import complexes
from .importer import from_exported_program

Pipeline = Callable[[IRModule], IRModule]


def _static_places(graph_module: Any) -> set[int]:
    """Which inputs are weights: PyTorch marks what modules hold."""
    places = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    return {n for n, node in enumerate(places) if node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")}


def _number_places(graph_module: Any) -> dict[int, list[Any]]:
    """Which inputs are numbers that PyTorch hands over as tensors, with what takes their values: with `dynamic=True` an epsilon is one."""
    places = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    found = {n: list(node.users) for n, node in enumerate(places) if node.users}
    return {n: users for n, users in found.items() if all(user.op == "call_method" and user.target == "item" for user in users)}


def _with_numbers(graph_module: Any, args: Sequence[Any]) -> Any:
    """The graph with the values of such numbers in it: an export can't ask what they are."""
    if not _number_places(graph_module):
        return graph_module
    from torch.fx.node import map_arg

    made = copy.deepcopy(graph_module)
    values = {item: args[place].item() for place, items in _number_places(made).items() for item in items}
    for item in values:
        for user in list(item.users):
            user.args, user.kwargs = map_arg((user.args, user.kwargs), lambda one: values.get(one, one))
        made.graph.erase_node(item)
    made.recompile()
    return made


def _exported(graph_module: Any, args: Sequence[Any], weights: set[int]) -> tuple[Any, list[int]]:
    """The graph as an exported program whose weights are constants, and the places of the other tensors."""
    import torch

    whole, numbers = _with_numbers(graph_module, args), _number_places(graph_module)

    class Bound(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *given: Any) -> Any:
            rest = iter(given)
            return whole(*(fixed[n] if n in fixed else next(rest) for n in range(len(args))))

    # Numbers are fixed as weights are; their values are part of the key that a build is found by.
    fixed: dict[int, Any] = {n: one for n, one in enumerate(args) if n in weights or n in numbers or not isinstance(one, torch.Tensor)}
    given = [n for n in range(len(args)) if n not in fixed]
    with torch.no_grad():
        return torch.export.export(Bound(), tuple(args[n] for n in given), strict=False), given


class _Compiled:
    """A graph of PyTorch, built for each combination of shapes that it meets."""

    def __init__(self, graph_module: Any, pipeline: Pipeline | None, target: Target | None) -> None:
        self._graph_module, self._pipeline, self._target = graph_module, pipeline, target
        self._weights = _static_places(graph_module)
        self._numbers = _number_places(graph_module).keys() - self._weights
        self._built: dict[Any, tuple[Callable[..., Any], list[int], set[int], bool]] = {}
        self._held: list[tuple[Any, int]] = []  # the weights that are constants of what is built, and how often each had changed

    def __call__(self, *args: Any) -> Any:
        import torch

        if torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in args):
            raise TypeMismatchError('backend "tensorexpr" computes no gradients: call the module in `with torch.no_grad():`')
        self._notice_changes([args[n] for n in sorted(self._weights)])
        # Without the weights: what was built for others is forgotten by now.
        key = tuple(one.item() if n in self._numbers else _kind(one) for n, one in enumerate(args) if n not in self._weights)
        found = self._built.get(key)
        if found is None:
            found = self._built[key] = self._build(args)
        function, places, is_complex, draws = found
        # A new seed of PyTorch's generator for each call: `torch.manual_seed` makes the numbers of all calls behind it the same.
        seed = [_shared(torch.randint(2**63 - 1, ()))] if draws else []
        result = function(*(_shared(args[n]) for n in places), *seed)
        return [torch.view_as_complex(_tensor(one)) if n in is_complex else _tensor(one) for n, one in enumerate(result)]

    def _notice_changes(self, weights: Sequence[Any]) -> None:
        """Forget what is built if a weight is another tensor or was written to since.

        The tensors themselves are held: a number such as `id` may come back for another tensor once the first is gone.
        """
        same = len(weights) == len(self._held) and all(
            one is held and one._version == version for one, (held, version) in zip(weights, self._held, strict=True)
        )
        if not same:
            self._built.clear()
            self._held = [(one, one._version) for one in weights]

    def _build(self, args: Sequence[Any]) -> tuple[Callable[..., Any], list[int], set[int], bool]:
        """The function, which arguments it takes, which results are complex, and whether it takes a seed behind them."""
        program, places = _exported(self._graph_module, args, self._weights)
        mod = from_exported_program(program)
        results = next(node for node in program.graph.nodes if node.op == "output").args[0]
        is_complex = {n for n, node in enumerate(results) if complexes.is_complex(getattr(node, "meta", {}).get("val"))}
        main: Any = mod["main"]
        draws = len(main.params) > len(places)
        if self._pipeline is not None:
            mod = self._pipeline(mod)
        return relax.VirtualMachine(relax.build(mod, self._target))["main"], places, is_complex, draws


def _kind(value: Any) -> Any:
    """What a graph is built for: shape and dtype of a tensor, the value of a number."""
    return (tuple(value.shape), value.dtype) if hasattr(value, "shape") else value


def _shared(tensor: Any) -> NDArray:
    """A tensor of PyTorch as an array on the same memory, where it is contiguous."""
    import torch

    value = tensor.detach().contiguous()
    if value.is_complex():
        value = torch.view_as_real(value.resolve_conj())
    if value.dtype == torch.bfloat16:
        import ml_dtypes

        return array(value.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return from_dlpack(value)


def _tensor(value: Any) -> Any:
    import torch

    if isinstance(value, NDArray):
        return torch.from_dlpack(value)
    return value


def relax_dynamo(pipeline: Pipeline | None = None, target: Target | None = None) -> Callable[[Any, Sequence[Any]], Callable[..., Any]]:
    """A backend for `torch.compile`.

    Args:
        pipeline: passes on the module before it is built, beside those of `relax.build`.
        target: what to build for; the current target, or this machine.
    """

    def backend(graph_module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return _Compiled(graph_module, pipeline, target)

    return backend


def compile_backend(graph_module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """The backend that PyTorch finds under the name "tensorexpr"."""
    return _Compiled(graph_module, None, None)


def dynamo_capture_subgraphs(model: Any, *params: Any, **kwargs: Any) -> IRModule:
    """The graphs that PyTorch hands over when a function is called, as functions "subgraph_0", ... of a module.

    Args:
        model: a module or function of PyTorch.
        params: what it is called with.
        kwargs: `keep_params_as_input`, and what it is called with by name.

    Raises:
        TensorExprError: if a graph can't be read.
    """
    import torch

    keeps = bool(kwargs.pop("keep_params_as_input", False))
    mod = IRModule()
    failures: list[TensorExprError] = []

    def capture(graph_module: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            try:
                program, _ = _exported(graph_module, args, _static_places(graph_module))
                made = from_exported_program(program, keep_params_as_input=keeps, unwrap_unit_return_tuple=True)
            except TensorExprError as error:
                failures.append(error)
            else:
                for var, func in made.functions_items():
                    taken = sum(one.name_hint.startswith("subgraph_") for one in mod.get_global_vars())
                    name = f"subgraph_{taken}" if var.name_hint == "main" else var.name_hint
                    mod.update_func(name, func.with_attr("global_symbol", name))
            # The call goes on with PyTorch, so that the graphs behind this one are met too.
            return graph_module.forward(*args)

        return run

    # PyTorch keeps the graphs of functions that it has met, and wouldn't hand them over again.
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend=capture)(*params, **kwargs)
    if failures:
        raise failures[0]
    return mod
