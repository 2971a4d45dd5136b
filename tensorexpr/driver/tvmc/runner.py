"""Packages run: inputs from files or made up, times, what each kernel took."""

from __future__ import annotations

import argparse
import json
import os
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ...errors import TensorExprError
from ...relax.runtime.machine import Report
from ...relay.graph_executor import GraphModule, GraphModuleDebug
from ...runtime.device import Device, cpu, device
from ...runtime.export import write_file
from ...tir.dtype import to_numpy
from .command import register_parser as register_parser  # programs of tvmc look for it here, too
from .model import TVMCException, TVMCPackage, TVMCResult, check_folder
from .result_utils import get_top_results
from .tracker import check_tracker, tracker_host_port_from_cli

FILL_MODES = ("zeros", "ones", "random")
_LIBRARY = "network.so"
_PROFILE_LEAST, _PROFILE_MOST, _PROFILE_SECONDS = 3, 25, 1.0
_DEVICES = ("cpu", "cuda", "cl", "metal", "vulkan", "rocm", "llvm")
Inputs = Mapping[str, Any] | str | os.PathLike[str] | None


def generate_tensor_data(shape: Any, dtype: str, fill_mode: str) -> np.ndarray[Any, Any]:
    """An array to try a network with.

    Args:
        shape, dtype: of it.
        fill_mode: "zeros", "ones", or "random": of floats uniform in 0 to 1, of integers in 0 to 127, the same ones each time.

    Raises:
        TVMCException: for another mode.
    """
    kind = to_numpy(dtype)
    if fill_mode not in FILL_MODES:
        raise TVMCException(f"fill mode {fill_mode!r}: there are {', '.join(FILL_MODES)}")
    if fill_mode != "random":
        return np.full(shape, fill_mode == "ones", kind)
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2 if kind.kind == "b" else 128, shape) if kind.kind in "biu" else rng.random(shape)
    made: np.ndarray[Any, Any] = np.asarray(drawn).astype(kind)
    return made


def get_input_info(graph_str: str, params: Mapping[str, Any]) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Shapes and dtypes of the inputs of a graph's JSON by name, without its parameters."""
    graph = json.loads(graph_str)
    shapes, dtypes = graph["attrs"]["shape"][1], graph["attrs"]["dltype"][1]
    # Constants of the library are nodes without inputs, too: p1, p2, ...
    names = {n: graph["nodes"][n]["name"] for n in graph["arg_nodes"] if graph["nodes"][n].get("attrs", {}).get("kind") != "constant"}
    rows = {n: graph["node_row_ptr"][n] for n in names}
    kept = {n: name for n, name in names.items() if name not in params}
    return {name: shapes[rows[n]] for n, name in kept.items()}, {name: dtypes[rows[n]] for n, name in kept.items()}


def make_inputs_dict(
    shape_dict: Mapping[str, Any], dtype_dict: Mapping[str, str], inputs: Mapping[str, Any] | None = None, fill_mode: str = "random"
) -> dict[str, Any]:
    """An array for each input: those that are given, and made up ones.

    Raises:
        TVMCException: for a name that there isn't, a shape or a dtype that doesn't fit, or an open shape that isn't given.
    """
    given = dict(inputs or {})
    shown = ", ".join(f"{name}: {extents_shown(shape)} {dtype_dict[name]}" for name, shape in shape_dict.items())
    made: dict[str, Any] = {}
    for name, value in given.items():
        if name not in shape_dict:
            raise TVMCException(f"no input {name!r}; the network has {shown}")
        shape, actual = tuple(shape_dict[name]), tuple(np.shape(value))
        if len(shape) != len(actual) or any(a not in (-1, b) for a, b in zip(shape, actual, strict=True)):
            raise TVMCException(f"input {name!r} has shape {actual}; the network has {shown}")
        if not _is_kept(getattr(value, "dtype", None), dtype_dict[name]):
            raise TVMCException(f"input {name!r} is of {value.dtype}, which {dtype_dict[name]} can't hold; the network has {shown}")
        made[name] = value
    asked = {name: shape for name, shape in shape_dict.items() if -1 in shape and name not in made}
    if lacking := [f"input {name!r} has open extents, {extents_shown(shape)}" for name, shape in asked.items()]:
        raise TVMCException(
            f'{"; ".join(lacking)}, so it has to be given: --inputs x.npz; or known, where the model is read: --input-shapes "name:[1,3]"'
        )
    lacked = {name: generate_tensor_data(shape, dtype_dict[name], fill_mode) for name, shape in shape_dict.items() if name not in made}
    return {**made, **lacked}


