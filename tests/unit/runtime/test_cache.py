"""Programs and objects that are found again, and everything that makes another key."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import config, te
from tensorexpr.errors import CodegenError
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.transform import prim_func_pass
from tensorexpr.runtime import cache, engine, program_key, store
from tensorexpr.runtime.module import Module
from tensorexpr.target import Target
from tensorexpr.te.operation import PlaceholderOp
from tensorexpr.tir.attrs import FrozenMap
from tensorexpr.tir.function import IRModule, PrimFunc
from tests.intrinsics import vector_add
from tests.programs import matmul_add

TEXT = "define i32 @f() {\n  ret i32 7\n}\n"
HERE = Target("llvm")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache that is on, for sources that count as settled."""
    monkeypatch.setenv("TENSOREXPR_CACHE", "1")
    monkeypatch.setenv("TENSOREXPR_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TENSOREXPR_VERIFY", raising=False)
    monkeypatch.setattr(program_key, "_source_digest", lambda: "settled")
    return tmp_path / "objects"


def scheduled(n: int = 16, factor: int = 4, prefix: str = "") -> tuple[te.Schedule, list[te.Tensor]]:
    """out = A @ B + C with one split."""
    args = matmul_add(n, n, n, prefix)
    s = te.create_schedule(args[-1].op)
    s[args[-1]].split(args[-1].op.axis[0], factor=factor)
    return s, args


def key(s: te.Schedule, args: list[Any], name: str = "main", target: str = "llvm") -> bytes | None:
    return program_key.program_key(s, args, name, None, Target(target))


def check(module: Module, n: int = 16) -> None:
    a, b, c = (np.random.default_rng(seed).random((n, n), np.float32) for seed in range(3))
    out = np.empty((n, n), np.float32)
    module(a, b, c, out)
    np.testing.assert_allclose(out, a @ b + c, rtol=1e-5)


def test_an_object_is_found_again(folder: Path) -> None:
    made, found = cache.compile_text(TEXT, HERE), cache.compile_text(TEXT, HERE)
    assert "codegen" in made.timings and list(found.timings) == ["cache"]
    assert found.data == made.data
    assert engine.load_object(found.data, ["f"])["f"]


