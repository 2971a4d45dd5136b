"""ONNX models become modules of graphs.

checks        what a file must be before anything is made of it
registry      a function per operator and range of opsets; `ops` has them by families
attributes, values, shapes   what these functions get: attributes, operands, what is known of shape operands
context       the node that is imported: operands that have to be known, values that are emitted
functions     operators that the standard defines by others
importer      a model, node by node, in one module
backend       the suite of the standard runs on it
"""

from .importer import from_onnx
from .registry import onnx_op

__all__ = ["from_onnx", "onnx_op"]
