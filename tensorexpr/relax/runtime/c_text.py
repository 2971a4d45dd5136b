"""Networks as C text alone: kernels, weights as arrays, and the calls between, for a C compiler elsewhere.

static const float net_constant_0[8] = {0x1.8p+0f, ...};
int32_t net_run(const void *const *inputs, void *const *outputs) { ... }
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...codegen.c_types import memory_type
from ...runtime.c_module import CSourceModule
from ...runtime.entries import entry_name
from ...runtime.ndarray import NDArray
from .executable import Executable
from .memory import ALIGNMENT
from .native import NO_MEMORY
from .plain import PlainNetwork
from .stretch import Buffer

_PER_LINE = 12
# Linkers of small systems place parameters by this section.
_PLACED = '__attribute__((section(".rodata.tvm"), aligned(16)))'


def c_network(executable: Executable, plain: PlainNetwork, name: str) -> str:
    """The text of a network.

    Args:
        executable: built for target c.
        plain: its one native function.
        name: what the function and the arrays begin with.
    """
    kernels = executable.kernels
    assert isinstance(kernels, CSourceModule)  # as the target is c, and a network that is one native function has kernels
    constants = [line for n, one in enumerate(plain.stretch.constants) for line in _array(f"{name}_constant_{n}", one)]
    # A definition without a declaration before it is what some compilers warn of.
    head = f"int32_t {name}_run(const void *const *inputs, void *const *outputs)"
    return "\n".join([kernels.whole, "#include <stdlib.h>", "", *constants, f"{head};", f"{head} {{", *_calls(plain, name), "}", ""])


def _array(name: str, array: NDArray) -> Iterator[str]:
    """An array as a definition; one without elements has one in C."""
    kind, values = memory_type(array.dtype), np.ascontiguousarray(array._array).reshape(-1)
    stored = values if kind in ("float", "double") else values.view(np.dtype(kind.removesuffix("_t")))
    words = [_float(one, kind) for one in stored.tolist()] if stored.dtype.kind == "f" else [f"{one:#x}" for one in stored.tolist()]
    yield f"static const {kind} {_PLACED} {name}[{max(1, len(words))}] = {{"
    for begin in range(0, max(1, len(words)), _PER_LINE):
        yield f"  {', '.join(words[begin : begin + _PER_LINE]) or 0},"
    yield "};"


def _float(value: float, kind: str) -> str:
    """A float in C, exactly."""
    if not np.isfinite(value):
        return ("-" if np.signbit(value) else "") + ("NAN" if np.isnan(value) else "INFINITY")
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}{'f' if kind == 'float' else ''}"


def _calls(plain: PlainNetwork, name: str) -> Iterator[str]:
    """The body of the function: memory for what lives in between, and a call of each kernel after the other."""
    stretch, size = plain.stretch, plain.stretch.arena.size
    places = [stretch.buffers[one.buffer].place for one in plain.results]

    def address(buffer: Buffer) -> str:
        match buffer.kind:
            case "arena":
                return f"arena + {buffer.place}"
            case "constant":
                return f"{name}_constant_{buffer.place}"
            case "output":
                return f"outputs[{places.index(buffer.place)}]"
        return f"inputs[{buffer.place}]"

    def word(arg: Any) -> str:
        return f"(uint64_t)(uintptr_t)({address(arg)})" if isinstance(arg, Buffer) else f"(uint64_t){arg}"

    yield f"  uint64_t words[{max(1, *(len(call.args) for call in stretch.calls))}];"
    yield "  int32_t code = 0;"
    if size:
        yield f"  unsigned char *held = (unsigned char *)malloc({size + ALIGNMENT - 1});"
        yield f"  unsigned char *arena = (unsigned char *)(((uintptr_t)held + {ALIGNMENT - 1}) & ~(uintptr_t){ALIGNMENT - 1});"
        yield f"  if (held == NULL) return {NO_MEMORY};"
    for n, call in enumerate(stretch.calls):
        if not call.name:
            source, goal = (address(one) for one in call.args if isinstance(one, Buffer))
            yield f"  memcpy((void *)({goal}), (const void *)({source}), {call.args[0].size if isinstance(call.args[0], Buffer) else 0});"
            continue
        yield from (f"  words[{k}] = {word(arg)};" for k, arg in enumerate(call.args))
        yield f"  code = {entry_name(call.name)}(words);"
        yield f"  if (code != 0) {{ code |= {(n + 1) << 16}; goto done; }}"
    yield "done:"
    if size:
        yield "  free(held);"
    yield "  return code;"
