"""Run every step of the lesson on the emulator and print, or write, the table of what it counts.

python examples/gpu_steps/run_all.py [--size N] [--write]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from lesson import TARGET, Figures, load, measure, steps

PAGE = Path(__file__).parent / "README.md"
INTRODUCTION = f"""# A matrix product on a GPU in steps

Each file schedules the same product for NVIDIA's GPUs (`{TARGET}`), one optimisation further than the file before it; `diff` shows
the lines that make the difference. No GPU is needed: `tensorexpr.testing.ptx` runs the machine code and counts. Run one with
`python examples/gpu_steps/03_registers.py --size 128`. This page is written by `python examples/gpu_steps/run_all.py --write`.

What a GPU waits for stands in the columns, each for 1,024 multiply-adds of the product: instructions of warps, the part of them that
are products (32 multiply-adds of float32, 2,048 of a matrix unit), sectors of 32 bytes from and to global memory, and passes through
shared memory with those among them that bank conflicts take; and barriers of all blocks together. None of it is a time: nothing of
this page ran on hardware.

The last step is by rules, which cut a product as small as this one into small tiles, so that many multiprocessors have work; of
larger ones most of the loop's instructions are products ([the guide](../../docs/guides/gpu.md)).

"""


def main() -> None:
    """Print the table, or write the page with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--write", action="store_true", help="write README.md beside this script")
    options = parser.parse_args()
    page = table([measure(load(name)[0], options.size) for name in steps()])
    print(page)
    if options.write:
        PAGE.write_text(INTRODUCTION + page)


def table(found: Sequence[Figures]) -> str:
    """One line for each step: what it does, and what was counted."""
    size = found[0].size
    heads = f"| step | what is new | {size}^3: instructions | products | sectors | passes | conflicts | barriers |"
    lines = [heads, "|---|---|" + "---:|" * 6]
    for one in found:
        share = f"{one.products / one.instructions:.0%}"
        counts = f"{one.instructions:.1f} | {share} | {one.sectors:.1f} | {one.passes:.1f} | {one.conflicts:.1f} | {one.barriers}"
        lines.append(f"| [{one.step}]({one.step}.py) | {load(one.step)[1]} | {counts} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
