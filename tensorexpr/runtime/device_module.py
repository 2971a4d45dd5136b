"""A module of kernels: its functions check arrays on the host and launch kernels on the device where the arrays live."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..codegen.signature import BufferParam, Signature
from ..dataclass import dataclass, field
from ..errors import ArgumentError, MissingFunctionError, TensorExprError
from ..lower.device.split_host_device import HostBranch, HostLoop, HostPart, HostStep, HostValue, Launch, check_launch
from ..lower.device.tensor_maps import MapSpec
from ..target import Target
from ..tir.arithmetic import as_int, const
from ..tir.dtype import parse_dtype, to_numpy
from ..tir.expr import PrimExpr, Var
from ..tir.rewriting import substitute
from .arguments import ArgumentChecker
from .device import Device
from .ndarray import NDArray, from_dlpack
from .tensor_maps import TensorMap

_ALIGNMENT = 16
_ENTRY_NAMES = ("main", "default_function", "__tvm_main__")


@dataclass(frozen=True)
class KernelInfo:
    """What a launch needs to know of a kernel: dtypes of its parameters, bytes of static and of dynamic shared memory."""

    dtypes: tuple[str, ...]
    static_shared: int
    dynamic_shared: int


@dataclass(frozen=True)
class DeviceCode:
    """The kernels of a module: LLVM IR, the device's assembly, and what their launches need."""

    llvm: str
    assembly: str
    kernels: Mapping[str, KernelInfo]
    target: Target
    timings: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceFunctionCode:
    """A function of the host: how it is called, what it launches, and the pointer variable of each parameter."""

    signature: Signature
    host: HostPart
    pointers: tuple[Any, ...]


class Launcher(Protocol):
    """What a device has that runs kernels."""

    def host_view(self, array: NDArray) -> np.ndarray[Any, Any]:
        """An array of NumPy with the shape, the dtype and the address of an array; what it holds is not looked at."""

    def allocate(self, size: int) -> tuple[int, Any]:
        """The address of so many bytes, and what keeps them."""

    def tensor_map(self, described: TensorMap) -> bytes:
        """A map in the form that the device's copy engine takes."""

    def launch(
        self,
        code: DeviceCode,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        arguments: Sequence[Any],
        memory: Sequence[tuple[int, int]],
    ) -> None:
        """Run a kernel.

        Args:
            code: the module.
            kernel: the name.
            grid, block: blocks, and threads of one, in x, y and z.
            arguments: numbers of NumPy with their dtypes; addresses are uint64.
            memory: address and bytes of all arrays that the kernel may touch.
        """


class DeviceFunction:
    """A function that runs kernels: call it with arrays on one device, and numbers."""

    def __init__(self, made: DeviceFunctionCode, code: DeviceCode) -> None:
        self.name = made.signature.name
        self.signature = made.signature
        self.made, self._code = made, code
        self._checker = ArgumentChecker(made.signature)

    def __call__(self, *args: Any) -> None:
        """Check the arguments and launch; arrays of others on a GPU (`__dlpack__`) are used where they are.

        Raises:
            ArgumentError: for arguments that don't fit, or arrays that don't live on one device that runs kernels.
        """
        args = tuple(from_dlpack(arg) if _is_of_gpu(arg) else arg for arg in args)
        self.run_on(self.device_of(args), args)

    def device_of(self, args: Sequence[Any]) -> Any:
        """The device on which the arrays live.

        Raises:
            ArgumentError: if there is none that runs kernels.
        """
        found: dict[str, Any] = {}
        for arg, param in zip(args, self.signature.params, strict=False):
            if isinstance(param, BufferParam):
                device = arg.device if isinstance(arg, NDArray) else None
                if not hasattr(device, "launch"):
                    where = device if device is not None else f"in memory of {type(arg).__name__}"
                    raise ArgumentError(
                        f"{self.name}: argument {param.name} lives {'on ' if device is not None else ''}{where}, and kernels of "
                        f"{self._code.target.kind.name} run on arrays of tvm.cuda(0), or of tensorexpr.testing.ptx.emulator(): "
                        "make them with nd.array(x, device)"
                    )
                found[str(device)] = device
        if len(found) != 1:
            raise ArgumentError(f"{self.name}: its arrays live on {', '.join(found) or 'no device'}; copy them to one with copyto(device)")
        return next(iter(found.values()))

    def run_on(self, device: Launcher, args: Sequence[Any]) -> None:
        """Launch the kernels on a device for arrays that live there."""
        seen = tuple(device.host_view(arg) if isinstance(arg, NDArray) else arg for arg in args)
        words, held = self._checker.block(seen)
        numbers: dict[Var, PrimExpr] = {}
        places: dict[Any, Any] = {}
        memory = []
        for param, pointer, value, word in zip(self.signature.params, self.made.pointers, held, words, strict=False):
            if isinstance(param, BufferParam):
                if word % _ALIGNMENT and value.size:
                    where = f"{self.name}: argument {param.name} starts at {word:#x}"
                    raise ArgumentError(f"{where}, needs a multiple of {_ALIGNMENT}: copy it")
                places[pointer] = np.uint64(word)
                memory.append((word, value.nbytes))
            else:
                places[pointer] = value
                numbers[param.var] = const(value, param.dtype)
        for var, word in zip(self.signature.symbols, list(words)[len(self.signature.params) :], strict=False):
            places[var] = word
            numbers[var] = const(word, var.dtype)
        kept = []
        for space in self.made.host.workspaces:
            parsed = parse_dtype(space.dtype)
            size = max(1, int(np.prod([_number(extent, numbers) for extent in space.extents]))) * parsed.itemsize * parsed.lanes
            address, keep = device.allocate(size)
            kept.append(keep)
            places[space.pointer] = np.uint64(address)
            memory.append((address, size))
        _HostRun(self._code, device, places, numbers, memory).steps(self.made.host.steps)

    def __repr__(self) -> str:
        return f"<function {self.name} of a module for {self._code.target.kind.name}>"


