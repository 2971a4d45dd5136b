"""Features of a schedule's loops by AutoTVM's names (Chen et al., Learning to Optimize Tensor Programs, 2018, section 4).

    for i: for j: for k: C[i, j] = C[i, j] + A[i, k] * B[k, j]

itervar: a row for each loop, in the order of the program: `_attr_` has its iterations, depth, those of all loops down to it and of all
from it on, and what kind it is; `_arith_` the float additions, multiplications and divisions right in it; then for each access (A_0 is
the first one of A) stride and modulus, how many elements it touches and how often each is read again from this loop on, and the same
of threads.
curve: for each buffer of the deepest loops how these grow with each other from loop to loop, sampled, so that rows of all programs that
access as many buffers are as long.

What is told is told of loops before any is cut or written out, those of one iteration too. The start of a reduction counts for nothing,
as in TVM. XGBTuner looks at features of its own, for whole populations (`template_space`); these are for models of yours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log2, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ..dataclass import dataclass, field
from ..errors import TuningError
from ..lower.context import PassContext
from ..lower.phase0.schedule_to_func import schedule_to_func
from ..lower.phase1.storage_flatten import storage_flatten
from ..schedule.te_schedule import Schedule
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, IntImm, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.rewriting import children, variables
from ..tir.stmt import For, ForKind, Stmt
from ..tune.features.operations import OPERATIONS, operations_of
from ..tune.features.programs.stores import Store, stores_of
from ..tune.features.programs.touched import Motion
from .logs import decode

_ANNOTATIONS = (
    *(f"{kind}Idx.{axis}" for kind in ("block", "thread") for axis in "xyz"), ForKind.UNROLLED, ForKind.VECTORIZED, ForKind.PARALLEL,
    ForKind.SERIAL, "vthread",
)  # fmt: skip
_NAMES = {
    "_attr_": ("length", "nest_level", "topdown", "bottomup", *(f"ann_{n}" for n in range(20))),
    "_arith_": ("add", "mul", "div"),
}
_TOUCHED = ("stride", "mod", "count", "reuse", "T_count", "T_reuse")
_FLOAT_OPERATIONS = [OPERATIONS.index(f"float_{kind}") for kind in ("addsub", "mul", "divmod")]
# A size that is known when the program runs only.
_UNKNOWN = -1.0


@dataclass(eq=False)
class _Loop:
    """What is known of a loop.

    Args:
        depth: loops around it, itself included.
        topdown: iterations of all these.
        operations: float additions, multiplications and divisions right in it.
        touches: of each access the numbers of `_TOUCHED`.
    """

    var: Var
    length: float
    depth: int
    topdown: float
    annotation: int
    operations: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(_FLOAT_OPERATIONS)))
    touches: dict[str, list[float]] = field(default_factory=dict)

    @property
    def bottomup(self) -> float:
        """Iterations of this loop and of those in it."""
        return max((touch[2] * touch[3] for touch in self.touches.values()), default=-1.0)


def ana_lower(sch: Schedule, args: Sequence[Any], binds: Mapping[Any, Buffer] | None = None, simple_mode: bool = True) -> Stmt:
    """The loops of a schedule with those of one iteration, before any is cut or written out.

    Args:
        sch, args, binds: as for `lower`.
        simple_mode: kept for programs that pass it: the statement is returned either way.

    Raises:
        TuningError: for anything else than a schedule of tensors.
        ScheduleError: if the schedule is illegal.
    """
    return _lowered(sch, args, binds).body


def _lowered(sch: Schedule, args: Sequence[Any], binds: Mapping[Any, Buffer] | None = None) -> PrimFunc:
    if not isinstance(sch, Schedule):
        raise TuningError(
            f"autotvm.feature takes a schedule from te.create_schedule, not {sch!r:.100}; of functions of loops or blocks "
            "auto_scheduler.feature.features_from_primfunc makes features"
        )
    # flattened: an element of a cache is counted from where that begins
    return storage_flatten(schedule_to_func(sch, args, binds=binds, keep_trivial_loops=True), PassContext.current())


def get_itervar_feature(sch: Schedule, args: Sequence[Any], take_log: bool = False) -> list[list[list[Any]]]:
    """The features of all loops: a list of [name, number, number, ...] for each; the first one is ["_itervar_", the loop's variable].

    Args:
        sch, args: as for `lower`.
        take_log: give log2(x + 1) of numbers, mirrored for negative ones.

    Raises:
        TuningError, ScheduleError: see `ana_lower`.
    """
    rows = []
    for loop in _loops(sch, args):
        sizes = _scaled([loop.length, loop.topdown, loop.bottomup], take_log)
        kind = [float(n == loop.annotation) for n in range(len(_ANNOTATIONS))]
        rows.append([
            ["_itervar_", loop.var],
            ["_attr_", sizes[0], loop.depth, *sizes[1:], *kind],
            ["_arith_", *_scaled(loop.operations, take_log)],
            *([name, *_scaled(loop.touches[name], take_log)] for name in sorted(loop.touches)),
        ])  # fmt: skip
    return rows


def _scaled(values: Any, take_log: bool) -> list[float]:
    return [float(np.sign(value) * np.log2(abs(value) + 1.0)) if take_log else float(value) for value in values]


def flatten_itervar_feature(fea: Sequence[Sequence[Sequence[Any]]]) -> npt.NDArray[Any]:
    """All numbers of `get_itervar_feature` in a row."""
    return np.concatenate([np.zeros(0), *(np.asarray(pair[1:]) for row in fea for pair in row[1:])])


def get_itervar_feature_flatten(sch: Schedule, args: Sequence[Any], take_log: bool = True) -> tuple[float, ...]:
    """All numbers of the loops in a row: `get_itervar_feature` and `flatten_itervar_feature`."""
    return tuple(map(float, flatten_itervar_feature(get_itervar_feature(sch, args, take_log))))


def get_flatten_name(fea: str | Sequence[Sequence[Sequence[Any]]]) -> list[str]:
    """The names of the numbers of `flatten_itervar_feature`, such as "f5.y._attr_.length".

    Args:
        fea: what `get_itervar_feature` gave, or a line of a log.

    Raises:
        RecordError: for a line that is none.
        MissingTaskError: if the task of a line isn't registered here.
        InstantiationError: if its configuration makes no program.
    """
    if isinstance(fea, str):
        made, _ = decode(fea)
        with made.target:
            fea = get_itervar_feature(*made.task.instantiate(made.config))
    parts = [(str(row[0][1]), str(pair[0]), len(pair) - 1) for row in fea for pair in row[1:]]
    names = [f"{var}.{what}.{name}" for var, what, count in parts for name in _NAMES.get(what, _TOUCHED)[:count]]
    return [f"f{number}.{name}" for number, name in enumerate(names)]


def get_buffer_curve_sample_flatten(sch: Schedule, args: Sequence[Any], sample_n: int = 30) -> tuple[float, ...]:
    """Samples of how count and reuse, and count and iterations, of each buffer grow with each other: 8 * sample_n numbers for each buffer.

    Sample x is at 2^x of the one: log2 of the other there, and how far x is behind that point.

    Raises:
        TuningError: for sizes that are known when the program runs only; else see `ana_lower`.
    """
    loops = _loops(sch, args)
    for loop in loops:
        if loop.length == _UNKNOWN:
            raise TuningError(f"curves are of numbers of iterations; those of {loop.var.name} are known when the program runs only")
    deepest = max((loop.depth for loop in loops), default=0)
    innermost: dict[str, str] = {}
    for name in sorted(name for loop in loops if loop.depth == deepest for name in loop.touches):
        # A.shared_0, A_0, A_1: copies of one buffer, of which the last one counts
        innermost[name.rpartition("_")[0].partition(".")[0]] = name
    found: list[float] = []
    for name in sorted(innermost.values()):
        around = [loop for loop in loops if name in loop.touches]
        count, reuse = ([log2(loop.touches[name][place]) for loop in reversed(around)] for place in (2, 3))
        # from without, where the others are from within: TVM's models were trained on that
        topdown = [log2(loop.topdown) for loop in around]
        for x, y in ((count, reuse), (reuse, count), (count, topdown), (topdown, count)):
            found += _sampled(x, y, sample_n)
    return tuple(found)


def _sampled(x: Sequence[float], y: Sequence[float], samples: int) -> list[float]:
    """At 0, 1, 2, ...: y of the last point that isn't behind, and the distance from its x; of (0, 0) if all are."""
    found: list[float] = []
    for at in range(samples):
        place = next((n for n in reversed(range(len(x))) if x[n] < at + 1e-6), None)
        found += [0.0, float(at)] if place is None else [y[place], at - x[place]]
    return found


def _loops(sch: Schedule, args: Sequence[Any]) -> list[_Loop]:
    """The loops that store anything, in the order of the program."""
    stores = stores_of(_lowered(sch, args))
    sums = {store.buffer for store in stores if store.tensors[0].is_read}
    loops: dict[Var, _Loop] = {}
    accesses: Counter[str] = Counter()
    for store in stores:
        # C[i] = 0 before C[i] = C[i] + ...
        if store.buffer in sums and not store.tensors[0].is_read:
            continue
        lengths, topdown = [_length(loop) for loop in store.loops], 1.0
        for depth, (loop, length) in enumerate(zip(store.loops, lengths, strict=True), 1):
            topdown *= length
            loops.setdefault(loop.loop_var, _Loop(loop.loop_var, length, depth, topdown, _annotation(loop)))
        around = [loops[loop.loop_var] for loop in store.loops]
        if around:
            around[-1].operations += operations_of(store.value)[_FLOAT_OPERATIONS]
        for buffer, indices in _accesses(store):
            _touch(around, buffer, indices, f"{buffer.name}_{accesses[buffer.name]}")
            accesses[buffer.name] += 1
    return list(loops.values())


def _accesses(store: Store) -> list[tuple[Buffer, Sequence[PrimExpr]]]:
    """What a statement accesses, the stored element first."""
    return [(store.buffer, store.indices), *(found for root in (store.value, *store.indices) for found in _reads(root))]


def _reads(node: PrimExpr | Stmt) -> Iterator[tuple[Buffer, Sequence[PrimExpr]]]:
    """What an expression reads, as often as it says so: equal parts are one node."""
    if isinstance(node, BufferLoad):
        yield node.buffer, node.indices
    for child in children(node):
        yield from _reads(child)


def _length(loop: For) -> float:
    return float(loop.extent.value) if isinstance(loop.extent, IntImm) else _UNKNOWN


def _annotation(loop: For) -> int:
    what: Any = loop.kind if loop.thread_binding is None else loop.thread_binding.thread_tag
    # numbered virtual threads are told apart by nothing
    return _ANNOTATIONS.index(what if what in _ANNOTATIONS else "vthread")


def _rank(loop: _Loop) -> int:
    """How much of the machine a loop is spread over: blocks of threads 2, threads and cores 1."""
    what = _ANNOTATIONS[loop.annotation]
    return 2 if str(what).startswith("blockIdx") else 1 if what is ForKind.PARALLEL or str(what).startswith("threadIdx") else 0


def _touch(around: Sequence[_Loop], buffer: Buffer, indices: Sequence[PrimExpr], name: str) -> None:
    """Say of each loop around an access how it moves that.

    Example: of A[i // 4 * 8 + k] it is moved by i and by k, by 1 each as it is told, and read again by j.
    """
    motion = Motion.of_loops([loop.var for loop in around], [2.0 if loop.length == _UNKNOWN else loop.length for loop in around])
    # a flat buffer has one index; of one that depends on what is read at it, it is known only which loops that reads by
    apart = motion.moved(indices[0]) if indices else None
    named = set().union(*map(variables, indices))
    whole = np.array([float(loop.var in named and loop.length != 1.0) for loop in around])
    steps, reach = (whole, whole) if apart is None else apart
    # i // 4 isn't moved by its first step
    moves = [bool(moved) for moved in reach > 0]
    for level, loop in enumerate(around):
        inner = list(zip(around, moves, strict=True))[level:]
        count, reuse = (prod(one.length for one, moved in inner if moved is wanted) for wanted in (True, False))
        stride = max(float(steps[level]), 1.0) if moves[level] else 0.0
        threads = [0.0, 0.0]
        # of accesses that the threads do right in themselves nothing is told
        if any(_rank(one) < _rank(loop) for one, _ in inner[1:]):
            threads = [loop.length, 1.0] if moves[level] else [1.0, loop.length]
        loop.touches[name] = [stride, -1.0, count, reuse, *threads]
