"""`tensorexpr.script.tir` by another path."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from .. import tir

    return getattr(tir, name)


def __dir__() -> list[str]:
    from .. import tir

    return dir(tir)
