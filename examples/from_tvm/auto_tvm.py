"""Templates with knobs: one of one's own is tuned, then the operators of a network by the templates of topi.

python examples/from_tvm/auto_tvm.py [--trials T]
"""

import argparse
import logging

import numpy as np

import tensorexpr as tvm
from tensorexpr import autotvm, relay, te
from tensorexpr.contrib import graph_executor, utils


@autotvm.template("from_tvm/blocked")
def blocked(rows: int, columns: int, depth: int) -> tuple[te.Schedule, list[te.Tensor]]:
    """A matrix product in blocks: their sizes, the order of the loops and what becomes of the inner ones are knobs."""
    a, b = te.placeholder((rows, depth), name="a"), te.placeholder((depth, columns), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c.op)
    i, j = s[c].op.axis
    cfg = autotvm.get_config()
    cfg.define_split("rows", i, num_outputs=2)
    cfg.define_split("columns", j, num_outputs=2, filter=lambda entity: entity.size[-1] <= 64)
    cfg.define_split("depth", k, num_outputs=2, policy="verbose", max_factor=16)
    (io, ii), (jo, ji) = cfg["rows"].apply(s, c, i), cfg["columns"].apply(s, c, j)
    ko, ki = cfg["depth"].apply(s, c, k)
    cfg.define_reorder("inner", [ki, ii, ji], policy="candidate", candidate=[[ki, ii, ji], [ii, ki, ji]])
    s[c].reorder(io, jo, ko, *cfg["inner"].apply(s, c, [ki, ii, ji]))
    cfg.define_annotate("innermost", [ji], policy="try_unroll_vec")
    cfg["innermost"].apply(s, c, [ji])
    if cfg["rows"].size[-1] * cfg["columns"].size[-1] > 4096:
        cfg.raise_error("a block this large isn't worth trying")
    return s, [a, b, c]


def tune_template(trials: int) -> None:
    """Tune the product, and build what the log says is the best of it."""
    task = autotvm.task.create("from_tvm/blocked", args=(48, 64, 32), target="llvm")
    print(task.config_space)
    option = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(number=3, repeat=1, min_repeat_ms=2))
    with utils.tempdir() as folder:
        log = folder.relpath("blocked.log")
        tuner = autotvm.tuner.XGBTuner(task, feature_type="knob")
        tuner.tune(n_trial=trials, measure_option=option, callbacks=[autotvm.callback.log_to_file(log)])
        with autotvm.apply_history_best(log), tvm.target.Target("llvm"):
            s, args = blocked(48, 64, 32)
            func = tvm.build(s, args)
    x, y = np.random.default_rng(0).random((48, 32), np.float32), np.random.default_rng(1).random((32, 64), np.float32)
    out = tvm.nd.empty((48, 64))
    func(tvm.nd.array(x), tvm.nd.array(y), out)
    tvm.testing.assert_allclose(out.numpy(), x @ y, rtol=1e-4)
    print(f"the best of {trials} configurations: {tuner.best_config}")


def network() -> tuple[tvm.IRModule, dict[str, tvm.nd.NDArray]]:
    """A convolution, its activation, and a layer that tells five classes apart."""
    data, kernel, weight = (
        relay.var("data", shape=(1, 8, 10, 10)),
        relay.var("kernel", shape=(16, 8, 3, 3)),
        relay.var("weight", shape=(5, 1600)),
    )
    hidden = relay.nn.relu(relay.nn.conv2d(data, kernel, padding=(1, 1), channels=16, kernel_size=(3, 3)))
    func = relay.Function([data, kernel, weight], relay.nn.softmax(relay.nn.dense(relay.nn.batch_flatten(hidden), weight)))
    rng = np.random.default_rng(2)
    values = {"kernel": rng.standard_normal((16, 8, 3, 3)), "weight": rng.standard_normal((5, 1600))}
    return tvm.IRModule.from_expr(func), {name: tvm.nd.array(value.astype("float32")) for name, value in values.items()}


def tune_network(trials: int) -> None:
    """Tune each task of the network, keep the best of all in one log, and build the network with it."""
    mod, params = network()
    target = tvm.target.Target("llvm")
    tasks = autotvm.task.extract_from_program(mod["main"], target=target, params=params)
    option = autotvm.measure_option(
        builder=autotvm.LocalBuilder(), runner=autotvm.LocalRunner(number=1, repeat=2, min_repeat_ms=0, enable_cpu_cache_flush=True)
    )
    with utils.tempdir() as folder:
        every, best = folder.relpath("every.log"), folder.relpath("best.log")
        for number, task in enumerate(reversed(tasks), 1):
            planned = min(trials, len(task.config_space))
            bar = autotvm.callback.progress_bar(planned, prefix=f"[task {number}/{len(tasks)}, {task.name}]")
            tuner = autotvm.tuner.GATuner(task, pop_size=8)
            tuner.tune(n_trial=planned, early_stopping=trials, measure_option=option, callbacks=[bar, autotvm.callback.log_to_file(every)])
        autotvm.record.pick_best(every, best)
        with autotvm.apply_history_best(best), tvm.transform.PassContext(opt_level=3):
            library = relay.build(mod, target=target, params=params)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    module.set_input("data", np.ones((1, 8, 10, 10), "float32"))
    module.run()
    assert abs(float(module.get_output(0).numpy().sum()) - 1) < 1e-5
    print(f"{len(tasks)} tasks: {', '.join(task.name for task in tasks)}")


def main() -> None:
    """Both, with few trials."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=6)
    trials = parser.parse_args().trials
    logging.getLogger("tensorexpr").setLevel(logging.ERROR)
    tune_template(trials)
    tune_network(trials)


if __name__ == "__main__":
    main()
