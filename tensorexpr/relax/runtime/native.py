"""Stretches as native functions: a call of each kernel after the other, with memory for what lives in between.

A stretch becomes `int32_t stretch0(const uint64_t *words)`, one word for each input and output, which fills a block of words for each
kernel's packed entry (see `runtime.entries`). The arena is taken from a cell by an atomic exchange and put back at the end: a thread
that finds the cell empty allocates one of its own, so that calls at one time don't share memory.
It returns 0, `(kernel + 1) << 16 | code` for a kernel that returned an error code, or -2 if there is no memory.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...codegen.signature import BufferParam, Signature
from ...codegen.types import symbol
from ...dataclass import dataclass, field
from ...errors import ArgumentError
from ...runtime import cache, engine, fastcall
from ...runtime.arguments import ArgumentChecker
from ...runtime.entries import entry_name
from ...runtime.fastcall import REFUSED
from ...runtime.function import PackedEntry
from ...runtime.layout import data_pointer
from ...runtime.ndarray import NDArray, empty, wrapped
from ...target import Target
from ...tir.dtype import parse_dtype, to_numpy
from ...tir.expr import IntImm
from ..expr import Tuple, Var
from .memory import ALIGNMENT
from .stretch import Buffer, Stretch, Tensor

NO_MEMORY = -2
# Arenas from this size on lie on large pages: fewer misses of the address cache.
_LARGE = 4 << 20
_PAGE = 2 << 20
_MADV_HUGEPAGE = 14
# Results up to this size aren't aligned to more than NumPy does, which takes a fifth of the time.
SMALL = 4096

_HEAD = """
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def stretch_name(number: int) -> str:
    """The symbol of a stretch."""
    return f"tensorexpr_stretch{number}"


def constants_name(number: int) -> str:
    """The symbol of its table of addresses of constants."""
    return f"{stretch_name(number)}_constants"


def arena_name(number: int) -> str:
    """The symbol of the cell of its arena."""
    return f"{stretch_name(number)}_arena"


def text_of(stretches: Iterable[Stretch], target: Target) -> str:
    """LLVM IR of stretches."""
    whole = list(stretches)
    kernels = sorted({call.name for one in whole for call in one.calls if call.name})
    declared = [f"declare i32 {symbol(entry_name(name))}(ptr)" for name in kernels]
    return "\n".join([_HEAD, *declared, *(_function(one, target) for one in whole)])


def _function(stretch: Stretch, target: Target) -> str:
    name, size = stretch_name(stretch.number), stretch.arena.size
    # One block of words for all calls: they run one after the other, and none keeps it.
    most = max((len(call.args) for call in stretch.calls), default=0)
    lines = [f"define i32 @{name}(ptr nocapture readonly %words) {{", "entry:", f"  %args = alloca [{max(most, 1)} x i64], align 16"]
    lines += _acquired(stretch.number, size, target) if size else ["  br label %begin", "begin:"]
    last = (size and "release") or "end"
    for n, call in enumerate(stretch.calls):
        operands = [_address(arg, stretch, f"{n}_{k}", lines) if isinstance(arg, Buffer) else arg for k, arg in enumerate(call.args)]
        if not call.name:
            size_in_bytes = call.args[0].size if isinstance(call.args[0], Buffer) else 0
            lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {operands[1]}, ptr {operands[0]}, i64 {size_in_bytes}, i1 false)")
            continue
        for k, operand in enumerate(operands):
            lines.append(f"  %w{n}_{k} = getelementptr i64, ptr %args, i64 {k}")
            lines.append(f"  store {'i64' if isinstance(operand, int) else 'ptr'} {operand}, ptr %w{n}_{k}")
        lines += [
            f"  %c{n} = call i32 {symbol(entry_name(call.name))}(ptr %args)",
            f"  %bad{n} = icmp ne i32 %c{n}, 0",
            f"  br i1 %bad{n}, label %failed{n}, label %next{n}",
            f"failed{n}:",
            f"  %e{n} = or i32 %c{n}, {(n + 1) << 16}",
            "  br label %done",
            f"next{n}:",
        ]
    called = [n for n, call in enumerate(stretch.calls) if call.name]
    # A phi names each predecessor: copies can't fail, and have no block for it.
    codes = "".join(f", [ %e{n}, %failed{n} ]" for n in called)
    lines += ["  br label %ok", "ok:", "  br label %done", "done:", f"  %code = phi i32 [ 0, %ok ]{codes}", f"  br label %{last}"]
    if size:
        lines += [
            # Another thread may have put its arena back meanwhile: one of the two stays in the cell, and free(null) does nothing.
            "release:",
            f"  %before = atomicrmw xchg ptr @{arena_name(stretch.number)}, ptr %arena acq_rel",
            "  call void @free(ptr %before)",
            "  br label %end",
        ]
    lines += ["end:", "  ret i32 %code", "}"]
    cells = [f"@{arena_name(stretch.number)} = global ptr null"] if size else []
    cells += [f"@{constants_name(stretch.number)} = global [{len(stretch.constants)} x ptr] zeroinitializer"] if stretch.constants else []
    return "\n".join([*cells, *lines, ""])