def _is_kept(given: Any, dtype: str) -> bool:
    """Whether numbers of a dtype of NumPy mean the same in the one of an input, but for how precise they are, or how large."""
    if not isinstance(given, np.dtype) or dtype == "object":
        return True
    orders = ("b", "iu", "fV", "c")  # those of ml_dtypes are "V"
    ranks = [next((n for n, kinds in enumerate(orders) if one.kind in kinds), len(orders)) for one in (given, to_numpy(dtype))]
    return ranks[0] <= ranks[1] or ranks == [1, 0]


def extents_shown(shape: Any) -> str:
    """As NumPy shows shapes, with question marks for what isn't known."""
    return str(tuple(shape)).replace("-1", "?")


def _made_up(names: Iterable[str], inputs: Mapping[str, Any] | None) -> tuple[str, ...]:
    return tuple(name for name in names if name not in (inputs or {}))


@contextmanager
def telling_made_up(names: Iterable[str], inputs: Mapping[str, Any] | None, fill_mode: str) -> Iterator[None]:
    """Errors inside say which of the inputs nobody gave: made up ones may ask for what a network doesn't have.

    Raises:
        TVMCException: in place of an error of the network, where inputs were made up.
    """
    try:
        yield
    except TensorExprError as error:
        if not (made_up := _made_up(names, inputs)):
            raise
        raise TVMCException(
            f"{error}\n  the network ran on inputs that were made up, --fill-mode {fill_mode}: {', '.join(made_up)}; -i x.npz gives them"
        ) from error


def read_inputs(inputs: Inputs) -> Mapping[str, Any] | None:
    """Inputs of an `.npz` file, or as they are given.

    Raises:
        TVMCException: for another file; arrays of Python's objects aren't read.
    """
    if inputs is None or isinstance(inputs, Mapping):
        return inputs
    try:
        found: Any = np.load(os.fspath(inputs), allow_pickle=False)
        if isinstance(found, np.ndarray):
            raise ValueError("it holds one array without a name; np.savez(path, x=array) names it")
        with found as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or error
        if "pickle" in str(reason):  # so NumPy takes a file that it doesn't know
            reason = "np.savez(path, x=array) writes one, of numbers alone"
        raise TVMCException(f"{inputs} is no .npz file of inputs: {reason}") from None


def _device(name: str | Device) -> Device:
    if isinstance(name, Device):
        return name
    if name not in _DEVICES:
        raise TVMCException(f"no device {name!r}; there is cpu")
    found = device(name)
    if found.device_type != cpu().device_type:
        raise TVMCException(f"networks run on the CPU, not on {name}")
    return found


def run_module(
    tvmc_package: TVMCPackage,
    device: str | Device = "cpu",
    hostname: str | None = None,
    port: int | str = 9090,
    rpc_key: str | None = None,
    inputs: Inputs = None,
    fill_mode: str = "random",
    benchmark: bool = False,
    repeat: int = 10,
    number: int = 10,
    profile: bool = False,
    end_to_end: bool = False,
    options: Mapping[str, Any] | None = None,
) -> TVMCResult:
    """Run a package.

    Args:
        tvmc_package: of `compile`.
        device: "cpu".
        hostname, port, rpc_key: of a tracker, and of the device that it runs on; none runs it here.
        inputs: arrays by name, or an `.npz` file; the others are made up.
        fill_mode: how: "zeros", "ones" or "random".
        benchmark: measure it, too.
        repeat, number: measurements, and runs in each.
        profile: measure each kernel, in several runs; printed, and in the result's `report`.
        end_to_end: with copies of inputs and outputs.
        options: accepted.

    Raises:
        TVMCException: for inputs that don't fit, no measurement, or another device.
        TargetError: for code that this machine can't run.
    """
    check_tracker(hostname, rpc_key)
    if not isinstance(tvmc_package, TVMCPackage):
        raise TVMCException(f"run takes a TVMCPackage, not {type(tvmc_package).__name__}: tvmc.TVMCPackage(path)")
    where = _device(device)
    if benchmark and min(repeat, number) < 1:
        raise TVMCException(f"--repeat {repeat} --number {number}: there is one measurement of one run at least")
    if hostname and rpc_key and profile:
        raise TVMCException("a profile is of a package that runs here: leave out --profile, or the tracker")
    module = _there(tvmc_package, rpc_key, hostname, int(port)) if hostname and rpc_key else _here(tvmc_package, where)
    shapes, dtypes = module.get_input_info()
    given = read_inputs(inputs)
    module.set_input(**make_inputs_dict(shapes, dtypes, given, fill_mode))
    report = None
    with telling_made_up(shapes, given, fill_mode):
        if isinstance(module, GraphModuleDebug) and profile:
            report = _profiled(module)
            print(report)
        times = module.benchmark(where, number=number, repeat=repeat, end_to_end=end_to_end) if benchmark else None
        if isinstance(module, GraphModuleDebug):
            super(GraphModuleDebug, module).run()
        else:
            module.run()
    names = [f"output_{n}" for n in range(module.get_num_outputs())]
    found = {name: _array(module.get_output(n)) for n, name in enumerate(names)}
    return TVMCResult(found, times, report, _made_up(shapes, given))


