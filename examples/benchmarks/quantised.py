"""Networks of bytes beside ONNX Runtime: those of the suite `networks`, quantised by its own tool, in turn in one process.

    python examples/benchmarks/quantised.py                      squeezenet, resnet50, mobilenet_v2
    python examples/benchmarks/quantised.py resnet50 --rounds 12

Data are uint8 and weights int8, a scale for each channel, ranges those of two random inputs: the speed is that of any weights. ONNX Runtime
runs twice, with sums that are exact (`session.x64quantprecision`), as ours are, and with its default, whose sums saturate on CPUs without
an instruction for sums of four bytes. Both differ from ours by what one step of a quantised value makes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import version_converter
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from turns import in_turn

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.driver.bench.networks.models import NETWORKS

NAMES = ("squeezenet", "resnet50", "mobilenet_v2")
_SCALES_ALONG_AXES = 13  # the version of ONNX's operators from which on weights have a scale for each channel
_PAUSE = 0.15  # seconds until the threads of the others sleep


class _Samples(quantization.CalibrationDataReader):  # type: ignore[misc]
    """Random inputs, from which ranges are taken."""

    def __init__(self, name: str, shape: Sequence[int]) -> None:
        self._left = [{name: np.random.default_rng(seed).standard_normal(shape).astype("float32")} for seed in (1, 2)]

    def get_next(self) -> Any:
        """The next input; None behind the last."""
        return self._left.pop() if self._left else None


def quantised(name: str, folder: Path) -> Path:
    """The file of a network of the suite, quantised."""
    given, plain, made = (folder / f"{name}.{kind}.onnx" for kind in ("float", "folded", "int8"))
    model = NETWORKS[name]()
    if model.opset_import[0].version < _SCALES_ALONG_AXES:
        model = version_converter.convert_version(model, _SCALES_ALONG_AXES)
    onnx.save(model, str(given))
    quant_pre_process(str(given), str(plain), skip_symbolic_shape=True)
    first = model.graph.input[0]
    shape = [axis.dim_value or 1 for axis in first.type.tensor_type.shape.dim]
    kinds = {"activation_type": quantization.QuantType.QUInt8, "weight_type": quantization.QuantType.QInt8}
    quantization.quantize_static(str(plain), str(made), _Samples(first.name, shape), per_channel=True, **kinds)
    return made


def peer(path: Path, exact: bool) -> onnxruntime.InferenceSession:
    """ONNX Runtime on two threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.add_session_config_entry("session.x64quantprecision", "1" if exact else "0")
    return onnxruntime.InferenceSession(str(path), options)


def main() -> None:
    """Quantise, build, compare and time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    for name in options.names:
        with tempfile.TemporaryDirectory() as folder:
            path = quantised(name, Path(folder))
            exact, fast = peer(path, True), peer(path, False)
            machine = relax.VirtualMachine(relax.build(relax.frontend.onnx.from_onnx(onnx.load(str(path))), "llvm"))
        given = exact.get_inputs()[0]
        x = np.random.default_rng(3).standard_normal([axis if isinstance(axis, int) else 1 for axis in given.shape]).astype("float32")
        held = tvm.nd.array(x)

        def ours(machine: Any = machine, held: Any = held) -> Any:
            found = machine["main"](held)
            return (found if hasattr(found, "numpy") else found[0]).numpy()

        results = [ours(), exact.run(None, {given.name: x})[0], fast.run(None, {given.name: x})[0]]
        apart = [float(np.abs(one - results[1]).max() / np.abs(results[1]).max()) for one in results]
        theirs = [lambda peer=one, x=x, g=given: peer.run(None, {g.name: x}) for one in (exact, fast)]
        mine, precise, saturating = in_turn([ours, *theirs], options.rounds, each=2, pause=_PAUSE)
        print(f"{name}: {mine:.2f} ms; ONNX Runtime exact {precise:.2f} ({precise / mine:.2f}x), saturating {saturating:.2f}", end="; ")
        print(f"ours and the saturating are {apart[0]:.3f} and {apart[2]:.3f} of the largest value from the exact")


if __name__ == "__main__":
    main()
