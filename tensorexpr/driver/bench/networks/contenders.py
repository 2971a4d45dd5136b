"""A network against its peers: the same model on the same arrays, by as many threads as the target has cores, checked and then timed."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .... import relax
from ....errors import TensorExprError
from ....runtime.ndarray import array
from ....target import Target
from ..peers import Call, Peer, Unsupported
from ..probes import Probes
from ..rows import Row
from ..timing import Contender, Rules, interleaved
from .models import NETWORKS, flops, random_feeds

Array = Any
# Of the largest value, in float32 through some hundred layers.
_TOLERANCE = 2e-3


@dataclass(frozen=True)
class Network:
    """A network to measure.

    Args:
        name: of `NETWORKS`, or the path of an ONNX file.
        shapes: of inputs whose sizes a file leaves open.
    """

    name: str
    shapes: Mapping[str, Sequence[int]]

    def model(self) -> Any:
        """The ONNX model."""
        if self.name in NETWORKS:
            return NETWORKS[self.name]()
        import onnx

        return onnx.load(self.name)


def chosen_networks(options: argparse.Namespace) -> list[Network]:
    """What the options of the command name: the suite, and files.

    Raises:
        TensorExprError: for a shape that isn't written as "name=1,3,224,224", or a file that isn't there.
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
    return [Network(name, shapes) for name in [*names, *(options.model or ())] if options.case in name]


def ours(model: Any, feeds: Mapping[str, Array], target: Target) -> tuple[Call, float]:
    """A network built by `relax.build`, nothing tuned; and the seconds from the model to the first result."""
    from ....frontend.onnx.importer import from_onnx  # needs the package onnx, which the suites of kernels don't

    start = time.perf_counter()
    mod = from_onnx(model, shape_dict={name: list(one.shape) for name, one in feeds.items()})
    function = relax.VirtualMachine(relax.build(mod, target))["main"]
    given = [array(one) for one in feeds.values()]

    def call() -> Array:
        result = function(*given)
        return (result if hasattr(result, "numpy") else result[0]).numpy()

    call()
    return call, time.perf_counter() - start


def measure_network(
    network: Network, target: Target, peers: Sequence[Peer], options: argparse.Namespace, probes: Probes
) -> tuple[list[Row], float]:
    """All contenders on one network, each checked against the first peer before it is timed, and the least that the FMA probe reached."""
    model = network.model()
    feeds = random_feeds(model, network.shapes)
    calls, notes = _peers_on(peers, model, feeds)
    wanted = next((np.asarray(call(), np.float64) for call in calls.values()), None)
    seconds: float | None = None
    try:
        call, seconds = ours(model, feeds, target)
    except TensorExprError as error:
        notes["tensorexpr"] = f"failed: {str(error).splitlines()[0]}"
    else:
        calls = {"tensorexpr": call, **calls}
    for name, one in list(calls.items()):
        # peers that differ stay in the table with a note; a wrong kernel of ours has no time worth telling
        problem = "" if wanted is None else _difference(np.asarray(one(), np.float64), wanted)
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
        rows.append(Row("networks", name, who, s.median, s.low, s.high, s.cold, work, size, notes.get(who, note), **how))
    rows += [Row("networks", name, who, nan, nan, nan, nan, work, size, note) for who, note in notes.items() if who not in samples]
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


def _difference(value: Array, wanted: Array) -> str:
    """What is wrong with a result; empty if it agrees."""
    if value.shape != wanted.shape:
        return f"wrong: shape {value.shape} instead of {wanted.shape}"
    error = float(np.abs(value - wanted).max(initial=0.0)) / max(1e-6, float(np.abs(wanted).max(initial=0.0)))
    return "" if error <= _TOLERANCE else f"wrong: off by {error:.2g} of the largest value"
