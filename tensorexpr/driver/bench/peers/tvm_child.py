"""Run by TVM's own interpreter, never imported here: declares a case with TVM, tunes it with its auto-scheduler, and times it.

Reads one JSON object a line and answers with one: {"prepare": name, "args": [...], "arrays": [paths], "log": path, "trials": n},
then {"time": count} as often as wanted, then {"result": path}.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
import tvm
from tvm import auto_scheduler, te, topi


def gemm(m: int, n: int, k: int) -> list[Any]:
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    return [a, b, topi.nn.matmul(a, b)]


def batch_gemm(b: int, m: int, n: int, k: int, transpose_b: bool = False) -> list[Any]:
    x = te.placeholder((b, m, k), name="A")
    y = te.placeholder((b, n, k) if transpose_b else (b, k, n), name="B")
    return [x, y, topi.nn.batch_matmul(x, y, transpose_b=transpose_b)]


def conv2d_bias_relu(n: int, ci: int, h: int, w: int, co: int, kernel: int, stride: int = 1, padding: int = 0) -> list[Any]:
    data, weight = te.placeholder((n, ci, h, w), name="data"), te.placeholder((co, ci, kernel, kernel), name="weight")
    bias = te.placeholder((co,), name="bias")
    conv = topi.nn.conv2d_nchw(data, weight, stride, padding, 1)
    return [data, weight, bias, topi.nn.relu(te.compute(conv.shape, lambda b, c, y, x: conv[b, c, y, x] + bias[c], name="biased"))]


def depthwise_nchw(n: int, c: int, h: int, w: int, kernel: int, stride: int = 1, padding: int = 0, fused: bool = False) -> list[Any]:
    data, weight = te.placeholder((n, c, h, w), name="data"), te.placeholder((c, 1, kernel, kernel), name="weight")
    return [data, weight, topi.nn.depthwise_conv2d_nchw(data, weight, stride, padding, 1)]


def softmax(m: int, n: int) -> list[Any]:
    data = te.placeholder((m, n), name="A")
    return [data, topi.nn.softmax(data)]


WORKLOADS = {
    "suite.gemm": gemm,
    "suite.batch_gemm": batch_gemm,
    "suite.conv2d_bias_relu": conv2d_bias_relu,
    "suite.depthwise_nchw": depthwise_nchw,
    "suite.softmax": softmax,
}
for name, function in WORKLOADS.items():
    auto_scheduler.register_workload(name, function)


def prepare(request: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """TVM's best program for a workload, tuned first if its log has no record: function, arguments with the output last, facts.

    Without a function the facts say under "unsupported" why there is none.
    """
    if request["prepare"] not in WORKLOADS:
        return None, None, {"unsupported": "not declared for TVM"}
    target = tvm.target.Target(request["target"])
    task = auto_scheduler.SearchTask(func=request["prepare"], args=tuple(request["args"]), target=target)
    try:
        schedule, args = task.apply_best(request["log"])
    except RuntimeError:
        if not request["trials"]:
            return None, None, {"unsupported": "no record in TVM's log; give --tvm-trials"}
        task.tune(
            auto_scheduler.TuningOptions(
                num_measure_trials=request["trials"],
                measure_callbacks=[auto_scheduler.RecordToFile(request["log"])],
                runner=auto_scheduler.LocalRunner(enable_cpu_cache_flush=False),
                verbose=0,
            )
        )
        schedule, args = task.apply_best(request["log"])
    function = tvm.build(schedule, args, target)
    arrays = [tvm.nd.array(np.load(path)) for path in request["arrays"]]
    output = tvm.nd.array(np.zeros([int(x) for x in args[-1].shape], args[-1].dtype))
    return function, [*arrays, output], {"version": tvm.__version__}


def main() -> None:
    """Answer requests, one JSON object a line, until the input ends: prepare a workload, time it n times, or run it and save the result."""
    # TVM prints to standard output; answers go where that led, and what is printed to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    function: Any = None
    arrays: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        if "prepare" in request:
            function, arrays, answer = prepare(request)
        elif "time" in request:
            timer = function.time_evaluator(function.entry_name, tvm.cpu(), number=request["time"], repeat=1)
            answer = {"seconds": timer(*arrays).mean}
        else:
            function(*arrays)
            np.save(request["result"], arrays[-1].numpy())
            answer = {}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
