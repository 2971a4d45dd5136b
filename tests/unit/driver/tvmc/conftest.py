"""The model of these tests, in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorexpr.driver import tvmc

from .network import TEXT, W, X


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as text, and its package as an archive and as a library."""
    made = tmp_path_factory.mktemp("tvmc")
    (made / "net.relay").write_text(TEXT)
    np.savez(made / "in.npz", x=X, w=W)
    model = tvmc.load(made / "net.relay")
    tvmc.compile(model, "llvm", package_path=made / "net.tar", dump_code="ll,relay,tir")
    tvmc.compile(model, "llvm", package_path=made / "net.so")
    model.save(made / "saved.tar")
    (made / "junk.onnx").write_text("no model")
    return made
