"""Lesson 12: one convolution tuned in three styles, and by all of them in one search.

A template with knobs (AutoTVM), sketches made by rules (the auto-scheduler), a schedule with random decisions (meta_schedule), and their
union: the records say which style won. Prints the curves of the best time over the trials, and writes them as a page.

python examples/12_three_styles.py [--channels C] [--size N] [--trials T] [--page curves.html]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import tensorexpr as tvm
from tensorexpr import autotvm, te
from tensorexpr import meta_schedule as ms
from tensorexpr.autotvm.space_generator import TemplateSpaces
from tensorexpr.driver.report.charts import best_curves
from tensorexpr.driver.report.page import document
from tensorexpr.meta_schedule.origin import space_of


def convolution(channels: int, size: int) -> list[te.Tensor]:
    """A 3x3 convolution of an image that is padded already, with as many output channels as input channels."""
    data = te.placeholder((channels, size + 2, size + 2), name="data")
    weight = te.placeholder((channels, channels, 3, 3), name="weight")
    rc, ry, rx = (te.reduce_axis((0, n), name=name) for n, name in ((channels, "rc"), (3, "ry"), (3, "rx")))
    conv = te.compute(
        (channels, size, size),
        lambda o, y, x: te.sum(data[rc, y + ry, x + rx] * weight[o, rc, ry, rx], axis=[rc, ry, rx]),
        name="conv",
    )
    return [data, weight, conv]


@autotvm.template("lesson/conv")
def template(channels: int, size: int) -> tuple[tvm.te.Schedule, list[te.Tensor]]:
    """Tiles of rows and columns, the innermost columns a vector, some of the window written out."""
    data, weight, conv = convolution(channels, size)
    s = te.create_schedule(conv.op)
    (o, y, x), (rc, ry, rx) = conv.op.axis, conv.op.reduce_axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_o", o, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=3)
    cfg.define_split("tile_rc", rc, num_outputs=2, max_factor=16)
    cfg.define_knob("unroll_window", [False, True])
    oo, oi = cfg["tile_o"].apply(s, conv, o)
    xo, xm, xi = cfg["tile_x"].apply(s, conv, x)
    ro, ri = cfg["tile_rc"].apply(s, conv, rc)
    s[conv].reorder(oo, y, xo, ro, ry, rx, ri, oi, xm, xi)
    s[conv].vectorize(xi)
    if cfg["unroll_window"].val:
        s[conv].unroll(rx)
    s[conv].parallel(s[conv].fuse(oo, y))
    return s, [data, weight, conv]


def stochastic(sch: tvm.tir.Schedule) -> None:
    """Random tiles of channels and columns."""
    block = sch.get_block("conv")
    o, y, x, rc, ry, rx = sch.get_loops(block)
    oo, oi = sch.split(o, sch.sample_perfect_tile(o, n=2, max_innermost_factor=8))
    xo, xi = sch.split(x, sch.sample_perfect_tile(x, n=2, max_innermost_factor=64))
    sch.reorder(oo, y, xo, rc, ry, rx, oi, xi)
    sch.vectorize(xi)
    sch.parallel(sch.fuse(oo, y))


def tune(mod: tvm.IRModule, space: ms.space_generator.SpaceGenerator, trials: int) -> tuple[list[float], str]:
    """The best seconds after each trial, and the space of the best program."""
    # A round's programs are chosen among many; a few trials aren't worth seconds of that.
    strategy = ms.search_strategy.EvolutionarySearch(
        population_size=min(512, 16 * trials), genetic_num_iters=min(4, 1 + trials // 8), time_limit_sec=min(2.5, 0.1 * trials)
    )
    rounds = max(4, trials // 4)
    folder = tempfile.mkdtemp()
    database = ms.tune_tir(
        mod, target="llvm", work_dir=folder, max_trials_global=trials, num_trials_per_iter=rounds, space=space, strategy=strategy
    )
    records = database.get_all_tuning_records()
    times = [float("inf") if not record.is_valid else record.mean for record in records]
    best = min(range(len(times)), key=times.__getitem__)
    return [min(times[: n + 1]) for n in range(len(times))], space_of(records[best].trace)


def text(curves: Mapping[str, Sequence[float]]) -> str:
    """The curves as a table: the best time after a quarter, a half, ... of the trials."""
    lines = [f"{'style':12}" + "".join(f"{share:>10}" for share in ("1/4", "1/2", "3/4", "all")) + "   us"]
    for name, curve in curves.items():
        lines.append(f"{name:12}" + "".join(f"{1e6 * curve[max(0, len(curve) * n // 4 - 1)]:10.1f}" for n in range(1, 5)))
    return "\n".join(lines)


def main() -> None:
    """Tune by each style and by their union, and show the curves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--page", default="")
    options = parser.parse_args()
    shape = (options.channels, options.size)
    mod = tvm.IRModule({"main": te.create_prim_func(convolution(*shape))})
    styles = {
        "template": TemplateSpaces(template, shape),
        "sketches": ms.space_generator.TensorSketchSpace(),
        "stochastic": ms.space_generator.ScheduleFn(stochastic),
    }
    spaces = {**styles, "union": ms.space_generator.SpaceGeneratorUnion([space.clone() for space in styles.values()])}
    curves = {}
    for name, space in spaces.items():
        curves[name], winner = tune(mod, space, options.trials)
    print(text(curves))
    print(f"the union's best program is of {winner}")
    if options.page:
        title = f"A convolution of {options.channels} x {options.size} x {options.size}, the best time so far of each style"
        Path(options.page).write_text(document(title, f"{best_curves(curves)}\n<p>The union's best program is of {escape(winner)}.</p>"))
        print(f"the curves are in {options.page}")


if __name__ == "__main__":
    main()
