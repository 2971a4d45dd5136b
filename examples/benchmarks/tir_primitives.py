"""Milliseconds of each primitive of tir.Schedule on a function of 20 blocks, and of replaying the trace of a scheduled matmul.

python examples/benchmarks/tir_primitives.py [--rounds 30]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from tensorexpr import te, tir

BLOCKS, SIZE = 20, 128
BAR_MS, REPLAY_BAR_MS = 5.0, 10.0
Act = Callable[[Any], Any]


def chain() -> tir.PrimFunc:
    """A matmul in a chain of elementwise blocks."""
    a, b = te.placeholder((SIZE, SIZE), name="A"), te.placeholder((SIZE, SIZE), name="B")
    tensor = a
    for number in range(BLOCKS - 1):
        if number == BLOCKS // 2:
            k = te.reduce_axis((0, SIZE), name="k")
            tensor = te.compute((SIZE, SIZE), lambda i, j, t=tensor, k=k: te.sum(t[i, k] * b[k, j], axis=k), name="C")
        else:
            tensor = te.compute((SIZE, SIZE), lambda i, j, t=tensor: t[i, j] * 2.0 + 1.0, name=f"T{number}")
    last = te.compute((SIZE, SIZE), lambda i, j: tensor[i, j] + 1.0, name="out")
    return te.create_prim_func([a, b, last])


def _tiled(s: Any) -> tuple[Any, list[Any]]:
    """The matmul's loops split by 16 and reordered: i0, j0, k0, i1, j1, k1."""
    block = s.get_block("C")
    outer, inner = zip(*(s.split(loop, [None, 16]) for loop in s.get_loops(block)), strict=True)
    s.reorder(*outer, *inner)
    return block, [*outer, *inner]


def _loops(s: Any, name: str) -> list[Any]:
    return list(s.get_loops(s.get_block(name)))


# What is done before the clock starts (it gives what the primitive takes), and the primitive.
CASES: dict[str, tuple[Act, Callable[[Any, Any], Any]]] = {
    "get_block": (lambda s: None, lambda s, _: s.get_block("C")),
    "get_loops": (lambda s: s.get_block("C"), lambda s, b: s.get_loops(b)),
    "get_producers": (lambda s: s.get_block("C"), lambda s, b: s.get_producers(b)),
    "get_consumers": (lambda s: s.get_block("C"), lambda s, b: s.get_consumers(b)),
    "sample_perfect_tile": (lambda s: _loops(s, "C")[0], lambda s, x: s.sample_perfect_tile(x, 4)),
    "sample_compute_location": (lambda s: (_tiled(s), s.get_block("T9"))[1], lambda s, x: s.sample_compute_location(x)),
    "split": (lambda s: _loops(s, "C")[0], lambda s, x: s.split(x, [None, 16])),
    "split, imperfect": (lambda s: _loops(s, "C")[0], lambda s, x: s.split(x, [None, 15])),
    "fuse": (lambda s: _loops(s, "T3"), lambda s, x: s.fuse(*x)),
    "reorder": (lambda s: _loops(s, "C"), lambda s, x: s.reorder(x[2], x[0], x[1])),
    "parallel": (lambda s: _loops(s, "C")[0], lambda s, x: s.parallel(x)),
    "vectorize": (lambda s: _loops(s, "T3")[1], lambda s, x: s.vectorize(x)),
    "unroll": (lambda s: _loops(s, "T3")[1], lambda s, x: s.unroll(x)),
    "annotate": (lambda s: s.get_block("C"), lambda s, x: s.annotate(x, "key", 1)),
    "add_unit_loop": (lambda s: s.get_block("C"), lambda s, x: s.add_unit_loop(x)),
    "loop_partition": (lambda s: _loops(s, "T3")[0], lambda s, x: s.loop_partition(x, [16, None])),
    "decompose_reduction": (lambda s: (s.get_block("C"), _loops(s, "C")[2]), lambda s, x: s.decompose_reduction(*x)),
    "rfactor": (lambda s: _loops(s, "C")[2], lambda s, x: s.rfactor(x, 0)),
    "blockize": (lambda s: _tiled(s)[1][3], lambda s, x: s.blockize(x)),
    "tensorize": (lambda s: _for_vnni(s), lambda s, x: s.tensorize(x, "dot_16x4_vnni")),
    "cache_read": (lambda s: s.get_block("C"), lambda s, x: s.cache_read(x, 0, "local")),
    "cache_write": (lambda s: s.get_block("C"), lambda s, x: s.cache_write(x, 0, "local")),
    "compute_at": (lambda s: (s.get_block("T3"), _loops(s, "T4")[0]), lambda s, x: s.compute_at(*x)),
    "reverse_compute_at": (lambda s: (s.get_block("T4"), _loops(s, "T3")[0]), lambda s, x: s.reverse_compute_at(*x)),
    "compute_inline": (lambda s: s.get_block("T3"), lambda s, x: s.compute_inline(x)),
    "reverse_compute_inline": (lambda s: s.get_block("T4"), lambda s, x: s.reverse_compute_inline(x)),
    "transform_layout": (lambda s: s.get_block("T3"), lambda s, x: s.transform_layout(x, ("write", 0), lambda i, j: (j, i))),
    "set_scope": (lambda s: s.get_block("T3"), lambda s, x: s.set_scope(x, 0, "local")),
    "storage_align": (lambda s: s.get_block("T3"), lambda s, x: s.storage_align(x, 0, 0, 32, 1)),
    "unsafe_set_dtype": (lambda s: s.get_block("T3"), lambda s, x: s.unsafe_set_dtype(x, 0, "float16")),
}


