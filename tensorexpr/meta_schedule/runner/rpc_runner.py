"""`RPCRunner`: programs run on the devices of a tracker, TVM's name for a fleet."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

from ...contrib.utils import tempdir
from ...errors import RPCError
from ...fleet.shared import running_at
from ...rpc.client import RPCSession
from ...rpc.tracker import TrackerSession, connect_tracker
from ..utils import get_global_func_with_default_on_worker as named
from .config import EvaluatorConfig
from .in_process import AllocArgument, RunEvaluator, alloc_argument_common, run_evaluator_common
from .local_runner import LocalRunner

T_ARG_INFO_JSON_OBJ = list[Any]
T_ARG_INFO_JSON_OBJ_LIST = list[T_ARG_INFO_JSON_OBJ]
T_ARGUMENT = Any
T_ARGUMENT_LIST = list[T_ARGUMENT]


class RPCConfig(NamedTuple):
    """Where a tracker is. What is None is read from TVM_TRACKER_HOST, TVM_TRACKER_PORT and TVM_TRACKER_KEY."""

    tracker_host: str | None = None
    tracker_port: int | str | None = None
    tracker_key: str | None = None
    session_priority: int = 1
    session_timeout_sec: int = 10

    @staticmethod
    def _normalized(config: RPCConfig | None) -> RPCConfig:
        """The configuration with what the environment says.

        Raises:
            ValueError: if neither names a host, a port and a key.
        """
        found = RPCConfig() if config is None else config
        host = found.tracker_host or os.environ.get("TVM_TRACKER_HOST")
        port = found.tracker_port or os.environ.get("TVM_TRACKER_PORT")
        key = found.tracker_key or os.environ.get("TVM_TRACKER_KEY")
        if not (host and port and key):
            raise ValueError(
                "RPCRunner: the tracker's host, port and key come from RPCConfig or from TVM_TRACKER_HOST, TVM_TRACKER_PORT and "
                "TVM_TRACKER_KEY; to measure here without a tracker use LocalRunner()"
            )
        return found._replace(tracker_host=host, tracker_port=int(port), tracker_key=key)

    def connect_tracker(self) -> TrackerSession:
        """A connection to the tracker.

        Raises:
            ValueError: if nothing says where it is.
            TuningError: if it doesn't answer.
        """
        found = RPCConfig._normalized(self)
        return connect_tracker(str(found.tracker_host), int(found.tracker_port or 0))


class RPCRunner(LocalRunner, kind="rpc"):
    """Programs run on the devices of a tracker, all that have the key of the configuration: TVM's name for `Fleet(...).runner(key)`.

    The tracker is a scheduler of Dask (`python -m tensorexpr rpc_tracker`, or `dask scheduler`), and is asked when the first program is
    measured. Functions of the caller run in this process, one program after another and without comparing results; they get a session
    with one device: what f_create_session gives, else one of the tracker's.

    Args:
        rpc_config: where the tracker is.
        evaluator_config, cooldown_sec, alloc_repeat: see `LocalRunner`.
        f_create_session: takes the configuration and gives a session.
        f_upload_module: takes (session, local path, remote path) and gives the module to run.
        f_alloc_argument: takes (session, device, arguments as JSON, alloc_repeat) and gives sets of arguments.
        f_run_evaluator: takes (session, module, device, EvaluatorConfig, sets of arguments) and gives seconds.
        f_cleanup: takes (session, remote path).
        max_workers: accepted; all devices work.
        initializer: called at once.

    Raises:
        ValueError: if nothing says where the tracker is.
    """

    name: ClassVar[str] = "RPCRunner"

    def __init__(
        self,
        rpc_config: RPCConfig | None = None,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_create_session: Callable[..., Any] | str | None = None,
        f_upload_module: Callable[..., Any] | str | None = None,
        f_alloc_argument: Callable[..., Any] | str | None = None,
        f_run_evaluator: Callable[..., Any] | str | None = None,
        f_cleanup: Callable[..., Any] | str | None = None,
        max_workers: int | None = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        self.rpc_config = RPCConfig._normalized(rpc_config)
        if initializer is not None:
            initializer()
        given = (f_create_session, f_upload_module, f_alloc_argument, f_run_evaluator, f_cleanup)
        calls = _Calls(self.rpc_config, *given) if any(function is not None for function in given) else None
        super().__init__(
            timeout_sec=self.rpc_config.session_timeout_sec,
            evaluator_config=evaluator_config,
            cooldown_sec=cooldown_sec,
            alloc_repeat=alloc_repeat,
            f_alloc_argument=None if calls is None else calls.alloc,
            f_run_evaluator=None if calls is None else calls.evaluate,
            f_cleanup=None if calls is None else calls.cleanup,
            max_workers=max_workers,
        )
        host, port, key, priority, _ = self.rpc_config
        self.running = running_at(host, port, str(key), priority)


class _Calls:
    """Functions that take a session, as functions that take none."""

    def __init__(self, config: RPCConfig, create: Any, upload: Any, alloc: Any, evaluate: Any, cleanup: Any) -> None:
        self._config = config
        self._create, self._upload = named(create, default_create_session), named(upload, default_upload_module)
        self._alloc, self._evaluate = named(alloc, default_alloc_argument), named(evaluate, default_run_evaluator)
        self._cleanup = named(cleanup, default_cleanup)
        self._session: Any = None
        self._name = ""

    def alloc(self, device: Any, args_info: Sequence[Any], alloc_repeat: int) -> Sequence[Sequence[Any]]:
        """Open a session and make arguments there."""
        self._session, self._name = self._create(self._config), f"{uuid4().hex}.tar"
        made: Sequence[Sequence[Any]] = self._alloc(self._session, self._device(), args_info, alloc_repeat)
        return made

    def evaluate(self, module: Any, device: Any, config: EvaluatorConfig, repeated_args: Sequence[Sequence[Any]]) -> Sequence[float]:
        """Time a module in the session."""
        folder = tempdir()
        path = folder.relpath(self._name)
        module.export_library(path)
        there = self._upload(self._session, path, self._name)
        made: Sequence[float] = self._evaluate(self._session, there, self._device(), config, repeated_args)
        return made

    def cleanup(self) -> None:
        """End the session."""
        if self._session is not None:
            self._cleanup(self._session, self._name)
        self._session = None

    def _device(self) -> Any:
        return self._session.device("cpu", 0)


def default_create_session(rpc_config: RPCConfig) -> RPCSession:
    """A session with a device of the tracker."""
    _, _, key, priority, seconds = RPCConfig._normalized(rpc_config)
    return rpc_config.connect_tracker().request(str(key), priority, seconds)


def default_upload_module(session: Any, local_path: str, remote_path: str) -> Any:
    """The module in a file here, sent and loaded in the session."""
    session.upload(local_path, remote_path)
    return session.load_module(remote_path)


def default_alloc_argument(session: Any, device: Any, args_info: Sequence[Any], alloc_repeat: int) -> list[T_ARGUMENT_LIST]:
    """Random arguments, so many times anew."""
    return alloc_argument_common(device, args_info, alloc_repeat)


def default_run_evaluator(
    session: Any, rt_mod: Any, device: Any, evaluator_config: EvaluatorConfig, repeated_args: Sequence[Sequence[Any]]
) -> list[float]:
    """Seconds per call of each repeat, for each set of arguments."""
    return run_evaluator_common(rt_mod, device, evaluator_config, repeated_args)


def default_cleanup(session: Any, remote_path: str | None) -> None:
    """Remove the file that was sent, and end the session; one that a program took down is over already."""
    with suppress(RPCError):
        if remote_path:
            session.remove(remote_path)
    session.close()


__all__ = [
    "T_ARGUMENT",
    "T_ARGUMENT_LIST",
    "T_ARG_INFO_JSON_OBJ",
    "T_ARG_INFO_JSON_OBJ_LIST",
    "AllocArgument",
    "RPCConfig",
    "RPCRunner",
    "RunEvaluator",
    "default_alloc_argument",
    "default_cleanup",
    "default_create_session",
    "default_run_evaluator",
    "default_upload_module",
]
