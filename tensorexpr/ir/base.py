"""Nodes compared, hashed, saved as JSON and made by name."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from ..errors import DeclarationError
from ..tir import expr, stmt
from ..tir.block import Block, BlockRealize, MatchBufferRegion
from ..tir.buffer import BufferRegion
from ..tir.function import IRModule, PrimFunc
from ..tir.node import Object
from ..tir.serialize.graph_fields import Types
from ..tir.serialize.module_graph import CUT, SavedModule, module_of, module_to_graph
from ..tir.serialize.node_graph import read_graph, write_graph
from ..tir.structural import structural_equal
from ..tir.structural_difference import assert_structural_equal, get_first_structural_mismatch
from ..tir.structural_digest import structural_hash
from ..tir.structured import Structured
from .attrs import Attrs, DictAttrs
from .source import SequentialSpan, SourceMap, SourceName, Span

Node = Object
_MADE = {cls.__name__: cls for cls in (Block, BlockRealize, BufferRegion, MatchBufferRegion, PrimFunc, expr.PrimType, expr.PointerType)}


def _types() -> Types:
    """All kinds of nodes; those of tensors are defined in a lower row of the house, and loaded when a text is asked for."""
    types: Types = importlib.import_module("tensorexpr.te.graph_nodes").TE_NODES
    return types


def save_json(node: Any) -> str:
    """A node, or a list or mapping of nodes, as the JSON text that TVM saves.

    Raises:
        RecordError: for what has no place in such a text.
    """
    writer = _own_writer(node)
    if writer is not None:
        return str(writer(node))
    if _has_graphs(node):
        return str(importlib.import_module("tensorexpr.relax.graph_nodes").save_graph(node))
    return module_to_graph(node) if isinstance(node, IRModule) else write_graph(node, _types())


def _own_writer(node: Any) -> Callable[[Any], str] | None:
    """What writes nodes of a language that has a text of its own, a higher row of the house; None for others."""
    if isinstance(node, (Mapping, list, tuple)):
        return next(filter(None, map(_own_writer, node.values() if isinstance(node, Mapping) else node)), None)
    if isinstance(node, IRModule):
        return next(filter(None, map(_own_writer, node.functions.values())), None)
    return getattr(type(node), "to_json", None) if isinstance(node, Structured) else None


def _has_graphs(node: Any) -> bool:
    """Whether a node, or something in a list or mapping, belongs to graphs, a higher row of the house."""
    if isinstance(node, Mapping):
        return any(map(_has_graphs, node.values()))
    if isinstance(node, (list, tuple)):
        return any(map(_has_graphs, node))
    return isinstance(node, Structured) or (isinstance(node, IRModule) and any(map(_has_graphs, node.functions.values())))


def load_json(json_str: str) -> Any:
    """The nodes of a text of `save_json`; everything about them is checked.

    Raises:
        RecordError: for anything else.
    """
    if isinstance(json_str, str) and json_str.lstrip().startswith('{"relay"'):
        return importlib.import_module("tensorexpr.relay.saved").of_json(json_str)
    if isinstance(json_str, str) and '"type_key": "relax.' in json_str:
        return importlib.import_module("tensorexpr.relax.graph_nodes").load_graph(json_str)
    found = read_graph(json_str, _types(), CUT)
    return module_of(found) if isinstance(found, SavedModule) else found


def make_node(type_key: str, **kwargs: Any) -> Any:
    """A node of the class named `type_key` (``"tir.Add"``, ``"IntImm"``, ``"attrs.…"``) with these fields.

    Raises:
        DeclarationError: for a class that isn't known.
    """
    family, _, name = type_key.rpartition(".")
    if family == "attrs" or type_key == "DictAttrs":
        return (DictAttrs if type_key == "DictAttrs" else Attrs)(kwargs)
    if type_key == "Range":
        return expr.Range.from_min_extent(kwargs["min"], kwargs["extent"])
    cls = _MADE.get(name) or getattr(expr, name, None) or getattr(stmt, name, None)
    if family not in ("", "tir") or not isinstance(cls, type) or not issubclass(cls, Object):
        raise DeclarationError(f"make_node: no class of nodes is named {type_key!r}")
    return cls(**kwargs)


_Function = TypeVar("_Function", bound=Callable[..., Any])


def deprecated(method_name: str, new_method_name: str) -> Callable[[_Function], _Function]:
    """A decorator: calls of the function warn that it is called `new_method_name` now.

    Args:
        method_name: the old name, as users know it.
        new_method_name: what to write.
    """

    def decorate(func: _Function) -> _Function:
        @functools.wraps(func)
        def warned(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(f"{method_name} is deprecated; write {new_method_name}", DeprecationWarning, stacklevel=2)
            return func(*args, **kwargs)

        return cast(_Function, warned)

    return decorate


__all__ = [
    "Node",
    "SequentialSpan",
    "SourceMap",
    "SourceName",
    "Span",
    "assert_structural_equal",
    "deprecated",
    "get_first_structural_mismatch",
    "load_json",
    "make_node",
    "save_json",
    "structural_equal",
    "structural_hash",
]
