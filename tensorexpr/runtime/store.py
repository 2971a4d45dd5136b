"""Entries on disk: bytes that are found by a key, with which they are kept.

An entry is one file, named by the hash of its key. It begins with the sizes of its parts and the hash of all that
follows; the first part is the key, which must equal the one that is asked for. What does not check is dropped. Files
appear by renaming, so any number of processes may read and write at once; what can't be written is not kept.

What is found may be run as machine code, so the folder must belong to the user and be open to nobody else. It is opened
once per access, checked, and everything is done relative to the open folder, whatever its name means by then.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from .. import config
from ..dataclass import dataclass
from ..errors import TensorExprError
from ..log import once

logger = logging.getLogger(__name__)

_MAGIC = b"txcache1"
_COUNTS = struct.Struct("<I")
_SIZE = struct.Struct("<Q")
_MOST_PARTS = 8
_FOLDER = "objects"
_temporary_names = itertools.count()


class _Refused(TensorExprError):
    """A folder that others have access to."""


@dataclass
class _Written:
    """Bytes that this process wrote since it last looked at the size of the folder."""

    amount: int = 0


_written = _Written()


def fetch(key: bytes) -> tuple[bytes, ...] | None:
    """The parts that were kept under a key; None if there are none, they are damaged, or the cache is off."""
    name = _name(key)
    # A cache that can't be read is one that holds nothing.
    with suppress(OSError), _folder() as folder:
        if folder is None:
            return None
        data = _read(folder, name)
        parts = _unpack(data)
        if parts is None:
            logger.debug("a damaged entry is dropped: %s", name)
            os.unlink(name, dir_fd=folder)  # else it would be read in vain each time
        # The name is only a hash of the key; the key itself says that this is the entry.
        elif parts[0] == key:
            return parts[1:]
    return None


def keep(key: bytes, parts: Sequence[bytes]) -> None:
    """Keep parts under a key, in place of what is there. Nothing happens where the disk is full or the cache is off."""
    data = _pack((key, *parts))
    with suppress(OSError), _folder() as folder:
        if folder is not None and len(data) <= config.cache_bytes():
            name = _name(key)
            _write(folder, name, data)
            _written.amount += len(data)
            # Looking through a full folder takes 40 ms: one entry of 16 pays for all, by chance of its hash.
            if name.startswith("0") or _written.amount >= config.cache_bytes() // 16:
                _written.amount = 0
                _make_room(folder, config.cache_bytes())


def _name(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


@contextmanager
def _folder() -> Iterator[int | None]:
    """The open folder; None if the cache is off or must not be used."""
    descriptor = None
    try:
        # All is done relative to the open folder, which not every system can.
        descriptor = _open_folder() if config.cache_enabled() and os.open in os.supports_dir_fd else None
    except _Refused as error:
        once(logger, str(error))
    except RuntimeError as error:
        logger.debug("no cache: %s", error)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _open_folder() -> int:
    path = config.cache_path() / _FOLDER
    # O_NOFOLLOW: a link could lead to a folder of somebody else by the time that it is used.
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        # `exist_ok`: another process may make them at the same moment.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, flags)
    # Of the open folder, not of the path, which may name another one a moment later.
    status = os.fstat(descriptor)
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        os.close(descriptor)
        raise _Refused(
            f"compiled code is not cached, as the folder {path} is not yours alone (owner {status.st_uid}, mode "
            f"{status.st_mode & 0o777:o}): give it to your user with mode 700, set TENSOREXPR_CACHE_DIR, or set TENSOREXPR_CACHE=0"
        )
    return descriptor


def _read(folder: int, name: str) -> bytes:
    """The bytes of a file, which then counts as used now."""
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), "rb") as file:
        data = file.read()
        # Whether the file system notes reads by itself depends on how it was mounted.
        os.utime(file.fileno())
    return data


def _write(folder: int, name: str, data: bytes) -> None:
    # Unlike those of other processes, and of other threads of this one.
    temporary = f"{name}.{os.getpid()}.{next(_temporary_names)}"
    try:
        # O_EXCL: nobody else's file, nor a link that somebody left under the name, is written.
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder), "wb") as file:
            file.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _make_room(folder: int, limit: int) -> None:
    """Remove the entries that were not used for longest, down to three quarters of the limit, if there are too many."""
    found = []
    for entry in os.scandir(folder):
        with suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                found.append((status.st_mtime_ns, status.st_size, entry.name))
    total = sum(size for _, size, _ in found)
    if total <= limit:
        return
    for _, size, name in sorted(found):  # by time, the oldest first
        # Below the limit, or each new entry would look through the folder again.
        if total <= limit * 3 // 4:
            break
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        total -= size


def _pack(parts: Sequence[bytes]) -> bytes:
    body = b"".join((_COUNTS.pack(len(parts)), *(_SIZE.pack(len(part)) for part in parts), *parts))
    return b"".join((_MAGIC, hashlib.sha256(body).digest(), body))


def _unpack(data: bytes) -> tuple[bytes, ...] | None:
    """The parts of a file; None unless it is just what `_pack` made."""
    start = len(_MAGIC) + hashlib.sha256().digest_size
    # Data that is too short has an empty body, which the comparison of lengths refuses.
    body = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != hashlib.sha256(body).digest() or len(body) < _COUNTS.size:
        return None
    (count,) = _COUNTS.unpack_from(body)
    place = _COUNTS.size + count * _SIZE.size
    if not 0 < count <= _MOST_PARTS or place > len(body):  # before the sizes are read, which may lie beyond the end
        return None
    parts = []
    for number in range(count):
        (size,) = _SIZE.unpack_from(body, _COUNTS.size + number * _SIZE.size)
        parts.append(body[place : place + size])
        place += size
    return tuple(parts) if place == len(body) else None
