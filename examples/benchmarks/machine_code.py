"""Hot loops of all suites, compiled for CPUs that need not be here: what is wrong with each, by CPU.

    python examples/benchmarks/machine_code.py --suite resnet50 --cpu znver3 --cpu neoverse-n1

A line for each case and CPU that has a problem, and a table of counts in the end. Nothing is run.
"""

from __future__ import annotations

import argparse
from collections import Counter

from tensorexpr.errors import TensorExprError
from tensorexpr.target import Target
from tensorexpr.testing.machine_code import assembly, hot_loop
from tensorexpr.topi.schedules import default_schedule
from tensorexpr.workloads import SUITES, Case, suite

CPUS = ("x86-64-v2", "haswell", "znver3", "alderlake", "skylake-avx512", "znver5", "neoverse-n1", "apple-m1")
# Suites whose limit is the arithmetic: their multiply-adds take no fewer cycles than their loads.
PRODUCTS = ("resnet50", "resnet50_packed", "gemm")


def target_of(cpu: str) -> Target:
    """Two cores of a CPU."""
    arch = "x86_64" if cpu not in CPUS[-2:] else "aarch64"
    return Target(f"llvm -mtriple={arch}-unknown-linux-gnu -mcpu={cpu} -num-cores=2")


def problems_of(case: Case, target: Target, balance: float) -> list[str]:
    """What is wrong with the hot loop of a case, in words."""
    tensors = case.tensors()
    try:
        loop = hot_loop(assembly(default_schedule(tensors, target), tensors, target))
    except TensorExprError as error:
        return [f"refused: {error}"]
    return ["no loop on vectors"] if loop is None else loop.problems(target.machine, balance)


def kind_of(problem: str) -> str:
    """A problem without its numbers."""
    return " ".join(word for word in problem.split() if not word.isdigit())


def main() -> None:
    """Look at the suites that are asked for."""
    parser = argparse.ArgumentParser(description="Problems of hot loops, by CPU.")
    parser.add_argument("--suite", action="append", choices=sorted(SUITES), help="may be given several times; default all")
    parser.add_argument("--cpu", action="append", choices=CPUS, help="may be given several times; default all")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    options = parser.parse_args()
    cpus, names = options.cpu or CPUS, options.suite or sorted(SUITES)
    counts: Counter[tuple[str, str]] = Counter()
    total = 0
    for name in names:
        for case in suite(name):
            if options.case not in case.name:
                continue
            total += 1
            for cpu in cpus:
                found = problems_of(case, target_of(cpu), float(name in PRODUCTS))
                if found:
                    print(f"{name}/{case.name} {cpu}: {', '.join(found)}", flush=True)
                counts.update((kind_of(problem), cpu) for problem in found)
                counts["cases with a problem", cpu] += bool(found)
    kinds = sorted({kind for kind, _ in counts})
    width = max(map(len, kinds), default=0)
    print(f"\n{total} cases\n{'':{width}}" + "".join(f"{cpu:>16}" for cpu in cpus))
    for kind in kinds:
        print(f"{kind:<{width}}" + "".join(f"{counts[kind, cpu]:>16}" for cpu in cpus))


if __name__ == "__main__":
    main()
