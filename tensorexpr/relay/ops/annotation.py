"""Marks on values, which stay as they are: around what a code generator of others computes, of devices, of where fusion ends."""

from __future__ import annotations

from typing import Any

from ...relax import op as graph_op
from ...relax.expr import Tuple
from .row import Expr, Meaning, operator


@operator("annotation.compiler_begin")
def compiler_begin(data: Expr, compiler: str) -> Meaning:
    """An operand of what a code generator computes.

    Args:
        data: the operand.
        compiler: the generator's name.
    """
    return data


@operator("annotation.compiler_end")
def compiler_end(data: Expr, compiler: str) -> Meaning:
    """A result of what a code generator computes.

    Args:
        data: the result.
        compiler: the generator's name.
    """
    return data


@operator("annotation.stop_fusion")
def stop_fusion(data: Expr) -> Meaning:
    """Where Relay's FuseOps ended a kernel; here the compiler decides by what kernels can do."""
    return data


@operator("memory.kill")
def kill(data: Expr) -> Meaning:
    """Where a value ends (`transform.ManifestLifetimes`); an empty tuple."""
    return Tuple(())


@operator("annotation.checkpoint")
def checkpoint(data: Expr) -> Meaning:
    """A value that derivatives compute again; here those that they need are kept."""
    return data


@operator("annotation.simulated_quantize")
def simulated_quantize(
    data: Expr, dom_scale: Expr, clip_min: Expr, clip_max: Expr, kind: int = 1, sign: bool = True, rounding: str = "round"
) -> Meaning:
    """Floats as far as integers have them: clip(round(x / scale), least, greatest) * scale."""
    steps = graph_op.round(graph_op.divide(data, dom_scale))
    return graph_op.multiply(graph_op.minimum(graph_op.maximum(steps, clip_min), clip_max), dom_scale)


@operator("on_device")
def _on_device(data: Expr, device_type: Any = None, constrain_result: bool = False, constrain_body: bool = True) -> Meaning:
    return data


def on_device(data: Any, device: Any = None, constrain_result: bool = False, constrain_body: bool = True) -> Any:
    """A value that a device holds; graphs are built for one device.

    Args:
        data: the value.
        device: "cpu", `tvm.cpu()`.
        constrain_result, constrain_body: accepted.
    """
    return _on_device(data, _kind(device), constrain_result, constrain_body)


@operator("device_copy")
def _device_copy(data: Expr, src_dev_type: Any = None, dst_dev_type: Any = None) -> Meaning:
    return data


def device_copy(data: Any, src_device: Any = None, dst_device: Any = None) -> Any:
    """A value on another device; graphs are built for one device."""
    return _device_copy(data, _kind(src_device), _kind(dst_device))


def _kind(device: Any) -> str | None:
    """The kind of a device, its name or the object."""
    return None if device is None else device if isinstance(device, str) else str(getattr(device, "type", device))
