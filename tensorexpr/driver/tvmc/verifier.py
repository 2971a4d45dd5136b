"""A network as it was built against what it means: the evaluator of graphs, or onnxruntime; kernel by kernel on demand."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...dataclass import dataclass, replace
from ...errors import DeclarationError
from ...relax.regions import regions_of
from ...relax.runtime.executable import Executable
from ...relax.runtime.machine import VirtualMachine, shortened
from ...relax.tensor_function import plain_tensors
from ...relay.build_module import bound_graph, build
from ...relay.graph_executor import GraphModule, input_info
from ...runtime.ndarray import NDArray
from ...target import TargetLike
from ...te.reference import evaluate
from ...te.tolerance import is_rounded, tolerance_of
from ...tir.dtype import parse_dtype
from ...tir.interpreter import IterationLimitError
from .model import TVMCException, TVMCModel, TVMCPackage
from .parting import by_evaluator, parting
from .runner import Inputs, make_inputs_dict, read_inputs, telling_made_up

REFERENCES = ("evaluator", "onnxruntime")
# Of a kernel's elements: those that lie so close to a half that they are rounded to either side, before they are made floats again.
_SPARED = 1e-3
# For loops that an operator writes itself, which are interpreted: 64 steps of an LSTM on bytes took more than four minutes.
_SECONDS = 20.0


@dataclass(frozen=True)
class Row:
    """A comparison.

    Args:
        name: of an output or kernel.
        shape: of the result.
        error: the largest difference, of elements that are finite in both.
        scale: the largest element of the reference.
        is_equal: whether all elements agree within the tolerance; NaN with NaN, infinities with themselves.
        reason: why there was nothing to compare, if so.
        note: what else is to be said.
    """

    name: str
    shape: tuple[int, ...]
    error: float
    scale: float
    is_equal: bool
    reason: str = ""
    note: str = ""

    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        name = shortened(self.name)
        if self.reason:
            return name, "", "", "", self.reason
        return (
            name,
            str(self.shape),
            f"{self.error:.3g}",
            f"{self.scale:.3g}",
            f"equal{self.note}" if self.is_equal else f"DIFFERS{self.note}",
        )


@dataclass(frozen=True)
class Verification:
    """Rows of comparisons; true if none differs. Prints as a table, and where results part from those of another runtime."""

    rows: tuple[Row, ...]
    reference: str
    parting: str = ""

    def __bool__(self) -> bool:
        return all(row.is_equal for row in self.rows)

    def __str__(self) -> str:
        # Kernels have a reference of their own, their computation.
        head = ("result", "shape", "largest difference", "largest number", f"outputs beside {self.reference}")
        cells = [head, *(row.cells() for row in self.rows)]
        widths = [max(len(row[n]) for row in cells) for n in range(len(head))]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]
        return "\n".join([*lines, self.parting] if self.parting else lines)


def _row(name: str, found: Any, expected: Any, rtol: float, atol: float, steps: float = 0.0, spared: float = 0.0) -> Row:
    """Compare two arrays.

    Args:
        name: of the row.
        found, expected: the arrays.
        rtol: relative to each element.
        atol: relative to the largest element, as sums of many terms round by it.
        steps: how much more, of integers that are rounded.
        spared: which part of the elements may be off.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return Row(name, found.shape, 0.0, 0.0, False, f"DIFFERS: shape {found.shape}, not {expected.shape}")
    a, b = found.astype("float64"), expected.astype("float64")
    finite = np.isfinite(a) & np.isfinite(b)
    error = float(np.max(np.abs(np.subtract(a, b, where=finite, out=np.zeros_like(a))), initial=0.0))
    scale = float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0))
    close = np.isclose(a, b, rtol, atol * max(scale, 1e-30) + steps, equal_nan=True)
    off = close.size - int(np.count_nonzero(close))
    is_equal = off <= spared * close.size
    return Row(
        name, found.shape, error, scale, is_equal, note=f", but for {off} of {close.size}, rounded on the way" if off and is_equal else ""
    )


