"""Measure every step of the lesson and print, or write, the table of figures.

python examples/gemm_steps/run_all.py [--size N ...] [--quick] [--write]
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from lesson import TARGET, Figures, load, measure, steps

PAGE = Path(__file__).parent / "README.md"
INTRODUCTION = """# A matrix product in steps

Each file schedules the same product, one optimisation further than the file before it; `diff` shows the lines that make
the difference. Run one with `python examples/gemm_steps/04_register_tile.py --size 1024`. This page is written by
`python examples/gemm_steps/run_all.py --write`.

"""


def main() -> None:
    """Print the table, or write the page with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, nargs="+", default=[1024, 1009])
    parser.add_argument("--quick", action="store_true", help="time few calls")
    parser.add_argument("--write", action="store_true", help="write README.md beside this script")
    options = parser.parse_args()
    found, skipped = figures(options.size, options.quick)
    page = table(found, options.size) + "".join(f"\n{line}\n" for line in skipped)
    print(page)
    if options.write:
        PAGE.write_text(INTRODUCTION + page + "\n" + machine())


def figures(sizes: Sequence[int], quick: bool) -> tuple[list[Figures], list[str]]:
    """The figures of all steps at all sizes, and a line for each that this processor can't do."""
    found, skipped = [], []
    for name in steps():
        step = load(name)
        if step.needs and step.needs not in TARGET.features:
            skipped.append(f"{name} isn't measured: this processor has no {step.needs}.")
            continue
        found += [measure(step.schedule, size, quick) for size in sizes if size % step.multiple == 0]
    return found, skipped


def table(found: Sequence[Figures], sizes: Sequence[int]) -> str:
    """One line for each step: what it does, its GFLOPS at each size and how that compares with NumPy."""
    known = {(one.step, one.size): one for one in found}
    heads = " | ".join(f"{size}^3: GFLOPS | x NumPy" for size in sizes)
    lines = [f"| step | what is new | {heads} |", "|---|---|" + "---:|---:|" * len(sizes)]
    for name in dict.fromkeys(one.step for one in found):
        cells = [known.get((name, size)) for size in sizes]
        figures = " | ".join(" | " if cell is None else f"{cell.gflops:.1f} | {cell.ratio:.3g}" for cell in cells)
        lines.append(f"| [{name}]({name}.py) | {load(name).summary} | {figures} |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    """What the figures were measured on."""
    today = datetime.date.today().isoformat()
    return f"Measured on {today}: {TARGET.mcpu}, {TARGET.num_cores} threads, {TARGET.vector_bits}-bit vectors; NumPy {np.__version__}.\n"


if __name__ == "__main__":
    main()
