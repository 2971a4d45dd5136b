"""Functions that take pointers in place of buffers, as C code calls them.

def main(A: Buffer((16,)), n)   ->   def main(A: pointer, n) -> error code
"""

from __future__ import annotations

from dataclasses import replace

from ...target import Target
from ...tir.expr import IntImm
from ...tir.function import PrimFunc
from ...tir.stmt import seq
from ..context import PassContext
from ..passes import Pass
from .calling_conventions import device_attribute, for_host, host_of, success, target_of


def MakeUnpackedAPI() -> Pass:
    """Public functions with data pointers for their buffers; nothing of an array is checked. They give back an error code.

    Raises:
        LoweringError: when it runs, for a public function without target.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        host = host_of(func, "MakeUnpackedAPI")
        return func if host is None else _unpacked(func, host)

    return Pass("tir.MakeUnpackedAPI", run)


def _unpacked(func: PrimFunc, host: Target) -> PrimFunc:
    params = tuple(func.buffer_map[param].data if param in func.buffer_map else param for param in func.params)
    body = seq(func.body, success())
    if func.buffer_map:
        device = target_of(func, "MakeUnpackedAPI").get_target_device_type()
        body = device_attribute("device_id", IntImm("int32", 0), device_attribute("device_type", IntImm("int32", device), body))
    return for_host(replace(func, params=params, buffer_map={}, body=body), host)
