"""Functions of blocks whose buffers can be copied, laid out anew and padded, of sizes that tests choose; and what they compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.script import from_source
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.interpreter import interpret

Request = Callable[[tir.Schedule], object]
HEADER = "from tensorexpr.script import tir as T\n\n@T.prim_func\n"


def function(text: str) -> tir.PrimFunc:
    """The function that a script defines."""
    found = from_source(HEADER + text)
    assert isinstance(found, tir.PrimFunc)
    return found


def chain(n: int = 8, m: int = 12) -> tir.PrimFunc:
    """C = A * 2 + 1 by way of B."""
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="B")
    return te.create_prim_func([a, te.compute((n, m), lambda i, j: b[i, j] + 1.0, name="C")])


def two_readers(n: int = 8, m: int = 12) -> tir.PrimFunc:
    """C and D both read B; D reads A too."""
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + 1.0, name="C")
    return te.create_prim_func([a, c, te.compute((n, m), lambda i, j: b[i, j] + a[i, j], name="D")])


def matmul_relu(n: int = 7, m: int = 6, k: int = 5) -> tir.PrimFunc:
    """D = relu(A @ B)."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_prim_func([a, b, te.compute((n, m), lambda i, j: tir.max(c[i, j], 0.0), name="D")])


def conv(channels: int = 4, size: int = 6) -> tir.PrimFunc:
    """A convolution behind a block that pads."""
    x, w = te.placeholder((1, channels, size, size), name="X"), te.placeholder((6, channels, 3, 3), name="W")

    def padded(n: tir.Var, c: tir.Var, h: tir.Var, v: tir.Var) -> tir.PrimExpr:
        inside = tir.all(h >= 1, h < size + 1, v >= 1, v < size + 1)
        return tir.if_then_else(inside, x[n, c, h - 1, v - 1], 0.0)

    p = te.compute((1, channels, size + 2, size + 2), padded, name="P")
    c, r, s = (te.reduce_axis((0, extent), name=name) for extent, name in ((channels, "c"), (3, "r"), (3, "s")))
    y = te.compute((1, 6, size, size), lambda n, f, h, v: te.sum(p[n, c, h + r, v + s] * w[f, c, r, s], axis=[c, r, s]), name="Y")
    return te.create_prim_func([x, w, y])


def transpose(n: int = 6, m: int = 5) -> tir.PrimFunc:
    """B is written across, and A read in one plane."""
    return function(f"""def main(A: T.Buffer(({n}, {m}, 4)), B: T.Buffer(({m}, {n}))):
    for i, j in T.grid({n}, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi, vj, 3] * T.float32(2)
""")


def nested(n: int = 3, f: int = 4) -> tir.PrimFunc:
    """A block of tiles with blocks inside."""
    s = n * f
    return function(f"""def main(A: T.Buffer(({s}, {s})), C: T.Buffer(({s}, {s}))):
    for i0, j0 in T.grid({n}, {n}):
        with T.block("outer"):
            vi, vj = T.axis.remap("SS", [i0, j0])
            T.reads(A[vi * {f}:vi * {f} + {f}, vj * {f}:vj * {f} + {f}])
            T.writes(C[vi * {f}:vi * {f} + {f}, vj * {f}:vj * {f} + {f}])
            B = T.alloc_buffer(({s}, {s}))
            for i, j in T.grid({f}, {f}):
                with T.block("B"):
                    vii, vjj = T.axis.remap("SS", [i, j])
                    B[vi * {f} + vii, vj * {f} + vjj] = A[vi * {f} + vii, vj * {f} + vjj] * T.float32(2)
            for i, j in T.grid({f}, {f}):
                with T.block("C"):
                    vii, vjj = T.axis.remap("SS", [i, j])
                    C[vi * {f} + vii, vj * {f} + vjj] = B[vi * {f} + vii, vj * {f} + vjj] + T.float32(1)
""")


