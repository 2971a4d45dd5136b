"""What kind of operator made a tensor. Default schedules and inlining by kind look at these tags."""

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"


def is_broadcast(tag: str) -> bool:
    """True for operators whose result at an index reads each operand at that index, broadcast."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """True for operators whose result at an index reads each operand at one index."""
    return is_broadcast(tag) or tag.startswith(INJECTIVE)
