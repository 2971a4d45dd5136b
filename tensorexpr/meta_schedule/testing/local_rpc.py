"""What programs write that start a tracker and a server to measure with: here there is nothing to start."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import TuningError


class LocalRPC:
    """The address that `RPCConfig` takes to measure on this machine.

        with LocalRPC() as rpc:
            runner = RPCRunner(RPCConfig(rpc.tracker_host, rpc.tracker_port, rpc.tracker_key))

    Args:
        tracker_key: of the device.
        silent: accepted.
        no_fork: accepted.
    """

    def __init__(
        self,
        tracker_key: str = "key",
        silent: bool = False,
        no_fork: bool = False,
        server_host: str = "0.0.0.0",
        server_ports: object = None,
    ) -> None:
        if server_host not in ("0.0.0.0", "127.0.0.1", "localhost"):
            raise TuningError(f"LocalRPC serves this machine, not {server_host!r}")
        self.tracker_host = "127.0.0.1"
        self.tracker_port = 9190
        self.tracker_key = tracker_key

    def __enter__(self) -> LocalRPC:
        return self

    def __exit__(self, *_: Sequence[object]) -> None:
        """Nothing was started."""
