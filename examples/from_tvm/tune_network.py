"""A network tuned in each style: the auto-scheduler's task scheduler, MetaSchedule's database, and all of them in one search.

python examples/from_tvm/tune_network.py [--trials T] [--budget SECONDS]
"""

import argparse

import numpy as np

import tensorexpr as tvm
from tensorexpr import auto_scheduler, relax, relay
from tensorexpr import meta_schedule as ms
from tensorexpr.contrib import graph_executor, utils
from tensorexpr.relay import testing

TARGET = tvm.target.Target("llvm -num-cores 2")
DATA = np.random.default_rng(0).uniform(0, 1, (1, 1, 16, 16)).astype("float32")


def run(lib: relay.backend.executor_factory.ExecutorFactoryModule) -> np.ndarray:
    """What a network computes."""
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(data=DATA)
    result: np.ndarray = module.get_output(0).numpy()
    return result


def main() -> None:
    """Tune, build with what was found, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--budget", type=float, default=8.0)
    options = parser.parse_args()
    mod, params = testing.mlp.get_workload(batch_size=1, num_classes=10, image_shape=(1, 16, 16))
    expected = run(relay.build(mod, TARGET, params=params))
    with utils.tempdir() as folder:
        tasks, weights = auto_scheduler.extract_tasks(mod["main"], params, TARGET)
        log = folder.relpath("sketches.json")
        tuner = auto_scheduler.TaskScheduler(tasks, weights, callbacks=[])
        records = [auto_scheduler.RecordToFile(log)]
        tuner.tune(auto_scheduler.TuningOptions(max(options.trials, len(tasks)), verbose=0, measure_callbacks=records))
        with auto_scheduler.ApplyHistoryBest(log):
            tvm.testing.assert_allclose(run(relay.build(mod, TARGET, params=params)), expected, rtol=1e-4)
        print(f"sketches: {len(tasks)} tasks")

        few = ms.search_strategy.EvolutionarySearch(population_size=64, genetic_num_iters=1, time_limit_sec=0.5)
        logs = folder.relpath("ms")
        database = ms.relay_integration.tune_relay(mod, params, TARGET, logs, options.trials, num_trials_per_iter=1, strategy=few)
        lib = ms.relay_integration.compile_relay(database, mod, TARGET, params)
        tvm.testing.assert_allclose(run(lib), expected, rtol=1e-4)
        print(f"a database of {len(database)} records")

        tuned = relax.tune_network(
            mod, params, TARGET, budget_s=options.budget, records=folder.relpath("network.json"), progress=False,
            by=lambda task: "autotvm" if "relu" in task.desc else "meta_schedule",
        )  # fmt: skip
        tvm.testing.assert_allclose(relax.VirtualMachine(tuned.executable)["main"](DATA).numpy(), expected, rtol=1e-4)
        print(f"a template and rules in one search: {tuned.untuned_s >= tuned.tuned_s}")


if __name__ == "__main__":
    main()
