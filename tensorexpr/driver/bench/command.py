"""The subcommand `bench`: choose cases, peers and schedules, measure, and write table, JSON and page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ...errors import TensorExprError
from ...target import Target
from ...workloads import SUITES, Case, suite
from .isa import ISAS, held_target, is_held, left_out, run_held
from .networks.contenders import Network, chosen_networks, is_chosen, measure_network
from .ours import Kernel, default_kernel, empty_outputs, exact_result, random_inputs, recorded_kernel, tune
from .page import page
from .peers import PEERS, Peer, Unsupported, installed
from .priority import PRIORITIES, raised
from .probes import Probes, measure_limits
from .rows import Results, Row, describe_machine
from .table import table
from .timing import Contender, Rules, interleaved


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The subcommand's options."""
    parser.add_argument(
        "--suite", action="append", choices=sorted([*SUITES, "networks", "real"]), help="may be given several times; default gemm"
    )
    parser.add_argument("--model", action="append", metavar="FILE", help="an ONNX file, measured as a network; may be given several times")
    parser.add_argument("--shape", action="append", metavar="NAME=1,3,224,224", help="of an input whose sizes the file leaves open")
    parser.add_argument("--case", default="", help="only cases whose name contains this, or is matched by this pattern with * and ?")
    parser.add_argument("--vs", default=",".join(PEERS), help=f"peers, by commas: {', '.join(PEERS)}; empty for none")
    parser.add_argument("--trials", type=int, default=0, help="tune each case with so many trials first, and show it beside the default")
    parser.add_argument("--tune", type=int, default=0, metavar="TRIALS", help="the same, but leave the default schedules out")
    parser.add_argument("--budget", type=float, default=None, help="tune each case for so many seconds first")
    parser.add_argument(
        "--log",
        "--tune-log",
        type=Path,
        default=None,
        help="records to use, and where tuning writes; a case with as many records as trials isn't tuned again",
    )
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--isa", choices=ISAS, default="native", help="hold our kernels and the peers to these instructions")
    parser.add_argument("--priority", choices=PRIORITIES, default="auto", help="of all threads; auto: real-time where that is permitted")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--patience", type=float, default=20.0, help="seconds that a round waits for a machine without other work")
    parser.add_argument("--json", type=Path, default=None, help="write the results to this file")
    parser.add_argument("--html", type=Path, default=None, help="write a page with a bar chart to this file")


def run(options: argparse.Namespace) -> int:
    """Measure; returns the exit code: 1 if a kernel of ours failed or was wrong."""
    target = held_target(options.target, options.isa)
    if not is_held(options.isa):
        return run_held(options.isa, options.arguments)
    for path in (options.json, options.html):  # which is noticed before anything is measured
        if path is not None and not path.parent.is_dir():
            raise TensorExprError(f"{path} can't be written: there is no folder {path.parent}")
    networks = chosen_networks(options)
    suites = [name for name in options.suite or ([] if options.model else ["gemm"]) if name in SUITES]
    cases = [(name, case) for name in suites for case in suite(name, target) if is_chosen(case.name, options.case)]
    if not cases and not networks:
        raise TensorExprError(f"no case of {', '.join(options.suite or ['gemm'])} is called {options.case!r}, or has it in its name")
    with raised(options.priority) as priority:  # before peers start threads
        results = _measure([*cases, *((one.suite, one) for one in networks)], target, options, priority)
    print(table(results))
    if options.json:
        results.write(options.json)
    if options.html:
        options.html.write_text(page(results, f"tensorexpr bench: {', '.join(options.suite or ['gemm'])}"))
    # NaN, where nothing was measured
    return int(any(row.median != row.median and row.contender.startswith("tensorexpr") for row in results.rows))


def _measure(cases: Sequence[tuple[str, Case | Network]], target: Target, options: argparse.Namespace, priority: str) -> Results:
    """All contenders on all cases of suites."""
    peers, missing = installed([name for name in options.vs.split(",") if name], target, left_out(options.isa))
    probes = Probes(target)
    limits = measure_limits(target, probes=probes)
    print("\n".join([*missing, f"measured with {priority}"]), file=sys.stderr)
    rows, least = list[Row](), 1.0
    try:
        for name, case in cases:
            if isinstance(case, Network):
                found, share = measure_network(case, target, peers, options, probes)
            else:
                found, share = measure_case(name, case, target, peers, options, probes)
            rows += found
            least = min(least, share)
            print(_progress(case, found), file=sys.stderr)
    finally:
        for peer in peers:
            peer.close()
    versions = {"tensorexpr": __version__, **{peer.name: peer.version for peer in peers}}
    how = {"isa": options.isa, "priority": priority, "least_fma_share": round(least, 3), "left_out": missing}
    return Results(tuple(rows), limits.to_json(), {**describe_machine(versions, target), **how})


