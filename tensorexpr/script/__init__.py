"""TVMScript: programs of the loop IR as Python syntax. `script()` of a function or module writes it; this package reads it.

from tensorexpr.script import ir as I, tir as T

@T.prim_func
def double(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0

tir, ir     the words, as T and I
read        decorators, and `parse` of text
parser      how a syntax tree becomes a program
ir_builder  the same by calls
highlight   programs printed in colours
"""

from ..later import later
from . import ir, ir_builder, tir
from .ir import ir_module
from .read import asscript, from_source, parse
from .tir import prim_func

__getattr__, __dir__ = later(__name__, {"tensorexpr.relax.script": "relax=."})

__all__ = ["asscript", "from_source", "ir", "ir_builder", "ir_module", "parse", "prim_func", "tir"]
