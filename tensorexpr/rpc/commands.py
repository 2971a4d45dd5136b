"""What a server does for one session: a table of commands on numbered objects of this process."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from ..errors import RPCError
from ..runtime import ndarray as nd
from ..runtime.device import cpu
from ..runtime.module import Module
from ..runtime.registry import get_global_func
from ..runtime.timing import BenchmarkResult
from .local import LocalSession

# What a client may ask of the executor of a network, and of a virtual machine.
EXECUTOR_METHODS = [
    "set_input",
    "run",
    "get_output",
    "get_input",
    "get_num_outputs",
    "get_num_inputs",
    "get_input_index",
    "get_output_index",
    "get_input_info",
    "benchmark",
]
MACHINE_METHODS = ["set_input", "set_one_input", "invoke", "invoke_stateful", "get_outputs", "benchmark"]
Answer = tuple[dict[str, Any], bytes]


class Commands:
    """The objects of one session, and what may be done with them. Arrays, functions and modules are known to it by number."""

    def __init__(self) -> None:
        self._local = LocalSession()
        self._objects: dict[int, Any] = {}
        self._numbers = count(1)
        self._table: dict[str, Callable[[dict[str, Any], bytes], Answer]] = {
            "upload": self._upload,
            "download": self._download,
            "remove": self._remove,
            "list": self._list,
            "load": self._load,
            "function": self._function,
            "member": self._member,
            "empty": self._empty,
            "write": self._write,
            "read": self._read,
            "free": self._free,
            "call": self._call,
            "time": self._time,
            "executor": self._executor,
            "method": self._method,
        }

    def run(self, head: dict[str, Any], body: bytes) -> Answer:
        """The answer to a message; errors of what it asks for are answers too."""
        try:
            command = self._table.get(str(head.get("do")))
            if command is None:
                raise RPCError(f"there is no command {head.get('do')!r}")
            return command(head, body)
        except Exception as error:  # whatever a function of the user raises belongs to the session
            return {"error": str(error), "kind": type(error).__name__}, b""

    def _keep(self, value: Any) -> int:
        # never used again, so that a message about an object that was freed meets no other one
        number = next(self._numbers)
        self._objects[number] = value
        return number

    def _object(self, number: Any, kind: type | tuple[type, ...] = object) -> Any:
        found = self._objects.get(number) if isinstance(number, int) else None
        if found is None or not isinstance(found, kind):
            raise RPCError(f"the session has no such object: {number!r}")
        return found

    def _upload(self, head: dict[str, Any], body: bytes) -> Answer:
        self._local.upload(body, str(head["name"]))
        return {}, b""

    def _download(self, head: dict[str, Any], body: bytes) -> Answer:
        return {}, bytes(self._local.download(str(head["name"])))

    def _remove(self, head: dict[str, Any], body: bytes) -> Answer:
        self._local.remove(str(head["name"]))
        return {}, b""

    def _list(self, head: dict[str, Any], body: bytes) -> Answer:
        return {"names": self._local.listdir()}, b""

    def _load(self, head: dict[str, Any], body: bytes) -> Answer:
        module = self._local.load_module(str(head["name"]))
        if not isinstance(module, Module):  # a network
            return {"network": self._keep(module)}, b""
        return {"module": self._keep(module), "names": module.function_names}, b""

    def _function(self, head: dict[str, Any], body: bytes) -> Answer:
        return {"function": self._keep(get_global_func(str(head["name"])))}, b""

    def _member(self, head: dict[str, Any], body: bytes) -> Answer:
        return {"function": self._keep(self._object(head.get("module"), Module).get_function(str(head["name"])))}, b""

    def _empty(self, head: dict[str, Any], body: bytes) -> Answer:
        return {"array": self._keep(nd.empty([int(extent) for extent in head["shape"]], str(head["dtype"])))}, b""

    def _write(self, head: dict[str, Any], body: bytes) -> Answer:
        array = self._object(head.get("array"), nd.NDArray)
        into = array.numpy()
        if len(body) != into.nbytes:
            raise RPCError(f"{len(body)} bytes don't fit into an array of {into.nbytes}")
        array.copyfrom(np.frombuffer(body, into.dtype).reshape(into.shape))
        return {}, b""

    def _read(self, head: dict[str, Any], body: bytes) -> Answer:
        return {}, self._object(head.get("array"), nd.NDArray).numpy().tobytes()

    def _free(self, head: dict[str, Any], body: bytes) -> Answer:
        for number in head.get("numbers", ()):
            self._objects.pop(number, None)
        return {}, b""

    def _arguments(self, words: Any) -> list[Any]:
        # a session names objects by its own numbers only: nothing else of this process can be reached
        return [self._object(word["object"]) if isinstance(word, dict) else word for word in words]

    def _call(self, head: dict[str, Any], body: bytes) -> Answer:
        function = self._object(head.get("function"))
        if not callable(function):
            raise RPCError("what was asked to be called is no function")
        return {"result": self._result(function(*self._arguments(head["args"])))}, b""

    def _result(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (tuple, list)):
            return {"fields": [self._result(one) for one in value]}
        if isinstance(value, nd.NDArray):
            return {"array": self._keep(value), "shape": list(value.shape), "dtype": value.dtype}
        if isinstance(value, Module):
            return {"module": self._keep(value), "names": value.function_names}
        if callable(value):
            return {"function": self._keep(value)}
        raise RPCError(f"a function returned {type(value).__name__}; numbers, texts, arrays, functions and modules can be sent")

    def _time(self, head: dict[str, Any], body: bytes) -> Answer:
        module = self._object(head.get("module"), Module)
        evaluator = module.time_evaluator(str(head["name"]), None, **{str(name): value for name, value in head["options"].items()})
        return {"results": list(evaluator(*self._arguments(head["args"])).results)}, b""

    def _executor(self, head: dict[str, Any], body: bytes) -> Answer:
        # higher rows of the house
        network = self._object(head.get("network"))
        if head.get("kind") == "machine":
            return {"executor": self._keep(import_module("tensorexpr.relay.machine").VirtualMachine(network, cpu()))}, b""
        executors = import_module("tensorexpr.relay.graph_executor")
        return {"executor": self._keep(executors.GraphModule(network["default"](cpu())))}, b""

    def _method(self, head: dict[str, Any], body: bytes) -> Answer:
        name = str(head["name"])
        kinds = import_module("tensorexpr.relay.graph_executor").GraphModule, import_module("tensorexpr.relay.machine").VirtualMachine
        executor = self._object(head.get("executor"), kinds)
        methods = EXECUTOR_METHODS if isinstance(executor, kinds[0]) else MACHINE_METHODS
        if name not in methods:
            raise RPCError(f"an executor has no method {name!r}; there are {', '.join(methods)}")
        words = {str(key): word for key, word in head["kwargs"].items()}
        kwargs = dict(zip(words, self._arguments(words.values()), strict=True))
        made = getattr(executor, name)(*self._arguments(head["args"]), **kwargs)
        if isinstance(made, BenchmarkResult):
            return {"results": list(made.results)}, b""
        is_plain = isinstance(made, tuple) and methods is EXECUTOR_METHODS  # shapes and dtypes
        return {"result": list(made) if is_plain else self._result(made)}, b""
