"""`python -m tensorexpr worker SCHEDULER`: compile and measure for a fleet."""

from __future__ import annotations

import argparse
import math

from ..errors import TuningError
from ..fleet.devices import CPU
from ..fleet.security import security_of
from ..fleet.serve import WorkerOptions, serve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the worker."""
    parser.add_argument("scheduler", help="address of the Dask scheduler, such as tcp://10.0.0.5:8786")
    parser.add_argument(
        "--key", action="append", default=[], help="what the devices are known by, several times for several; the CPU's name"
    )
    parser.add_argument("--name", help="of the worker, in Dask's pages")
    parser.add_argument("--host", help="address to listen on; the one on the way to the scheduler")
    parser.add_argument("--jobs", type=int, help="programs to compile at the same time; as many as cores")
    parser.add_argument("--device", default=CPU, help='what is measured on: "cpu", or module:function of what opens another device')
    parser.add_argument("--devices", type=int, default=1, help="how many of them; 0 only compiles")
    parser.add_argument("--cores", default="", help="cores to use, such as 0-3,8; all that are usable")
    parser.add_argument("--retry", type=float, default=math.inf, metavar="SECONDS", help="how long to wait for a scheduler that is away")
    parser.add_argument("--tls-ca-file", help="certificates to trust, as of Dask")
    parser.add_argument("--tls-cert", help="certificate of this worker")
    parser.add_argument("--tls-key", help="its key")
    parser.add_argument("--insecure", action="store_true", help="listen on an address that others reach, without TLS")


def run(options: argparse.Namespace) -> int:
    """Work until the process is ended; returns the exit code.

    Raises:
        TuningError: for options that don't fit.
    """
    if options.devices < 0 or (options.jobs is not None and options.jobs < 1):
        raise TuningError("worker: --devices is at least 0, --jobs at least 1")
    return serve(
        WorkerOptions(
            scheduler=options.scheduler,
            keys=options.key,
            name=options.name,
            host=options.host,
            jobs=options.jobs,
            device=options.device,
            devices=options.devices,
            cores=cores_of(options.cores),
            retry_s=options.retry,
            security=security_of(options.tls_ca_file, options.tls_cert, options.tls_key),
            insecure=options.insecure,
        )
    )


def cores_of(text: str) -> list[int]:
    """The cores that a text such as "0-3,8" names.

    Raises:
        TuningError: for another text.
    """
    try:
        parts = [tuple(map(int, part.split("-"))) for part in text.split(",") if part]
        return sorted({core for part in parts for core in range(part[0], part[-1] + 1)})
    except ValueError:
        raise TuningError(f"worker: --cores is {text!r}; it takes numbers and ranges such as 0-3,8") from None
