"""Instructions for products of small numbers: which of the built-in intrinsics does what a matrix product asks for.

Each adds the products of a group of `group` neighbours along the summed axis to each of 16 results, so the panel is
packed with the group innermost: [summed / group][vector][16][group].
"""

from __future__ import annotations

from dataclasses import dataclass

from ..target import Target
from ..te.intrinsics.dot_group import OUTPUTS
from .machine import lanes_of
from .products import Product, extent_of


@dataclass(frozen=True, slots=True)
class DotProduct:
    """An intrinsic by name, the elements it sums into one result, and the CPU feature it needs."""

    intrinsic: str
    group: int
    feature: str


# By the types of the broadcast operand, of the vectors, and of the sums.
_INTRINSICS = {
    ("uint8", "int8", "int32"): DotProduct("dot_16x4_vnni", 4, "avx512vnni"),
    ("bfloat16", "bfloat16", "float32"): DotProduct("dot_16x2_avx512_bf16", 2, "avx512bf16"),
}


def dot_product_of(product: Product, dtype: str, target: Target) -> DotProduct | None:
    """The intrinsic that sums the product, or None if the target has none."""
    left, right, last = product.left, product.right, product.summed[-1]
    found = instruction_for(left.tensor.dtype, right.tensor.dtype, dtype, target)
    if found is None or left.casts != (dtype,) or right.casts != (dtype,):
        return None
    large = extent_of(last) >= found.group and extent_of(product.column) >= OUTPUTS
    return found if large else None


def instruction_for(left: str, right: str, dtype: str, target: Target) -> DotProduct | None:
    """The intrinsic for these types of the broadcast operand, the vectors and the sums, or None if the target has none."""
    found = _INTRINSICS.get((left, right, dtype))
    return found if found is not None and found.feature in target.features and lanes_of(target, dtype) == OUTPUTS else None


def has_whole_groups(product: Product, group: int) -> bool:
    """True if groups of neighbours can be read from the left operand where it lies; else it needs a copy with padded ones."""
    last = product.summed[-1]
    return extent_of(last) % group == 0 and product.left.is_contiguous(last)
