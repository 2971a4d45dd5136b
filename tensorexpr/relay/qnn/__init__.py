"""Quantized operators: `relay.qnn.op.conv2d`, also `relay.qnn.conv2d`."""

from ...later import later
from . import op
from .op import *  # noqa: F403  all of them are names of this package too

__getattr__, __dir__ = later(__name__, {}, "transform")
__all__ = ["op"]
__all__ += op.__all__
