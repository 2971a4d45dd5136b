"""What makes graphs of models of other frameworks, by its customary place: `relax.frontend.onnx.from_onnx`."""

from ...later import later
from .params import detach_params

__getattr__, __dir__ = later(__name__, {}, "nn onnx torch")

__all__ = ["detach_params"]
