"""The plugin of pytest for tests of TVM's era: `pytest_plugins = ["tensorexpr.testing.plugin"]`, or `-p tensorexpr.testing.plugin`.

parameters   fixtures that `tensorexpr.testing.parameters` made change together
target       a test that takes it, and isn't parametrised over it, runs once for each target that is here
dev          the device of the target
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ..runtime.device import Device, device
from ..target import Target
from .marks import device_enabled, enabled_targets
from .parameters import GROUP

MARKERS = ("gpu", "tensorcore", "cuda", "opencl", "rocm", "vulkan", "metal", "llvm", "hexagon", "slow")


def pytest_configure(config: Any) -> None:
    """The marks that such tests carry are known."""
    for name in MARKERS:
        config.addinivalue_line("markers", f"{name}: a test that needs it" if name != "slow" else "slow: a test that takes long")


def pytest_generate_tests(metafunc: Any) -> None:
    """A test for each set of parameters and for each target."""
    _generate_sets(metafunc)
    if "target" in metafunc.fixturenames:
        _generate_targets(metafunc)


def _generate_sets(metafunc: Any) -> None:
    groups: dict[int, list[tuple[str, Sequence[Any], Any]]] = {}
    for name, found in metafunc.definition._fixtureinfo.name2fixturedefs.items():  # pytest has no public way to them
        number, values, ids = (getattr(found[-1].func, key, None) for key in GROUP)
        if number is not None and values is not None:
            groups.setdefault(number, []).append((name, values, ids))
    for columns in groups.values():
        names = [name for name, _, _ in columns]
        # pytest takes plain values for one name, tuples for several
        rows = columns[0][1] if len(columns) == 1 else list(zip(*(values for _, values, _ in columns), strict=True))
        metafunc.parametrize(",".join(names), rows, indirect=True, ids=columns[0][2])


def _generate_targets(metafunc: Any) -> None:
    marks = list(metafunc.definition.iter_markers("parametrize"))
    if any("target" in _names(mark) for mark in marks) or metafunc.definition._fixtureinfo.name2fixturedefs.get("target"):
        return
    excluded = getattr(metafunc.function, "tvm_excluded_targets", ())
    metafunc.parametrize("target", [target for target, _ in enabled_targets() if target not in excluded])


def _names(mark: Any) -> list[str]:
    given = mark.args[0] if mark.args else mark.kwargs.get("argnames", "")
    return [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Targets that aren't here are skipped, those that a test is known to fail for are expected to fail."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if "target" not in params:
            continue
        kind = str(Target(params["target"]).kind)
        if not device_enabled(params["target"]):
            item.add_marker(pytest.mark.skip(reason=f"{kind} is not here"))
        elif kind in getattr(item.function, "tvm_known_failing_targets", ()):
            item.add_marker(pytest.mark.xfail(reason=f"known to fail for {kind}"))


@pytest.fixture
def dev(target: Any) -> Device:
    """The device of the target that the test runs for."""
    return device(str(Target(target).kind))
