"""Messages and settings from the environment."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tensorexpr import config, log
from tensorexpr.errors import TensorExprError


def test_once_is_once(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("tensorexpr.tests")
    for _ in range(3):
        log.once(logger, "only the first time")
    assert [record.message for record in caplog.records] == ["only the first time"]


def test_to_stderr_adds_one_handler(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger(log.ROOT)
    before = list(root.handlers), root.level
    try:
        log.to_stderr("DEBUG")
        log.to_stderr(logging.INFO)
        assert len(root.handlers) == len(before[0]) + 1
        logging.getLogger("tensorexpr.tests").info("hello")
        assert "INFO tensorexpr.tests: hello" in capsys.readouterr().err
    finally:
        root.handlers[:], root.level = before


def test_cache_folder_is_made_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE_DIR", str(tmp_path / "cache"))
    folder = config.cache_dir()
    assert folder == tmp_path / "cache" and folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("TENSOREXPR_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert config.cache_dir() == tmp_path / "xdg" / "tensorexpr"


def test_a_cache_folder_that_others_may_write_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chmod(tmp_path, 0o777)
    monkeypatch.setenv("TENSOREXPR_CACHE_DIR", str(tmp_path))
    with pytest.raises(TensorExprError, match=r"is not yours alone .*mode 777.*: give it to your user with mode 700, or set"):
        config.cache_dir()


def test_omp_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_OMP_LIBRARY", "")
    assert config.omp_library() is None
    monkeypatch.setenv("TENSOREXPR_OMP_LIBRARY", "none")
    assert config.omp_library() == "none"
