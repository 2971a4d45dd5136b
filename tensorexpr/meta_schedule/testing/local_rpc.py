"""What programs write that start a tracker and a server of their own to measure with."""

from __future__ import annotations

from ...rpc.server import Server
from ...rpc.tracker import Tracker


class LocalRPC:
    """A tracker of this machine, and a server that it knows, until the context is left.

        with LocalRPC() as rpc:
            runner = RPCRunner(RPCConfig(rpc.tracker_host, rpc.tracker_port, rpc.tracker_key))

    Args:
        tracker_key: of the device.
        silent, no_fork: accepted.
        server_host: as of `rpc.Server`.
        server_ports: accepted.

    Raises:
        TuningError, RPCError: if they don't start.
    """

    def __init__(
        self,
        tracker_key: str = "key",
        silent: bool = False,
        no_fork: bool = False,
        server_host: str = "0.0.0.0",
        server_ports: object = None,
    ) -> None:
        self.tracker = Tracker(port=0, port_end=0, silent=silent)
        try:
            address = ("127.0.0.1", self.tracker.port)
            self.server = Server(host=server_host, key=tracker_key, tracker_addr=address, silent=silent, no_fork=no_fork)
        except BaseException:
            self.tracker.terminate()
            raise
        self.tracker_host, self.tracker_port = address
        self.tracker_key = tracker_key

    def __enter__(self) -> LocalRPC:
        return self

    def __exit__(self, *_: object) -> None:
        """End both."""
        self.server.terminate()
        self.tracker.terminate()
