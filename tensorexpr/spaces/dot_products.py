"""Instructions for products of small numbers: which of the built-in intrinsics does what a matrix product asks for.

Each adds the products of a group of `group` neighbours along the summed axis to each lane of a vector of results, so the panel is
packed with the group innermost: [summed / group][vector][lane][group].
"""

from __future__ import annotations

from dataclasses import dataclass

from ..target import Target
from ..te.intrinsics.integer_dots import GROUPS
from ..tir.llvm_intrin import llvm_intrinsic
from .products import Product, extent_of


@dataclass(frozen=True, slots=True)
class DotProduct:
    """An intrinsic by name, the elements it sums into one result, the lanes of results, and the CPU features it needs."""

    intrinsic: str
    group: int
    outputs: int
    features: frozenset[str]

    def is_of(self, target: Target) -> bool:
        """Whether a target has the instruction, on its widest vectors of 32 bits."""
        return self.outputs * 32 == target.vector_bits and self.features <= target.features


def _table() -> dict[tuple[str, str, str], list[DotProduct]]:
    """The instructions by the types of the broadcast operand, of the vectors and of the sums; the one that sums most first."""
    rows = {
        ("uint8", "int8", "int32"): [
            DotProduct("dot_16x4_vnni", 4, 16, frozenset({"avx512vnni"})),
            DotProduct("dot_8x4_vnni", 4, 8, frozenset({"avxvnni"})),
            DotProduct("dot_8x4_vnni", 4, 8, frozenset({"avx512vnni", "avx512vl"})),
        ],
        ("bfloat16", "bfloat16", "float32"): [DotProduct("dot_16x2_avx512_bf16", 2, 16, frozenset({"avx512bf16"}))],
    }
    for one in GROUPS:
        row = llvm_intrinsic(one.llvm)
        if row is not None and one.name != "dot_8x4_vnni":
            found = rows.setdefault((one.left, one.right, one.out), [])
            found.append(DotProduct(one.name, one.group, one.outputs, frozenset(row.features)))
    return rows


_INTRINSICS = _table()


def dot_product_of(product: Product, dtype: str, target: Target) -> DotProduct | None:
    """The intrinsic that sums the product, or None if the target has none."""
    left, right, last = product.left, product.right, product.summed[-1]
    found = instruction_for(left.tensor.dtype, right.tensor.dtype, dtype, target)
    if found is None or left.casts != (dtype,) or right.casts != (dtype,):
        return None
    large = extent_of(last) >= found.group and extent_of(product.column) >= found.outputs
    return found if large else None


def instruction_for(left: str, right: str, dtype: str, target: Target) -> DotProduct | None:
    """The intrinsic for these types of the broadcast operand, the vectors and the sums, or None if the target has none."""
    return next((found for found in _INTRINSICS.get((left, right, dtype), ()) if found.is_of(target)), None)


def has_whole_groups(product: Product, group: int) -> bool:
    """True if groups of neighbours can be read from the left operand where it lies; else it needs a copy with padded ones."""
    last = product.summed[-1]
    return extent_of(last) % group == 0 and product.left.is_contiguous(last)
