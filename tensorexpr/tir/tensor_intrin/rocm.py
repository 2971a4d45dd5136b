"""The intrinsics for AMD's GPUs by name. They describe, print and are interpreted; a machine with such a GPU runs them."""

from __future__ import annotations

from .dot_product_common import AMDGPU_SDOT4_INTRIN

__all__ = ["AMDGPU_SDOT4_INTRIN"]
