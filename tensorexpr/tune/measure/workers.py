"""Worker processes that outlive a task: who measures the next one tells them of it, instead of starting others.

A compile worker takes two seconds of a core to import all that it needs, and a network has tasks by the dozen.
"""

from __future__ import annotations

from .folder import SharedFolder
from .pool import WorkerPool
from .process import Launch, WorkerProcess
from .protocol import Frame


class Workers:
    """The workers of one `Measurer` after another, which use them in turn.

        with Workers() as workers:
            for task in tasks:
                with Measurer(task, options, workers=workers) as measurer:
                    ...

    They start when they are asked for first, and end when the context is left, or with this process.
    """

    def __init__(self) -> None:
        self._folder: SharedFolder | None = None
        self._pools: dict[tuple[str, str, int], tuple[Launch, WorkerPool]] = {}
        self._spare: dict[str, WorkerProcess] = {}

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pool(self, launch: Launch, size: int, greeting: Frame) -> WorkerPool:
        """Workers of a kind, which serve a task from now on.

        Those that may have less memory than is asked for are replaced.

        Args:
            launch: how they start.
            size: how many there are at most.
            greeting: says what the task is; whoever asks again with the same frame finds them as they are.
        """
        key = launch.module, launch.plug, size
        known = self._pools.get(key)
        if known is not None and (known[0].memory_bytes < launch.memory_bytes or known[0].environment != launch.environment):
            known[1].close()
            known = None
        if known is None:
            known = self._pools[key] = launch, WorkerPool(launch, size, self._place, greeting)
        known[1].greet(greeting)
        return known[1]

    def process(self, launch: Launch) -> WorkerProcess:
        """A worker for one request: one that somebody `keep`s, or a new one."""
        found = self._spare.pop(launch.module, None)
        if found is not None:
            found.advance()
        return found if found is not None and found.death is None else WorkerProcess(launch, self._place)

    def keep(self, launch: Launch, worker: WorkerProcess) -> None:
        """Take back a worker that has answered all it was asked."""
        before = self._spare.pop(launch.module, None)
        if before is not None:
            before.kill("not needed any more")
        self._spare[launch.module] = worker

    @property
    def pids(self) -> list[int]:
        """The process ids of all workers that run now."""
        spare = [worker.pid for worker in self._spare.values() if worker.death is None]
        return [*(pid for _, pool in self._pools.values() for pid in pool.pids), *spare]

    def close(self) -> None:
        """Kill all workers. Safe to call again; who asks later gets new ones."""
        for _, pool in self._pools.values():
            pool.close()
        for worker in self._spare.values():
            worker.kill("not needed any more")
        self._pools, self._spare = {}, {}
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    @property
    def _place(self) -> str:
        """Their working directory, which holds no modules."""
        if self._folder is None:
            self._folder = SharedFolder()
        return str(self._folder.path)
