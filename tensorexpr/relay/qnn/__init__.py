"""Quantized operators: `relay.qnn.op.conv2d`, also `relay.qnn.conv2d`."""

from . import op
from .op import *  # noqa: F403  all of them are names of this package too

__all__ = ["op"]
__all__ += op.__all__