def test_all_that_an_object_depends_on_is_in_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [
        cache.object_key(TEXT, HERE, 3),
        cache.object_key(TEXT, HERE, 2),
        cache.object_key(TEXT + "\n", HERE, 3),
        cache.object_key(TEXT, Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake"), 3),
        cache.object_key(TEXT, Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"), 3),
        cache.object_key(TEXT, Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=-fma"), 3),
        cache.object_key(TEXT, Target("llvm -mtriple=aarch64-linux-gnu"), 3),
    ]
    monkeypatch.setattr(engine, "llvm_version", lambda: "1.2.3")
    keys.append(cache.object_key(TEXT, HERE, 3))
    monkeypatch.setattr(cache, "_engine_digest", lambda: "other passes")
    keys.append(cache.object_key(TEXT, HERE, 3))
    assert len(set(keys)) == len(keys)


def test_the_digest_of_the_engine_is_that_of_its_source() -> None:
    source = Path(engine.__file__).read_bytes()
    assert cache._engine_digest() == hashlib.sha256(source).hexdigest()


def test_a_built_program_is_found_again_whole(folder: Path) -> None:
    first, second = tvm.build(*scheduled()), tvm.build(*scheduled())
    assert "lower" in first.timings and list(second.timings) == ["cache"]
    assert second.get_source() == first.get_source()
    assert second.get_function("main").signature.params[0] == first.get_function("main").signature.params[0]
    check(second)
    assert list(second.timings) == ["cache", "load"]


def test_each_part_of_a_program_is_in_its_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s, args = scheduled()
    keys = [
        key(s, args),
        key(*scheduled(17)),
        key(*scheduled(factor=8)),
        key(*scheduled(prefix="other_")),
        key(s, [args[1], args[0], *args[2:]]),
        key(s, args, name="f"),
        key(s, args, target="llvm -mtriple=x86_64-linux-gnu -mcpu=skylake"),
        key(s, args, target="llvm -num-cores=63"),
        key(s, args, target="llvm -vector-width=128"),
    ]
    with Target("llvm -vector-width=128"):
        keys.append(key(s, args))
    for context in (
        PassContext(opt_level=1),
        PassContext(disabled_pass=["tir.LoopPartition"]),
        PassContext(required_pass=["tir.LoopPartition"]),
        PassContext(config={"tir.noalias": False}),
        PassContext(config={"tir.UnrollLoop": {"auto_max_step": 3}}),
        PassContext(config={"tir.UnrollLoop": {"auto_max_step": 4}}),
    ):
        with context:
            keys.append(key(s, args))
    monkeypatch.setattr(program_key, "_source_digest", lambda: "edited")
    keys.append(key(s, args))
    assert None not in keys and len(set(keys)) == len(keys)
    monkeypatch.undo()


def test_the_key_of_an_equal_program_is_equal(folder: Path) -> None:
    assert key(*scheduled()) == key(*scheduled())


@prim_func_pass(opt_level=0)
def _nothing(func: PrimFunc, mod: IRModule, ctx: PassContext) -> PrimFunc:
    return func


class _Instrument:
    """Sees the passes that run."""

    def __init__(self) -> None:
        self.seen = 0

    def run_before_pass(self, mod: IRModule, info: Any) -> None:
        self.seen += 1


def test_users_passes_and_instruments_always_run(folder: Path) -> None:
    instrument = _Instrument()
    for context in (PassContext(config={"tir.add_lower_pass": [(1, _nothing)]}), PassContext(instruments=[instrument])):
        with context:
            assert key(*scheduled()) is None
            tvm.build(*scheduled())
            assert "lower" in tvm.build(*scheduled()).timings
    assert instrument.seen


def test_where_passes_are_to_be_verified_they_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_VERIFY", "1")
    assert key(*scheduled()) is None


def test_what_has_no_text_of_its_own_has_no_key(folder: Path) -> None:
    s, args = scheduled()
    buffer = tvm.tir.decl_buffer((16, 16), name="A")
    assert program_key.program_key(s, args, "main", {args[0]: buffer}, HERE) is None
    assert key(s, [buffer, *args[1:]]) is None
    assert key(s, [*args, te.var("n")]) is None
    assert program_key.program_key(tvm.lower(s, args), None, "main", None, HERE) is None
    marked = PlaceholderOp("x", (tvm.tir.IntImm("int32", 4),), "float32", attrs=FrozenMap({"layout_free": True})).output(0)
    copy = te.compute((4,), lambda i: marked[i], name="copy")
    assert key(te.create_schedule(copy.op), [marked, copy]) is None
    cached = s.cache_read(args[0], "global", [args[-1].op.input_tensors[0]])
    assert key(s, args) is not None and key(s, [cached, *args[1:]]) is None


def test_an_intrinsic_of_the_user_is_more_than_its_name(folder: Path) -> None:
    a, b = te.placeholder((24,), name="A"), te.placeholder((24,), name="B")
    c = te.compute((24,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    inner = s[c].split(c.op.axis[0], factor=8)[1]
    assert key(s, [a, b, c]) is not None
    s[c].tensorize(inner, vector_add(8))
    assert key(s, [a, b, c]) is None


@pytest.mark.parametrize("part", range(2))
def test_an_entry_with_nonsense_in_it_is_made_anew(folder: Path, part: int) -> None:
    wanted = key(*scheduled())
    assert wanted is not None
    tvm.build(*scheduled(), name="main")
    found = store.fetch(wanted)
    assert found is not None and len(found) == 2
    for nonsense in (b"\xff", b"{}", b'{"functions": [["f", {}]], "externs": []}', b'{"functions": 3, "externs": []}'):
        parts = list(found)
        parts[part] = nonsense
        if part == 1:
            parts = parts[:1]
        store.keep(wanted, parts)
        assert cache.fetch_program(wanted) is None
        check(tvm.build(*scheduled(), name="main"))
        assert store.fetch(wanted) == found


def test_switched_off_everything_is_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE", "0")
    tvm.build(*scheduled())
    assert {"lower", "codegen"} <= set(tvm.build(*scheduled()).timings) and not folder.exists()


def test_missing_c_functions_are_named_on_a_hit_too(folder: Path) -> None:
    x = te.placeholder((4,), name="x")
    y = te.extern((4,), [x], lambda ins, outs: tvm.tir.call_extern("int32", "nobody_has_this", outs[0].data), name="y")
    s = te.create_schedule(y.op)
    wanted = key(s, [x, y])
    assert wanted is not None
    for _ in range(2):
        with pytest.raises(CodegenError, match="the external function nobody_has_this is in no library of this process"):
            tvm.build(s, [x, y], name="main")
        assert cache.fetch_program(wanted) is not None


def test_the_state_of_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub" / "__pycache__").mkdir(parents=True)
    for name in ("a.py", "sub/b.py", "sub/__pycache__/c.py", "note.txt"):
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(program_key, "_ROOT", tmp_path)
    now = (tmp_path / "note.txt").stat().st_ctime
    state = program_key._source_digest.__wrapped__

    def loaded(after: float) -> str | None:
        monkeypatch.setattr(config, "LOADED_AT", now + after)
        return state()

    assert loaded(-5) is None and loaded(1) is None  # changed while, or just before, the library was loaded
    first = loaded(100)
    assert first is not None and loaded(200) == first
    (tmp_path / "sub" / "__pycache__" / "c.py").write_text("y = 2\n")
    (tmp_path / "note.txt").write_text("more\n")
    assert loaded(100) == first
    time.sleep(0.05)  # the clock of files ticks every few milliseconds
    status = (tmp_path / "sub" / "b.py").stat()
    (tmp_path / "sub" / "b.py").write_text("x = 2\n")
    os.utime(tmp_path / "sub" / "b.py", ns=(status.st_atime_ns, status.st_mtime_ns))  # of the same size and time
    assert loaded(100) not in (first, None)
    monkeypatch.setattr(program_key, "_ROOT", tmp_path / "nowhere")
    assert loaded(100) is None


# Builds a program in a process of its own; prints which steps ran and what was loaded for them, and checks the result.
_PROCESS = """
import sys
import numpy as np, tensorexpr as tvm
from tensorexpr import config, te
from tensorexpr.errors import CodegenError
from tensorexpr.runtime import program_key
program_key._source_digest = lambda: "settled"
x = te.placeholder((8,), name="x")
y = te.compute((8,), lambda i: x[i] + 1.0, name="y")
module = tvm.build(te.create_schedule(y.op), [x, y])
out = np.zeros(8, np.float32)
module(np.ones(8, np.float32), out)
assert (out == 2).all()
passes = {"tensorexpr.lower.pipeline", "tensorexpr.codegen.emit"} & set(sys.modules)
print(*sorted(module.timings), *sorted(passes))
"""


def _start(environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", _PROCESS], env=environment, stdout=subprocess.PIPE, text=True)


def test_processes_share_what_they_made(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    both = [_start(environment) for _ in range(2)]  # at once, into an empty folder
    assert all(process.communicate(timeout=300)[0].split() and not process.returncode for process in both)
    third = _start(environment)
    assert third.communicate(timeout=300)[0].split() == ["cache", "load"], "the passes are loaded, or ran"
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    fourth = _start(environment)
    assert "codegen" in fourth.communicate(timeout=300)[0]
