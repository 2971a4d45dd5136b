"""A lowered function as kernels, and the launches that its host makes one after the other, in loops and under conditions.

for bx in T.thread_binding(4, "blockIdx.x"):            kernel(A, B): with T.launch_thread("blockIdx.x", 4) as bx:
    for tx in T.thread_binding(8, "threadIdx.x"):  ->                     with T.launch_thread("threadIdx.x", 8) as tx:
        B[bx * 8 + tx] = A[bx * 8 + tx]                                       B[bx * 8 + tx] = A[bx * 8 + tx]
                                                        host: launch kernel(A, B), grid (4, 1, 1), block (8, 1, 1)

Memory of a kernel's own (shared, local) that is allocated around it moves into it; global memory that several kernels use is the host's,
and so is shared or local memory that several use, which would end with each of them: it is global memory then.
A loop of the host around launches hands its variable to their kernels. Its range, and conditions, are numbers that the host knows: it can't
look into arrays of the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ...dataclass import dataclass, field
from ...errors import LoweringError
from ...schedule.own_loops import stores_by_threads
from ...target import Target
from ...target.chips import chip_of
from ...tir.arithmetic import as_int
from ...tir.attrs import FrozenMap
from ...tir.expr import BufferLoad, Call, IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.intrin import INTRINSICS
from ...tir.rewriting import variables, walk
from ...tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, is_no_op
from ...tir.stmt_functor import renew_defs
from ...tir.thread import HARDWARE_TAGS
from ..context import PassContext
from ..rebuild import Copier, pointer_like, pointer_scope, walk_statements
from ..transform.lower_device_kernel_launch import launch_of
from ..transform.split_host_device import kernel_parameters
from .launch_threads import launch_threads
from .launches import has_threads, launched_tag
from .tensor_maps import MapSpec, hoist_maps

_LIMITS = {"threadIdx.x": 1024, "threadIdx.y": 1024, "threadIdx.z": 64, "blockIdx.x": 2**31 - 1, "blockIdx.y": 65535, "blockIdx.z": 65535}
_ENDS = ("shared", "shared.dyn", "local")
KERNEL = 2
"""The calling convention of kernels."""


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel, what it is passed, and threads by tag, in terms of the function's parameters and shape variables."""

    kernel: str
    arguments: tuple[Var, ...]
    extents: Mapping[str, PrimExpr]
    maps: Mapping[Var, MapSpec] = field(default_factory=dict)  # of arguments that are descriptions of tensors


@dataclass(frozen=True)
class HostLoop:
    """Steps for each value of a variable, one after the other."""

    var: Var
    begin: PrimExpr
    extent: PrimExpr
    steps: tuple[HostStep, ...]


@dataclass(frozen=True)
class HostBranch:
    """Steps where a condition holds, others where it doesn't."""

    condition: PrimExpr
    steps: tuple[HostStep, ...]
    otherwise: tuple[HostStep, ...]


@dataclass(frozen=True)
class HostValue:
    """A number that later steps use."""

    var: Var
    value: PrimExpr


HostStep: TypeAlias = "Launch | HostLoop | HostBranch | HostValue"


@dataclass(frozen=True)
class Workspace:
    """Global memory that the host allocates for its kernels: `extents` elements of `dtype` behind `pointer`."""

    pointer: Var
    dtype: str
    extents: tuple[PrimExpr, ...]


@dataclass(frozen=True)
class HostPart:
    """What the host does: steps in order, with workspaces."""

    steps: tuple[HostStep, ...]
    workspaces: tuple[Workspace, ...]


def split_host_device(name: str, func: PrimFunc, target: Target) -> tuple[HostPart, dict[str, PrimFunc]]:
    """The host's part of a lowered function, and its kernels by name.

    Args:
        name: of the function; its kernels are `<name>_kernel`, `<name>_kernel_1`, ...
        func: a result of `lower`.
        target: of the device.

    Raises:
        LoweringError: for statements outside kernels, and for launches that the target's limits forbid.
    """
    splitter = _Splitter(name, func, target)
    if not has_threads(func) and not is_no_op(func.body):
        raise LoweringError(
            f"{name}: nothing of it is bound to threads, and on {target.kind.name} all code runs in threads: bind loops to blockIdx.x and "
            "threadIdx.x"
        )
    steps = splitter.host(launch_threads(func, PassContext.current()).body)
    return HostPart(steps, tuple(splitter.workspaces)), splitter.kernels


