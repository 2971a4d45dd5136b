"""Built programs to seconds.

runner              the protocol, futures, results
config              how programs are timed
local_runner        in a process of their own;  reference: arguments, and the results to expect
rpc_runner          the same on the devices of a tracker
in_process          with functions of the caller, in this process
"""

from __future__ import annotations

from .config import EvaluatorConfig
from .local_runner import LocalRunner
from .rpc_runner import RPCConfig, RPCRunner
from .runner import LocalRunnerFuture, PyRunner, PyRunnerFuture, Runner, RunnerFuture, RunnerInput, RunnerResult, create

__all__ = [
    "EvaluatorConfig",
    "LocalRunner",
    "LocalRunnerFuture",
    "PyRunner",
    "PyRunnerFuture",
    "RPCConfig",
    "RPCRunner",
    "Runner",
    "RunnerFuture",
    "RunnerInput",
    "RunnerResult",
    "create",
]