def _by_onnxruntime(model: str | bytes | None, inputs: Mapping[str, Any]) -> list[Any]:
    """What onnxruntime makes of a file, or of the bytes of a model."""
    if model is None or (isinstance(model, str) and not model.endswith(".onnx")):
        raise TVMCException("reference='onnxruntime' needs a model that was loaded from an .onnx file; reference='evaluator' takes any")
    try:
        import onnxruntime
    except ImportError:
        raise TVMCException("onnxruntime isn't installed; --reference evaluator needs nothing else") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what it would write is in the error
    # Without it sums of two products of bytes saturate where the CPU has no instruction for dot products of bytes.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        found: list[Any] = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"]).run(None, dict(inputs))
    except Exception as error:  # it has a kind of error for each of its codes
        raise TVMCException(
            f"onnxruntime doesn't run {model if isinstance(model, str) else 'the model'} on these inputs: {error}; -i x.npz gives inputs "
            "that the model takes, and --fill-mode zeros indices that are in range; --reference evaluator needs no onnxruntime"
        ) from None
    return found


class _Watch:
    """An instrument that computes each kernel's results again, from its arguments as they were."""

    def __init__(self, executable: Executable) -> None:
        self._functions, self._layouts = executable.tensor_functions, executable.layouts
        self.rows: dict[str, Row] = {}

    def __call__(self, func: Any, name: str, before: bool, value: Any, *args: Any) -> int:
        if before or name not in self._functions or name in self.rows:
            return 0
        try:
            tensors = plain_tensors(self._functions[name])
        except DeclarationError:
            self.rows[name] = Row(name, (), 0.0, 0.0, True, "not compared: it isn't one computation of tensors")
            return 0
        try:
            self.rows[name] = self._compared(name, tensors, [one for one in args if isinstance(one, NDArray)])
        except IterationLimitError:
            reason = f"not compared by itself: its own loops take more than {_SECONDS:g} s to interpret"
            self.rows[name] = Row(name, (), 0.0, 0.0, True, reason)
        return 0

    def _compared(self, name: str, tensors: Sequence[Any], arrays: Sequence[NDArray]) -> Row:
        inputs = [one for one in tensors if not one.op.input_tensors and not hasattr(one.op, "body")]
        outputs = tensors[len(inputs) :]
        given, regions = {}, regions_of(self._functions[name])

        def part(n: int, tensor: Any) -> Any:
            """What the kernel reads or writes of an argument."""
            _, begins = regions.get(n, ((), ()))
            box = tuple(slice(first, first + int(extent)) for first, extent in zip(begins, tensor.shape, strict=False))
            return arrays[n].numpy()[box]

        for n, tensor in enumerate(inputs):
            layout = self._layouts.get(name, {}).get(n)
            plain = part(n, tensor)
            if layout is not None:
                plain = layout.unmap_ndarray(plain, [int(one) for one in tensor.shape])
            given[tensor] = plain
        expected = evaluate(outputs, given, _SECONDS)
        worst: Row | None = None
        for n, (tensor, wanted) in enumerate(zip(outputs, expected, strict=True), len(inputs)):
            bound = tolerance_of(tensor, float(np.max(np.abs(wanted), initial=0.0)))
            is_whole = parse_dtype(str(tensor.dtype)).is_int
            spared = 0.0 if is_whole or not is_rounded(tensor) else _SPARED
            row = _row(name, part(n, tensor), wanted, bound.rtol, 0.0 if is_whole else 1e-5, bound.atol if is_whole else 0.0, spared)
            worst = row if worst is None or not row.is_equal else worst
        assert worst is not None  # a kernel has a result
        return worst


