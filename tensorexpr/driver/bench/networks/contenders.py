"""A network against its peers: the same model on the same arrays, by as many threads as the target has cores, checked and then timed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from .... import relax
from ....dataclass import dataclass, field
from ....errors import TensorExprError
from ....runtime.ndarray import array
from ....target import Target
from ..peers import Call, Peer, Unsupported
from ..probes import Probes
from ..rows import Row
from ..timing import Contender, Rules, interleaved
from .models import NETWORKS, flops, random_feeds
from .real import REAL, missing_packages

Array = Any
# Of the largest value, in float32 through some hundred layers.
_TOLERANCE = 2e-3
# A number that is rounded to bytes as the network runs may be a level of 255 off, and levels behind it, for the last bit of a sum.
_ROUNDED_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Network:
    """A network to measure.

    Args:
        name: of `NETWORKS` or of `REAL`, or the path of an ONNX file.
        shapes: of inputs whose sizes a file leaves open.
        suite: "networks", or "real" for those that packages ship.
        fills: numbers for inputs that aren't random.
        file: the model's; None for one that is made here.
    """

    name: str
    shapes: Mapping[str, Sequence[int]]
    suite: str = "networks"
    fills: Mapping[str, float] = field(default_factory=dict)
    file: Path | None = None

    def model(self) -> Any:
        """The ONNX model."""
        if self.file is None:
            return NETWORKS[self.name]()
        import onnx

        return onnx.load(self.file)


def chosen_networks(options: argparse.Namespace) -> list[Network]:
    """What the options of the command name: the suites, of which packages that aren't installed are named, and files.

    Raises:
        TensorExprError: for a shape that isn't written as "name=1,3,224,224", a file that isn't there, or without any package.
    """
    shapes: dict[str, list[int]] = {}
    for text in options.shape or ():
        name, _, extents = text.rpartition("=")
        if not name or not all(one.isdigit() for one in extents.split(",")):
            raise TensorExprError(f"--shape is written as name=1,3,224,224, not {text!r}")
        shapes[name] = [int(one) for one in extents.split(",")]
    if missing := [path for path in options.model or () if not Path(path).is_file()]:
        raise TensorExprError(f"there is no file {', '.join(missing)}")
    names = list(NETWORKS) if "networks" in (options.suite or ()) else []
    made = [Network(name, shapes) for name in names if is_chosen(name, options.case)]
    files = [Network(name, shapes, file=Path(name)) for name in options.model or () if is_chosen(name, options.case)]
    return [*made, *(_shipped(options.case, shapes) if "real" in (options.suite or ()) else ()), *files]


def _shipped(case: str, shapes: Mapping[str, Sequence[int]]) -> list[Network]:
    """The networks of packages that are installed, and a line on the console for each package that isn't."""
    chosen = {name: one for name, one in REAL.items() if is_chosen(name, case)}
    found = [
        Network(name, {**one.shapes, **shapes}, "real", one.fills, file)
        for name, one in chosen.items()
        if (file := one.found()) is not None
    ]
    missing = missing_packages(chosen)
    if missing and not found:
        raise TensorExprError("no package that ships a network of the suite real is installed:\n" + "\n".join(missing))
    print("".join(f"{line}\n" for line in missing), end="", file=sys.stderr)
    return found


def is_chosen(name: str, wanted: str) -> bool:
    """Whether a case has a text in its name; one with * or ? is a pattern for all of it."""
    return fnmatchcase(name, wanted) if set(wanted) & set("*?") else wanted in name


def ours(model: Any, feeds: Mapping[str, Array], target: Target) -> tuple[Call, float]:
    """A network built by `relax.build`, nothing tuned; and the seconds from the model to the first result."""
    from ....frontend.onnx.importer import from_onnx  # needs the package onnx, which the suites of kernels don't

    start = time.perf_counter()
    shapes = {name: list(one.shape) for name, one in feeds.items()}
    # Without a name for the module, which would keep its weights beside those that are made of them.
    function = relax.VirtualMachine(relax.build(from_onnx(model, shape_dict=shapes), target))["main"]
    given = [array(one) for one in feeds.values()]

    def call() -> Array:
        result = function(*given)
        return (result if hasattr(result, "numpy") else result[0]).numpy()

    call()
    return call, time.perf_counter() - start