def _acquired(number: int, size: int, target: Target) -> list[str]:
    page = _PAGE if size >= _LARGE else ALIGNMENT
    # aligned_alloc wants a multiple of the alignment.
    room = -(-size // page) * page
    # Advice may fail, of no memory too: then it is slower, or the next test tells.
    advise = size >= _LARGE and "linux" in target.triple
    return [
        f"  %kept = atomicrmw xchg ptr @{arena_name(number)}, ptr null acq_rel",
        "  %none = icmp eq ptr %kept, null",
        "  br i1 %none, label %make, label %begin",
        "make:",
        f"  %new = call ptr @aligned_alloc(i64 {page}, i64 {room})",
        *([f"  %advised = call i32 @madvise(ptr %new, i64 {room}, i32 {_MADV_HUGEPAGE})"] if advise else []),
        "  %failed = icmp eq ptr %new, null",
        "  br i1 %failed, label %nothing, label %begin",
        "nothing:",
        f"  ret i32 {NO_MEMORY}",
        "begin:",
        "  %arena = phi ptr [ %kept, %entry ], [ %new, %make ]",
    ]


def _address(buffer: Buffer, stretch: Stretch, name: str, lines: list[str]) -> str:
    """The address of a buffer as a value."""
    if buffer.kind == "arena":
        lines.append(f"  %p{name} = getelementptr i8, ptr %arena, i64 {buffer.place}")
        return f"%p{name}"
    base = f"@{constants_name(stretch.number)}" if buffer.kind == "constant" else "%words"
    place = buffer.place + (len(stretch.inputs) if buffer.kind == "output" else 0)
    lines += [f"  %a{name} = getelementptr ptr, ptr {base}, i64 {place}", f"  %p{name} = load ptr, ptr %a{name}"]
    return f"%p{name}"


def signature_of(stretch: Stretch) -> Signature:
    """How a stretch is called: inputs, then outputs."""
    inputs = [_param(f"p{n}", one, stretch.buffers[one.buffer].is_written) for n, (_, _, one) in enumerate(stretch.inputs)]
    outputs = [_param(f"r{n}", one, True) for n, one in enumerate(stretch.outputs)]
    return Signature(stretch_name(stretch.number), (*inputs, *outputs), ())


def _param(name: str, tensor: Tensor, is_written: bool) -> BufferParam:
    extents = tuple(IntImm("int64", one) for one in tensor.shape)
    return BufferParam(name, tensor.dtype, extents, (), IntImm("int64", 0), parse_dtype(tensor.dtype).itemsize, True, is_written)


def maker(shape: tuple[int, ...], dtype: str) -> Callable[[], NDArray]:
    """What makes arrays for results."""
    element = to_numpy(dtype)
    if int(np.prod(shape, dtype=np.int64)) * element.itemsize > SMALL:
        return lambda: empty(shape, dtype)
    new = np.empty
    return lambda: wrapped(new(shape, element), dtype)


@dataclass(frozen=True, slots=True)
class NativeStretch:
    """A stretch that can be called: `call(*inputs, *outputs)` returns 0, REFUSED for arguments that don't fit, or an error code."""

    stretch: Stretch
    call: Callable[..., int]
    makers: tuple[Callable[[], NDArray], ...]
    _keep: Any = field(repr=False)


class NativePlans:
    """The stretches of an executable in machine code.

    Args:
        stretches: all of them.
        target: what they are for.
        entries: addresses of the kernels' packed entries, by name.
        library: addresses of symbols, where the code is loaded already.
        owner: what lives as long as that code is in use, by other plans too, whose arenas it has; the plans themselves if None.
    """

    def __init__(
        self,
        stretches: Sequence[Stretch],
        target: Target,
        entries: Mapping[str, int],
        library: Callable[[str], int] | None = None,
        owner: Any = None,
    ) -> None:
        self._keep: Any = owner
        if library is None:
            names = [name for one in stretches for name in symbols_of(one)]
            self._keep = engine.load_object(object_of(stretches, target), names, {entry_name(name): at for name, at in entries.items()})
            library = self._keep.__getitem__
        for one in stretches:
            if one.constants:
                table = (ctypes.c_void_p * len(one.constants)).from_address(library(constants_name(one.number)))
                table[:] = [data_pointer(constant._array) for constant in one.constants]
            if one.arena.size:
                # It holds the code, whose data the cell is, until the arena is freed. The owner can't be held by its own end.
                user, code = (self, self._keep) if owner is None else (owner, None)
                weakref.finalize(user, _freed, library(arena_name(one.number)), code)
        self.calls = {one.number: self._callable(one, library(stretch_name(one.number))) for one in stretches}

    def _callable(self, stretch: Stretch, entry: int) -> NativeStretch:
        signature = signature_of(stretch)
        checker = ArgumentChecker(signature)
        fast = fastcall.make(signature, checker.plan, entry)
        packed = PackedEntry(entry)

        def call(*args: Any) -> int:
            try:
                words, held = checker.block(args)
            except ArgumentError:
                return REFUSED
            code = int(packed(words))
            # Not before the call is over: words are addresses, which keep no array alive.
            del held
            return code

        makers = tuple(maker(one.shape, one.dtype) for one in stretch.outputs)
        return NativeStretch(stretch, call if fast is None else fast.call, makers, (self, fast))


def symbols_of(stretch: Stretch) -> list[str]:
    """The symbols that running it needs."""
    number = stretch.number
    cells = [arena_name(number)] if stretch.arena.size else []
    return [stretch_name(number), *cells, *([constants_name(number)] if stretch.constants else [])]


def object_of(stretches: Sequence[Stretch], target: Target) -> bytes:
    """The object file of stretches."""
    return cache.compile_text(text_of(stretches, target), target, 1).data


def _freed(cell: int, keep: Any) -> None:
    """Free the arena in a cell, which nobody uses any more."""
    held = ctypes.c_void_p.from_address(cell)
    if held.value:
        release = ctypes.CDLL(None).free
        release.argtypes, release.restype = [ctypes.c_void_p], None
        release(held)
        held.value = None
    del keep


Result = Callable[[Sequence[Any], Sequence[Any]], Any]


def element(value: Any, way: Sequence[int]) -> Any:
    """An element of a tuple, of tuples."""
    for index in way:
        value = value[index]
    return value


def reader(value: Any, stretch: Stretch) -> Result:
    """What finds a value in the inputs and outputs of a call of a stretch."""
    if isinstance(value, tuple):
        parts = [reader(one, stretch) for one in value]
        return lambda given, outs: tuple([part(given, outs) for part in parts])
    if isinstance(value, int):
        return lambda given, outs: value
    buffer, shape = stretch.buffers[value.buffer], value.shape
    place = buffer.place
    if buffer.kind == "constant":
        constant = _shaped(stretch.constants[place], shape)
        return lambda given, outs: constant
    if buffer.kind == "output" and stretch.outputs[place].shape == shape:
        return lambda given, outs: outs[place]
    if buffer.kind == "output":
        return lambda given, outs: _shaped(outs[place], shape)
    return lambda given, outs: _shaped(given[place], shape)


def _shaped(value: NDArray, shape: tuple[int, ...]) -> NDArray:
    return value if value.shape == shape else wrapped(value._array.reshape(shape), value.dtype)


def whole_function(native: NativeStretch, params: Sequence[Var], body: Any) -> tuple[NativeStretch, Result | None] | None:
    """A stretch that is a whole function, with what makes the function's value; None for the only output.

    None if it isn't: the inputs aren't the parameters, or one of these is returned.
    """
    stretch = native.stretch
    if [(var, way) for var, way, _ in stretch.inputs] != [(param, ()) for param in params]:
        return None
    results = dict(stretch.results)

    def value(expr: Any) -> Any:
        if isinstance(expr, Tuple):
            parts = [value(one) for one in expr.fields]
            return None if None in parts else tuple(parts)
        return results.get(expr)

    found = value(body)
    if found is None or "input" in kinds_of(found, stretch):
        return None
    is_plain = isinstance(found, Tensor) and found == stretch.outputs[0]
    return native, None if is_plain else reader(found, stretch)


def kinds_of(value: Any, stretch: Stretch) -> set[str]:
    """The kinds of the buffers of a value."""
    if isinstance(value, tuple):
        return {kind for one in value for kind in kinds_of(one, stretch)}
    return set() if isinstance(value, int) else {stretch.buffers[value.buffer].kind}


def fail(stretch: Stretch, code: int, kernels: Mapping[str, Any]) -> None:
    """Raise what an error code of a stretch stands for."""
    if code == NO_MEMORY:
        raise MemoryError(f"there is no memory for the {stretch.arena.size} bytes of intermediate results")
    kernels[stretch.calls[(code >> 16) - 1].name].check_code(code & 0xFFFF)
