"""What building a network takes: seconds of each step from its file to the first result, and the memory that the process needs on top.

    python examples/benchmarks/building.py [resnet50] [--runs 3] [--cold] [--kept]

Each run is a process of its own. With --cold the object cache is empty, with --kept the imported module stays alive beside what is built of
it, as it does for a program that gives it a name. Python's byte code is kept from one run to the next, as it is for installed packages.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

STEPS = ("library", "model", "build", "first call")


def peak() -> float:
    """The most memory that this process has had, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def measure(path: str, is_kept: bool) -> None:
    """Print the seconds of the steps in this process, and the memory on top of what was there before the library."""
    times = [time.perf_counter()]
    import onnx  # whose memory isn't ours, but whose import belongs to the time

    before = peak()
    from tensorexpr import relax
    from tensorexpr.driver.bench.networks.models import random_feeds
    from tensorexpr.relax.frontend.onnx import from_onnx

    times.append(time.perf_counter())
    made = [from_onnx(path)]
    times.append(time.perf_counter())
    machine = relax.VirtualMachine(relax.build(made[0] if is_kept else made.pop()))
    times.append(time.perf_counter())
    shapes = onnx.ModelProto.FromString(Path(path).with_suffix(".inputs").read_bytes())
    feeds = list(random_feeds(shapes).values())
    start = time.perf_counter()
    machine["main"](*feeds)
    seconds = [b - a for a, b in pairwise(times)] + [time.perf_counter() - start]
    print(*(f"{one:.3f}" for one in seconds), f"{peak() - before:.1f}")


def write(name: str, path: Path) -> None:
    """A network of the benchmark's as a file, and beside it a model that has its inputs alone."""
    import onnx

    from tensorexpr.driver.bench.networks.models import NETWORKS

    model = NETWORKS[name]()
    onnx.save(model, path)
    for field in ("initializer", "node"):
        model.graph.ClearField(field)
    onnx.save(model, path.with_suffix(".inputs"))


def main() -> None:
    """Measure, and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", nargs="?", default="resnet50")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--step", choices=("write", "measure"), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == "write":
        return write(options.network, options.file)
    if options.step == "measure":
        return measure(str(options.file), options.kept)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "network.onnx")
        command = [sys.executable, __file__, options.network, "--file", str(path), *(["--kept"] if options.kept else [])]
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        subprocess.run([*command, "--step", "write"], check=True, env=environment)
        weights = path.stat().st_size / 1e6
        print(f"{options.network}: {weights:.0f} MB; seconds for {', '.join(STEPS)}; MB on top")
        subprocess.run([*command, "--step", "measure"], check=True, env=environment, stdout=subprocess.DEVNULL)
        for run in range(options.runs):
            if options.cold:
                environment["TENSOREXPR_CACHE_DIR"] = f"{folder}/objects{run}"
            done = subprocess.run([*command, "--step", "measure"], check=True, env=environment, capture_output=True, text=True)
            *seconds, memory = map(float, done.stdout.split())
            print(
                f"{sum(seconds):6.2f} s: {'  '.join(f'{one:.2f}' for one in seconds)};  {memory:.0f} MB, {memory / weights:.2f} x the file"
            )
    return None


if __name__ == "__main__":
    main()
