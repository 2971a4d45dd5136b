"""Small functions that programs of TVM take from here: workload keys and their arguments, and calls with a time limit."""

from __future__ import annotations

import json
import math
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ..errors import WorkloadError
from ..rpc.tracker import check_remote as check_remote
from ..rpc.tracker import request_remote as request_remote
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import PrimExpr

MAX_TRACEBACK_INFO_LEN = 512
_T = TypeVar("_T")
Workload = tuple[str, "list[Any] | None"]


def decode_workload_key(workload_key: str) -> Workload:
    """The name in a workload key, and its arguments without their nesting; None for them if it is no such key."""
    try:
        data = json.loads(workload_key)
    except ValueError:
        return workload_key, None
    if not isinstance(data, list) or not data:
        return workload_key, None
    return str(data[0]), list(_flat(data[1:]))


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield value


def calc_workload_dis_factor(target_workload_pair: Workload, workload_pair: Workload) -> float:
    """How much more work a workload is than another of the same function; infinite where their programs have nothing in common.

    Integer arguments must be multiples of the other's, all others equal.

    Args:
        target_workload_pair, workload_pair: what `decode_workload_key` gives.
    """
    (name, wanted), (other_name, other) = target_workload_pair, workload_pair
    if name != other_name or wanted is None or other is None or len(wanted) != len(other):
        return math.inf
    factor = 1.0
    for mine, theirs in zip(wanted, other, strict=True):
        if mine == theirs:
            continue
        # not isinstance: True is an int, but no size
        if type(mine) is not int or type(theirs) is not int or mine <= 0 or theirs <= 0 or mine % theirs:
            return math.inf
        factor *= mine // theirs
    return factor


def get_func_name(func: Callable[..., Any]) -> str:
    """The name that a function is registered under when none is given."""
    return getattr(func, "func_name", None) or str(func.__name__)


def get_const_int(exp: Any) -> int:
    """The value of an integer expression.

    Raises:
        ValueError: if it has none.
    """
    value = as_int(exp) if isinstance(exp, PrimExpr) else int(exp)
    if value is None:
        raise ValueError(f"{exp} is no constant integer")
    return value


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """A shape as numbers; symbolic extents stay as they are."""
    made = []
    for item in in_tuple:
        value = as_int(item) if isinstance(item, PrimExpr) else item
        made.append(item if value is None else value)
    return tuple(made)


def list_to_tuple(x: Sequence[Any]) -> tuple[Any, ...]:
    """Tuples in place of lists, inside too."""
    return tuple(list_to_tuple(item) if isinstance(item, list) else item for item in x)


def serialize_args(args: Any) -> tuple[Any, ...]:
    """Arguments of a workload as JSON has them; a tensor becomes ["TENSOR", shape, dtype].

    Raises:
        WorkloadError: for an argument that has no place in JSON.
    """
    listed = args if isinstance(args, (list, tuple)) else (args,)
    return tuple(_plain(arg) for arg in listed)


def _plain(arg: Any) -> Any:
    if arg is None or isinstance(arg, (bool, int, float, str)):
        return arg
    if isinstance(arg, (list, tuple)):
        return [_plain(item) for item in arg]
    if isinstance(arg, Tensor):
        return ["TENSOR", [_plain(extent) for extent in arg.shape], arg.dtype]
    number = as_int(arg) if isinstance(arg, PrimExpr) else None
    if number is None and hasattr(arg, "__int__") and not isinstance(arg, PrimExpr):
        number = int(arg)
    if number is None:
        raise WorkloadError(f"argument {arg!r} of a workload is no number, string, sequence or tensor")
    return number


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """The arguments that `serialize_args` wrote: a tensor comes back as a placeholder of its shape."""
    from ..te import placeholder

    made = []
    for arg in args:
        is_tensor = isinstance(arg, (list, tuple)) and len(arg) == 3 and arg[0] == "TENSOR"
        made.append(placeholder(tuple(arg[1]), dtype=arg[2]) if is_tensor else arg)
    return made


def array_mean(arr: Iterable[Any]) -> float:
    """The mean of some numbers, such as the costs of a result."""
    listed = [float(getattr(item, "value", item)) for item in arr]
    return sum(listed) / len(listed)


def to_str_round(x: Any, decimal: int = 6) -> str:
    """Numbers as text, rounded: also those in lists and mappings."""
    if isinstance(x, str):
        return x
    if isinstance(x, Mapping):
        return str({key: to_str_round(value, decimal) for key, value in x.items()})
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(to_str_round(item, decimal) for item in x) + "]"
    return f"{x:.{decimal}f}" if isinstance(x, float) else str(x)


def make_traceback_info() -> str:
    """The traceback of the exception that is handled now, cut in the middle to `MAX_TRACEBACK_INFO_LEN` characters."""
    info = traceback.format_exc()
    half = MAX_TRACEBACK_INFO_LEN // 2
    return info if len(info) <= MAX_TRACEBACK_INFO_LEN else f"{info[:half]}\n...\n{info[-half:]}"


class PropagatingThread(threading.Thread):
    """A thread whose `join` gives what its function returned, or raises what that raised."""

    _outcome: Any = None
    _error: BaseException | None = None

    def run(self) -> None:
        """Call the function."""
        try:
            self._outcome = self._target(*self._args, **self._kwargs)  # type: ignore[attr-defined]
        # SystemExit and KeyboardInterrupt too: raised in the thread they would be lost.
        except BaseException as error:
            self._error = error

    def join(self, timeout: float | None = None) -> Any:
        """Wait for the thread; what its function returned."""
        super().join(timeout)
        if self._error is not None:
            raise self._error
        return self._outcome


def call_func_with_thread(func: Callable[..., _T], args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> _T:
    """Call a function in a thread of its own, and wait for it."""
    thread = PropagatingThread(target=func, args=tuple(args), kwargs=dict(kwargs or {}))
    thread.start()
    made: _T = thread.join()
    return made


def call_func_with_timeout(worker: Any, timeout: float, func: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
    """Call a function in a worker process with `send(func, args, kwargs, timeout)` and `recv()`; its exceptions are returned.

    Args:
        worker: the process, such as `contrib.popen_pool.PopenWorker`.
        timeout: seconds.
    """
    worker.send(func, args, kwargs, timeout)
    try:
        return worker.recv()
    except TimeoutError:
        return TimeoutError()
    except Exception as error:  # whatever the function raised is an answer
        return error


def kill_child_processes(parent_pid: int, sig: int = 9) -> None:
    """End the processes that a process started, and theirs."""
    import psutil  # takes as long to import as a small build

    try:
        # Listed before any is ended, as an orphan's children are no longer found from here.
        children = psutil.Process(parent_pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    for child in children:
        try:
            child.send_signal(sig)
        except psutil.NoSuchProcess:
            continue
