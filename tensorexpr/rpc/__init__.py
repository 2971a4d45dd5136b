"""Functions run for another process of this machine, or in a folder of their own: `LocalSession`, `Server` and `connect`.

protocol   messages: a JSON head and bytes, nothing that runs when it is read
commands   what a server does for a session, and nothing else
server     Server: a thread that serves sessions, on this machine unless another address is given
client     connect, RPCSession, and what stands for arrays, functions and modules that are elsewhere
local      LocalSession: the same interface, in this process

A session may load and run libraries: whoever can connect can run code. So a server listens on this machine alone unless it is told
otherwise, and with a key only to those who know it.
"""

from .client import RPCSession, connect, connect_tracker
from .local import LocalSession
from .server import Server

__all__ = ["LocalSession", "RPCSession", "Server", "connect", "connect_tracker"]
