"""Programs built by calls, with the words of TVMScript.

    from tensorexpr.script.ir_builder import IRBuilder, tir as T

    with IRBuilder() as ib:
        with T.prim_func():
            T.func_name("double")
            A = T.arg("A", T.Buffer((16,), "float32"))
            with T.serial(16) as i:
                ib.name("i", i)
                T.buffer_store(A, A[i] * 2.0, [i])
    func = ib.get()

A word makes what it makes in a script: both go through the tables of `script.parser`. What opens a block in a script is
a frame here, for `with`.

builder       IRBuilder; `base` is the same
frame         frames: what is open, and what it becomes when it is left
tir, ir       the words, as T and I
relax         the words of functions of graphs, as R, which loads these
"""

from . import frame, ir, tir
from .builder import IRBuilder

__all__ = ["IRBuilder", "frame", "ir", "tir"]
