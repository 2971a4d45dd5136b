"""The command line, `python -m tensorexpr`, and what needs the whole house.

build     compile, with a schedule that is given or found
cli       subcommands
bench/    measuring against peers
report/   a tuning log as a page
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name not in ("build_module", "lower"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    build_module = importlib.import_module(f"{__name__}.build_module")
    return build_module if name == "build_module" else build_module.lower