def measure_network(
    network: Network, target: Target, peers: Sequence[Peer], options: argparse.Namespace, probes: Probes
) -> tuple[list[Row], float]:
    """All contenders on one network, each checked against a peer before it is timed, and the least that the FMA probe reached."""
    model = network.model()
    feeds = random_feeds(model, network.shapes, network.fills)
    calls, notes = _peers_on(peers, model, feeds)
    # ONNX Runtime runs the file itself; what PyTorch runs is a translation made here
    judges = sorted((peer for peer in peers if peer.name in calls), key=lambda peer: peer.name != "onnxruntime")
    wanted = np.asarray(judges[0].exact_network(model, feeds)(), np.float64) if judges else None
    rounds = any(node.op_type.startswith("DynamicQuantize") for node in model.graph.node)
    tolerance = _ROUNDED_TOLERANCE if rounds else _TOLERANCE
    seconds: float | None = None
    try:
        call, seconds = ours(model, feeds, target)
    except TensorExprError as error:
        # all of its lines: the operators that are missing stand below the first
        notes["tensorexpr"] = f"failed: {' '.join(str(error).split())[:300]}"
    else:
        calls = {"tensorexpr": call, **calls}
    for name, one in list(calls.items()):
        # peers that differ stay in the table with a note, and win nothing; a wrong kernel of ours has no time worth telling
        problem = "" if wanted is None else _difference(np.asarray(one(), np.float64), wanted, tolerance)
        if problem:
            notes[name] = problem
            if name == "tensorexpr":
                del calls[name]
    samples = interleaved([Contender(name, one) for name, one in calls.items()], Rules(options.rounds, patience=options.patience), probes)
    work, size = flops(model, feeds), float(model.ByteSize() + sum(one.nbytes for one in feeds.values()))
    name, nan = Path(network.name).stem, float("nan")
    rows = []
    for who, s in samples.items():
        note = f"other work on the cores in {s.disturbed} rounds: the FMA probe fell to {s.share:.0%} of its best" if s.disturbed else ""
        how: dict[str, Any] = {"schedule": "rules", "building": seconds} if who == "tensorexpr" else {}
        rows.append(Row(network.suite, name, who, s.median, s.low, s.high, s.cold, work, size, notes.get(who, note), **how))
    rows += [Row(network.suite, name, who, nan, nan, nan, nan, work, size, note) for who, note in notes.items() if who not in samples]
    return rows, min((s.share for s in samples.values()), default=1.0)


def _peers_on(peers: Sequence[Peer], model: Any, feeds: Mapping[str, Array]) -> tuple[dict[str, Call], dict[str, str]]:
    """The peers that run a network, each called once, and why others don't."""
    calls: dict[str, Call] = {}
    notes: dict[str, str] = {}
    for peer in peers:
        try:
            call = peer.network(model, feeds)
            call()
        except Unsupported as error:
            if str(error):
                notes[peer.name] = f"left out: {error}"
        except Exception as error:  # a peer's fault is a line of the table
            notes[peer.name] = f"failed: {str(error).splitlines()[0]}"
        else:
            calls[peer.name] = call
    return calls, notes


def _difference(value: Array, wanted: Array, tolerance: float = _TOLERANCE) -> str:
    """What is wrong with a result; empty if it agrees."""
    if value.shape != wanted.shape:
        return f"wrong: shape {value.shape} instead of {wanted.shape}"
    error = float(np.abs(value - wanted).max(initial=0.0)) / max(1e-6, float(np.abs(wanted).max(initial=0.0)))
    return "" if error <= tolerance else f"wrong: off by {error:.2g} of the largest value"