def _is_of_gpu(arg: Any) -> bool:
    """Whether an array of others is on a GPU."""
    if isinstance(arg, NDArray) or not hasattr(arg, "__dlpack_device__"):
        return False
    return bool(int(next(iter(arg.__dlpack_device__()))) == Device.kDLCUDA)


@dataclass(frozen=True)
class _HostRun:
    """One run of a host's part: values of variables for kernels and for expressions of the host, and the arrays of the call."""

    code: DeviceCode
    device: Launcher
    places: dict[Any, Any]
    numbers: dict[Var, PrimExpr]
    memory: Sequence[tuple[int, int]]

    def steps(self, steps: Sequence[HostStep]) -> None:
        """Do one step after the other."""
        for step in steps:
            match step:
                case Launch():
                    self._launch(step)
                case HostLoop(var, begin, extent, body):
                    first = _number(begin, self.numbers)
                    for value in range(first, first + _number(extent, self.numbers)):
                        self._bind(var, value)
                        self.steps(body)
                case HostBranch(condition, then, otherwise):
                    self.steps(then if _number(condition, self.numbers) else otherwise)
                case HostValue(var, value):
                    self._bind(var, _number(value, self.numbers))

    def _bind(self, var: Var, value: int) -> None:
        self.places[var], self.numbers[var] = value, const(value, var.dtype)

    def _launch(self, launch: Launch) -> None:
        extents = {tag: _number(extent, self.numbers) for tag, extent in launch.extents.items()}
        check_launch(launch.kernel, extents, self.code.target)
        if 0 in extents.values():
            return
        grid, block = (tuple(extents.get(f"{kind}.{axis}", 1) for axis in "xyz") for kind in ("blockIdx", "threadIdx"))
        dtypes = self.code.kernels[launch.kernel].dtypes
        maps = {var: self._map(spec) for var, spec in launch.maps.items()}
        arguments = [
            maps[var] if var in maps else _typed(self.places[var], dtype) for var, dtype in zip(launch.arguments, dtypes, strict=True)
        ]
        self.device.launch(self.code, launch.kernel, grid, block, arguments, self.memory)  # type: ignore[arg-type]

    def _map(self, spec: MapSpec) -> np.ndarray[Any, Any]:
        shape, strides, box = (tuple(_number(size, self.numbers) for size in sizes) for sizes in (spec.shape, spec.strides, spec.box))
        described = TensorMap(int(self.places[spec.pointer]), spec.dtype, shape, strides, box, spec.swizzle)
        return np.frombuffer(self.device.tensor_map(described), np.uint8)


def _typed(value: Any, dtype: str) -> Any:
    return np.uint64(value) if dtype == "handle" else np.asarray(value).astype(to_numpy(dtype))[()]


