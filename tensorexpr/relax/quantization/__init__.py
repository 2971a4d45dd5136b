"""Quantisation after training: a network of float32 becomes one of integers of eight bits, by what it does on some inputs.

    made = quantize(mod, [{"x": image} for image in images])
    ex = relax.build(made.module, "llvm")

ranges      which range of floats the integers cover, by what was seen
calibrate   runs that see it, and the pass that follows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...later import later
from .ranges import METHODS

if TYPE_CHECKING:
    from .calibrate import Quantization, quantize

__getattr__, __dir__ = later(__name__, {".calibrate": "Quantization quantize"})  # which runs what passes, that need ranges, made

__all__ = ["METHODS", "Quantization", "quantize"]
