"""Every lowering in these tests checks the program after each pass."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _verify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_VERIFY", "1")
