"""Peers by name. A peer that isn't installed is left out, with a line that says so.

base           what a peer is
numpy_peer     NumPy, and its OpenBLAS with AVX-512 kernels where the CPU has them
torch_peer     PyTorch, its compiler, and oneDNN with packed weights
torch_operators  the operators of the suite topi, a row each
torch_network  an ONNX model as a module of PyTorch
onnx_peer      ONNX Runtime
openvino_peer  OpenVINO
tvm_peer       TVM, in an interpreter of its own; tvm_child is the program that runs there
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ....errors import TensorExprError
from ....target import Target
from .base import Call, Peer, Unsupported
from .numpy_peer import NumPy, OpenBLAS
from .onnx_peer import OnnxRuntime
from .openvino_peer import OpenVino
from .torch_peer import OneDNN, Torch, TorchCompile
from .tvm_peer import Tvm

__all__ = ["PEERS", "Call", "Peer", "Unsupported", "installed"]

# What the names on the command line stand for.
PEERS: dict[str, tuple[type[Peer], ...]] = {
    "numpy": (NumPy, OpenBLAS),
    "torch": (Torch, OneDNN, TorchCompile),
    "onnxruntime": (OnnxRuntime,),
    "openvino": (OpenVino,),
    "tvm": (Tvm,),
}


def installed(names: Sequence[str], target: Target, left_out: Mapping[str, str] = MappingProxyType({})) -> tuple[list[Peer], list[str]]:
    """The peers that can be used with as many threads as a target has cores, and a line about each that can't.

    Args:
        left_out: peers that must not be measured, and why.

    Raises:
        TensorExprError: for an unknown name.
    """
    found: list[Peer] = []
    missing: list[str] = []
    for name in names:
        if name not in PEERS:
            raise TensorExprError(f"there is no peer {name!r}; peers: {', '.join(PEERS)}")
        for kind in PEERS[name]:
            try:
                if kind.name in left_out:
                    raise ImportError(left_out[kind.name])
                found.append(kind(target))
            except ImportError as error:
                missing.append(f"{kind.name}: not measured: {error}")
    return found, missing
