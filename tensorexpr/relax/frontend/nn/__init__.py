"""Networks as classes: `relax.frontend.nn`.

class Mlp(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(784, 10)
    def forward(self, x):
        return nn.op.softmax(self.fc(x))

mod, params = Mlp().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 784), "float32")}})
"""

from . import core, diffusion, effect, modules, op, spec
from .core import Effect, Module, ModuleList, Object, Parameter, Tensor, get_default_dtype, set_default_dtype
from .diffusion import Attention, TimestepEmbedding, Timesteps
from .effect import IOEffect, KVCache
from .exporter import add_extern
from .external import ExternModule, ObjectModule, SourceModule
from .modules import (
    GELU,
    Conv1D,
    Conv2D,
    Conv3D,
    ConvTranspose1D,
    Embedding,
    GroupNorm,
    Identity,
    LayerNorm,
    Linear,
    ReLU,
    RMSNorm,
    SiLU,
)
from .mutator import Mutator
from .op import *  # noqa: F403 - operators are names of this module, too, as in TVM

__all__ = [
    "GELU", "Attention", "Conv1D", "Conv2D", "Conv3D", "ConvTranspose1D", "Effect", "Embedding", "ExternModule", "GroupNorm", "IOEffect",
    "Identity", "KVCache", "LayerNorm", "Linear", "Module", "ModuleList", "Mutator", "Object", "ObjectModule", "Parameter", "RMSNorm",
    "ReLU", "SiLU", "SourceModule", "Tensor", "TimestepEmbedding", "Timesteps", "add_extern", "core", "diffusion", "effect",
    "get_default_dtype", "modules", "op", "set_default_dtype", "spec",
]  # fmt: skip
