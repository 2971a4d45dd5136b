"""Quantising a network by Relay's names: `with relay.quantize.qconfig(...): mod = relay.quantize.quantize(mod, params)`.

It is `relax.quantization`: pairs of quantize and dequantize around products and convolutions, of which any build makes integer kernels.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ...dataclass import dataclass, field
from ...errors import DeclarationError
from ...relax.quantization import quantize as quantize_graph
from ...target import Target
from ...tir.function import IRModule
from ..build_module import bound_graph
from ..from_graph import from_graph

# How ranges come of what is seen, by the names of both.
_METHODS = {"kl_divergence": "entropy", "percentile": "percentile"}


class _Current(threading.local):
    """The configurations that are entered in a thread, innermost last."""

    def __init__(self) -> None:
        self.configs: list[QConfig] = []


_CURRENT = _Current()


@dataclass(frozen=True)
class QConfig:
    """How a network is quantised.

    Args:
        nbit_input, nbit_weight: 8.
        dtype_input, dtype_weight: "int8", of what is read; activations may be "uint8".
        calibrate_mode: "global_scale", "kl_divergence" or "percentile"; the last two need a dataset.
        global_scale: the range of all that is read, -8 to 8.
        skip_conv_layers: the numbers of convolutions that stay in floats.
        skip_dense_layer: whether products stay in floats.
        nbit_activation, dtype_activation, weight_scale, do_simulation, round_for_shift, debug_enabled_ops, rounding, calibrate_chunk_by,
            partition_conversions, calibrate_skip_layers, store_lowbit_output: accepted: sums are int32, weights have a scale for each
            result, whatever can be computed on integers is.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: Any = (0,)
    do_simulation: bool = False
    round_for_shift: bool = True
    debug_enabled_ops: Any = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"
    calibrate_skip_layers: Any = ()
    store_lowbit_output: bool = True
    _entered: list[Any] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.nbit_input, self.nbit_weight) != (8, 8) or self.dtype_weight != "int8":
            raise DeclarationError("qconfig: kernels are on integers of 8 bits: nbit_input and nbit_weight are 8, dtype_weight is int8")
        if self.calibrate_mode not in ("global_scale", *_METHODS):
            raise DeclarationError(f"qconfig: calibrate_mode {self.calibrate_mode!r}; there are global_scale, {', '.join(_METHODS)}")

    def __enter__(self) -> QConfig:
        _CURRENT.configs.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _CURRENT.configs.pop()


def qconfig(**options: Any) -> QConfig:
    """A configuration, which is entered by `with`; options are the fields of `QConfig`. Others are left out with a warning, as TVM
    leaves them out: programs that people have written carry misspelled ones.

    Raises:
        DeclarationError: for a value that an option doesn't take.
    """
    known = [name for name in QConfig.__dataclass_fields__ if not name.startswith("_")]
    if unknown := [name for name in options if name not in known]:
        warnings.warn(f"qconfig has no option {', '.join(unknown)}; it has {', '.join(known)}", stacklevel=2)
    return QConfig(**{name: value for name, value in options.items() if name in known})


def current_qconfig() -> QConfig:
    """The configuration that was entered last."""
    return _CURRENT.configs[-1] if _CURRENT.configs else QConfig()


def quantize(mod: Any, params: Mapping[str, Any] | None = None, dataset: Iterable[Mapping[str, Any]] | None = None) -> IRModule:
    """A network on integers.

    Args:
        mod: a module, or a function.
        params: values of parameters, which become constants.
        dataset: inputs like those that it will get, by name; what a calibration mode but "global_scale" sees.

    Raises:
        DeclarationError: if nothing can be quantised, with the reasons; without a dataset where one is needed.
    """
    config = current_qconfig()
    graph = bound_graph(mod, params)
    convolutions = [f"nn.conv{n}d" for n in (1, 2, 3)]
    options: dict[str, Any] = {
        "activations": config.dtype_input, "operators": convolutions if config.skip_dense_layer else None,
        "skip": tuple(config.skip_conv_layers or ()), "target": Target.current() or "llvm",
    }  # fmt: skip
    if config.calibrate_mode == "global_scale":
        return from_graph(quantize_graph(graph, (), limit=config.global_scale, **options).module)
    if dataset is None:
        raise DeclarationError(f'quantize: calibrate_mode {config.calibrate_mode!r} needs a dataset; "global_scale" needs none')
    return from_graph(quantize_graph(graph, list(dataset), method=_METHODS[config.calibrate_mode], **options).module)


__all__ = ["QConfig", "current_qconfig", "qconfig", "quantize"]
