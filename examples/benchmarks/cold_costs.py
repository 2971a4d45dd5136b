"""What a process pays before its first result, step by step, and what a call costs later.

    python examples/benchmarks/cold_costs.py
    python examples/benchmarks/cold_costs.py --cpu      processor time, for a machine that is busy with other things

Every figure of the first table is the least of several fresh processes: without the object cache, with an empty one, and
with one that an earlier process filled. It writes to a temporary cache, never to yours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

ROUNDS = 5
CALLS = 2000

# A process of its own: prints the seconds of its steps, and those that the module noted, as JSON.
PROCESS = """
import json, sys, time
clock = time.process_time if "--cpu" in sys.argv else time.perf_counter
marks = {}
last = clock()
def mark(step):
    global last
    now = clock()
    marks[step] = now - last
    last = now

import numpy as np
mark("import numpy")
import tensorexpr as tvm
from tensorexpr import te
mark("import tensorexpr")
N = 1024
a, b = (te.placeholder((N, N), name=name) for name in "AB")
k = te.reduce_axis((0, N), name="k")
c = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
mark("declare")
s = te.create_schedule(c.op)
tile = s.cache_write(c, "local")
io, jo, _, ji = s[c].tile(*s[c].op.axis, 64, 64)
block = s[c].fuse(io, jo)
s[c].parallel(block)
s[c].vectorize(s[c].split(ji, factor=32)[1])
s[tile].compute_at(s[c], block)
(i, j), (k,) = s[tile].op.axis, s[tile].op.reduce_axis
i1, i2 = s[tile].split(i, factor=8)
j1, j2 = s[tile].split(j, factor=32)
ko, ki = s[tile].split(k, factor=64)
s[tile].reorder(ko, i1, j1, ki, i2, j2)
s[tile].vectorize(j2)
mark("schedule (first use loads it)")
build = tvm.build
mark("import of build")
import llvmlite.binding
mark("import of LLVM")
module = build(s, [a, b, c])
mark("build")
function = module.entry_func
mark("load the code")
x, y, z = (np.ones((N, N), np.float32) for _ in range(3))
mark("arrays")
module(x, y, z)
mark("first call")
for _ in range(3):
    module(x, y, z)
    mark("later call")
assert (z == N).all()
print(json.dumps([marks, {f"  build: {step}, wall": value for step, value in module.timings.items() if step != "load"}]))
"""

CALLED = "declare", "schedule (first use loads it)", "import of build", "import of LLVM", "build", "load the code"


def one_process(folder: str | None) -> dict[str, float]:
    """The seconds of each step of one process with this cache folder, or without a cache."""
    cache = {"TENSOREXPR_CACHE": "0"} if folder is None else {"TENSOREXPR_CACHE": "1", "TENSOREXPR_CACHE_DIR": folder}
    environment = {key: value for key, value in os.environ.items() if key not in ("TENSOREXPR_VERIFY", "PYTHONDONTWRITEBYTECODE")}
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, *sys.argv[1:]], env={**environment, **cache}, capture_output=True, text=True, check=True
    )
    marks, steps = json.loads(done.stdout)
    found: dict[str, float] = {**marks, **steps}
    found["te to callable"] = sum(marks[step] for step in CALLED)
    return found


def least(run: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The least of each step over several runs."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for step, value in run().items():
            best[step] = min(value, best.get(step, value))
    return best


def empty_cache() -> dict[str, float]:
    """A process that finds nothing."""
    with tempfile.TemporaryDirectory() as folder:
        return one_process(folder)


def print_cold_costs() -> None:
    """The table of steps."""
    one_process(None)  # writes bytecode, fills the system's file cache
    with tempfile.TemporaryDirectory() as folder:
        one_process(folder)
        columns = [least(lambda: one_process(None)), least(empty_cache), least(lambda: one_process(folder))]
    steps = list(dict.fromkeys(step for column in columns for step in column))
    clock = "milliseconds of processor" if "--cpu" in sys.argv else "milliseconds"
    print(f"{clock:<32}{'no cache':>12}{'empty cache':>12}{'filled':>12}")
    for step in sorted(steps, key=lambda step: step == "te to callable"):
        print(f"{step:<32}" + "".join(f"{column[step] * 1e3:12.1f}" if step in column else f"{'-':>12}" for column in columns))


def nanoseconds(work: Callable[[], object]) -> float:
    """Per call, the least of several rounds."""
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            work()
        best = min(best, (time.perf_counter_ns() - start) / CALLS)
    return best


def print_call_overhead() -> None:
    """Calls of a kernel that does next to nothing, with four checked arrays, and the second build of one process."""
    import tensorexpr as tvm
    from tensorexpr import te

    inputs = [te.placeholder((4,), name=name) for name in "ABC"]
    out = te.compute((4,), lambda i: inputs[0][i] + inputs[1][i] + inputs[2][i], name="D")
    module = tvm.build(te.create_schedule(out.op), [*inputs, out])
    function = module.entry_func
    arrays = [np.zeros(4, np.float32) for _ in range(4)]
    own = [tvm.nd.array(array) for array in arrays]
    mixed = [arrays[0], own[1], arrays[2], own[3]]
    print("\nnanoseconds per call, four checked arrays")
    for name, args in (("NumPy", arrays), ("nd.array", own), ("mixed", mixed)):
        for kind, called in (("module", module), ("function", function)):
            print(f"{f'{kind}, {name}':<32}{nanoseconds(lambda called=called, args=args: called(*args)):12.0f}")  # type: ignore[misc]
    lowered = tvm.lower(te.create_schedule(out.op), [*inputs, out])
    print(f"{'lower a lowered module':<32}{nanoseconds(lambda: tvm.lower(lowered)):12.0f}")


if __name__ == "__main__":
    print_cold_costs()
    print_call_overhead()
