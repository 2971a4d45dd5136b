"""Milliseconds of processor time of lowering, by phase and by pass: a matmul, a convolution, and chains of 1,000 and 2,000 stages.

python examples/benchmarks/lowering.py [--passes]
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.lower.instruments import PassInstrument
from tensorexpr.lower.passes import PassInfo
from tensorexpr.lower.pipeline import PHASES
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


class Clock(PassInstrument):
    """Processor time at which the phases began, and that the passes took, in milliseconds, of one lowering."""

    def __init__(self) -> None:
        self.began = {0: time.process_time()}
        self.passes: dict[str, float] = {}

    def run_before_pass(self, mod: tvm.IRModule, info: PassInfo) -> None:
        """A phase begins with the first of its passes; making loop nests, phase 0, is none."""
        self.start = time.process_time()
        self.began.setdefault(PHASE_OF.get(info.name, 0), self.start)

    def run_after_pass(self, mod: tvm.IRModule, info: PassInfo) -> None:
        """Add what the pass took; some run in two phases."""
        self.passes[info.name] = self.passes.get(info.name, 0.0) + (time.process_time() - self.start) * 1e3

    def phases(self) -> list[float]:
        """What each phase took, when all is done."""
        began = [*self.began.values(), time.process_time()]
        return [(end - start) * 1e3 for start, end in pairwise(began)]


PHASE_OF = {one.name: phase for phase, passes in PHASES.items() for one in passes}


def least(rows: list[list[float]]) -> list[float]:
    """The least of each column: what a loaded machine adds is no part of the cost."""
    return [min(column) for column in zip(*rows, strict=True)]


def measured(program: Program, rounds: int) -> tuple[list[float], dict[str, float]]:
    """The least milliseconds of each phase and of each pass."""
    phases, passes = [], []
    for _ in range(rounds):
        clock = Clock()
        with tvm.transform.PassContext(instruments=[clock]):
            tvm.lower(*program)
        phases.append(clock.phases())
        passes.append(clock.passes)
    return least(phases), dict(zip(passes[0], least([list(row.values()) for row in passes]), strict=True))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passes", action="store_true", help="also the time of each pass that takes 1 % or more")
    options = parser.parse_args()
    programs = {"matmul": matmul(), "conv2d": conv2d(), "chain of 1,000": chain(1000), "chain of 2,000": chain(2000)}
    print(f"{'':<16}" + "".join(f"{f'phase {n}':>10}" for n in PHASES) + f"{'all':>10}   ms of processor time")
    for name, program in programs.items():
        phases, passes = measured(program, rounds=9 if "chain" not in name else 3)
        print(f"{name:<16}" + "".join(f"{value:>10.1f}" for value in (*phases, sum(phases))))
        for one, value in passes.items() if options.passes else ():
            if value >= 0.01 * sum(phases):
                print(f"    phase {PHASE_OF.get(one, 0)}  {one.removeprefix('tir.'):<28}{value:>10.1f}{value / sum(phases):>8.0%}")


if __name__ == "__main__":
    main()
