"""Milliseconds of lowering by phase and by pass: a scheduled matmul, a convolution, and chains of 1,000 and 2,000 stages.

python examples/benchmarks/lowering.py [--passes]
"""

from __future__ import annotations

import argparse
import statistics
import time

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.lower.instruments import PassTimingInstrument
from tensorexpr.tir.expr import PrimExpr

Program = tuple[te.Schedule, list[te.Tensor]]


def matmul(n: int = 1024) -> Program:
    """Tiles of 8 x 32 in registers, panels of B packed by each thread."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    tile = s.cache_write(c, "local")
    panel = s.cache_read(b, "global", [tile])
    *_, lane = s[panel].transform_layout(lambda k, j: [j // 32, k, j % 32], pad_value=0.0)
    s[panel].vectorize(lane)
    i, j = c.op.axis
    io, jo, ii, ji = s[c].tile(i, j, 8, 32)
    s[c].reorder(jo, io, ii, ji)
    s[c].parallel(jo)
    s[c].vectorize(ji)
    s[panel].compute_at(s[c], jo)
    s[tile].compute_at(s[c], io)
    (row, column), (step,) = s[tile].op.axis, s[tile].op.reduce_axis
    s[tile].reorder(step, row, column)
    s[tile].vectorize(column)
    return s, [a, b, c]


def conv2d() -> Program:
    """64 channels of 56 x 56, 3 x 3, with bias and relu; columns as vectors, 7 rows of pixels at a time."""
    x, w = te.placeholder((1, 64, 56, 56), name="x"), te.placeholder((64, 64, 3, 3), name="w")
    bias = te.placeholder((64,), name="bias")
    conv = topi.nn.conv2d_nchw(x, w, 1, 1, 1)
    out = topi.nn.relu(topi.nn.bias_add(conv, bias))
    s = te.create_schedule(out.op)
    te.schedule.AutoInlineBroadcast(s)
    _, c, y, px = out.op.axis
    place = s[out].fuse(c, y)
    s[out].parallel(place)
    s[out].vectorize(px)
    s[conv].compute_at(s[out], place)
    s[conv].set_scope("local")
    _, _, _, lane = s[conv].op.axis
    s[conv].reorder(*s[conv].op.reduce_axis, lane)
    s[conv].vectorize(lane)
    return s, [x, w, bias, out]


def chain(stages: int) -> Program:
    """x + 1, so many times, none of it inlined."""
    first = tensor = te.placeholder((64,), name="x")
    for number in range(stages):
        tensor = _next(tensor, number)
    return te.create_schedule(tensor.op), [first, tensor]


def _next(tensor: te.Tensor, number: int) -> te.Tensor:
    def body(i: PrimExpr) -> PrimExpr:
        return tensor[i] + 1.0

    made: te.Tensor = te.compute((64,), body, name=f"t{number}")
    return made


def milliseconds(program: Program, upto: int | None, rounds: int) -> float:
    """The median time of lowering."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        tvm.lower(*program, upto=upto)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passes", action="store_true", help="also the time of each pass")
    options = parser.parse_args()
    programs = {"matmul": matmul(), "conv2d": conv2d(), "chain of 1,000": chain(1000), "chain of 2,000": chain(2000)}
    print(f"{'':<16}" + "".join(f"{f'phase {n}':>10}" for n in range(4)) + f"{'all':>10}   ms")
    for name, program in programs.items():
        rounds = 9 if "chain" not in name else 3
        totals = [milliseconds(program, phase, rounds) for phase in range(4)]
        phases = [total - before for total, before in zip(totals, [0.0, *totals], strict=False)]
        print(f"{name:<16}" + "".join(f"{value:>10.1f}" for value in phases) + f"{totals[-1]:>10.1f}")
        if options.passes:
            timing = PassTimingInstrument()
            with tvm.transform.PassContext(instruments=[timing]):
                tvm.lower(*program)
            print(timing.render())


if __name__ == "__main__":
    main()