def _number(expr: PrimExpr, numbers: Mapping[Var, PrimExpr]) -> int:
    value = as_int(substitute(expr, dict(numbers)))
    if value is None:
        raise TensorExprError(f"{expr}, of the host around a launch, is not determined by the arguments")
    return value


class KernelModule:
    """The kernels alone, as `module.imported_modules[0]` gives them."""

    type_key = "cuda"

    def __init__(self, code: DeviceCode) -> None:
        self._code = code

    def get_source(self, fmt: str = "ptx") -> str:
        """The kernels as text: "ptx" (or nothing), or LLVM IR, "ll".

        Raises:
            ArgumentError: for another format.
        """
        if fmt in ("", "ptx", "cuda"):
            return self._code.assembly
        if fmt == "ll":
            return self._code.llvm
        raise ArgumentError(f"no source format {fmt!r} of kernels; there are 'ptx' and 'll' (LLVM IR)")


class DeviceModule:
    """Functions whose loops run on a device: `mod["main"](a, b)` with arrays of one device.

    `imported_modules[0]` are the kernels. What was built can be read, saved and assembled where no device is.
    """

    type_key = "llvm"

    def __init__(self, code: DeviceCode, functions: Mapping[str, DeviceFunctionCode], target: Target, lowered: Any = None) -> None:
        self._code, self.target, self.lowered = code, target, lowered
        self._functions = {name: DeviceFunction(made, code) for name, made in functions.items()}
        self.imported_modules = [KernelModule(code)]

    @property
    def code(self) -> DeviceCode:
        """The kernels."""
        return self._code

    @property
    def timings(self) -> dict[str, float]:
        """Seconds of each step that made the module: lower, emit, codegen."""
        return dict(self._code.timings)

    @property
    def function_names(self) -> list[str]:
        """The names of the functions."""
        return list(self._functions)

    @property
    def entry_name(self) -> str:
        """The name of the function that a call of the module calls: the only one, or "main".

        Raises:
            ArgumentError: if there are several and none is called so.
        """
        names = self.function_names
        for name in names if len(names) == 1 else [name for name in _ENTRY_NAMES if name in names]:
            return name
        raise ArgumentError(f"the module has no entry function: choose one by mod[name] from {', '.join(names)}")

    def __call__(self, *args: Any) -> None:
        self[self.entry_name](*args)

    def __getitem__(self, name: str) -> DeviceFunction:
        return self.get_function(name)

    def get_function(self, name: str, query_imports: bool = False) -> DeviceFunction:
        """The function of that name; "main" and "default_function" also mean the only function of a module.

        Raises:
            MissingFunctionError: if there is none.
        """
        if name not in self._functions and not (name in _ENTRY_NAMES and len(self._functions) == 1):
            raise MissingFunctionError(f"the module has no function {name!r}; it has {', '.join(self._functions)}")
        return self._functions.get(name) or self._functions[self.entry_name]

    def get_source(self, fmt: str = "") -> str:
        """The kernels as text, in "ptx" (or nothing) or "ll"."""
        return self.imported_modules[0].get_source(fmt)

    def time_evaluator(self, func_name: str, dev: Any = None, number: int = 10, repeat: int = 1, **options: Any) -> Any:
        """A function that measures by the device's own clock, as `Module.time_evaluator` does.

        Raises:
            ArgumentError: for a device without a clock, such as an emulator.
        """
        if type(dev) is Device and dev.device_type == Device.kDLCUDA:
            from .cuda_device import with_driver

            dev = with_driver(dev)
        if not hasattr(dev, "time"):
            raise ArgumentError(f"time_evaluator: {dev} has no clock; tvm.cuda(0) with a driver has one, an emulator counts instructions")
        return dev.time(self.get_function(func_name), number, repeat)

    def export_library(self, file_name: str | os.PathLike[str], *unused: Any, **options: Any) -> None:
        """Write the kernels to `x.ptx` and the host's part, as JSON, beside it.

        Args:
            file_name: where to write; its ending becomes .ptx, and `x.ptx.json` stands beside it.
        """
        from .device_export import write  # with JSON of expressions, which a call doesn't need

        write(self, Path(file_name))

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the kernels' text in the format `fmt` or of the name's ending: ptx or ll."""
        Path(file_name).write_text(self.get_source(fmt or Path(file_name).suffix[1:]))

    def __repr__(self) -> str:
        return f"<Module of {', '.join(self._functions)} for {self.target}>"
