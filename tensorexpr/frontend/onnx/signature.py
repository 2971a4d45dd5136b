"""How many operands and results a node has, as the standard says of its operator."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ...errors import ModelError
from .functions import schema_of


@lru_cache(maxsize=1024)
def _counts(domain: str, name: str, opset: int) -> tuple[int, int, int, int, tuple[str, ...]] | None:
    """The least and greatest number of operands, those of results, and the names of operands that can't be left out."""
    schema = schema_of(domain, name, opset)
    if schema is None:
        return None
    needed = tuple(one.name if one.option == type(one.option).Single else "" for one in schema.inputs)
    return schema.min_input, schema.max_input, schema.min_output, schema.max_output, needed


def check_signature(node: Any, opset: int, where: str) -> None:
    """Check a node against the standard, if its operator is there.

    Args:
        node: its NodeProto.
        opset: of its domain.
        where: the node, for messages.

    Raises:
        ModelError: for too few or too many operands or results, and for one that is left out where none may be.
    """
    counts = _counts(node.domain, node.op_type, opset)
    if counts is None:
        return
    fewest, most, fewest_results, most_results, needed = counts
    # "" at the end says no more than nothing.
    given = max((n + 1 for n, name in enumerate(node.input) if name), default=0)
    wanted = max((n + 1 for n, name in enumerate(node.output) if name), default=0)
    if not fewest <= given <= most:
        raise ModelError(f"{where} has {given} operands, where the standard has {_range(fewest, most)}")
    if wanted > most_results or len(node.output) < fewest_results:
        raise ModelError(f"{where} has {len(node.output)} results, where the standard has {_range(fewest_results, most_results)}")
    for n, name in enumerate(needed[:given]):
        if name and not node.input[n]:
            raise ModelError(f"{where} leaves out its operand {n}, {name}")


def _range(fewest: int, most: int) -> str:
    return str(fewest) if fewest == most else f"{fewest} or more" if most >= 1 << 30 else f"{fewest} to {most}"
