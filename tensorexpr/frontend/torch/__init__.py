"""PyTorch's programs as graphs.

table         what becomes of an operator, by name
simplified    programs of operators that have converters
importer      exported programs
fx            traced modules
dynamo        a backend of torch.compile; open_sizes, gradients: what its graphs leave open, and their derivatives
elementwise, manipulation, nn, creation, ...   the converters
complexes     complex tensors as pairs
random        random numbers by a seed
special       special functions
"""

from .dynamo import compile_backend, dynamo_capture_subgraphs, relax_dynamo
from .fx import from_fx
from .importer import from_exported_program

__all__ = ["compile_backend", "dynamo_capture_subgraphs", "from_exported_program", "from_fx", "relax_dynamo"]
