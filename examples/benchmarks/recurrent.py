"""Recurrent layers of ordinary sizes beside ONNX Runtime and PyTorch, float32, in turn in one process; all results are compared.

    python examples/benchmarks/recurrent.py
    python examples/benchmarks/recurrent.py LSTM GRU --hidden 64 256 --steps 30 --batch 1 --directions 1 2 --rounds 12

A layer reads as many features as a state has numbers. All three hold the same weights, in the order of gates that each wants, and run on
two threads.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper
from turns import in_turn

import tensorexpr as tvm
from tensorexpr import relax

# Where the gates of ONNX's order stand in PyTorch's.
ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
_PAUSE = 0.1  # seconds until the threads of the others sleep
_TOLERANCE = 1e-4


def _gates(kind: str, parameter: Any, hidden: int) -> Any:
    """A parameter of PyTorch's with the gates in ONNX's order."""
    return np.concatenate([parameter.detach().numpy()[n * hidden : (n + 1) * hidden] for n in ORDER[kind]])


def as_onnx(kind: str, module: Any, shape: Sequence[int]) -> Any:
    """The model of a layer of PyTorch, whose result has the axes [steps, directions, batch, hidden]."""
    hidden, ways = module.hidden_size, 2 if module.bidirectional else 1

    def both(name: str) -> Any:
        return np.stack([_gates(kind, getattr(module, f"{name}_l0{suffix}"), hidden) for suffix in ("", "_reverse")[:ways]])

    weights = {"w": both("weight_ih"), "r": both("weight_hh"), "b": np.concatenate([both("bias_ih"), both("bias_hh")], 1)}
    attrs = {"hidden_size": hidden, "direction": "bidirectional" if ways == 2 else "forward"}
    if kind == "GRU":
        attrs["linear_before_reset"] = 1
    node = helper.make_node(kind, ["x", "w", "r", "b"], ["y"], **attrs)
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    made = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], kind, given, made, [numpy_helper.from_array(v, n) for n, v in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def measure(kind: str, hidden: int, steps: int, batch: int, ways: int, rounds: int) -> None:
    """One layer: a line with the three times."""
    module = getattr(torch.nn, kind)(hidden, hidden, bidirectional=ways == 2).eval()
    x = np.random.default_rng(0).standard_normal((steps, batch, hidden)).astype("float32")
    model = as_onnx(kind, module, x.shape)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    peer = onnxruntime.InferenceSession(model.SerializeToString(), options)
    machine = relax.VirtualMachine(relax.build(relax.frontend.onnx.from_onnx(model), "llvm"), tvm.cpu())
    held, tensor = tvm.nd.array(x), torch.from_numpy(x)

    def eager() -> Any:
        with torch.inference_mode():
            return module(tensor)[0].numpy()

    calls: list[Callable[[], Any]] = [lambda: machine["main"](held).numpy(), lambda: peer.run(None, {"x": x})[0], eager]
    mine, theirs, last = (call() for call in calls)
    wanted = last.reshape(steps, batch, ways, hidden).transpose(0, 2, 1, 3)
    for found in (mine, theirs):
        np.testing.assert_allclose(found, wanted, rtol=_TOLERANCE, atol=_TOLERANCE)
    ours, ort, own = in_turn(calls, rounds, each=4, pause=_PAUSE)
    least = min(ort, own)
    print(f"| {kind} | {hidden} | {steps} | {batch} | {ways} | {ours:.3f} | {ort:.3f} | {own:.3f} | {least / ours:.2f} |", flush=True)


def main() -> None:
    """All layers that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=["LSTM", "GRU"], metavar="KIND", help="of LSTM, GRU, RNN")
    for name, default in (("hidden", [64, 128, 256, 512]), ("steps", [30, 100]), ("batch", [1]), ("directions", [1, 2])):
        parser.add_argument(f"--{name}", type=int, nargs="+", default=default)
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    torch.set_num_threads(2)
    print("| layer | hidden | steps | batch | directions | tensorexpr ms | ONNX Runtime | PyTorch | best peer / ours |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind in given.kinds:
        for hidden in given.hidden:
            for steps in given.steps:
                for batch in given.batch:
                    for ways in given.directions:
                        measure(kind, hidden, steps, batch, ways, given.rounds)


if __name__ == "__main__":
    main()
