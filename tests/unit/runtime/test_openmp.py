"""The threads of parallel loops: found, used, or replaced by serial execution. Each case needs a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest

SCRIPT = textwrap.dedent(
    """
    import ctypes, json, logging, os, sys, threading
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    from tensorexpr.runtime import engine, openmp
    from tensorexpr.target import Target
    TEXT = '''
    declare void @GOMP_parallel(ptr, ptr, i32, i32)
    declare i32 @omp_get_thread_num()
    declare i32 @omp_get_num_threads()
    define internal void @body(ptr %counts) {
      %thread = call i32 @omp_get_thread_num()
      %all = call i32 @omp_get_num_threads()
      %place = getelementptr i32, ptr %counts, i32 %thread
      store i32 %all, ptr %place
      ret void
    }
    define i32 @f(ptr %counts) {
      call void @GOMP_parallel(ptr @body, ptr %counts, i32 0, i32 0)
      ret i32 0
    }
    '''
    code = engine.load_object(engine.compile_text(TEXT, Target("llvm"), 0).data, ["f"])
    counts = (ctypes.c_int32 * 512)()
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code["f"])
    call(counts)
    found = openmp.runtime()
    print(json.dumps({
        "counts": [count for count in counts if count],
        "path": found and found.path,
        "blocktime": os.environ.get("KMP_BLOCKTIME"),
        "cores": Target("llvm").num_cores,
    }))
    """
)


def run(script: str = SCRIPT, **environment: str) -> tuple[dict[str, Any], str]:
    keep = {key: value for key, value in os.environ.items() if key not in ("OMP_NUM_THREADS", "KMP_BLOCKTIME", "TENSOREXPR_OMP_LIBRARY")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**keep, **environment}, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_every_core_gets_a_thread() -> None:
    result, _ = run()
    assert result["path"]
    assert result["counts"] == [result["cores"]] * result["cores"]


def test_the_environment_is_left_as_it_was() -> None:
    assert run()[0]["blocktime"] is None
    assert run(KMP_BLOCKTIME="7")[0]["blocktime"] == "7"


def test_omp_num_threads_is_respected() -> None:
    result, _ = run(OMP_NUM_THREADS="1")
    assert result["counts"] == [1]
    assert result["cores"] == 1


def test_none_runs_serially() -> None:
    result, errors = run(TENSOREXPR_OMP_LIBRARY="none")
    assert (result["counts"], result["path"], errors) == ([1], None, "")


def test_without_any_runtime_loops_run_serially_and_say_so_once() -> None:
    script = SCRIPT.replace("TEXT =", "openmp._candidates = lambda: iter(['/nowhere/libgomp.so'])\nTEXT =", 1)
    result, errors = run(script + "\nopenmp.runtime()\nopenmp.runtime.cache_clear()\nopenmp.runtime()\n")
    assert (result["counts"], result["path"]) == ([1], None)
    assert errors.count("no OpenMP runtime found: parallel loops run serially") == 1


def test_a_wrong_library_is_an_error() -> None:
    with pytest.raises(AssertionError, match=r"TENSOREXPR_OMP_LIBRARY=/nowhere/libomp.so: .*; name a libomp or libgomp, or 'none'"):
        run(TENSOREXPR_OMP_LIBRARY="/nowhere/libomp.so")
    with pytest.raises(AssertionError, match=r"TENSOREXPR_OMP_LIBRARY=libm\.so\.6"):
        run(TENSOREXPR_OMP_LIBRARY="libm.so.6")


def test_a_runtime_that_is_loaded_already_is_used() -> None:
    first, _ = run()
    script = f"import ctypes; ctypes.CDLL({first['path']!r})\n{SCRIPT}"
    again, _ = run(script)
    assert os.path.samefile(again["path"], first["path"])


def test_several_python_threads_may_run_parallel_loops_at_once() -> None:
    more = """
    results = []
    def work():
        for _ in range(200):
            mine = (ctypes.c_int32 * 512)()
            call(mine)
            results.append(sum(1 for count in mine if count) == mine[0])
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(results) == 600 and all(results)
    """
    assert run(SCRIPT + textwrap.dedent(more))[0]["counts"]
