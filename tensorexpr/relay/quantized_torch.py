"""Traces of modules that PyTorch quantised, `torch.ao.quantization.convert`, as exported programs.

Their weights lie in objects, and their activations in tensors, that no exported program has. So the trace is run once more on plain
integers, and that is exported:

    quantized::conv2d_relu(x, packed, scale, zero)   ->   quantize(relu(conv2d(dequantize(x), dequantize(weight), bias)), scale, zero)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..dataclass import dataclass, replace
from ..errors import DeclarationError

importlib.import_module("torch.ao.quantization.fx._decomposed")  # the operators on plain integers
_PLAIN, _UNPACK = torch.ops.quantized_decomposed, torch.ops.quantized
_LIMITS = {torch.uint8: (0, 255), torch.int8: (-128, 127)}
_DTYPES = {torch.quint8: torch.uint8, torch.qint8: torch.int8, 13: torch.uint8, 12: torch.int8}  # traces have them as numbers
_PACKED = {f"quantized::{name}{end}": name for name in ("conv1d", "conv2d", "conv3d", "linear") for end in ("", "_relu")}
# What brings elements elsewhere, or chooses among them, does the same with their integers.
_MOVES = frozenset(
    f"aten::{name}" for name in (
        "chunk", "contiguous", "dropout", "expand", "flatten", "max_pool1d", "max_pool2d", "permute", "reshape", "select", "slice", "split",
        "squeeze", "transpose", "unsqueeze", "upsample_nearest2d", "view",
    )
)  # fmt: skip
# What PyTorch computes on quantised tensors and gives the scale and zero of its operand.
_KEPT = frozenset(
    f"aten::{name}" for name in ("adaptive_avg_pool2d", "avg_pool2d", "hardtanh", "mean", "relu", "relu6", "clamp", "upsample_bilinear2d")
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Quantised:
    """A quantised tensor in plain ones.

    Args:
        integers: of it.
        scale, zero: it means (integers - zero) * scale.
    """

    integers: Any
    scale: float
    zero: int

    def floats(self) -> Any:
        """The numbers that it means."""
        dtype = self.integers.dtype
        return _PLAIN.dequantize_per_tensor(self.integers, self.scale, self.zero, *_LIMITS[dtype], dtype)


def exported(script: Any, samples: Sequence[Any]) -> Any:
    """The exported program of such a module.

    Raises:
        DeclarationError: for operators that have no meaning on plain integers here, all of them by name.
    """
    unknown = sorted({node.kind() for node in script.inlined_graph.nodes() if not _is_known(node.kind())})
    if unknown:
        raise DeclarationError(
            f"from_pytorch: a quantised trace with {', '.join(unknown)}, which have no meaning on plain integers here; dequantise "
            "before them, or quantise the float module here: relay.quantize.quantize"
        )
    return torch.export.export(_OnIntegers(script), tuple(samples))


def _is_known(kind: str) -> bool:
    return kind in _OPERATORS or kind.startswith("aten::") or kind in ("prim::Constant", "prim::GetAttr")


class _OnIntegers(torch.nn.Module):  # type: ignore[misc]
    """Runs a trace node by node on plain tensors."""

    def __init__(self, script: Any) -> None:
        super().__init__()
        self._script = [script]  # in a list, so that its objects are no part of this module
        owner, *_ = script.inlined_graph.inputs()
        known: dict[str, Any] = {owner.debugName(): script}
        for node in script.inlined_graph.nodes():
            if node.kind() == "prim::GetAttr":
                found = getattr(known[node.input().debugName()], node.s("name"))
                known[node.output().debugName()] = found
        for node in script.inlined_graph.nodes():
            if node.kind() in _PACKED:  # now: while it is exported, no tensor has elements
                packed = list(node.inputs())[1].debugName()
                known[packed] = _unpacked(_PACKED[node.kind()], known[packed])
        self._attributes = [known]

    def forward(self, *inputs: Any) -> Any:
        graph = self._script[0].inlined_graph
        values = dict(self._attributes[0])
        _, *parameters = graph.inputs()
        values.update(zip((one.debugName() for one in parameters), inputs, strict=True))
        for node in graph.nodes():
            if node.kind() == "prim::GetAttr":
                continue
            given = [values[one.debugName()] for one in node.inputs()]
            made = node.output().toIValue() if node.kind() == "prim::Constant" else _run(node, given)
            outputs = [one.debugName() for one in node.outputs()]
            values.update(zip(outputs, [made] if len(outputs) == 1 else made, strict=True))
        found = [values[one.debugName()] for one in graph.outputs()]
        return found[0] if len(found) == 1 else tuple(found)


def _run(node: Any, given: list[Any]) -> Any:
    kind = node.kind()
    if kind in _OPERATORS:
        return _OPERATORS[kind](*given)
    first = given[0] if given else None
    if not isinstance(first, Quantised):
        return _called(node, given)
    if kind in _MOVES:
        made = _called(node, [first.integers, *given[1:]])
        return [replace(first, integers=one) for one in made] if isinstance(made, (list, tuple)) else replace(first, integers=made)
    if kind in _KEPT:
        return _quantised(_called(node, [first.floats(), *given[1:]]), first.scale, first.zero, first.integers.dtype)
    raise DeclarationError(f"from_pytorch: {kind} of a quantised tensor has no meaning on plain integers here; dequantise before it")


def _called(node: Any, given: list[Any]) -> Any:
    operation, _ = torch._C._jit_get_operation(node.kind())
    places = torch._C.parse_schema(node.schema()).arguments
    positional = [value for value, one in zip(given, places, strict=True) if not one.kwarg_only]
    return operation(*positional, **{one.name: value for value, one in zip(given, places, strict=True) if one.kwarg_only})


def _quantised(floats: Any, scale: Any, zero: Any, dtype: Any = torch.uint8) -> Quantised:
    kind = _DTYPES.get(dtype, dtype)
    if kind not in _LIMITS:
        raise DeclarationError(f"from_pytorch: tensors of {dtype} have no counterpart; those of quint8 and qint8 have")
    return Quantised(_PLAIN.quantize_per_tensor(floats, float(scale), int(zero), *_LIMITS[kind], kind), float(scale), int(zero))


@dataclass(frozen=True, eq=False)
class _Weight:
    """What a packed object holds.

    Args:
        integers, scales, zeros, axis: the weight; the axis is None where it has one scale.
        bias: floats, or None.
        how: stride, padding, dilation and groups of a convolution.
    """

    integers: Any
    scales: Any
    zeros: Any
    axis: int | None
    bias: Any
    how: tuple[Any, ...] = ()

    def floats(self) -> Any:
        """The weight as floats, by its integers."""
        if self.axis is None:
            return Quantised(self.integers, self.scales, self.zeros).floats()
        return _PLAIN.dequantize_per_channel(self.integers, self.scales, self.zeros, self.axis, *_LIMITS[torch.int8], torch.int8)


def _unpacked(name: str, packed: Any) -> _Weight:
    if isinstance(packed, _Weight):  # of a module that the trace calls twice
        return packed
    weight, bias = getattr(_UNPACK, f"{name}_unpack")(getattr(packed, "_packed_params", packed))
    parts = ("stride", "padding", "dilation", "groups") if name.startswith("conv") else ()
    how = tuple(getattr(_UNPACK, f"{name}_{part}")(packed) for part in parts)
    bias = bias if bias is None else bias.detach()
    if weight.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return _Weight(weight.int_repr(), weight.q_scale(), weight.q_zero_point(), None, bias, how)
    scales, zeros = weight.q_per_channel_scales().float(), weight.q_per_channel_zero_points()
    return _Weight(weight.int_repr(), scales, zeros, weight.q_per_channel_axis(), bias, how)


def _product(name: str, is_relu: bool) -> Callable[..., Any]:
    function = getattr(torch.nn.functional, name)

    def run(x: Quantised, weight: _Weight, scale: float, zero: int) -> Quantised:
        made = function(x.floats(), weight.floats(), weight.bias, *weight.how)
        return _quantised(torch.relu(made) if is_relu else made, scale, zero, x.integers.dtype)

    return run


def _elementwise(function: Callable[..., Any], is_relu: bool = False) -> Callable[..., Any]:
    def run(x: Quantised, other: Quantised, scale: float, zero: int) -> Quantised:
        made = function(x.floats(), other.floats())
        return _quantised(torch.relu(made) if is_relu else made, scale, zero, x.integers.dtype)

    return run


def _joined(parts: Sequence[Quantised], axis: int, scale: float, zero: int) -> Quantised:
    return _quantised(torch.cat([one.floats() for one in parts], axis), scale, zero, parts[0].integers.dtype)


def _hardswish(x: Quantised, scale: float, zero: int) -> Quantised:
    return _quantised(torch.nn.functional.hardswish(x.floats()), scale, zero, x.integers.dtype)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "aten::quantize_per_tensor": _quantised,
    "aten::dequantize": lambda x: x.floats() if isinstance(x, Quantised) else x,
    "prim::ListConstruct": lambda *parts: list(parts),
    "prim::TupleConstruct": lambda *parts: tuple(parts),
    "prim::ListUnpack": lambda parts: parts,
    "prim::TupleUnpack": lambda parts: parts,
    "quantized::add": _elementwise(torch.add),
    "quantized::add_relu": _elementwise(torch.add, True),
    "quantized::mul": _elementwise(torch.mul),
    "quantized::mul_relu": _elementwise(torch.mul, True),
    "quantized::cat": _joined,
    "quantized::hardswish": _hardswish,
    **{kind: _product(name, kind.endswith("_relu")) for kind, name in _PACKED.items()},
}
