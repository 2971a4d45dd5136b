"""A graph that is built: its tensor functions in machine code, and its functions, to be called by a virtual machine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ...arith.index_map import IndexMap
from ...errors import ArgumentError, MissingFunctionError, TargetError
from ...runtime.module import Module
from ...runtime.ndarray import NDArray
from ...target import Target, TargetLike
from ...target.kinds import DEVICE_KINDS
from ...tir.function import IRModule, PrimFunc
from ..expr import Call, Constant, Function, SeqExpr
from ..external import EXTERNAL, external_functions
from ..visitor import walk
from .constants import on_arrays
from .explain import explained, host_line, memory_lines, schedule_of
from .host import is_host, is_view
from .late import LATE, LateConstants
from .native import NativePlans
from .stretch import Stretch, stretches

SYSTEM_LIB = "TVMSystemLibEntryPoint"


class Executable(LateConstants):
    """A built module of graphs.

    Args:
        mod: its functions after all passes; or an executable, which is then another name of what that holds.
        kernels: the tensor functions in machine code; None if there are none.
        target: what they are for.
        origins: where the schedule of each tensor function comes from.
        layouts: arguments that are passed packed, by tensor function.
    """

    def __init__(
        self,
        mod: IRModule | Executable,
        kernels: Module | None = None,
        target: TargetLike | None = None,
        origins: dict[str, str] | None = None,
        layouts: Mapping[str, Mapping[int, IndexMap]] | None = None,
    ) -> None:
        if isinstance(mod, Executable):
            vars(self).update(vars(mod))
            return
        super().__init__()
        self.ir_mod = mod
        self.kernels = kernels
        self.target = Target.target_or_current(target)
        self.origins = origins or {}
        self.layouts = dict(layouts or {})
        self.library: Callable[[str], int] | None = None  # addresses of symbols, where the code is loaded already
        self.mapped: Any = None  # the file of that code, which all that is loaded from it share
        self.links_params = False  # whether C text has them
        self._native: NativePlans | None = None

    @property
    def external(self) -> tuple[Any, ...]:
        """What code generators of others made: modules, and mappings from names to functions."""
        found: tuple[Any, ...] = self.ir_mod.attrs.get(EXTERNAL, ())
        return found

    @property
    def is_for_device(self) -> bool:
        """Whether its kernels run on a device, and the host launches them one by one."""
        return self.target.kind in DEVICE_KINDS

    @property
    def functions(self) -> dict[str, Function]:
        """The functions of graphs by name."""
        found: dict[str, Any] = {var.name_hint: func for var, func in self.ir_mod.functions_items()}
        return {name: func for name, func in found.items() if isinstance(func, Function)}

    @property
    def tensor_functions(self) -> dict[str, PrimFunc]:
        """The tensor functions as they were before they got schedules, by name; a library has none."""
        found: dict[str, Any] = {var.name_hint: func for var, func in self.ir_mod.functions_items()}
        return {name: func for name, func in found.items() if isinstance(func, PrimFunc)}

    @property
    def globals(self) -> list[str]:
        """The names of the functions that a virtual machine may call."""
        return list(self.functions)

    @property
    def primitives(self) -> list[str]:
        """The names of the kernels."""
        return list(self.origins)

    @property
    def lib(self) -> Module | None:
        """The kernels in machine code; None if there are none."""
        return self.kernels

    @property
    def mod(self) -> Executable:
        """What is exported, and loaded into virtual machines: itself, which holds kernels and functions alike."""
        return self

    module = mod

    @property
    def primitive_ops(self) -> list[str]:
        """The names of the kernels, as Relay's programs ask for them."""
        return self.primitives

    @property
    def bytecode(self) -> str:
        """The functions of graphs as a text: the head of each, and what it does."""
        return "\n\n".join(
            f"{name}({', '.join(self.get_function_params(name))}):\n{func.script()}" for name, func in self.functions.items()
        )

    def get_source(self, fmt: str = "") -> str:
        """The kernels as a text; see `Module.get_source`. Of target c, with linked parameters, the network; see `c_text.c_network`."""
        if self.kernels is None:
            return ""
        text = self.kernels.get_source(fmt)
        if self.links_params and self.target.kind.name == "c":
            from .c_text import c_network
            from .plain import plain_network

            plain = plain_network(self)
            return text if plain is None else c_network(self, plain, "tensorexpr")
        return text

    def save(self, file_name: str | os.PathLike[str] | None = None, fmt: str = "") -> Any:
        """What programs of Relay write as two files: a name of the functions, and the library, in which all of it is.

        With a file's name the kernels alone are written there, as `Module.save` does: `lib.save("model.c")`, which of target c is
        `get_source()`.

        code, lib = executable.save(); lib.export_library("net.so")
        executable = Executable.load_exec(code, runtime.load_module("net.so"))
        """
        if file_name is not None:
            if self.kernels is None:
                raise ArgumentError(f"save: the graph has no kernels to write to {os.fspath(file_name)}")
            if self.links_params and (fmt or Path(file_name).suffix[1:]) == "c":
                Path(file_name).write_text(self.get_source())
                return None
            return self.kernels.save(file_name, fmt)
        return bytearray(self._heads()), self

    def _heads(self) -> bytes:
        return "\n".join(f"{name}({', '.join(self.get_function_params(name))})" for name in sorted(self.functions)).encode()

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: Any) -> Executable:
        """The executable that `save` has given in two parts.

        Raises:
            ArgumentError: if the library holds other functions.
        """
        if not isinstance(lib, Executable):
            raise ArgumentError(f"load_exec takes the code and the library that Executable.save gives, not {type(lib).__name__}")
        if bytes(bytecode) != lib._heads():
            raise ArgumentError(f"the library holds other functions than the code: {lib._heads().decode()}")
        return lib

    def with_constants(self, values: Mapping[int, NDArray]) -> Executable:
        """The same network on other constants, which has memory and stretches of its own; see `LateConstants.with_constants`."""
        made = Executable(on_arrays(self.ir_mod, dict(values)), self.kernels, self.target, self.origins, self.layouts)
        made.late = {name: values.get(id(one), one) for name, one in self.late.items()}
        made.missing, made.links_params = self.missing, self.links_params
        return made

    @property
    def constants(self) -> list[NDArray]:
        """The tensors that the functions hold, as kernels take them, each once."""
        nodes = (node for func in self.functions.values() for node in walk(func.body) if isinstance(node, Constant))
        return list({id(node.data): node.data for node in nodes}.values())

    @property
    def constants_of_others(self) -> set[int]:
        """The identities of constants that calls of code generators' functions take."""
        names = set(external_functions(self.external))
        calls = [node for func in self.functions.values() for node in walk(func.body) if isinstance(node, Call)] if names else []
        asked = [call for call in calls if {getattr(one, "global_symbol", None) for one in (call.op, *call.args)} & names]
        return {id(node.data) for call in asked for arg in call.args for node in walk(arg) if isinstance(node, Constant)}

    def get_function_params(self, func_name: str) -> list[str]:
        """The names of a function's parameters.

        Raises:
            MissingFunctionError: if there is none of that name.
        """
        if func_name not in self.functions:
            raise MissingFunctionError(f"there is no function {func_name!r} of a graph; there are {', '.join(self.functions) or 'none'}")
        return [param.name_hint for param in self.functions[func_name].params]

    @cached_property
    def stretches(self) -> Mapping[int, Mapping[int, Stretch]]:
        """The stretches of kernels of each sequence, by its identity, by the places of their first bindings."""
        # Kernels of a device are launched one by one.
        signatures = {} if self.kernels is None or self.is_for_device else self.kernels.signatures
        found: dict[int, Mapping[int, Stretch]] = {}
        count = 0
        for func in self.functions.values():
            # By identity, as `ir_mod` keeps them alive. Stretches are counted in an order that a library finds again when it is loaded.
            owners = {id(node.body): node.params for node in walk(func) if isinstance(node, Function)}
            for node in walk(func):
                if isinstance(node, SeqExpr):
                    made = stretches(list(node.bindings()), node.body, signatures.get, count, owners.get(id(node), ()))
                    if made:
                        found[id(node)] = made
                        count += len(made)
        return found

    def native(self, kernels: Mapping[str, Any]) -> NativePlans:
        """The stretches in machine code, which all machines of the executable share.

        Args:
            kernels: functions of the module by name.
        """
        if self._native is None:
            flat = self.all_stretches()
            names = {call.name for one in flat for call in one.calls if call.name}
            self._native = NativePlans(flat, self.target, {name: kernels[name].entry for name in names}, self.library, self.mapped)
        return self._native

    def all_stretches(self) -> list[Stretch]:
        """The stretches by their numbers."""
        return [one for made in self.stretches.values() for one in made.values()]

    def stats(self) -> str:
        """How many functions, calls and kernels there are."""
        calls = Counter(_callee(node.op) for f in self.functions.values() for node in walk(f.body) if isinstance(node, Call))
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(calls.items()))
        text = f"{len(self.functions)} functions of graphs, {len(self.origins)} tensor functions; calls: {kinds or 'none'}"
        hosts = Counter(name for _, name in self.host_calls())
        return text + (f"; on NumPy: {', '.join(f'{count} {name}' for name, count in sorted(hosts.items()))}" if hosts else "")

    def host_calls(self) -> Iterator[tuple[str, str]]:
        """The function around and the name of each call that NumPy runs; tensors in another shape are views, which nothing runs."""
        for name, func in self.functions.items():
            for node in walk(func.body):
                if is_host(node) and not is_view(node):
                    yield name, str(node.op).removeprefix("relax.")

    def explain(self) -> str:
        """What became of the graph: each kernel with its schedule, packed weights and why it isn't one with its readers, calls that NumPy
        runs, and the memory plan. A library knows the names of kernels and where their schedules come from, and no more of them."""
        lines = [explained(self.functions, self.tensor_functions, self.origins, self.layouts, self.target)]
        lines += [host_line(name, op) for name, op in self.host_calls()]
        return "\n".join([*lines, *memory_lines(self.all_stretches())])

    def schedule_of(self, kernel: str) -> str:
        """Where the schedule of a kernel comes from, and which rule took it; "" for what is no kernel."""
        origin = self.origins.get(kernel)
        return "" if origin is None else schedule_of(self.tensor_functions.get(kernel), origin, self.target)

    def as_text(self) -> str:
        """The functions as they run."""
        return "\n\n".join(func.script(name=name) for name, func in self.functions.items())

    def as_python(self) -> str:
        """As `as_text`."""
        return self.as_text()

    def jit(self, *args: Any, **kwargs: Any) -> Executable:
        """Itself: its code is in memory."""
        return self

    def time_evaluator(self, func_name: str, dev: Any = None, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """What times calls of a function in a virtual machine of its own; see `VirtualMachine.time_evaluator`."""
        from .machine import VirtualMachine

        made: Callable[..., Any] = VirtualMachine(self, dev).time_evaluator(func_name, dev, *args, **kwargs)
        return made

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """What makes machines for devices, as programs ask a library of `relay.build` for it: `lib["default"](dev)`; what sets constants.

        Raises:
            MissingFunctionError: for another name.
        """
        from .machine import VirtualMachine

        if name in LATE:
            found: Callable[..., Any] = getattr(self, name)
            return found
        if name == SYSTEM_LIB:
            return lambda: self
        if name not in ("default", "vm_load_executable"):
            raise MissingFunctionError(f'no {name!r} in a network; lib["default"](device) makes what runs it')
        return lambda *devices: VirtualMachine(self, list(devices) or None)

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        """As `[name]`; also "TVMSystemLibEntryPoint", by which programs ask a library for what is linked into it: the executable.

        Args:
            name: of the function.
            query_imports: accepted: there is one module.

        Raises:
            MissingFunctionError: for another name.
        """
        return self[name]

    def export_library(self, file_name: str | os.PathLike[str], fcompile: Callable[..., Any] | None = None, **kwargs: Any) -> None:
        """Write one shared library with all in it: kernels, functions of the graph, weights; `runtime.load_module` reads it.

        Args:
            file_name: such as "x.so"; "x.tar" is an archive of it.
            fcompile: links instead of the system's C compiler; called as `fcompile(file_name, [files], **kwargs)`. Kernels of a
                device are written as text, which nobody links.
            kwargs: see `Module.export_library`.

        Raises:
            TensorExprError: if there is no C compiler, it fails, or a kernel calls a Python function.
            RecordError: for a graph with values that no file can hold.
        """
        from .library import export_executable  # which makes executables, too

        export_executable(self, os.fspath(file_name), fcompile, kwargs)

    def export_c(self, file_name: str | os.PathLike[str], name: str | None = None, options: Sequence[str] = ()) -> str:
        """Write a library or object for C programs, weights and all, with a header; see `c_export.export_c`."""
        from .c_export import export_c

        if self.is_for_device:
            raise TargetError(f"kernels for {self.target.kind.name} can't be called from C; export_library writes the graph for Python")
        return export_c(self, file_name, name, options)


def _callee(op: Any) -> str:
    return str(getattr(op, "name_hint", None) or getattr(op, "global_symbol", op)).removeprefix("relax.")