@dataclass
class _Splitter:
    name: str
    func: PrimFunc
    target: Target
    kernels: dict[str, PrimFunc] = field(default_factory=dict)
    workspaces: list[Workspace] = field(default_factory=list)
    values: set[Var] = field(default_factory=set)  # what the host gives a value while it runs

    def host(self, stmt: Stmt) -> tuple[HostStep, ...]:
        """What the host does in a statement."""
        if launched_tag(stmt) is not None:
            return (self._kernel(stmt),)
        match stmt:
            case SeqStmt(parts):
                return tuple(step for part in parts for step in self.host(part))
            case Allocate() if is_no_op(stmt.body):
                return ()  # nothing uses it
            case Allocate():
                return self.host(self._workspace(stmt))
            case AttrStmt() | DeclBuffer():
                return self.host(stmt.body)
            case Evaluate(IntImm()):
                return ()
            case For() if _starts(stmt) and stmt.kind is not ForKind.VECTORIZED:
                self._check_known(stmt, stmt.min, stmt.extent)
                self.values.add(stmt.loop_var)
                return (HostLoop(stmt.loop_var, stmt.min, stmt.extent, self.host(stmt.body)),)
            case IfThenElse() if _starts(stmt):
                self._check_known(stmt, stmt.condition)
                otherwise = () if stmt.else_case is None else self.host(stmt.else_case)
                return (HostBranch(stmt.condition, self.host(stmt.then_case), otherwise),)
            case LetStmt() if _starts(stmt):
                self._check_known(stmt, stmt.value)
                self.values.add(stmt.var)
                return (HostValue(stmt.var, stmt.value), *self.host(stmt.body))
            case For() | BufferStore() if (filling := stores_by_threads(stmt)) is not None:
                return (self._kernel(filling),)
        where = "a statement around kernels" if _starts(stmt) else "a statement that is in no kernel"
        raise LoweringError(
            f"{self.name}: {where} ({type(stmt).__name__}) can't be run by the host: bind its loops to blockIdx.x and threadIdx.x, or "
            f"compute it in a function of its own\n{stmt}"
        )

    def _workspace(self, stmt: Allocate) -> Stmt:
        """Let the host allocate memory; what uses it."""
        scope = pointer_scope(stmt.buffer_var)
        if scope not in ("global", *_ENDS):
            raise LoweringError(
                f"{self.name}: {stmt.buffer_var.name} of scope {scope!r} is used by several kernels, or outside of them; "
                'compute its stage at a loop of the kernel that reads it, or give it the scope "global"'
            )
        # One for the whole call: nobody reads in a later iteration what an earlier one left there.
        varying = [var.name for extent in stmt.extents for var in variables(extent) if var in self.values]
        if varying:
            raise LoweringError(
                f"{self.name}: the size of {stmt.buffer_var.name} depends on {varying[0]}, a loop of the host around kernels; allocate "
                "as much as its largest value takes, outside of the loop"
            )
        pointer = pointer_like(stmt.buffer_var, "global", stmt.dtype) if scope in _ENDS else stmt.buffer_var
        self.workspaces.append(Workspace(pointer, stmt.dtype, stmt.extents))
        return stmt.body if pointer is stmt.buffer_var else Copier({stmt.buffer_var: pointer}).stmt(stmt.body)

    def _check_known(self, stmt: Stmt, *controls: PrimExpr) -> None:
        """Refuse what the host can't know without the device's memory."""
        for one in controls:
            read = next((node for node in walk(one) if isinstance(node, (BufferLoad, Call)) and not _is_pure(node)), None)
            if read is not None:
                raise LoweringError(
                    f"{self.name}: {type(stmt).__name__} around kernels depends on {read}, which the host doesn't know while kernels run; "
                    f"decide it in a kernel, inside the loops that are bound to threads\n{stmt}"
                )

    def _kernel(self, body: Stmt) -> Launch:
        name = f"{self.name}_kernel" + (f"_{len(self.kernels)}" if self.kernels else "")
        _check_starts(body)
        body, maps = hoist_maps(body)
        params, buffers = kernel_parameters(body)
        for buffer in buffers:
            body = DeclBuffer(buffer, body)
        noalias = self.func.attrs.get("tir.noalias", False)
        attrs = FrozenMap({"target": self.target, "tir.noalias": noalias, "tir.is_global_func": True, "calling_conv": KERNEL})
        made = PrimFunc(tuple(params), body, None, attrs=attrs)
        launch = launch_of(made)
        extents = {tag: value for tag, value in zip(launch.names, launch.values, strict=True) if tag in HARDWARE_TAGS}
        self._check(name, extents)
        named = {**attrs, "global_symbol": name, "tir.kernel_launch_params": launch.names}
        self.kernels[name] = renew_defs(made).with_attrs(named)
        return Launch(name, tuple(params), extents, maps)

    def _check(self, name: str, extents: Mapping[str, PrimExpr]) -> None:
        """Refuse launches that no driver takes; extents that are no constants are looked at in each launch."""
        known = {tag: as_int(extent) for tag, extent in extents.items()}
        check_launch(name, {tag: extent for tag, extent in known.items() if extent is not None}, self.target)
        chip_of(self.target.arch)
        variable = [tag for tag, extent in known.items() if extent is None and tag.startswith("threadIdx")]
        if variable:
            raise LoweringError(f"{name}: the extent of {', '.join(variable)} is no constant; split the loop by a constant factor first")


def check_launch(name: str, extents: Mapping[str, int], target: Target) -> None:
    """Refuse threads beyond the limits of a target.

    Raises:
        LoweringError: with the numbers.
    """
    threads = 1
    for tag, extent in extents.items():
        if not 0 <= extent <= _LIMITS[tag]:
            raise LoweringError(f"{name}: {tag} has extent {extent}, at most {_LIMITS[tag]} is possible; split the loop, or fuse it into x")
        threads *= extent if tag.startswith("threadIdx") else 1
    most = int(target.attrs.get("max_threads_per_block") or target.max_num_threads)
    if threads > most:
        raise LoweringError(f"{name}: a block of {threads} threads, and {target.arch} has at most {most}; split by smaller factors")


def _check_starts(stmt: Stmt) -> None:
    """Refuse threads that don't count from 0."""
    while launched_tag(stmt) is not None:
        assert isinstance(stmt, AttrStmt)
        low = None if stmt.node.dom is None else stmt.node.dom.min
        if low is not None and as_int(low) != 0:
            tag = stmt.node.thread_tag
            raise LoweringError(f"the loop over {stmt.node.var.name}, bound to {tag}, starts at {low}; threads count from 0")
        stmt = stmt.body


def _is_pure(node: BufferLoad | Call) -> bool:
    return isinstance(node, Call) and node.op in INTRINSICS and INTRINSICS[node.op].pure


def _starts(stmt: Stmt) -> bool:
    return any(launched_tag(inner) is not None for inner in walk_statements(stmt))
