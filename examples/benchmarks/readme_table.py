"""Write the README's performance table from the measured results.

    python examples/benchmarks/readme_table.py            # rewrite the README
    python examples/benchmarks/readme_table.py --print    # only show the table

The results are files of `python -m tensorexpr bench --suite NAME --json examples/benchmarks/results/NAME.json`; those of a
processor without AVX-512 are in a folder of their own, `results/avx2`; those of another processor with AVX-512 are in one that has its
name, and those of the same processor held to AVX2 by `--isa avx2` in one beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from tensorexpr.driver.bench.rows import Results, geometric_mean, read
from tensorexpr.driver.bench.table import fastest_of_ours, ratio_to_best_peer

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"
# Figures of other programs than `bench`: search.py, cost_models.py.
OTHERS = {"search", "cost_models"}
START, END = "<!-- performance: start -->", "<!-- performance: end -->"


def summary(name: str, results: Results) -> str:
    """One row of the table: a suite, and its geometric means against PyTorch and against the best peer of each case."""
    ratios = [value for case in results.cases() if (value := ratio_to_best_peer(results, case)) == value]
    torch = _against(results, "torch")
    worst, best = (min(ratios), max(ratios)) if ratios else (float("nan"),) * 2
    means = f"{f'{geometric_mean(torch):.2f}x' if torch else 'not measured'} | {geometric_mean(ratios):.2f}x"
    return f"| {_label(name, results)} | {len(results.cases())} | {means} | {worst:.2f}x to {best:.2f}x |"


def _label(name: str, results: Results) -> str:
    """The suite, and whether its kernels are the faster of a default and a tuned one."""
    return f"{name}, default or tuned" if any(row.trials for row in results.rows) else name


def _against(results: Results, peer: str) -> list[float]:
    found = []
    for case in results.cases():
        ours = fastest_of_ours(results, case)
        other = next((row.low for row in results.of_case(case) if row.contender == peer and row.low == row.low), None)
        if ours is not None and other is not None:
            found.append(other / ours.low)
    return found


def tables() -> str:
    """A table for each machine that was measured."""
    found = [table(folder) for folder in (RESULTS, *sorted(path for path in RESULTS.iterdir() if path.is_dir()))]
    return "\n\n".join(text for text in found if text) or "No results are committed yet."


def table(folder: Path) -> str:
    """The table of the files in a folder, with a line about the machine; nothing if there are none."""
    files = {path.stem: read(path) for path in sorted(folder.glob("*.json")) if path.stem not in OTHERS}
    if not files:
        return ""
    machine = next(iter(files.values())).machine
    found: dict[str, str] = {}
    for results in files.values():
        found.update(results.machine["versions"])
    versions = ", ".join(
        f"{name} {version.removeprefix('OpenBLAS ').split()[0]}" for name, version in found.items() if name != "tensorexpr"
    )
    lines = [
        f"{machine['processor']}{_held(files.values())}, {machine['threads']} threads, {machine['date']}; {versions}. "
        "Default schedules, nothing tuned but where a row says so.",
        "",
        "| suite | cases | vs PyTorch | vs the best peer of each case | best peer, worst to best case |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(summary(name, results) for name, results in files.items())])


def _held(results: Iterable[Results]) -> str:
    """What instructions were allowed, where those were fewer than the processor has."""
    held = {one.machine.get("isa", "native") for one in results} - {"native"}
    return f" held to {', '.join(sorted(held)).upper()}" if held else ""


def main() -> None:
    """Rewrite the README, or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    if options.print:
        print(tables())
        return
    readme = ROOT / "README.md"
    text = readme.read_text()
    before, after = text.split(START)[0], text.split(END)[1]
    readme.write_text(f"{before}{START}\n{tables()}\n{END}{after}")


if __name__ == "__main__":
    main()
