"""Compile and call emitted functions with nothing but llvmlite, so that code generation is tested apart from the runtime."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from tensorexpr.codegen.emit import emit_module
from tensorexpr.codegen.signature import BufferParam, ScalarParam, Signature
from tensorexpr.target import Target
from tensorexpr.tir.arithmetic import convert
from tensorexpr.tir.buffer import Buffer, decl_buffer
from tensorexpr.tir.dtype import parse_dtype, to_numpy
from tensorexpr.tir.expr import BufferLoad, IntImm, PrimExpr, Ramp, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import BufferStore, For, ForKind, Stmt

Array = npt.NDArray[Any]


@lru_cache(maxsize=1)
def host() -> Target:
    """This machine, with two threads."""
    return Target("llvm -num-cores=2")


@lru_cache(maxsize=1)
def _load_openmp() -> None:
    """Make the OpenMP runtime of the cmeel-libomp wheel visible to compiled code."""
    import cmeel  # type: ignore[import-untyped]

    roots = [Path(path).parent / "cmeel.prefix" for path in cmeel.__path__]
    [found] = [root / "lib" / "libomp.so" for root in roots if (root / "lib" / "libomp.so").exists()]
    ctypes.CDLL(str(found), mode=ctypes.RTLD_GLOBAL)
    llvm.load_library_permanently(str(found))


def machine_of(target: Target) -> Any:
    """LLVM's code generator for a target; a loaded function owns the one it was made with."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    here = llvm.Target.from_default_triple()
    return here.create_target_machine(cpu=target.mcpu, features=target.feature_string, opt=2, reloc="pic", codemodel="default")


def parse(text: str, target: Target) -> Any:
    """The verified LLVM module of a text."""
    code_generator = machine_of(target)
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.triple = code_generator.triple
    module.data_layout = str(code_generator.target_data)
    module.verify()
    return module


def assembly(text: str, target: Target) -> str:
    """The machine code of a module as text."""
    return str(machine_of(target).emit_assembly(parse(text, target)))


@dataclass(frozen=True)
class Compiled:
    """An emitted function in memory."""

    signature: Signature
    text: str
    function: Callable[..., int]
    keep: tuple[Any, ...]

    def __call__(self, *args: Array | float) -> int:
        """Call it with arrays and numbers; the values of its symbols come from the arrays' shapes. Returns its code."""
        values: list[Any] = []
        symbols: dict[Var, int] = {}
        for arg, param in zip(args, self.signature.params, strict=True):
            if isinstance(param, BufferParam):
                assert isinstance(arg, np.ndarray)
                values.append(arg.ctypes.data)
                symbols |= {e: n for e, n in zip(param.shape, arg.shape, strict=False) if isinstance(e, Var)}
            else:
                values.append(float(arg) if parse_dtype(param.dtype).is_float else int(arg))
        return self.function(*values, *(symbols[var] for var in self.signature.symbols))


def compile_function(func: PrimFunc, target: Target | None = None, optimise: bool = False, line_limit: int = 200_000) -> Compiled:
    """Emit, verify and load one function."""
    target = target or host()
    _load_openmp()
    emitted = emit_module({"f": func}, target, line_limit)
    [signature] = emitted.signatures.values()
    module = parse(emitted.text, target)
    if optimise:
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        builder = llvm.create_pass_builder(machine_of(target), options)
        builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine_of(target))
    engine.finalize_object()
    kinds = [_argument_kind(param) for param in signature.params] + [ctypes.c_int64] * len(signature.symbols)
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(engine.get_function_address(signature.name))
    return Compiled(signature, emitted.text, function, (engine, module))


def _argument_kind(param: BufferParam | ScalarParam) -> Any:
    if isinstance(param, BufferParam):
        return ctypes.c_void_p
    return ctypes.c_double if parse_dtype(param.dtype).is_float else ctypes.c_int64


def primfunc(params: Sequence[Buffer | Var], body: Stmt, noalias: bool = True, name: str = "f") -> PrimFunc:
    """A function of flat buffers and scalars."""
    variables, buffers = [], {}
    for param in params:
        if isinstance(param, Buffer):
            handle = Var(f"{param.name}_handle", "handle")
            variables.append(handle)
            buffers[handle] = param
        else:
            variables.append(param)
    return PrimFunc(tuple(variables), body, None, buffers).with_attr({"global_symbol": name, "tir.noalias": noalias})


def flat(name: str, size: Any, dtype: str = "float32", scope: str = "") -> Buffer:
    """A flat buffer."""
    return decl_buffer((size,), dtype, name, scope=scope)


def load(buffer: Buffer, index: Any, predicate: PrimExpr | None = None) -> PrimExpr:
    """buffer[index]."""
    return BufferLoad(buffer, (convert(index),), predicate)


def store(buffer: Buffer, index: Any, value: Any, predicate: PrimExpr | None = None) -> Stmt:
    """buffer[index] = value."""
    return BufferStore(buffer, convert(value), (convert(index),), predicate)


def loop(name: str, extent: Any, body: Callable[[Var], Stmt], kind: ForKind = ForKind.SERIAL, dtype: str = "int32") -> Stmt:
    """A loop from 0."""
    var = Var(name, dtype)
    return For(var, IntImm(dtype, 0), convert(extent), kind, body(var))


def ramp(base: Any, lanes: int, stride: Any = 1) -> PrimExpr:
    """The vector of `lanes` indices from `base`."""
    return Ramp(convert(base), convert(stride), lanes)


def elementwise(make: Callable[..., PrimExpr], dtypes: Sequence[str], result: str, lanes: int) -> PrimFunc:
    """out[i] = make(a[i], b[i], ...), `lanes` at a time, for a symbolic number of rounds."""
    size = Var("n", "int64")
    inputs = [flat(f"a{i}", size, dtype) for i, dtype in enumerate(dtypes)]
    out = flat("out", size, result)

    def body(i: Var) -> Stmt:
        index = i if lanes == 1 else ramp(i * lanes, lanes)
        return store(out, index, make(*(load(buffer, index) for buffer in inputs)))

    return primfunc([*inputs, out], loop("i", size // lanes, body, dtype="int64"))


def apply(make: Callable[..., PrimExpr], result: str, *arrays: Array, lanes: int = 1, target: Target | None = None) -> Array:
    """Compute out = make(*arrays) element by element with compiled code; the arrays' length is padded to whole vectors."""
    count = len(arrays[0])
    padded = [np.concatenate([a, np.repeat(a[:1], -count % lanes)]) for a in arrays]
    out: Array = np.zeros(len(padded[0]), to_numpy(result))
    dtypes = ["bool" if a.dtype == np.bool_ else a.dtype.name for a in padded]
    assert compile_function(elementwise(make, dtypes, result, lanes), target)(*padded, out) == 0
    return out[:count]


class GuardedArray:
    """An array that ends where a page ends that can't be touched: reading or writing beyond it kills the process."""

    def __init__(self, data: Array) -> None:
        page = mmap.PAGESIZE
        pages = -(-data.nbytes // page)
        self._map = mmap.mmap(-1, (pages + 1) * page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(address + pages * page), ctypes.c_size_t(page), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
        start = pages * page - data.nbytes
        self.array: Array = np.frombuffer(self._map, data.dtype, len(data), start)
        self.array[:] = data
