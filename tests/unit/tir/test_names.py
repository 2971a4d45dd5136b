"""The public names of the package, and the map in its docstring."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorexpr import tir


def test_every_public_name_exists() -> None:
    for name in tir.__all__:
        if name != "transform":  # lives in a higher row
            assert getattr(tir, name) is not None


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'no_such'"):
        _ = tir.no_such


def test_the_map_names_every_module() -> None:
    folder = Path(tir.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__"}
    words = set((tir.__doc__ or "").replace(",", " ").split())
    assert modules <= words


def test_customary_helpers() -> None:
    i = tir.Var("i")
    assert str(tir.max(i, 3)) == "T.max(i, 3)"
    assert str(tir.min(i, 3)) == "T.min(i, 3)"
    assert str(tir.all(i < 3, i > 1)) == "i < 3 and i > 1"
    assert str(tir.ceildiv(i, 4)) == "(i + 3) // 4"
    assert str(tir.decl_buffer((4,), name="A")[i]) == "A[i]"
    assert tir.const(3).dtype == "int32"
