"""A PostgreSQL server of the tests' own, from the system's package, on a socket that nobody else reaches."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVERS = Path("/usr/lib/postgresql")


def reason_against() -> str:
    """Why there can't be one; empty if there can."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg isn't installed"
    if not _programs():
        return f"no PostgreSQL server in {SERVERS}"
    if os.getuid() == 0 and not _user():
        return "PostgreSQL doesn't run as root, and there is no user postgres"
    return ""


@contextmanager
def server() -> Iterator[str]:
    """A new one; how to connect to it."""
    # short: the path of a socket has about a hundred characters
    folder = Path(tempfile.mkdtemp(prefix="txpg"))
    user = _user() if os.getuid() == 0 else None
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        options = {"user": user.pw_uid, "group": user.pw_gid} if user is not None else {}
        data = folder / "data"
        _run([_programs() + "/initdb", "-D", str(data), "-U", "tests", "-A", "trust", "--no-sync"], folder, options)
        listens = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        _run(
            [_programs() + "/pg_ctl", "-D", str(data), "-w", "-t", "120", "-l", str(folder / "log"), "-o", listens, "start"],
            folder,
            options,
        )
        try:
            yield f"postgresql://tests@/postgres?host={folder}"
        finally:
            _run([_programs() + "/pg_ctl", "-D", str(data), "-m", "immediate", "stop"], folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str], folder: Path, options: dict[str, int]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, timeout=240, **options)  # type: ignore[call-overload]


def _programs() -> str:
    found = sorted(SERVERS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0)
    return str(found[-1].parent) if found else ""


def _user() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return None
