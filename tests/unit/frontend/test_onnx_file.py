"""A model read from its file, whose large tensors stay there until they are wanted, is the model that is read as a whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr.errors import ModelError, TensorExprError
from tensorexpr.frontend.onnx.file import model_bytes
from tensorexpr.relax.frontend.onnx import from_onnx
from tests.effort import share_of

onnx = pytest.importorskip("onnx")
helper = onnx.helper
LARGE = np.arange(128 * 256, dtype="float32").reshape(128, 256)


def model() -> Any:
    """With a large and a small initializer, one that isn't raw, and one of four bits."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Mul", ["a", "c"], ["y"]),
    ]
    initial = [
        onnx.numpy_helper.from_array(LARGE, "w"),
        onnx.numpy_helper.from_array(LARGE[0], "b"),
        helper.make_tensor("c", onnx.TensorProto.FLOAT, [1, 256], LARGE[1].tolist()),
        onnx.numpy_helper.from_array(LARGE.astype("float16") * 0, "unused"),
    ]
    inputs, outputs = ([helper.make_tensor_value_info(name, 1, shape)] for name, shape in (("x", [1, 128]), ("y", None)))
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, initial), opset_imports=[helper.make_opsetid("", 18)])


MODEL = model()
DATA = MODEL.SerializeToString()


def test_large_tensors_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(DATA)
    assert len(model_bytes(path)) < len(DATA) - LARGE.nbytes
    tvm.ir.assert_structural_equal(from_onnx(path), from_onnx(DATA))
    tvm.ir.assert_structural_equal(from_onnx(path, keep_params_in_input=True), from_onnx(DATA, keep_params_in_input=True))


def test_a_linked_file_is_read_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "blob").write_bytes(DATA)
    (tmp_path / "m.onnx").symlink_to(tmp_path / "elsewhere" / "blob")
    assert model_bytes(tmp_path / "m.onnx") == DATA
    tvm.ir.assert_structural_equal(from_onnx(tmp_path / "m.onnx"), from_onnx(DATA))


def test_a_file_that_gets_shorter_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(DATA)
    read = model_bytes(path)
    path.write_bytes(DATA[: len(DATA) // 2])
    monkeypatch.setattr("tensorexpr.frontend.onnx.checks.model_bytes", lambda path: read)
    with pytest.raises(ModelError, match=r"initializer '.*' needs .* bytes at .* of 'm.onnx', which has"):
        from_onnx(path)


def outcome(model: Any) -> Any:
    try:
        return from_onnx(model)
    except TensorExprError:
        return None


def changed(seed: int) -> bytes:
    """Bytes around tensors changed, left out, repeated or moved, and two files one behind the other, which is one message."""
    draw, found = random.Random(seed), bytearray(DATA)
    ends = [n for n in range(len(DATA)) if DATA[n] in b"wbc" and not any(DATA[n + 1 : n + 2])] or [0]
    for _ in range(draw.choice([1, 2, 4])):
        near = draw.choice([draw.randrange(len(found)), draw.randrange(400), len(found) - draw.randrange(1, 400), draw.choice(ends)])
        at = max(0, min(len(found) - 1, near + draw.randrange(-40, 40)))
        match draw.randrange(5):
            case 0:
                found[at] = draw.randrange(256)
            case 1:
                del found[at : at + draw.randrange(1, 9)]
            case 2:
                found[at:at] = found[at : at + draw.randrange(1, 33)]
            case 3:
                del found[at:]
            case 4:
                found += DATA if draw.random() < 0.3 else found[at:]
        if not found:
            break
    return bytes(found)


@settings(deadline=None, max_examples=share_of(60))
@given(st.integers(0, 1 << 32))
def test_a_changed_file_is_what_its_bytes_are(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    data = changed(seed)
    path = tmp_path_factory.mktemp("file") / "m.onnx"
    path.write_bytes(data)
    whole, apart = outcome(data), outcome(path)
    assert (whole is None) == (apart is None)
    if whole is not None:
        tvm.ir.assert_structural_equal(whole, apart)