def _profiled(module: GraphModuleDebug) -> Report:
    """What each kernel takes: medians, as one run of a short network says more about what else the machine did."""
    super(GraphModuleDebug, module).run()  # what is cold or looked up for the first time isn't a kernel's
    ends = perf_counter() + _PROFILE_SECONDS
    runs = [module.profile()]
    while len(runs) < _PROFILE_LEAST or (len(runs) < _PROFILE_MOST and perf_counter() < ends):
        runs.append(module.profile())
    return Report.median(runs)


def _here(package: TVMCPackage, where: Device) -> GraphModule:
    return GraphModuleDebug(package.executable["default"](where))


def _there(package: TVMCPackage, key: str, host: str, port: int) -> GraphModule:
    """A package on a device of a tracker."""
    from ...rpc.tracker import request_remote  # a fleet, which runs here don't need

    session = request_remote(key, host, port, timeout=0)
    session.upload(package.library, _LIBRARY)
    return GraphModule(session.load_module(_LIBRARY)["default"](session.cpu()))


def _array(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def add_run_parser(subparsers: Any, main_parser: Any = None, json_params: Any = None) -> argparse.ArgumentParser:
    """The subcommand `run`."""
    parser: argparse.ArgumentParser = subparsers.add_parser("run", help="run a package")
    parser.add_argument("PATH", help="the package, as compile wrote it")
    parser.add_argument("--device", default="cpu", choices=_DEVICES[:-1], help="where; cpu")
    parser.add_argument("--fill-mode", default="random", choices=FILL_MODES, help="inputs that aren't given")
    parser.add_argument("-i", "--inputs", metavar="FILE", help="inputs by name, .npz")
    parser.add_argument("-o", "--outputs", metavar="FILE", help="where outputs go, .npz")
    parser.add_argument("--print-time", action="store_true", help="a table of times")
    parser.add_argument("--print-top", type=int, metavar="N", help="the N largest elements of the first output: places and values")
    parser.add_argument("--profile", action="store_true", help="what each kernel took: a table, and a page beside the package")
    parser.add_argument("--profile-options", metavar="FILE", help="where the page goes; by default the package's name with .html")
    parser.add_argument("--end-to-end", action="store_true", help="times with copies of inputs and outputs")
    parser.add_argument("--repeat", type=int, default=1, help="measurements; 1")
    parser.add_argument("--number", type=int, default=1, help="runs in each; 1")
    parser.add_argument("--rpc-key", help="of the device of a tracker to run on")
    parser.add_argument("--rpc-tracker", metavar="HOST:PORT", help="the tracker: python -m tensorexpr rpc_tracker, or a Dask scheduler")
    parser.set_defaults(func=drive_run)
    return parser


def drive_run(args: argparse.Namespace) -> int:
    """Run the subcommand `run`; returns the exit code."""
    from .profile import page

    if args.print_top is not None and args.print_top < 1:
        raise TVMCException(f"--print-top {args.print_top}: it is how many elements are shown, one at least")
    page_file = Path(args.profile_options or Path(args.PATH).with_suffix(".html"))
    for one in (args.outputs, page_file if args.profile else None):
        check_folder(one)
    host, port = tracker_host_port_from_cli(args.rpc_tracker)
    result = run_module(
        TVMCPackage(args.PATH), args.device, host, port or 9090, args.rpc_key, args.inputs, args.fill_mode,
        args.print_time, args.repeat, args.number, args.profile, args.end_to_end,
    )  # fmt: skip
    if args.inputs and result.made_up:
        print(f"note: {args.inputs} lacks {', '.join(result.made_up)}: made up, --fill-mode {args.fill_mode}", file=sys.stderr)
    if args.print_time:
        print(result.format_times())
    if args.print_top:
        for place, value in zip(*get_top_results(result, args.print_top), strict=True):
            print(f"{int(place):8d}  {value:.6g}")
    if args.profile:
        write_file(str(page_file), page(result.report, Path(args.PATH).name).encode())
        print(page_file)
    if args.outputs:
        result.save(args.outputs)
    if not (args.print_time or args.print_top or args.profile or args.outputs):
        print("\n".join(f"{name}: {value.dtype} {value.shape}" for name, value in result.outputs.items()))
    return 0
