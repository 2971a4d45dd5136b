"""Instructions for products of small numbers: which of the built-in intrinsics does what a matrix product asks for.

Each adds the products of a group of `group` neighbours along the summed axis to each lane of a vector of results, so the panel is
packed with the group innermost: [summed / group][vector][lane][group].
"""

from __future__ import annotations

from ..dataclass import dataclass
from ..target import Target
from ..te.intrinsics.integer_dots import GROUPS
from ..tir.llvm_intrin import llvm_intrinsic
from .contractions import Contraction


@dataclass(frozen=True, slots=True)
class DotProduct:
    """An intrinsic by name, the elements it sums into one result, the lanes of results, and the CPU features it needs.

    `words` is the intrinsic that does the same with a left operand of 16-bit words, where bytes are made such before they are multiplied;
    `is_apart` if it multiplies alone, so that another instruction adds the products.
    """

    intrinsic: str
    group: int
    outputs: int
    features: frozenset[str]
    words: str = ""
    is_apart: bool = False

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
            wide = next((other.name for other in GROUPS if other.is_wide_left_of(one)), "")
            found.append(DotProduct(one.name, one.group, one.outputs, frozenset(row.features), wide, bool(one.widened)))
    return rows


_INTRINSICS = _table()


def dot_product_of(contraction: Contraction, target: Target) -> tuple[DotProduct, int] | None:
    """The intrinsic that sums a contraction, and the axis that it sums in groups; None if the target has none.

    Example:
        C[i, j] += int32(A[i, k]) * int32(B[j, k]) with A of uint8 and B of int8: k, four at a time, by VNNI.

    Of several axes the one of which groups lie side by side in the left operand, if there is one, and the longest.
    """
    # The instruction takes two operands, one of them packed; a third factor would have to be multiplied in first.
    if len(contraction.left) != 1 or not contraction.can_be_packed:
        return None
    (left,), right, dtype = contraction.left, contraction.right, contraction.op.output_dtype(0)
    found = instruction_for(left.load.dtype, right.load.dtype, dtype, target)
    if found is None or left.casts != (dtype,) or right.casts != (dtype,) or contraction.size(contraction.column) < found.outputs:
        return None
    whole = [axis for axis in contraction.summed if contraction.size(axis) >= found.group]
    # Groups are cut from an index that is the axis alone: of `A[i, 2 * k + 1]` neighbours along k aren't a word in memory.
    grouped = [axis for axis in whole if left.index_of(axis) is not None and right.index_of(axis) is not None]
    last = max(grouped, key=lambda axis: (left.lies_along(axis), contraction.size(axis)), default=None)
    return None if last is None else (found, last)


def instruction_for(left: str, right: str, dtype: str, target: Target) -> DotProduct | None:
    """The intrinsic for these types of the broadcast operand, the vectors and the sums, or None if the target has none."""
    return next((found for found in _INTRINSICS.get((left, right, dtype), ()) if found.is_of(target)), None)


def has_whole_groups(contraction: Contraction, group: int) -> bool:
    """True if groups of neighbours can be read from the left operand where it lies; else it needs a copy with padded ones.

    An instruction's operand is a slice along the last index, so that weights [o, i, 1, 1] are copied, though their i are neighbours.
    """
    last, (left,) = contraction.summed[-1], contraction.left
    return contraction.size(last) % group == 0 and left.lies_along(last) and left.index_of(last) == len(left.forms) - 1
