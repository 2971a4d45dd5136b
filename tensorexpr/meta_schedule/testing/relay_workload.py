"""Networks of torchvision as modules of Relay, by the names of releases of 2022: `get_network("resnet_18", [1, 3, 224, 224])`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ...errors import TuningError, WorkloadError

# Names here -> functions of torchvision.models.
_NETWORKS = {
    **{f"resnet_{depth}": f"resnet{depth}" for depth in (18, 50)}, "wide_resnet_50": "wide_resnet50_2", "resnext_50": "resnext50_32x4d",
    "mobilenet_v2": "mobilenet_v2", "mobilenet_v3": "mobilenet_v3_large", "squeezenet_v1.1": "squeezenet1_1",
    "inception_v3": "inception_v3", "densenet_121": "densenet121", "vgg_16": "vgg16", "alexnet": "alexnet", "resnet3d_18": "video.r3d_18",
}  # fmt: skip


def get_network(name: str, input_shape: Sequence[int], *, cache_dir: str | None = None) -> tuple[Any, Any, tuple[str, list[int], str]]:
    """A network with weights at random, its parameters, and the name, shape and dtype of its input.

    Args:
        name: such as "resnet_50".
        input_shape: of the images, with the number of them.
        cache_dir: accepted: nothing is downloaded.

    Raises:
        WorkloadError: for another name.
        TuningError: without torch and torchvision.
    """
    if name not in _NETWORKS:
        raise WorkloadError(f"there is no network {name!r}; there are {', '.join(_NETWORKS)}")
    try:
        torch: Any = importlib.import_module("torch")
        home, _, function = f"torchvision.models.{_NETWORKS[name]}".rpartition(".")
        make = getattr(importlib.import_module(home), function)
    except ImportError as error:
        raise TuningError(f"get_network makes networks of torchvision: pip install torch torchvision ({error})") from error
    module = make(weights=None, **({"aux_logits": False, "init_weights": False} if name == "inception_v3" else {})).eval()
    with torch.no_grad():
        traced = torch.jit.trace(module, torch.zeros(*input_shape))
    # As for `relay_integration`: Relay knows the search, and not the other way round.
    frontend = importlib.import_module("tensorexpr.relay.frontend")
    mod, params = frontend.from_pytorch(traced, [("input0", tuple(input_shape))])
    return mod, params, ("input0", list(input_shape), "float32")


__all__ = ["get_network"]
