"""Index maps as the JSON text that traces carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import RecordError
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, PrimExpr, Var
from ..tir.rewriting import walk
from ..tir.serialize.node_graph import Field, NodeType, read_graph, write_graph
from ..tir.serialize.node_types import EXPRESSIONS
from .index_map import IndexMap


def _index_map(initial_indices: tuple[Var, ...], final_indices: tuple[PrimExpr, ...], inverse_index_map: IndexMap | None) -> IndexMap:
    """The map; a stated inverse is left out, as maps here know theirs."""
    if len(set(initial_indices)) != len(initial_indices):
        raise RecordError("an index map takes each index once")
    for index in final_indices:
        parsed = parse_dtype(index.dtype)
        if index.dtype == "handle" or parsed.lanes > 1:
            raise RecordError(f"an index map gives numbers, not {index.dtype}")
        odd = next((n for n in walk(index) if isinstance(n, Call)), None)
        if odd is not None:
            raise RecordError(f"an index map is made of arithmetic on indices, not of {odd}")
    return IndexMap(initial_indices, final_indices)


INDEX_MAP = NodeType(
    "tir.IndexMap",
    IndexMap,
    (
        Field("initial_indices", Var, many=True),
        Field("final_indices", PrimExpr, many=True),
        Field("inverse_index_map", IndexMap, optional=True, get=lambda node: None),
    ),
    _index_map,
)


def index_map_to_json(index_map: IndexMap) -> str:
    """The text of a map, as `index_map_from_json` and TVM read it."""
    return write_graph(index_map, (*EXPRESSIONS, INDEX_MAP))


def index_map_from_json(text: str, integers: bool = True, free: Mapping[str, PrimExpr] | None = None) -> IndexMap:
    """The map of a text.

    Args:
        integers: it gives indices. Otherwise it may give other numbers, as what stands in padding.
        free: what variables that are no indices stand for, by their names; the others stay as they are.

    Raises:
        RecordError: for anything that is not exactly such a text.
    """
    found: Any = read_graph(text, (*EXPRESSIONS, INDEX_MAP))
    if not isinstance(found, IndexMap):
        raise RecordError(f"the text of an index map is wanted, not of a {type(found).__name__}")
    odd = next((index for index in found.final_indices if integers and not parse_dtype(index.dtype).is_int), None)
    if odd is not None:
        raise RecordError(f"an index map gives integers, not {odd.dtype}")
    named = {var: (free or {}).get(var.name) for var in found.free_variables}
    return found.with_values({var: value for var, value in named.items() if value is not None and value.dtype == var.dtype})


IndexMap._to_json = staticmethod(index_map_to_json)
