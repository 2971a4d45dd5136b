"""What is known of GPUs by their compute capability, on a machine without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tensorexpr as tvm
from tensorexpr.contrib import nvcc


@pytest.mark.parametrize(
    ("asked", "yes", "no"),
    [
        (nvcc.have_fp16, "5.3", "5.2"),
        (nvcc.have_int8, "6.1", "5.3"),
        (nvcc.have_tensorcore, "7.0", "6.1"),
        (nvcc.have_bf16, "8.0", "7.5"),
        (nvcc.have_fp8, "8.9", "8.6"),
    ],
)
def test_a_capability_says_what_there_is(asked: Callable[[str], bool], yes: str, no: str) -> None:
    assert asked(yes) and not asked(no)


def test_a_target_says_its_capability() -> None:
    assert nvcc.get_target_compute_version(tvm.target.Target("cuda -arch=sm_90a")) == "9.0.a"
    assert nvcc.parse_compute_version("9.0.a") == (9, 0)
    with tvm.target.Target("cuda -arch=sm_75"):
        assert nvcc.get_target_compute_version() == "7.5"
    assert nvcc.have_tensorcore(target=tvm.target.Target("cuda -arch=sm_80"))


def test_without_a_gpu_nothing_is_known() -> None:
    with pytest.warns(UserWarning, match="no CUDA architecture is known"):
        assert not nvcc.have_tensorcore(tvm.cuda(0).compute_version)
    with pytest.raises(ValueError, match="add -arch=sm_80 or the like"):
        nvcc.get_target_compute_version(tvm.target.Target("llvm"))
    with pytest.raises(RuntimeError, match="'75' is no compute capability"):
        nvcc.parse_compute_version("75")
    with pytest.raises(ValueError, match="not 'exe'"):
        nvcc.compile_cuda("", "exe")


def test_a_machine_without_cuda_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nvcc, "_USUAL_FOLDER", tmp_path)
    with pytest.raises(RuntimeError, match="CUDA isn't found"):
        nvcc.find_cuda_path()
    assert not nvcc.have_cudagraph()


def test_libdevice_is_the_newest_that_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="there is no libdevice for sm_80"):
        nvcc.find_libdevice_path("sm_80")
