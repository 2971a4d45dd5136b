"""What a Dask worker of ours loads when it starts: the station that serves its jobs."""

from __future__ import annotations

import json
import os
from typing import Any

from . import calls
from .serve import STATION
from .station import Station

_stations: dict[int, Station] = {}


def dask_setup(worker: Any) -> None:
    """Serve the worker's jobs."""
    station = _stations[id(worker)] = Station(json.loads(os.environ[STATION]))
    calls.serve_with(station)


def dask_teardown(worker: Any) -> None:
    """End the station's processes."""
    station = _stations.pop(id(worker), None)
    if station is not None:
        station.close()
