"""Many compile at a time, or one measures."""

from __future__ import annotations

import threading
from pathlib import Path

from tensorexpr.fleet.cores import Cores


def test_compiling_goes_together_and_measuring_alone(tmp_path: Path) -> None:
    # one object each, as processes have
    first, second = Cores(tmp_path), Cores(tmp_path)
    measured = threading.Event()

    def measure() -> None:
        with second.to_measure():
            measured.set()

    with first.to_compile(), second.to_compile():
        thread = threading.Thread(target=measure)
        thread.start()
        assert not measured.wait(0.2)
    assert measured.wait(10)
    thread.join()


def test_who_waits_to_measure_comes_before_new_compilations(tmp_path: Path) -> None:
    cores = Cores(tmp_path)
    order: list[str] = []
    waiting = threading.Event()

    def measure() -> None:
        waiting.set()
        with cores.to_measure():
            order.append("measure")

    def compile_one() -> None:
        with cores.to_compile():
            order.append("compile")

    threads = [threading.Thread(target=measure), threading.Thread(target=compile_one)]
    with cores.to_compile():
        threads[0].start()
        waiting.wait(10)
        threads[0].join(0.3)  # it holds the gate by now
        threads[1].start()
        threads[1].join(0.2)
        assert order == []
    for thread in threads:
        thread.join(10)
    assert order == ["measure", "compile"]
