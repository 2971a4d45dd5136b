"""Functions whose blocks can be computed elsewhere: chains, stencils, reductions and what goes wrong with them."""

from __future__ import annotations

from tensorexpr import te, tir
from tensorexpr.script import from_source
from tensorexpr.te.tensor import Tensor

HEADER = "from tensorexpr.script import tir as T\n\n@T.prim_func\n"


def function(text: str, check_well_formed: bool = True) -> tir.PrimFunc:
    """The function that a script defines."""
    found = from_source(HEADER + text, check_well_formed=check_well_formed)
    assert isinstance(found, tir.PrimFunc)
    return found


def chain(n: int = 16, m: int = 16) -> list[Tensor]:
    """C = A * 2 + 1 by way of B."""
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="B")
    return [a, te.compute((n, m), lambda i, j: b[i, j] + 1.0, name="C")]


def stencil(n: int = 20) -> list[Tensor]:
    """C = B at three places."""
    a = te.placeholder((n + 2,), name="A")
    b = te.compute((n + 2,), lambda i: a[i] * 2.0, name="B")
    return [a, te.compute((n,), lambda i: b[i] + b[i + 2], name="C")]


def padded(n: int = 20) -> list[Tensor]:
    """C = B before and here, where there is something before."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    return [a, te.compute((n,), lambda i: tir.if_then_else(i >= 1, b[i - 1], 0.0) + b[i], name="C")]


def matmul_relu(n: int = 16, m: int = 12, k: int = 8) -> list[Tensor]:
    """D = relu(A @ B)."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return [a, b, te.compute((n, m), lambda i, j: tir.max(c[i, j], 0.0), name="D")]


def scaled_matmul(n: int = 16, m: int = 12, k: int = 8) -> list[Tensor]:
    """C = (A * 2) @ B."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    scaled = te.compute((n, k), lambda i, j: a[i, j] * 2.0, name="scaled")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(scaled[i, r] * b[r, j], axis=r), name="C")]


def flattened(n: int = 8, m: int = 4) -> list[Tensor]:
    """C is B in one dimension."""
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="B")
    return [a, te.compute((n * m,), lambda i: b[i // m, i % m] * 2.0, name="C")]


def part(n: int = 16) -> list[Tensor]:
    """C is made of the middle of B."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    return [a, te.compute((n - 6,), lambda i: b[i + 3] + 1.0, name="C")]


def diamond(n: int = 16) -> list[Tensor]:
    """D = B + C, where C is made of B."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((n,), lambda i: b[i] + 1.0, name="C")
    return [a, te.compute((n,), lambda i: b[i] * c[i], name="D")]


def carried() -> tir.PrimFunc:
    """Each step reads what the one before left in `last`."""
    return function("""
def main(A: T.Buffer((8,)), C: T.Buffer((8,)), D: T.Buffer((8,))):
    last = T.alloc_buffer((1,))
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("keep"):
            vi = T.axis.spatial(8, i)
            last[0] = A[vi] * 2.0
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = last[0]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1.0
""")


def prefix_sums() -> tir.PrimFunc:
    """Sums while they grow."""
    return function("""
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    total = T.alloc_buffer((1,))
    B = T.alloc_buffer((8,))
    for k in range(8):
        with T.block("total"):
            vk = T.axis.reduce(8, k)
            with T.init():
                total[0] = 0.0
            total[0] = total[0] + A[vk]
        with T.block("B"):
            vi = T.axis.spatial(8, k)
            B[vi] = total[0]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
""")


def guarded() -> tir.PrimFunc:
    """Blocks that don't run everywhere: B leaves out its end on the caller's word, C its beginning."""
    return function("""
def main(A: T.Buffer((15,)), C: T.Buffer((16,))):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.where(i < 15)
            B[vi] = A[vi]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.where(i < 14)
            C[vi] = B[vi]
""")


def updated() -> tir.PrimFunc:
    """A result that is written after it was read, and one that is read before it is written."""
    return function("""
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = 0.0
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
""")


def conditional() -> tir.PrimFunc:
    """A block that runs under a condition."""
    return function("""
def main(A: T.Buffer((8,)), n: T.int32, C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
    if n > 0:
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]
""")


def two_places() -> tir.PrimFunc:
    """B is read at two places of one block."""
    return function("""
def main(A: T.Buffer((8,)), C: T.Buffer((7,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
    for i in range(7):
        with T.block("C"):
            vi = T.axis.spatial(7, i)
            C[vi] = B[vi] + B[vi + 1]
""")


def repeated() -> tir.PrimFunc:
    """A sum that a loop repeats: each element is added twice."""
    return function("""
def main(A: T.Buffer((8, 4)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8, 4))
    for i, k in T.grid(8, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = A[vi, vk] * 2.0
    for i, j, k in T.grid(8, 2, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + B[vi, vk]
""")


def loose() -> tir.PrimFunc:
    """A block that uses a loop without an axis."""
    return function(
        """
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.Cast("float32", i)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
""",
        check_well_formed=False,
    )


def halves() -> tir.PrimFunc:
    """A block that stores twice."""
    return function("""
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8, 2))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi, 0] = A[vi]
            B[vi, 1] = A[vi] * 2.0
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi, 0] + B[vi, 1]
""")


def overlapping() -> tir.PrimFunc:
    """A block whose points write the same elements."""
    return function("""
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i, j in T.grid(4, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi + vj] = A[vi + vj] + A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
""")


def broadcast() -> list[Tensor]:
    """Each row of C is B."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda j: a[j] * 2.0, name="B")
    return [a, te.compute((4, 8), lambda i, j: b[j] + 1.0, name="C")]


def written_twice() -> tir.PrimFunc:
    """Two blocks write B, the second one adding to what the first left."""
    return function("""
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("start"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi], B[vi])
            T.writes(B[vi])
            B[vi] = B[vi] + A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
""")


def surrounded() -> list[Tensor]:
    """C is B with a zero on each side."""
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[i] * 2.0, name="B")
    return [a, te.compute((8,), lambda i: tir.if_then_else(tir.all(i >= 1, i < 7), b[i - 1], 0.0), name="C")]


def shortened() -> tir.PrimFunc:
    """B has fewer elements than C, which asks before it reads."""
    return function("""
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi + 2] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = T.if_then_else(vi >= 2, B[vi], 0.0)
""")
