"""Models of float32 become models of integers of eight bits; what that costs in accuracy stands beside what it gains in time."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...relax.build import build
from ...relax.expr import Constant
from ...relax.quantization import METHODS, Quantization, quantize
from ...relax.runtime.executable import Executable
from ...relax.runtime.machine import VirtualMachine
from ...relax.tuning.timing import timed_in_turn
from ...relax.visitor import walk
from ...relay.build_module import bound_graph
from ...relay.graph_executor import GraphModule, input_info
from ...runtime.ndarray import array
from ...target import TargetLike
from .compiler import add_model_args
from .model import TVMCException, TVMCModel, check_folder
from .runner import Inputs, extents_shown, make_inputs_dict, read_inputs
from .target import generate_target_args, reconstruct_target_args, target_from_cli

_SECONDS = 4.0  # of timing both, in turn


@dataclass(frozen=True)
class Accuracy:
    """An output of the quantised network beside that of the one of floats, over all inputs.

    Args:
        name: output_0, ...
        largest: difference.
        mean: difference.
        scale: the largest number of the floats' output.
        agree: for outputs that are rows of scores, [..., n] of floats, in which part of the rows the largest one is the same; else None.
    """

    name: str
    largest: float
    mean: float
    scale: float
    agree: float | None


@dataclass(frozen=True)
class QuantizationReport:
    """What quantising did. Prints as a table.

    Args:
        model: the quantised one, with its parameters in it.
        quantization: what became integers, and what didn't for which reason.
        accuracy: of each output.
        inputs: how many inputs accuracy was measured on, and whether these are others than those of the calibration.
        seconds: of a run, of floats and of integers, timed in turn.
        sizes: bytes of constants, of floats and of integers.
        warning: what is doubtful; "" if nothing is.
    """

    model: TVMCModel
    quantization: Quantization
    accuracy: tuple[Accuracy, ...]
    inputs: tuple[int, bool]
    seconds: tuple[float, float]
    sizes: tuple[int, int]
    warning: str = ""

    def __str__(self) -> str:
        head = ("output", "largest error", "mean error", "largest number", "same largest")
        rows = [head]
        for one in self.accuracy:
            share = "" if one.agree is None else f"{100 * one.agree:.1f} %"
            rows.append((one.name, f"{one.largest:.3g}", f"{one.mean:.3g}", f"{one.scale:.3g}", share))
        widths = [max(len(row[n]) for row in rows) for n in range(len(head))]
        table = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        count, is_other = self.inputs
        beside = "other than" if is_other else "the same as"
        before, after = (1e3 * one for one in self.seconds)
        return "\n".join(
            [
                str(self.quantization),
                f"accuracy on {count} {'input' if count == 1 else 'inputs'}, {beside} those of the calibration:",
                *table,
                f"a run: {before:.3f} ms in floats, {after:.3f} ms quantised: {before / after:.2f} times as fast",
                f"constants: {self.sizes[0]:,} bytes in floats, {self.sizes[1]:,} quantised",
                *([f"note: {self.warning}"] if self.warning else []),
            ]
        )


def samples_of(inputs: Mapping[str, Any], shapes: Mapping[str, Sequence[int]], dtypes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Arrays that hold several inputs of a network, cut into these.

    An array of the input's shape is one; along its first axis it may hold more of them: 100 x 3 x 224 x 224 are 100 of
    1 x 3 x 224 x 224 or of 3 x 224 x 224, and so are 100 x 1 x 3 x 224 x 224. An input of which there is one goes with all of the others.

    Args:
        inputs: arrays by name, all of them.
        shapes, dtypes: of the network's inputs.

    Raises:
        TVMCException: for arrays that don't fit, or different numbers of inputs.
    """
    shown = ", ".join(f"{name}: {extents_shown(shape)} {dtypes[name]}" for name, shape in shapes.items())
    cut: dict[str, list[Any]] = {}
    if set(inputs) != set(shapes):
        raise TVMCException(f"calibration needs all inputs, {shown}; given are {', '.join(inputs) or 'none'}")
    for name, shape in shapes.items():
        found = _cut(np.asarray(inputs[name]), shape)
        if found is None:
            actual = np.shape(inputs[name])
            raise TVMCException(f"input {name!r} has shape {actual}, which is neither one input nor several along the first axis: {shown}")
        cut[name] = found
    count = max(map(len, cut.values()), default=0)
    if not count:
        raise TVMCException(f"there are no inputs to calibrate with: an array has no rows; the network has {shown}")
    uneven = [f"{name}: {len(parts)}" for name, parts in cut.items() if len(parts) not in (1, count)]
    if uneven:
        raise TVMCException(f"there are different numbers of inputs: {', '.join(uneven)}, of others {count}")
    return [{name: parts[n if len(parts) > 1 else 0] for name, parts in cut.items()} for n in range(count)]


