"""Computations as users write them, of sizes drawn at random, each with what PyTorch has for it. `programs.py` measures them."""

from . import images, inference, networks, products, reductions, sciences, signals, states, tensors, training, windows
from .table import PROGRAMS, Draw

FIELDS = (images, inference, networks, products, reductions, sciences, signals, states, tensors, training, windows)  # each fills the table

__all__ = ["FIELDS", "PROGRAMS", "Draw"]