def verify(
    model: TVMCModel,
    target: TargetLike = "llvm",
    inputs: Inputs = None,
    fill_mode: str = "random",
    reference: str = "evaluator",
    per_kernel: bool = False,
    rtol: float = 1e-3,
    atol: float = 1e-4,
    package: TVMCPackage | None = None,
) -> Verification:
    """Run a network, and compare its outputs with what it means.

    Args:
        model: of `load`.
        target: to build it for.
        inputs, fill_mode: see `run`.
        reference: "evaluator", which computes the graph on NumPy's arrays, or "onnxruntime", for models of ONNX files.
        per_kernel: also compare each kernel with its computation, on the arguments that it gets in the run.
        rtol, atol: how much elements may differ: relative to each, and relative to the largest one.
        package: compare this, which was compiled before; not with `per_kernel`, as a library doesn't know its kernels' computations.

    Raises:
        TVMCException: for another reference, or inputs that don't fit.
    """
    if reference not in REFERENCES:
        raise TVMCException(f"reference {reference!r}: there are {', '.join(REFERENCES)}")
    if package is not None and per_kernel:
        raise TVMCException("a package doesn't know what its kernels compute: verify the model without it, kernel by kernel")
    graph = bound_graph(model.mod, model.params)
    shapes, dtypes = input_info(graph["main"].params)
    named = read_inputs(inputs)
    given = make_inputs_dict(shapes, dtypes, named, fill_mode)
    executable = build(graph, target).module if package is None else package.executable
    machine = VirtualMachine(executable)
    watch = _Watch(executable)
    if per_kernel:
        machine.set_instrument(watch)
    module = GraphModule(machine)
    make_inputs_dict(*module.get_input_info(), given)  # a package may be of another model
    with telling_made_up(shapes, named, fill_mode):
        module.run(**given)
    found = [module.get_output(n) for n in range(module.get_num_outputs())]
    # In the dtypes of the inputs, as the run had them.
    arrays = [np.asarray(given[name], dtypes[name]) for name in shapes]
    expected = by_evaluator(graph, arrays) if reference == "evaluator" else _by_onnxruntime(model.source, given)
    outputs = [value.numpy() if hasattr(value, "numpy") else value for value in found]
    rows, place = [_row(f"output_{n}", a, b, rtol, atol) for n, (a, b) in enumerate(zip(outputs, expected, strict=True))], ""
    if reference != "evaluator" and not all(row.is_equal for row in rows):
        again = [_row("", a, b, rtol, atol) for a, b in zip(outputs, by_evaluator(graph, arrays), strict=True)]
        rows = [row if row.is_equal else replace(row, note=_beside_evaluator(other)) for row, other in zip(rows, again, strict=True)]
        if (source := model.source or "").endswith(".onnx"):
            typed = dict(zip(shapes, arrays, strict=True))
            place = parting(source, typed, _by_onnxruntime, reference, lambda name, a, b: _row(name, a, b, rtol, atol))
    return Verification((*watch.rows.values(), *rows), reference, place)


def _beside_evaluator(own: Row) -> str:
    return f"; {own.error:.3g} from the evaluator of the imported graph" + ("" if own.is_equal else ", too")


def add_verify_parser(subparsers: Any) -> argparse.ArgumentParser:
    """The subcommand `verify`."""
    from .compiler import add_model_args
    from .target import generate_target_args

    parser: argparse.ArgumentParser = subparsers.add_parser("verify", help="compare a network with what it means")
    add_model_args(parser)
    generate_target_args(parser)
    parser.add_argument("--package", metavar="PATH", help="verify this, which was compiled before, instead of building the model")
    parser.add_argument("-i", "--inputs", metavar="FILE", help="inputs by name, .npz")
    parser.add_argument("--fill-mode", default="random", choices=("zeros", "ones", "random"), help="inputs that aren't given")
    parser.add_argument("--reference", default="evaluator", choices=REFERENCES, help="what to compare with")
    parser.add_argument("--kernels", action="store_true", help="also each kernel with its computation")
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative to each element; 1e-3")
    parser.add_argument("--atol", type=float, default=1e-4, help="relative to the largest element; 1e-4")
    parser.set_defaults(func=drive_verify)
    return parser


def drive_verify(args: argparse.Namespace) -> int:
    """Run the subcommand `verify`; returns 1 if something differs."""
    from .frontends import load_model
    from .target import reconstruct_target_args, target_from_cli

    target, _ = target_from_cli(args.target, reconstruct_target_args(args))
    package = None if args.package is None else TVMCPackage(args.package)
    model = load_model(args.FILE, args.model_format, args.input_shapes)
    found = verify(model, target, args.inputs, args.fill_mode, args.reference, args.kernels, args.rtol, args.atol, package)
    print(found)
    return 0 if found else 1
