"""Models of others as Relay's modules, by the importers of graphs (`relax.frontend`): `mod, params = relay.frontend.from_onnx(model)`."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import DeclarationError
from ..frontend.onnx import from_onnx as onnx_graph
from ..frontend.torch import from_exported_program, from_fx
from ..later import stand_for
from ..relax.frontend.params import detach_params
from ..runtime.ndarray import NDArray
from ..tir.function import IRModule
from .expr import Function, TupleGetItem, Var
from .from_graph import from_graph
from .ty import TensorType, TupleType
from .visitor import substitute

Imported = tuple[IRModule, dict[str, NDArray]]


def _with_params(mod: IRModule) -> Imported:
    """A module of Relay, and the values of the parameters behind its inputs."""
    plain, found = detach_params(mod)
    main: Any = plain["main"]
    plain.update_func("main", main.without_attr("num_input"))
    values = found.get("main", [])
    names = [param.name_hint for param in main.params][len(main.params) - len(values) :]
    return from_graph(plain), dict(zip(names, values, strict=True))


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[Any]] | None = None,
    dtype: str | Mapping[str, str] | None = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Any = None,
    export_node_renamed_model_path: Any = None,
) -> Imported:
    """A model of ONNX as a module, and its parameters.

    Args:
        model: a ModelProto, its bytes, or the path of a file.
        shape: shapes of inputs by name, where they aren't those of the model.
        dtype: dtypes of inputs by name.
        opset: taken for the model's opset, if stated.
        freeze_params: weights are constants of the module, and there are no parameters.
        convert_config, export_node_renamed_model_path: accepted.

    Raises:
        ModelError, UnsupportedOperatorError, NeedsValueError: as of `relax.frontend.onnx.from_onnx`.
    """
    # As types have them: (relay.Any(),) * 3 are three unknown extents.
    shapes = {name: TensorType(tuple(extents)).shape for name, extents in (shape or {}).items()}
    mod = onnx_graph(model, shapes, dtype, opset, keep_params_in_input=not freeze_params, sanitize_input_names=False, open_values=True)
    return _with_params(mod)


def from_pytorch(
    script_module: Any, input_infos: Sequence[tuple[str, Any]] | None = None,
    custom_convert_map: Mapping[str, Callable[..., Any]] | None = None,
    default_dtype: str = "float32", use_parser_friendly_name: bool = False, keep_quantized_weight: bool = False,
    export_renamed_c_graph_path: Any = None, preserve_pytorch_scopes: bool = False,
) -> Imported:  # fmt: skip
    """A module of PyTorch as a module of Relay, and its parameters.

    Args:
        script_module: what `torch.jit.trace` or `torch.export.export` returns, a `torch.nn.Module` or a traced `torch.fx.GraphModule`.
        input_infos: names, and shapes or pairs of shape and dtype, of the inputs, in their order, as in
            `[("x", (2, 8)), ("state", [(1, 2, 16), (1, 2, 16)])]`, where a list or tuple of these is one input that is a tuple; an exported
            program knows its shapes.
        custom_convert_map: names of operators -> converters.
        default_dtype: of inputs that are given by their shapes.
        use_parser_friendly_name, keep_quantized_weight, export_renamed_c_graph_path, preserve_pytorch_scopes: accepted.

    Raises:
        DeclarationError: for what is no module; for a module of TorchScript that PyTorch can't make an exported program of; for
            operators without a converter, all of them by name.
    """
    infos = list(input_infos or ())
    if not (hasattr(script_module, "graph_signature") or hasattr(script_module, "named_parameters")):
        raise DeclarationError(f"from_pytorch reads a module of PyTorch or an exported program, not {type(script_module).__name__}")
    inputs = [_input(one, default_dtype) for _, one in infos]
    if type(script_module).__module__.startswith(("torch.jit", "torch._C")):
        script_module = _exported(script_module, inputs)
    elif any(isinstance(one, list) for one in inputs) and not hasattr(script_module, "graph_signature"):
        script_module = _export(script_module, inputs)
    if hasattr(script_module, "graph_signature"):
        mod = from_exported_program(
            script_module, keep_params_as_input=True, unwrap_unit_return_tuple=True, custom_convert_map=custom_convert_map
        )
    else:
        if not infos:
            raise DeclarationError('from_pytorch needs the inputs of a module: [("input0", (1, 3, 224, 224))]')
        mod = from_fx(
            script_module, inputs, keep_params_as_input=True, unwrap_unit_return_tuple=True, custom_convert_map=custom_convert_map
        )
    made, params = _with_params(mod)
    return _renamed(made, {name: one for (name, _), one in zip(infos, inputs, strict=True)}), params


def _exported(script: Any, inputs: Sequence[Any]) -> Any:
    """The exported program of a module of TorchScript, by PyTorch's own converter."""
    import torch

    instead = "give from_pytorch the module that was traced, or torch.export.export(module, inputs)"
    if not inputs:
        raise DeclarationError('from_pytorch needs the inputs of a module: [("input0", (1, 3, 224, 224))]')
    if not all(isinstance(extent, int) for shape, _ in _leaves(inputs) for extent in shape):
        raise DeclarationError(f"a module of TorchScript is read for inputs of known shapes; {instead}")
    samples = _samples(inputs)
    if any(node.kind().startswith("quantized::") for node in script.inlined_graph.nodes()):
        return importlib.import_module(".quantized_torch", __package__).exported(script, samples)  # it needs PyTorch
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converter = importlib.import_module("torch._export.converter")
            module, trains = _in_evaluation(converter.TS2EPConverter(script, samples).convert().module())
            # Once more: the converter takes extents for unknown ones.
            made = torch.export.export(_with_sizes(module, samples), samples)
    except Exception as error:  # whatever PyTorch raises: its converter has no error of its own
        raise DeclarationError(
            f"PyTorch {torch.__version__} can't make an exported program of this TorchScript ({error}); {instead}"
        ) from error
    if trains:
        warnings.warn("this module was traced while it trains, and is read as in evaluation; trace module.eval()", stacklevel=3)
    return made