def _progress(case: Case | Network, rows: Sequence[Row]) -> str:
    return f"{case.name}: " + ", ".join(f"{row.contender} {row.low * 1e3:.4f} ms" for row in rows if row.median == row.median)


def measure_case(
    suite_name: str, case: Case, target: Target, peers: Sequence[Peer], options: argparse.Namespace, probes: Probes
) -> tuple[list[Row], float]:
    """All contenders on one case, each checked against the others' result before it is timed, and the least that the FMA probe reached."""
    arrays = random_inputs(case)
    kernels, notes = _our_kernels(case, target, options)
    memory = [(a.ctypes.data, a.nbytes) for a in arrays]
    contenders, wanted = _peers_on(case, peers, arrays, memory, notes)
    for kernel in kernels:
        outputs = empty_outputs(case)
        kernel.function(*arrays, *outputs)
        problem = _difference(np.asarray(outputs[0], np.float64), wanted, case) if wanted is not None else ""
        if problem:
            notes[kernel.name] = problem
            continue
        touched = [*memory, (outputs[0].ctypes.data, outputs[0].nbytes)]
        contenders.insert(0, Contender(kernel.name, _bound(kernel, arrays, outputs), touched))
    ours: dict[str, dict[str, Any]] = {
        kernel.name: {"schedule": kernel.schedule, "trials": kernel.trials, "tuning": kernel.tuning} for kernel in kernels
    }
    samples = interleaved(contenders, Rules(rounds=options.rounds, patience=options.patience), probes)
    nan = float("nan")
    flops, size = case.flops(), float(case.bytes_touched())
    rows = []
    for name, s in samples.items():
        note = f"other work on the cores in {s.disturbed} rounds: the FMA probe fell to {s.share:.0%} of its best" if s.disturbed else ""
        rows.append(Row(suite_name, case.name, name, s.median, s.low, s.high, s.cold, flops, size, note, **ours.get(name, {})))
    rows += [Row(suite_name, case.name, name, nan, nan, nan, nan, flops, size, note) for name, note in notes.items()]
    return rows, min((s.share for s in samples.values()), default=1.0)


def _peers_on(
    case: Case, peers: Sequence[Peer], arrays: Sequence[Any], memory: Sequence[tuple[int, int]], notes: dict[str, str]
) -> tuple[list[Contender], Any]:
    """The peers that can do a case, and the result with which all must agree; `notes` gets who failed, and how.

    It is that of the first peer, but for integers that of the definition: where a CPU has no instruction for sums of four products of
    8 bits, oneDNN saturates pairs of them at 16.
    """
    contenders: list[Contender] = []
    wanted = exact_result(case, arrays)
    for peer in peers:
        try:
            call = peer.prepare(case, arrays)
            value = np.array(peer.result(call()), dtype=np.float64)
        except Unsupported:
            continue
        except Exception as error:
            notes[peer.name] = f"failed: {error}"
            continue
        timer = getattr(peer, "seconds", None)
        if wanted is None:
            wanted = value
        elif problem := _difference(value, wanted, case):
            notes[peer.name] = problem
        contenders.append(Contender(peer.name, call, [] if timer else list(memory), timer))
    return contenders, wanted


def _bound(kernel: Kernel, arrays: Sequence[Any], outputs: Sequence[Any]) -> Any:
    function, everything = kernel.function, (*arrays, *outputs)
    return lambda: function(*everything)


def _our_kernels(case: Case, target: Target, options: argparse.Namespace) -> tuple[list[Kernel], dict[str, str]]:
    kernels, failures = [], {}
    trials = options.trials or options.tune
    if not options.tune:
        try:
            kernels.append(default_kernel(case, target))
        except TensorExprError as error:
            failures["tensorexpr"] = f"failed: {error}"
    if options.log is None and not trials and options.budget is None:
        return kernels, failures
    log = options.log or Path("bench-records.json")
    try:
        seconds = tune(case, target, log, trials, options.budget) if trials or options.budget is not None else None
        recorded = recorded_kernel(case, target, log)
        if recorded is not None:
            kernels.append(replace(recorded, tuning=seconds))
        elif options.tune:
            failures["tensorexpr-tuned"] = "failed: no program of its search ran"
    except TensorExprError as error:
        failures["tensorexpr-tuned"] = f"failed: {error}"
    return kernels, failures


def _difference(value: Any, wanted: Any, case: Case) -> str:
    """What is wrong with a result; empty if it agrees."""
    if value.shape != wanted.shape:
        return f"wrong: shape {value.shape} instead of {wanted.shape}"
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    error = float(np.abs(value - wanted).max(initial=0.0)) / scale
    limit = 2e-2 if any("float16" in str(a) for a in case.args) else 2e-4
    return "" if error <= limit else f"wrong: off by {error:.2g} of the largest value"
