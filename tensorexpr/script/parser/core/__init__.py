"""The parts of the parser by the names that TVM gives them: texts and their trees, and the values of expressions.

diagnostics   Source: a text with its syntax tree
doc_core      the nodes of syntax trees, which are Python's own
evaluator     what an expression is worth, given what names mean
"""

from . import diagnostics, doc_core, evaluator

__all__ = ["diagnostics", "doc_core", "evaluator"]
