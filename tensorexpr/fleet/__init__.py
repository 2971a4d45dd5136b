"""Tuning on many machines: programs are compiled and measured by the workers of a Dask `distributed` scheduler.

    fleet = Fleet("tcp://10.0.0.5:8786")              # workers: python -m tensorexpr worker tcp://10.0.0.5:8786
    task = SearchTask(func, args, target=fleet.target("znver5"))
    task.tune(TuningOptions(1000, builder=fleet.builder(), runner=fleet.runner("znver5"), measure_callbacks=[RecordToFile("log.json")]))

fleet        the door: `Fleet`, its devices, builders and runners;  local: the fleet of one machine
plugs        what TuningOptions, tune_tir and measure_option take
building, running     the places that `tune.measure.Measurer` measures with
dispatch     jobs to workers, answers back: workers that are lost, stragglers, schedulers that restart
messages, resources     what travels, and how jobs find workers
calls, station, devices, cores     on a worker: what Dask calls by name, and who serves it
serve, security     the process of a worker: `python -m tensorexpr worker`
simulated    devices that sleep, to measure what a fleet itself costs

What is measured, and how, is `tune.measure`; who works when is Dask's affair. `docs/adr/0010`.
"""

from typing import TYPE_CHECKING

from ..later import later

if TYPE_CHECKING:
    from .fleet import Fleet
    from .messages import WorkerDescription
    from .plugs import FleetBuilder, FleetRunner

__all__ = ["Fleet", "FleetBuilder", "FleetRunner", "WorkerDescription"]

__getattr__, __dir__ = later(__name__, {".fleet": "Fleet", ".messages": "WorkerDescription", ".plugs": "FleetBuilder FleetRunner"})