def _for_vnni(s: Any) -> Any:
    """In a schedule of the int8 matmul alone, whatever `s`: the loop that the instruction replaces."""
    block = s.get_block("D")
    i, j, k = s.get_loops(block)
    j0, j1 = s.split(j, [None, 16])
    k0, k1 = s.split(k, [None, 4])
    s.reorder(i, j0, k0, j1, k1)
    s.decompose_reduction(block, k0)
    return j1


def int8_matmul() -> tir.PrimFunc:
    """Bytes, the right side packed as dot products by fours want it."""
    a = te.placeholder((SIZE, SIZE), "uint8", name="A")
    b = te.placeholder((SIZE // 16, SIZE // 4, 16, 4), "int8", name="B")
    k = te.reduce_axis((0, SIZE), name="k")

    def element(i: Any, j: Any) -> Any:
        return te.sum(a[i, k].astype("int32") * b[j // 16, k // 4, j % 16, k % 4].astype("int32"), axis=k)

    return te.create_prim_func([a, b, te.compute((SIZE, SIZE), element, name="D")])


def matmul_trace() -> tuple[tir.PrimFunc, tir.Schedule]:
    """A matmul scheduled by 25 instructions."""
    a, b = te.placeholder((SIZE, SIZE), name="A"), te.placeholder((SIZE, SIZE), name="B")
    k = te.reduce_axis((0, SIZE), name="k")
    func = te.create_prim_func([a, b, te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")])
    s = tir.Schedule(func, seed=1)
    block = s.get_block("C")
    copy = s.cache_write(block, 0, "global")
    i, j, k_loop = s.get_loops(block)
    rows = s.split(i, s.sample_perfect_tile(i, 4, decision=[2, 4, 2, 8]))
    columns = s.split(j, s.sample_perfect_tile(j, 4, decision=[2, 2, 1, 32]))
    steps = s.split(k_loop, s.sample_perfect_tile(k_loop, 2, decision=[32, 4]))
    s.reorder(rows[0], columns[0], rows[1], columns[1], steps[0], rows[2], columns[2], steps[1], rows[3], columns[3])
    s.reverse_compute_at(copy, columns[1])
    s.parallel(s.fuse(rows[0], columns[0]))
    s.vectorize(columns[3])
    s.unroll(rows[3])
    s.annotate(block, "pragma_auto_unroll_max_step", s.sample_categorical([0, 16, 64], [0.3, 0.3, 0.4], decision=1))
    s.vectorize(s.get_loops(copy)[-1])
    s.annotate(s.get_loops(block)[0], "pragma_unroll_explicit", 1)
    s.enter_postproc()
    s.decompose_reduction(block, steps[0])
    return func, s


def _times(rounds: int, before: Callable[[], Any], act: Callable[[Any], Any]) -> list[float]:
    found = []
    for _ in range(rounds):
        given = before()
        start = time.perf_counter()
        act(given)
        found.append((time.perf_counter() - start) * 1e3)
    return found


def _line(name: str, times: Sequence[float], bar: float) -> str:
    median = statistics.median(times)
    return f"{name:24s} {median:8.3f} {min(times):8.3f}   {'' if median <= bar else f'above {bar:g} ms'}"


def main() -> None:
    """Print a line for each primitive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    base, bytes_base = tir.Schedule(chain(), seed=1), tir.Schedule(int8_matmul(), seed=1)
    print(f"{'ms':24s} {'median':>8s} {'least':>8s}")
    for name, (prepare, act) in CASES.items():

        def before(name: str = name, prepare: Act = prepare) -> tuple[Any, Any]:
            s = (bytes_base if name == "tensorize" else base).copy()
            return s, prepare(s)

        def run(given: tuple[Any, Any], act: Callable[[Any, Any], Any] = act) -> None:
            act(*given)
            _ = given[0].mod

        print(_line(name, _times(rounds, before, run), BAR_MS))
    func, done = matmul_trace()
    trace = done.trace
    assert trace is not None
    times = _times(rounds, lambda: tir.Schedule(func, seed=1), lambda s: trace.apply_to_schedule(s, remove_postproc=False))
    print(_line(f"replay of {len(trace)} instructions", times, REPLAY_BAR_MS))


if __name__ == "__main__":
    main()
