"""A network by Relay's names: built, run and timed by the graph executor, saved and loaded, and its passes.

python examples/from_tvm/relay_quick_start.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import graph_executor, utils
from tensorexpr.relay import testing


def main() -> None:
    """Build a small network of convolutions, compare two executors, and send it through a file."""
    x = relay.var("data", shape=(1, 3, 32, 32))
    for name, channels, stride in (("first", 8, 2), ("second", 16, 2)):
        weight = relay.var(f"{name}_weight", shape=(channels, int(x.checked_type.shape[1]), 3, 3))
        x = relay.nn.conv2d(x, weight, strides=(stride, stride), padding=(1, 1), kernel_size=(3, 3), channels=channels)
        norm = [relay.var(f"{name}_{part}", shape=(channels,)) for part in ("gamma", "beta", "moving_mean", "moving_var")]
        x = relay.nn.relu(relay.nn.batch_norm(x, *norm)[0])
    x = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x)), relay.var("classes_weight", shape=(10, 16)))
    mod, params = testing.create_workload(relay.Function(tuple(relay.analysis.free_vars(x)), relay.nn.softmax(x)))
    target = tvm.target.Target("llvm")
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=target, params=params)
    dev = tvm.cpu()
    module = graph_executor.GraphModule(lib["default"](dev))
    data = np.random.default_rng(0).uniform(-1, 1, (1, 3, 32, 32)).astype("float32")
    module.set_input("data", data)
    module.run()
    out = module.get_output(0, tvm.nd.empty((1, 10))).numpy()
    plain = relay.create_executor("debug", mod, dev, target, params).evaluate()(data)
    tvm.testing.assert_allclose(out, plain.numpy(), rtol=1e-3, atol=1e-5)
    print(f"class {out.argmax()} of {out.shape[1]}; {len(module.benchmark(dev, repeat=2, number=3).results)} timings")

    with utils.tempdir() as folder:
        path = folder.relpath("network.so")
        lib.export_library(path)
        loaded = graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](dev))
    loaded.run(data=data)
    tvm.testing.assert_allclose(loaded.get_output(0).numpy(), out)

    # Passes one by one: batch norms become products and sums of constants, which are folded.
    folded = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.SimplifyInference(), relay.transform.FoldConstant()])
    bound = tvm.IRModule.from_expr(relay.build_module.bind_params_by_name(mod["main"], params))
    print(f"batch norms: {str(bound).count('nn.batch_norm')} before, {str(folded(bound)).count('nn.batch_norm')} after")


if __name__ == "__main__":
    main()
