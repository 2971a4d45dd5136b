"""Steps made of several primitives: tiling for a tensor intrinsic."""

from __future__ import annotations

from itertools import dropwhile

from ...tir.expr import PrimExpr
from ...tir.tensor_intrin import TensorIntrin
from .analysis import get_tensorize_loop_mapping
from .handles import BlockRV, LoopRV
from .schedule import Schedule


def tile_with_tensor_intrin(sch: Schedule, block: BlockRV, intrin_name: str, allow_padding: bool = False) -> LoopRV | None:
    """Split the loops around a block, so that the innermost ones are those of an intrinsic's description, in its order.

        for i, j, k in T.grid(64, 64, 64)   ->   for i_0, j_0, k_0 in T.grid(4, 4, 4)
            C: ...                                   for i_1, j_1, k_1 in T.grid(16, 16, 16)
                                                         C: ...

    Args:
        intrin_name: a registered intrinsic.
        allow_padding: pad axes that are no multiples, as `pad_einsum` does; what only fills or empties the padded operands
            is computed within the padding.

    Returns:
        The outermost of the inner loops, which `blockize` or `tensorize` takes; None if no loops go with the description.

    Raises:
        DeclarationError: if there is no such intrinsic.
        ScheduleError: if the axes can't be padded.
    """
    desc = TensorIntrin.get(intrin_name).desc
    info = get_tensorize_loop_mapping(sch, block, desc, allow_padding)
    if info is None:
        return None
    if info.block_iter_paddings is not None:
        _pad(sch, block, info.block_iter_paddings)
        # padding has made other loops, so their places are found again
        info = get_tensorize_loop_mapping(sch, block, desc)
        if info is None:
            return None
    inner: dict[int, LoopRV] = {}
    loops = {sch.get_sref(loop): loop for loop in sch.get_loops(block)}
    wanted = [(loops[place], info.desc_loop_indexer[loop], loop.extent) for place, loop in info.loop_map.items()]
    for loop, number, extent in wanted:
        factors: list[PrimExpr | int | None] = [None, extent]
        _, inner[number] = sch.split(loop, factors)
    order = [inner[number] for number in sorted(inner)]
    tiled = {sch.get_sref(own) for own in order}
    # Loops before the first tile stay where they are; those that stand among the tiles go before them.
    among = dropwhile(lambda loop: sch.get_sref(loop) not in tiled, sch.get_loops(block))
    sch.reorder(*(loop for loop in among if sch.get_sref(loop) not in tiled), *order)
    return order[0]


def _pad(sch: Schedule, block: BlockRV, paddings: list[int]) -> None:
    """Pad the axes of a block, and let its padding take in who came before and after."""
    sch.pad_einsum(block, paddings)
    for padding in sch.get_producers(block):
        inner = sch.get_producers(padding)
        if len(inner) == 1:
            sch.compute_inline(inner[0])
    for padding in sch.get_consumers(block):
        outer = sch.get_consumers(padding)
        if len(outer) == 1:
            sch.reverse_compute_inline(outer[0])