def _cut(values: Any, shape: Sequence[int]) -> list[Any] | None:
    """An array as inputs of a shape; None if it is none."""
    if _fits(values.shape, shape):
        return [values]
    if _fits(values.shape[1:], shape):
        return list(values)
    rows = shape[0] if len(shape) else 0
    if rows > 0 and _fits(values.shape[1:], shape[1:]) and values.shape[0] % rows == 0:
        return [values[n : n + rows] for n in range(0, values.shape[0], rows)]
    # Pictures without the axis of a batch of one.
    if rows == 1 and _fits(values.shape, shape[1:]):
        return [values[None]]
    return None


def _fits(found: Sequence[int], wanted: Sequence[int]) -> bool:
    return len(found) == len(wanted) and all(b in (-1, a) for a, b in zip(found, wanted, strict=True))


def _converted(module: GraphModule, sample: Mapping[str, Any]) -> dict[str, Any]:
    """A sample in the dtypes of the network's inputs."""
    module.set_input(**sample)
    return {name: module.get_input(name).numpy() for name in sample}


def _accuracy(machines: Sequence[Any], samples: Sequence[Mapping[str, Any]]) -> list[Accuracy]:
    found: list[list[tuple[float, float, float, int, float, int]]] = []
    for sample in samples:
        results = []
        for machine in machines:
            machine.run(**sample)
            results.append([machine.get_output(n).numpy() for n in range(machine.get_num_outputs())])
        found.append([_compared(*pair) for pair in zip(*results, strict=True)])
    made = []
    for n, rows in enumerate(zip(*found, strict=True)):
        largest, total, scale, count, same, of = (list(column) for column in zip(*rows, strict=True))
        agree = sum(same) / sum(of) if sum(of) else None
        made.append(Accuracy(f"output_{n}", max(largest), sum(total) / max(sum(count), 1), max(scale), agree))
    return made


def _compared(exact: Any, found: Any) -> tuple[float, float, float, int, float, int]:
    """Largest difference, their sum, the largest number, how many; rows whose largest element is the same, and rows."""
    a, b = exact.astype("float64"), found.astype("float64")
    apart = np.array(np.abs(a - b))  # a number, too, is an array to write to
    # NaN on one side only is as wrong as can be.
    apart[np.isnan(a) & np.isnan(b)] = 0.0
    apart[np.isnan(a) != np.isnan(b)] = np.inf
    is_scores = exact.dtype.kind == "f" and a.ndim > 0 and a.shape[-1] > 1 and a.size > 0
    same = int(np.sum(a.argmax(-1) == b.argmax(-1))) if is_scores else 0
    largest = float(np.max(np.abs(a), where=np.isfinite(a), initial=0.0))
    return float(apart.max(initial=0.0)), float(apart.sum()), largest, a.size, same, a[..., 0].size if is_scores else 0


