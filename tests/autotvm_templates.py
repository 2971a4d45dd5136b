"""Templates for the tests of AutoTVM: registered when this module is imported."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

from tensorexpr import autotvm, te
from tensorexpr.autotvm.measure import Runner
from tensorexpr.schedule.te_schedule import Schedule
from tensorexpr.te import Tensor

Made = tuple[Schedule, list[Tensor]]
TARGET = "llvm -mcpu=x86-64-v2 -num-cores=1"


def product(n: int, name: str = "C") -> tuple[Tensor, Tensor, Tensor]:
    a, b = te.placeholder((n, n), "float32", name="A"), te.placeholder((n, n), "float32", name="B")
    k = te.reduce_axis((0, n), name="k")
    return a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name=name)


@autotvm.template("tests/matmul")
def matmul(n: int) -> Made:
    """Both axes tiled, the inner column made a vector or not."""
    a, b, c = product(n)
    s = te.create_schedule(c.op)
    y, x = c.op.axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    cfg.define_knob("vector", [False, True])
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, c.op.reduce_axis[0], yi, xi)
    if cfg["vector"].val:
        s[c].vectorize(xi)
    return s, [a, b, c]


@autotvm.template("tests/packed")
def packed(n: int) -> Made:
    """A product of a packed operand: the panel's width, and so the computation, depends on a knob."""
    a, b = te.placeholder((n, n), "float32", name="A"), te.placeholder((n, n), "float32", name="B")
    cfg = autotvm.get_config()
    cfg.define_split("panel", n, num_outputs=2)
    width = cfg["panel"].size[-1]
    panels = te.compute((n // width, n, width), lambda o, r, i: b[r, o * width + i], name="panels")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * panels[j // width, k, j % width], axis=k), name="C")
    return te.create_schedule(c.op), [a, b, c]


@autotvm.template("tests/failing")
def failing(n: int) -> Made:
    """Some knobs make programs; others an error of the template, of the schedule, or a refusal."""
    a, b, c = product(n)
    s = te.create_schedule(c.op)
    cfg = autotvm.get_config()
    cfg.define_knob("way", ["fine", "raises", "illegal", "refuses", "unknown knob"])
    match cfg["way"].val:
        case "raises":
            raise ZeroDivisionError("this template divides by nothing")
        case "illegal":
            s[c].vectorize(c.op.axis[1])
            s[c].split(c.op.axis[1], factor=2)
        case "refuses":
            cfg.raise_error("too large for this device")
        case "unknown knob":
            cfg["tile_q"].apply(s, c, c.op.axis[0])
    return s, [a, b, c]


class MadeUpRunner(Runner):
    """Gives times that nobody measured."""

    def __init__(self, times: Sequence[float] = ()) -> None:
        super().__init__(1, 1)
        self.times = list(times)

    def get_build_kwargs(self) -> dict[str, Any]:
        return {}

    def run(self, measure_inputs: Any, build_results: Any) -> list[Any]:
        made = [self.times[made.config.index] if self.times else random.random() for made in measure_inputs]
        return [autotvm.MeasureResult((seconds,), 0, 0.1, time.time()) for seconds in made]


class NoBuilder(autotvm.measure.Builder):
    """Builds nothing, for runners that make times up."""

    def build(self, measure_inputs: Any) -> list[None]:
        return [None for _ in measure_inputs]


def made_up(times: Sequence[float] = ()) -> dict[str, Any]:
    return autotvm.measure_option(NoBuilder(n_parallel=2), MadeUpRunner(times))
