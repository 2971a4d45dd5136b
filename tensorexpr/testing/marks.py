"""What tests of TVM's era are marked with: what a machine has to have, on which targets a test runs.

pytest is loaded when the first of them is used.
"""

from __future__ import annotations

import importlib.util
import inspect
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..processor import host_features
from ..runtime import enabled
from ..runtime.device import Device, device
from ..target import Target, TargetLike


class Marks(list[Any]):
    """Marks of pytest: a list for `marks=` of a parameter, and a decorator."""

    def __call__(self, func: Any) -> Any:
        for mark in self:
            func = mark(func)
        return func


class Feature:
    """Something that a machine may lack. As a decorator it skips a test there, and the reason says what is missing.

    Args:
        name: what the reason calls it.
        is_there: whether this machine has it.
    """

    def __init__(self, name: str, is_there: Callable[[], bool]) -> None:
        self.name, self.is_there = name, is_there

    def marks(self) -> Marks:
        """The marks of a test that needs it."""
        import pytest

        return Marks([pytest.mark.skipif(not self.is_there(), reason=f"{self.name} is not here")])

    def __call__(self, func: Any = None) -> Any:
        """`func` with the marks; without one, the marks, which are a decorator too."""
        return self.marks() if func is None else self.marks()(func)


def _device(kind: str) -> Callable[[], bool]:
    return lambda: device(kind).exist


def _instructions(*features: str) -> Callable[[], bool]:
    """Whether the CPU has one of them."""
    return lambda: not host_features().isdisjoint(features)


requires_llvm = Feature("LLVM", lambda: enabled("llvm"))
requires_cuda = Feature("a CUDA GPU", _device("cuda"))
requires_gpu = Feature("a GPU", _device("cuda"))
requires_tensorcore = Feature("a GPU with tensor cores", _device("cuda"))
requires_opencl = Feature("an OpenCL device", _device("opencl"))
requires_vulkan = Feature("a Vulkan device", _device("vulkan"))
requires_metal = Feature("a Metal device", _device("metal"))
requires_rocm = Feature("a ROCm device", _device("rocm"))
requires_hexagon = Feature("a Hexagon DSP", _device("hexagon"))
requires_x86 = Feature("an x86 CPU", lambda: platform.machine().lower() in ("x86_64", "amd64"))
requires_x86_avx512 = Feature("an x86 CPU with AVX-512", _instructions("avx512f"))
requires_x86_vnni = Feature("an x86 CPU with VNNI", _instructions("avx512vnni", "avxvnni"))
requires_x86_amx = Feature("an x86 CPU with AMX", _instructions("amx-tile"))
requires_arm = Feature("an ARM CPU", lambda: platform.machine().lower() in ("aarch64", "arm64"))
requires_rpc = Feature("RPC", lambda: True)
uses_gpu = Feature("anything", lambda: True)


def requires_package(*packages: str) -> Feature:
    """A test that needs packages of Python."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return Feature(f"the package {', '.join(missing or packages)}", lambda: not missing)


def slow(func: Any) -> Any:
    """A test that takes long, by the mark "slow"."""
    import pytest

    return pytest.mark.slow(func)


def device_enabled(target: TargetLike) -> bool:
    """Whether code for a target can be built and run here."""
    made = Target.canon_target(target)
    return made is not None and made.is_built and made.is_host_platform


def enabled_targets() -> list[tuple[str, Device]]:
    """The targets that code can be built and run for here, each with its device."""
    return [("llvm", device("cpu"))]


@contextmanager
def span_filling(is_on: bool) -> Iterator[None]:
    """Within it importers would note, or not, where nodes come from; accepted: nodes keep no places in models."""
    yield


enable_span_filling, disable_span_filling = partial(span_filling, True), partial(span_filling, False)


def parametrize_targets(*args: Any) -> Any:
    """A decorator: a test, or each test of a class, runs once for each target; targets that aren't here are skipped.

    Tests take `target`, and `dev` if they want its device. In a class in which some don't, `dev` is the fixture of `testing.plugin`.

    Args:
        args: targets, or the test itself for all that are here.
    """
    if len(args) == 1 and callable(args[0]):
        return parametrize_targets(*(target for target, _ in enabled_targets()))(args[0])
    return lambda test: _for_targets(test, args)


def _for_targets(test: Any, targets: Sequence[Any]) -> Any:
    import pytest

    methods = [getattr(test, name) for name in dir(test) if name.startswith("test")] if inspect.isclass(test) else [test]
    # pytest refuses values for an argument that a test doesn't take.
    with_device = all("dev" in inspect.signature(method).parameters for method in methods)
    rows = []
    for target in targets:
        marks = [] if device_enabled(target) else [pytest.mark.skip(reason=f"{target} is not here")]
        values = (target, device(str(Target(target).kind))) if with_device else (target,)
        # Named by the target alone, as where `dev` is a fixture: a name picks the same case in both.
        rows.append(pytest.param(*values, marks=marks, id=str(target)))
    return pytest.mark.parametrize("target, dev" if with_device else "target", rows)(test)


def main() -> None:
    """Run the tests of the file that calls it, with the words of the command line, and exit with pytest's code."""
    import pytest

    file = inspect.stack()[1].filename
    sys.exit(pytest.main([file, "-p", "tensorexpr.testing.plugin", *sys.argv[1:]]))