def _in_evaluation(module: Any) -> tuple[Any, bool]:
    """A graph of PyTorch whose operators don't train, and whether some did: a trace has the mode of its module as numbers.

    `batch_norm(x, weight, bias, mean, var, True, ...)` would take mean and variance of the batch, and change those of the module.
    """
    trains = False
    for node in list(module.graph.nodes):
        schema = getattr(node.target, "_schema", None)
        for place, argument in enumerate(schema.arguments if schema is not None else ()):
            if argument.name in ("training", "train") and place < len(node.args) and node.args[place] is True:
                node.update_arg(place, False)
                trains = True
        counts = str(node.target) == "aten.add_.Tensor" and str(getattr(node.args[0], "target", "")).endswith("num_batches_tracked")
        if counts and not node.users:
            module.graph.erase_node(node)
    module.recompile()
    return module, trains


def _export(module: Any, inputs: Sequence[Any]) -> Any:
    import torch

    return torch.export.export(module, _samples(inputs))


def _samples(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Values of the inputs. Ones rather than zeros: what divides by an input, or indexes with it, runs."""
    import torch

    def sample(one: Any) -> Any:
        return tuple(map(sample, one)) if isinstance(one, list) else torch.ones(tuple(one[0]), dtype=getattr(torch, one[1]))

    return tuple(map(sample, inputs))


def _with_sizes(module: Any, samples: Sequence[Any]) -> Any:
    """A graph of PyTorch with the extents of these inputs in it, and what is computed of extents and constants as numbers.

    A trace has extents as tensors, which an export could say nothing of: `x.shape[1] + 0` is `item(scalar_tensor(size(x, 1)) + 0)`.
    """
    import torch

    nodes, aten = list(module.graph.nodes), torch.ops.aten
    known: set[Any] = set()
    for node in nodes:
        computed = node.op == "call_function" and node.all_input_nodes and known.issuperset(node.all_input_nodes)
        if node.op == "get_attr" or node.target is aten.sym_size.int or computed:
            known.add(node)
    values: dict[Any, Any] = {}

    class Sizes(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, node: Any) -> Any:
            found = super().run_node(node)
            if node in known and node.target in (aten.sym_size.int, aten._local_scalar_dense.default):
                values[node] = found
            return found

    Sizes(module).run(*samples)
    for node in nodes:
        args = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: values.get(one, one))
        node.args, node.kwargs = args
    for node in reversed(nodes):
        if node in values:
            module.graph.erase_node(node)
    module.recompile()
    return module


def _input(info: Any, default: str) -> Any:
    """A shape, or a pair of shape and dtype, as the latter; of a tuple of inputs, as the state of a recurrent layer, a list of these."""
    if len(info) == 2 and isinstance(info[1], str):
        return tuple(info[0]), info[1]
    if any(isinstance(one, (tuple, list)) for one in info):
        return [_input(one, default) for one in info]
    return tuple(info), default


def _leaves(inputs: Sequence[Any]) -> Iterator[Any]:
    for one in inputs:
        if isinstance(one, list):
            yield from _leaves(one)
        else:
            yield one


def _renamed(mod: IRModule, inputs: Mapping[str, Any]) -> IRModule:
    """The module whose first parameters have these names, by which programs set inputs. Those of a tuple become one."""
    main: Any = mod["main"]
    count = len(list(_leaves(list(inputs.values()))))
    if count > len(main.params):
        raise DeclarationError(f"input_infos names {count} inputs, {', '.join(inputs)}; the module has {len(main.params)}")
    left = list(main.params)

    def type_of(said: Any) -> Any:
        return TupleType(tuple(type_of(one) for one in said)) if isinstance(said, list) else left.pop(0).struct_info

    params = [Var(name, type_of(said)) for name, said in inputs.items()]
    values = [value for param, said in zip(params, inputs.values(), strict=True) for value in _members(param, said)]
    body = substitute(main.body, dict(zip(main.params, values, strict=False)))
    made = mod.clone()
    func: Any = Function((*params, *left), body, main.ret_type, (), main.attrs)
    made.update_func("main", func)
    return made


def _members(value: Any, said: Any) -> Iterator[Any]:
    """The tensors of an input."""
    if not isinstance(said, list):
        yield value
        return
    for place, one in enumerate(said):
        yield from _members(TupleGetItem(value, place), one)


def get_graph_input_names(script_module: Any) -> list[str]:
    """The names of the inputs of a module of TorchScript, without the module itself."""
    names: list[str] = [value.debugName() for value in script_module.graph.inputs()]
    return names[1:]


def _refused(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise DeclarationError(f"relay.frontend.{name} isn't there; {instead}, and relay.frontend.from_onnx reads that")

    refuse.__name__ = name
    refuse.__doc__ = f"Refused: {instead}.\n\n    Raises:\n        DeclarationError: always.\n    "
    return refuse


from_tensorflow, from_tflite, from_keras = (
    _refused(name, "tf2onnx writes models of TensorFlow, TFLite and Keras as ONNX")
    for name in ("from_tensorflow", "from_tflite", "from_keras")
)
from_mxnet, from_coreml, from_darknet, from_caffe, from_caffe2, from_paddle, from_oneflow = (
    _refused(name, "exporters of that framework write ONNX")
    for name in ("from_mxnet", "from_coreml", "from_darknet", "from_caffe", "from_caffe2", "from_paddle", "from_oneflow")
)

__all__ = [
    "from_caffe", "from_caffe2", "from_coreml", "from_darknet", "from_keras", "from_mxnet", "from_oneflow", "from_onnx", "from_paddle",
    "from_pytorch", "from_tensorflow", "from_tflite",
]  # fmt: skip

# One module has the importers, which programs import from those of TVM too.
stand_for(__name__, "onnx=.frontend pytorch=.frontend")
