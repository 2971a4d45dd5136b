"""What all tests share: golden files."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

# Every pass of every test is followed by the checks of its phase.
os.environ.setdefault("TENSOREXPR_VERIFY", "1")
# A test must see what the present code makes. Those of the cache switch it on, in a folder of their own.
os.environ.setdefault("TENSOREXPR_CACHE", "0")

# A shell starts what runs in the background with interrupts ignored, and children inherit that: no test could send one then.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden``."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew; look at the diff before you commit it")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and their modules live to the end: the collector of cycles need not walk them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # Expressions come and go by hundreds of thousands; with the default of 700 the collector takes one twentieth of the time.
        gc.set_threshold(20_000, 20, 50)


@pytest.fixture(autouse=True)
def no_functions_left_behind() -> Iterator[None]:
    """What a test registers under a name is not there for the next one; what the package registers, as its parts are imported, stays."""
    from tensorexpr.runtime import registry

    before = set(registry.list_global_func_names())
    yield
    for name in set(registry.list_global_func_names()) - before:
        if not str(getattr(registry.get_global_func(name), "__module__", "")).startswith("tensorexpr."):
            registry.remove_global_func(name)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden("printer/matmul.py", text)` compares text with a file under tests/golden; a missing file is a failure."""
    update = request.config.getoption("--update-golden")

    def check(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
            return
        if not path.exists():
            pytest.fail(f"no golden file {name}; look at the output, then make it with --update-golden\n{text}")
        assert text + "\n" == path.read_text(), f"differs from golden/{name}; if the change is wanted, run with --update-golden"

    return check
