"""Networks as classes: `relax.frontend.nn`.

class Mlp(nn.Module):
    def __init__(self):
        self.fc = nn.Linear(784, 10)
    def forward(self, x):
        return nn.op.softmax(self.fc(x))

mod, params = Mlp().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 784), "float32")}})
"""

from . import op, spec
from .core import Module, ModuleList, Parameter, Tensor, get_default_dtype, set_default_dtype
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

__all__ = [
    "GELU", "Conv1D", "Conv2D", "Conv3D", "ConvTranspose1D", "Embedding", "GroupNorm", "Identity", "LayerNorm", "Linear", "Module",
    "ModuleList", "Parameter", "RMSNorm", "ReLU", "SiLU", "Tensor", "get_default_dtype", "op", "set_default_dtype", "spec",
]  # fmt: skip
