"""What `relay.build` returns: an executable of a graph, by the names under which programs look for its parts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import MissingFunctionError
from ...relax.expr import Call, Constant, Tuple, TupleGetItem, Var
from ...relax.runtime.executable import Executable
from ...relax.runtime.machine import VirtualMachine
from ...relax.struct_info import StructInfo, TensorStructInfo
from ...runtime.device import Device
from ...runtime.ndarray import NDArray
from ...target import Target
from ...tir.arithmetic import as_int
from ...tir.function import IRModule


class ExecutorFactoryModule:
    """A built network: `graph_executor.GraphModule(lib["default"](dev))` runs it.

    Args:
        ir_mod: the module that was built.
        target: what for.
        module: the executable.
        libmod_name: the name by which it is asked for.
        params: parameters by name, which `export_library` of `lib` leaves out; none if they are linked into it.
    """

    def __init__(
        self,
        ir_mod: IRModule,
        target: Target,
        module: Executable,
        libmod_name: str = "default",
        params: Mapping[str, NDArray] | None = None,
    ) -> None:
        self.ir_mod, self.target, self.module, self.libmod_name = ir_mod, target, module, libmod_name
        self.params = dict(params or {})

    @property
    def lib(self) -> Executable:
        """The executable; `export_library` of it writes no parameters, unless they are linked into it."""
        return self.module.without_params() if self.params else self.module

    @property
    def graph_json(self) -> str:
        """The calls of "main" as JSON."""
        return graph_json(self.module)

    def get_graph_json(self) -> str:
        """The calls of "main" as JSON, in the form of a graph executor's."""
        return self.graph_json

    def get_executor_config(self) -> str:
        """As `get_graph_json`."""
        return self.graph_json

    def get_lib(self) -> Executable:
        """As `lib`."""
        return self.lib

    def get_params(self) -> dict[str, NDArray]:
        """Parameters by name, for `load_params` and `set_input`: weights as kernels take them. None if they are linked into the library."""
        return dict(self.params)

    def get_devices(self) -> list[str]:
        """What it runs on."""
        return [str(self.target.kind)]

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Callable[..., Any] | None = None, **kwargs: Any) -> None:
        """Write one shared library with all in it; `runtime.load_module` reads it; see `Executable.export_library`."""
        self.module.export_library(file_name, fcompile, **kwargs)

    def __getitem__(self, item: str) -> Callable[..., Any]:
        """What makes machines for a device, by the name of the library; "remove_params", what makes the same network for
        `export_library` without parameters.

        Raises:
            MissingFunctionError: for another name.
        """
        if item == "remove_params":
            return lambda: ExecutorFactoryModule(self.ir_mod, self.target, self.lib, self.libmod_name)
        if item not in (self.libmod_name, "debug_create"):
            raise MissingFunctionError(f"no {item!r} in a built network; it is called {self.libmod_name!r}")
        return lambda *devices: VirtualMachine(self.module, [one for one in devices if isinstance(one, Device)] or None)

    def __iter__(self) -> Iterator[Any]:
        """Graph, library and parameters, as programs of the first releases take them."""
        return iter((self.graph_json, self.lib, self.params))


GraphExecutorFactoryModule = AOTExecutorFactoryModule = ExecutorFactoryModule


def _shapes(info: StructInfo) -> tuple[list[list[int]], list[str]]:
    """Shapes and dtypes of what a value consists of; -1 for unknown extents."""
    fields = getattr(info, "fields", (info,))
    tensors = [one for one in fields if isinstance(one, TensorStructInfo)]
    known = [[-1 if as_int(one) is None else as_int(one) for one in info.extents or ()] for info in tensors]
    return known, [one.dtype for one in tensors]  # type: ignore[return-value]


def graph_json(executable: Executable, function: str = "main") -> str:
    """The calls of a function of an executable as JSON: nodes, which of them are arguments, which are results."""
    func = executable.functions[function]
    nodes: list[dict[str, Any]] = []
    shapes: list[list[int]] = []
    dtypes: list[str] = []
    rows, places = [0], {}
    names = {id(one): name for name, one in executable.get_params().items()}

    def add(value: Any, node: dict[str, Any], info: StructInfo) -> None:
        places[value] = len(nodes)
        nodes.append(node)
        own_shapes, own_dtypes = _shapes(info)
        shapes.extend(own_shapes)
        dtypes.extend(own_dtypes)
        rows.append(rows[-1] + max(1, len(own_shapes)))

    def entries(value: Any) -> list[list[int]]:
        if isinstance(value, Tuple):
            return [entry for one in value.fields for entry in entries(one)]
        if isinstance(value, TupleGetItem):
            return [[places[value.tuple_value], value.index, 0]] if value.tuple_value in places else []
        if isinstance(value, Constant) and value not in places:
            name = names.get(id(value.data), f"c{len(nodes)}")
            add(value, {"op": "null", "name": name, "inputs": [], "attrs": {"kind": "constant"}}, value.struct_info)
        return [[places[value], 0, 0]] if value in places else []

    for param in func.params:
        add(param, {"op": "null", "name": param.name_hint, "inputs": []}, param.struct_info)
    for binding in func.body.bindings():
        value = binding.value
        if not isinstance(value, Call):
            if isinstance(value, (Var, TupleGetItem)) and entries(value):
                places[binding.var] = entries(value)[0][0]
            continue
        inputs = [entry for arg in value.args for entry in entries(arg)]
        callee = str(getattr(value.args[0], "name_hint", value.op)) if value.args else str(value.op)
        attrs = {"func_name": callee, "num_inputs": str(len(inputs)), "num_outputs": str(max(1, len(_shapes(binding.var.struct_info)[0])))}
        add(binding.var, {"op": "tvm_op", "name": callee, "attrs": attrs, "inputs": inputs}, binding.var.struct_info)
    made = {
        "nodes": nodes,
        "arg_nodes": [n for n, node in enumerate(nodes) if node["op"] == "null"],
        "heads": entries(func.body.body),
        "attrs": {"shape": ["list_shape", shapes], "dltype": ["list_str", dtypes]},
        "node_row_ptr": rows,
    }
    return json.dumps(made)
