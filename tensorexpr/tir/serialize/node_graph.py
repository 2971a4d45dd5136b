"""Nodes as the JSON text that TVM saves: a list in which nodes refer to each other by number.

    {"root": 1,
     "nodes": [{"type_key": ""},
               {"type_key": "tir.Add", "attrs": {"a": "2", "b": "5", "dtype": "int32", "span": "0"}},
               ...],
     "b64ndarrays": [], "attrs": {"tvm_version": "0.19.0"}}

Number 0 is None. A `NodeType` says for one type key what the fields are and what is made of them; a table of them is given to
`write_graph` and `read_graph`, so that whoever knows more kinds of nodes extends the table: `node_types` has expressions,
`module_graph` functions and modules, and lists, mappings and strings are known always.
"""

from .graph_fields import FLOAT, INTEGER, SPAN, TEXT, Field, NodeType, Scalar, Types
from .graph_reader import read_graph
from .graph_writer import write_graph

__all__ = ["FLOAT", "INTEGER", "SPAN", "TEXT", "Field", "NodeType", "Scalar", "Types", "read_graph", "write_graph"]