def quantize_model(
    model: TVMCModel,
    calibration: Inputs,
    target: TargetLike = "llvm",
    inputs: Inputs = None,
    activations: str = "uint8",
    per_channel: bool = True,
    method: str = "minmax",
    percentile: float = 99.999,
    operators: Sequence[str] | None = None,
    fill_mode: str | None = None,
) -> QuantizationReport:
    """Quantise a model after training, and compare it with what it was.

    Args:
        model: of `load`.
        calibration: arrays by name, or an `.npz` file: inputs like those that the network will get, several along the first axis.
        target: what for.
        inputs: as `calibration`, to measure accuracy on; by default the same ones.
        activations, per_channel, method, percentile, operators: see `relax.quantization.quantize`.
        fill_mode: without calibration, make up inputs so, to see what it gains in time; accuracy then says nothing about real ones.

    Returns:
        The quantised model in a report, which prints as a table.

    Raises:
        TVMCException: for inputs that don't fit, or none.
        DeclarationError: if nothing can be quantised, or for options that there aren't.
    """
    graph = bound_graph(model.mod, model.params)
    shapes, dtypes = input_info(graph["main"].params)
    given = read_inputs(calibration)
    if given is None and fill_mode is None:
        raise TVMCException("quantising needs inputs like those that the network will get: --calibration x.npz, calibration={name: array}")
    if given is None:
        given = make_inputs_dict(shapes, dtypes, None, str(fill_mode))
    found = samples_of(given, shapes, dtypes)
    floats = build(graph, target)
    before = GraphModule(VirtualMachine(floats))
    samples = [_converted(before, one) for one in found]
    made = quantize(graph, samples, target, activations, per_channel, method, percentile, operators)
    integers = build(made.module, target)
    other = read_inputs(inputs)
    checked = samples if other is None else [_converted(before, one) for one in samples_of(other, shapes, dtypes)]
    accuracy = _accuracy([before, GraphModule(VirtualMachine(integers))], checked)
    seconds = timed_in_turn([floats, integers], [array(checked[0][name]) for name in shapes], _SECONDS)
    warning = "ranges come of made up inputs, and fit no others" if calibration is None else ""
    quantised = TVMCModel(made.module, {})
    return QuantizationReport(
        quantised, made, tuple(accuracy), (len(checked), other is not None), (seconds[0], seconds[1]),
        (_size(floats), _size(integers)), warning,
    )  # fmt: skip


def _size(built: Executable) -> int:
    """The bytes of a network's constants as it was built, each of equal ones once."""
    nodes = [node for func in built.functions.values() for node in walk(func.body) if isinstance(node, Constant)]
    return sum({id(node.data): node.view().nbytes for node in nodes}.values())


def add_quantize_parser(subparsers: Any) -> argparse.ArgumentParser:
    """The subcommand `quantize`."""
    parser: argparse.ArgumentParser = subparsers.add_parser("quantize", help="make a model of float32 one of int8, and say what that costs")
    add_model_args(parser)
    generate_target_args(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="the model, which the other commands read; by default x.int8.tar")
    parser.add_argument("-c", "--calibration", metavar="FILE", help="inputs like those to come, .npz, several along the first axis")
    parser.add_argument("-i", "--inputs", metavar="FILE", help="inputs to measure accuracy on; by default those of the calibration")
    parser.add_argument("--fill-mode", choices=("zeros", "ones", "random"), help="without calibration, inputs made up so, to see times")
    parser.add_argument("--activations", default="uint8", choices=("uint8", "int8"), help="what activations become; uint8")
    parser.add_argument("--method", default="minmax", choices=list(METHODS), help="ranges by what was seen; minmax")
    parser.add_argument("--percentile", type=float, default=99.999, help="how many percent of the numbers --method percentile keeps")
    parser.add_argument("--per-tensor", action="store_true", help="one scale for all of a weight, not one for each result")
    parser.add_argument("--operators", metavar="NAMES", help='which, with commas between, such as "nn.conv2d,matmul"; all that can be')
    parser.set_defaults(func=drive_quantize)
    return parser


def drive_quantize(args: argparse.Namespace) -> int:
    """Run the subcommand `quantize`; returns the exit code."""
    from .frontends import load_model

    target, _ = target_from_cli(args.target, reconstruct_target_args(args))
    if args.calibration and args.fill_mode:
        raise TVMCException("--fill-mode makes inputs up where there is no --calibration; give one of both")
    read_inputs(args.calibration)  # a file that doesn't fit is told before the network is built
    check_folder(args.output)
    model = load_model(args.FILE, args.model_format, args.input_shapes)
    found = quantize_model(
        model, args.calibration, target, args.inputs, args.activations, not args.per_tensor, args.method, args.percentile,
        [name.strip() for name in args.operators.split(",")] if args.operators else None, args.fill_mode,
    )  # fmt: skip
    path = args.output or str(Path(os.path.basename(args.FILE)).with_suffix(".int8.tar"))
    found.model.save(path)
    print(found)
    print(f"{path}: {os.path.getsize(path):,} bytes; python -m tensorexpr compile {path}")
    return 0
