"""A backend of `torch.compile`: `torch.compile(module, backend="tensorexpr")`.

Each graph that PyTorch hands over is built when it is first called with tensors of a shape, with weights as constants; weights that
change afterwards are noticed by PyTorch's count of changes, and the graph is built again. Sizes and integers that PyTorch leaves open, as
it does with `dynamic=True` or for a second shape, are symbols: such a graph is built once for all calls that what it does is the same for.
Gradients are PyTorch's: the graph's results are ours, and what is differentiated is computed there once more. Graphs that draw numbers or
write to their inputs are left to PyTorch where gradients are wanted.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from typing import Any

from ... import relax
from ...dataclass import dataclass
from ...errors import TensorExprError
from ...runtime.ndarray import NDArray, array, from_dlpack
from ...target import Target
from ...tir.function import IRModule
from . import complexes
from .gradients import with_gradients
from .importer import from_exported_program
from .open_sizes import Guards, OpenInputs

_LOG = logging.getLogger(__name__)

_HELD = "held_"  # a weight's name, before the number of its input

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


def _exported(graph_module: Any, args: Sequence[Any], weights: set[int], open_inputs: OpenInputs | None = None) -> tuple[Any, list[int]]:
    """The graph as an exported program whose weights are constants, and the places of its inputs among all of the graph's.

    Args:
        open_inputs: what is open in the program; None: nothing.
    """
    import torch

    whole, numbers = _with_numbers(graph_module, args), _number_places(graph_module)
    extents = open_inputs.extents if open_inputs else {}
    integers = open_inputs.numbers if open_inputs else set()

    class Bound(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for n in held:  # by their numbers: what a graph writes to is found by its name
                self.register_buffer(f"{_HELD}{n}", fixed[n].detach())

        def forward(self, *inputs: Any) -> Any:
            all_args = dict(fixed) | dict(zip(given, inputs, strict=True)) | {n: getattr(self, f"{_HELD}{n}") for n in held}
            all_args |= {n: all_args[tensor].shape[axis] for n, (tensor, axis) in extents.items()}
            return whole(*(all_args[n] for n in range(len(args))))

    # Numbers are fixed as weights are; their values are part of the key that a build is found by.
    given = [n for n, one in enumerate(args) if n in integers or (isinstance(one, torch.Tensor) and n not in weights and n not in numbers)]
    fixed: dict[int, Any] = {n: one for n, one in enumerate(args) if n not in given and n not in extents}
    held = [n for n, one in fixed.items() if isinstance(one, torch.Tensor) and n in weights]
    shapes: Any = None
    if open_inputs:
        # Where the trace finds that it needs an extent to be what it is, it isn't open: `Guards` has those.
        auto = torch.export.Dim.AUTO
        shapes = (tuple(auto if n in integers else dict.fromkeys(open_inputs.axes.get(n, ()), auto) for n in given),)
    with torch.no_grad():
        return torch.export.export(Bound(), tuple(args[n] for n in given), dynamic_shapes=shapes, strict=False), given


@dataclass(frozen=True)
class _Built:
    """A function that is built.

    Attributes:
        function: of a virtual machine.
        asked: which inputs of the graph the guards are about.
        places: which of them it takes: all but the numbers that turned out to be fixed.
        is_complex: which results are complex.
        draws: it takes a seed behind its inputs.
        writes: inputs of the graph that results behind the others are new values of.
        guards: what it asks of inputs.
    """

    function: Callable[..., Any]
    asked: list[int]
    places: list[int]
    is_complex: set[int]
    draws: bool
    writes: list[int]
    guards: Guards


class _Compiled:
    """A graph of PyTorch, built for each combination of sizes that aren't open.

    Args:
        weights: which inputs are constants; those that PyTorch marks by default.
    """

    def __init__(self, graph_module: Any, pipeline: Pipeline | None, target: Target | None, weights: set[int] | None = None) -> None:
        self._graph_module, self._pipeline, self._target = graph_module, pipeline, target
        self._weights = _static_places(graph_module) if weights is None else weights
        self._numbers = _number_places(graph_module).keys() - self._weights
        self._open: OpenInputs | None = OpenInputs(graph_module, self._weights)
        self._built: dict[Any, _Built] = {}  # by all sizes of a call
        self._several: dict[Any, list[_Built]] = {}  # by those that aren't open
        self._trained: _Compiled | None = None
        self._held: list[tuple[Any, int]] = []  # the weights that are constants of what is built, and how often each had changed

    def __call__(self, *args: Any) -> Any:
        import torch

        if not torch.is_grad_enabled() or not any(isinstance(one, torch.Tensor) and one.requires_grad for one in args):
            return self._run(*args)
        if self._trained is None:  # weights that are trained change with each step: they are no constants
            self._trained = _Compiled(self._graph_module, self._pipeline, self._target, set())
        try:
            with torch.no_grad():
                found = self._trained._for(args)
        except TensorExprError as error:
            _LOG.warning("a graph whose gradients are wanted is left to PyTorch: %s", error)
            return self._graph_module(*args)
        # Computed once more it would draw other numbers, and write once more.
        is_twice_the_same = not found.draws and not found.writes
        return with_gradients(self._trained._run, self._graph_module, args) if is_twice_the_same else self._graph_module(*args)

    def _for(self, args: Sequence[Any]) -> _Built:
        """What is built for a call."""
        self._notice_changes([args[n] for n in sorted(self._weights)])
        found = None
        while found is None:  # until no weight turns out to be written to
            # Without the weights: what was built for others is forgotten by now.
            key = tuple(one.item() if n in self._numbers else _kind(one) for n, one in enumerate(args) if n not in self._weights)
            found = self._built.get(key) or self._found(args, key)
        self._built[key] = found
        return found

    def _run(self, *args: Any) -> list[Any]:
        import torch

        found = self._for(args)
        # A new seed of PyTorch's generator for each call: `torch.manual_seed` makes the numbers of all calls behind it the same.
        seed = [_shared(torch.randint(2**63 - 1, ()))] if found.draws else []
        result = list(found.function(*(_shared(args[n]) for n in found.places), *seed))
        for n in reversed(found.writes):
            value = _tensor(result.pop())
            args[n].copy_(torch.view_as_complex(value) if args[n].is_complex() else value)
        return [torch.view_as_complex(_tensor(one)) if n in found.is_complex else _tensor(one) for n, one in enumerate(result)]

    def _found(self, args: Sequence[Any], key: Any) -> _Built | None:
        """What is built for other sizes, where it is for these, too; else a new build. None if a weight is an input from now on."""
        if self._open:
            kept = [n for n in range(len(args)) if n not in self._weights]
            general = tuple(one if n in self._numbers else self._open.kind(n, args[n]) for n, one in zip(kept, key, strict=True))
            known = self._several.setdefault(general, [])
            for one in known:
                if one.guards.fit([args[n] for n in one.asked]):
                    return one
            try:
                made = self._build(args, self._open)
            except Exception as error:  # whatever it is, a build for known sizes says what is wrong with the graph
                _LOG.info("a graph isn't built for open sizes, but for those of each call: %s", error)
                self._open = None
            else:
                known += [made] if made is not None else []
                return made
        return self._build(args, None)

    def _notice_changes(self, weights: Sequence[Any]) -> None:
        """Forget what is built if a weight is another tensor or was written to since.

        The tensors themselves are held: a number such as `id` may come back for another tensor once the first is gone.
        """
        same = len(weights) == len(self._held) and all(
            one is held and one._version == version for one, (held, version) in zip(weights, self._held, strict=True)
        )
        if not same:
            self._built.clear()
            self._several.clear()
            self._held = [(one, one._version) for one in weights]

    def _build(self, args: Sequence[Any], open_inputs: OpenInputs | None) -> _Built | None:
        """A build for the sizes of a call, in which what `open_inputs` says is open; None if a weight is an input from now on.

        Raises:
            TensorExprError: if the graph can't be read or built.
        """
        program, places = _exported(self._graph_module, args, self._weights, open_inputs)
        mod = from_exported_program(program)
        results = next(node for node in program.graph.nodes if node.op == "output").args[0]
        is_complex = {n for n, node in enumerate(results) if complexes.is_complex(getattr(node, "meta", {}).get("val"))}
        guards, main = Guards(program), mod["main"]
        taken = [n for n, is_taken in zip(places, guards.are_taken, strict=True) if is_taken]
        written = [main.params[n].name_hint for n in main.attrs.get("writes", ())]
        if states := {int(name.rpartition(_HELD)[2]) for name in written if _HELD in name}:
            # What a graph writes to is an input, and no constant.
            self._weights -= states
            self._held = [(args[n], args[n]._version) for n in sorted(self._weights)]
            return None
        names = [one.name_hint for one in main.params]
        writes = [taken[names.index(name)] for name in written]
        draws = len(main.params) > len(taken)
        if self._pipeline is not None:
            mod = self._pipeline(mod)
        function = relax.VirtualMachine(relax.build(mod, self._target))["main"]
        return _Built(function, places, taken, is_complex, draws, writes, guards)


def _kind(value: Any) -> Any:
    """What a graph is built for: shape and dtype of a tensor, the value of a number."""
    return (tuple(value.shape), value.dtype) if hasattr(value, "shape") else value


def _shared(tensor: Any) -> Any:
    """A tensor of PyTorch as an array on the same memory, where it is contiguous; a number is itself."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        return int(tensor)
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
