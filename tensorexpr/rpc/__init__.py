"""Functions run for another process of this machine, or in a folder of their own: `LocalSession`, `Server`, `connect` and trackers.

protocol   messages: a JSON head and bytes, nothing that runs when it is read;  links: how they travel, by a socket or by a fleet
commands   what a server does for a session, and nothing else
server     Server: a thread that serves sessions, on this machine unless another address is given
client     connect, RPCSession, and what stands for arrays, functions and modules that are elsewhere
local      LocalSession: the same interface, in this process
tracker    Tracker and connect_tracker: TVM's names for a fleet, whose workers lend their devices;  lent: the process behind a loan

A session may load and run libraries: whoever can connect can run code. So a server listens on this machine alone unless it is told
otherwise, and with a key only to those who know it; a tracker without TLS listens on this machine alone.
"""

from typing import TYPE_CHECKING

from ..later import later

if TYPE_CHECKING:
    from .client import RPCSession, connect
    from .local import LocalSession
    from .server import Server
    from .tracker import Tracker, TrackerSession, connect_tracker

__all__ = ["LocalSession", "RPCSession", "Server", "Tracker", "TrackerSession", "connect", "connect_tracker"]

__getattr__, __dir__ = later(
    __name__,
    {
        ".client": "RPCSession connect",
        ".local": "LocalSession",
        ".server": "Server",
        ".tracker": "Tracker TrackerSession connect_tracker",
    },
    "client server tracker",
)