def fused(n: int = 4, f: int = 3, m: int = 5) -> tir.PrimFunc:
    """B and C share a loop; D reads B behind it."""
    s = n * f
    return function(f"""def main(A: T.Buffer(({s}, {m})), C: T.Buffer(({s}, {m})), D: T.Buffer(({s}, {m}))):
    B = T.alloc_buffer(({s}, {m}))
    for i0 in range({n}):
        for i1, j in T.grid({f}, {m}):
            with T.block("B"):
                vi = T.axis.spatial({s}, i0 * {f} + i1)
                vj = T.axis.spatial({m}, j)
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i1, j in T.grid({f}, {m}):
            with T.block("C"):
                vi = T.axis.spatial({s}, i0 * {f} + i1)
                vj = T.axis.spatial({m}, j)
                C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid({s}, {m}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + A[vi, vj]
""")


def guarded(n: int = 10, f: int = 4) -> tir.PrimFunc:
    """A loop that was split by no factor."""
    return function(f"""def main(A: T.Buffer(({n},)), C: T.Buffer(({n},))):
    for i0, i1 in T.grid({-(-n // f)}, {f}):
        with T.block("C"):
            T.where(i0 * {f} + i1 < {n})
            vi = T.axis.spatial({n}, i0 * {f} + i1)
            C[vi] = A[vi] + T.float32(1)
""")


def accumulate(n: int = 8) -> tir.PrimFunc:
    """A block that reads and writes its buffer."""
    return function(f"""def main(A: T.Buffer(({n},))):
    for i in range({n}):
        with T.block("A"):
            vi = T.axis.spatial({n}, i)
            T.reads(A[vi])
            T.writes(A[vi])
            A[vi] = A[vi] * T.float32(3)
""")


def resize(n: int = 8) -> tir.PrimFunc:
    """Indices with divisions, some several times."""
    return function(f"""def main(A: T.Buffer(({n}, {n})), B: T.Buffer(({n}, {n}))):
    for i, j in T.grid({n}, {n}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi // 4 + vj // 4, vj // 2] + A[vi // 4, vi // 4 + vj // 4]
""")


def padding(n: int = 10, before: int = 2, after: int = 1) -> tir.PrimFunc:
    """A copy with a constant around it."""
    total = n + before + after
    return function(f"""def main(A: T.Buffer(({n},)), B: T.Buffer(({total},))):
    for i in range({total}):
        with T.block("B"):
            vi = T.axis.spatial({total}, i)
            B[vi] = T.if_then_else({before} <= vi and vi < {n + before}, A[vi - {before}], T.float32(7))
""")


def two_writers(n: int = 8) -> tir.PrimFunc:
    """Two blocks write a half of B each."""
    return function(f"""def main(A: T.Buffer(({2 * n},)), C: T.Buffer(({2 * n},))):
    B = T.alloc_buffer(({2 * n},))
    for i in range({n}):
        with T.block("B0"):
            vi = T.axis.spatial({n}, i)
            B[vi] = A[vi]
    for i in range({n}):
        with T.block("B1"):
            vi = T.axis.spatial({n}, i)
            B[vi + {n}] = A[vi + {n}] * T.float32(2)
    for i in range({2 * n}):
        with T.block("C"):
            vi = T.axis.spatial({2 * n}, i)
            C[vi] = B[vi]
""")


PROGRAMS: dict[str, Callable[..., tir.PrimFunc]] = {
    "chain": chain,
    "two_readers": two_readers,
    "matmul_relu": matmul_relu,
    "conv": conv,
    "transpose": transpose,
    "nested": nested,
    "fused": fused,
    "guarded": guarded,
    "accumulate": accumulate,
    "resize": resize,
    "padding": padding,
}


def arguments(func: tir.PrimFunc, seed: int = 0) -> dict[str, np.ndarray]:
    """Random arrays for the parameters, by name."""
    rng = np.random.default_rng(seed)
    found = {}
    for buffer in func.buffer_map.values():
        shape = [as_int(extent) or 0 for extent in buffer.shape]
        found[buffer.name] = rng.integers(-8, 9, shape).astype(buffer.dtype)
    return found


def interpreted(func: tir.PrimFunc, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays after the function, run by the interpreter."""
    made = {name: array.copy() for name, array in arrays.items()}
    interpret(func, list(made.values()))
    return made


def compiled(func: tir.PrimFunc, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays after the function, compiled."""
    made = {name: tensorexpr.nd.array(array) for name, array in arrays.items()}
    tensorexpr.build(tensorexpr.IRModule({"main": func}), target="llvm")["main"](*made.values())
    return {name: array.numpy() for name, array in made.items()}
