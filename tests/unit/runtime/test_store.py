"""Entries on disk: found by equal keys only, dropped when damaged, bounded in size, and never from a folder of others."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tensorexpr import config, log
from tensorexpr.errors import TensorExprError
from tensorexpr.runtime import store

PARTS = (b"first part", b"", b"third")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache that is on."""
    monkeypatch.setenv("TENSOREXPR_CACHE", "1")
    monkeypatch.setenv("TENSOREXPR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "_written", store._Written())
    log.once.cache_clear()
    return tmp_path / "cache" / "objects"


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_what_was_kept_is_found_by_its_key_alone(folder: Path) -> None:
    assert store.fetch(b"key") is None
    store.keep(b"key", PARTS)
    assert store.fetch(b"key") == PARTS
    assert store.fetch(b"other") is None and store.fetch(b"key ") is None
    store.keep(b"key", [b"new"])
    assert store.fetch(b"key") == (b"new",)
    assert len(files(folder)) == 1


def test_folder_and_files_are_for_the_user_alone(folder: Path) -> None:
    store.keep(b"key", PARTS)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in files(folder)] == [0o600]


def test_an_equal_hash_is_no_equal_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_name", lambda key: "same")
    store.keep(b"key", PARTS)
    assert store.fetch(b"other") is None
    assert store.fetch(b"key") == PARTS


def test_a_flipped_bit_anywhere_drops_the_entry(folder: Path) -> None:
    store.keep(b"key", PARTS)
    (path,) = files(folder)
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ (1 << place % 8)]) + good[place + 1 :])
        assert store.fetch(b"key") is None, f"byte {place}"
        assert not path.exists()


def test_a_torn_or_longer_file_drops_the_entry(folder: Path) -> None:
    store.keep(b"key", PARTS)
    (path,) = files(folder)
    good = path.read_bytes()
    for bad in [good[:length] for length in range(len(good))] + [good + b"x"]:
        path.write_bytes(bad)
        assert store.fetch(b"key") is None
    store.keep(b"key", PARTS)
    assert store.fetch(b"key") == PARTS


def test_sizes_that_do_not_add_up_are_refused_although_the_hash_fits(folder: Path) -> None:
    for count, sizes in ((2, (3, 1 << 60)), (9, (1,) * 9), (0, ()), (1, (2,))):
        body = store._COUNTS.pack(count) + b"".join(store._SIZE.pack(size) for size in sizes) + b"key"
        data = store._MAGIC + hashlib.sha256(body).digest() + body
        assert store._unpack(data) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o740, 0o701])
def test_a_folder_that_others_can_enter_is_not_used_and_said_once(folder: Path, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    store.keep(b"key", PARTS)
    folder.chmod(mode)
    with caplog.at_level(logging.WARNING):
        assert store.fetch(b"key") is None
        store.keep(b"second", PARTS)
    (record,) = caplog.records
    assert f"mode {mode:o}): give it to your user with mode 700, set TENSOREXPR_CACHE_DIR, or set TENSOREXPR_CACHE=0" in record.message
    folder.chmod(0o700)
    assert store.fetch(b"key") == PARTS and store.fetch(b"second") is None


def test_a_folder_of_another_user_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    store.keep(b"key", PARTS)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with caplog.at_level(logging.WARNING):
        assert store.fetch(b"key") is None
    assert f"is not yours alone (owner {owner}," in caplog.text


def test_symbolic_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    store.keep(b"key", PARTS)
    (path,) = files(folder)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert store.fetch(b"key") is None
    folder.rename(tmp_path / "real")
    folder.symlink_to(tmp_path / "real")
    store.keep(b"key", PARTS)
    assert store.fetch(b"key") is None and path.is_symlink()


def test_switched_off_it_neither_reads_nor_writes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.keep(b"key", PARTS)
    monkeypatch.setenv("TENSOREXPR_CACHE", "0")
    store.keep(b"second", PARTS)
    assert store.fetch(b"key") is None
    assert len(files(folder)) == 1


def test_without_a_home_there_is_no_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(config, "cache_path", homeless)
    store.keep(b"key", PARTS)
    assert store.fetch(b"key") is None


@pytest.mark.parametrize("failing", ["replace", "open"])
def test_a_full_disk_is_no_error_and_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    store.keep(b"key", PARTS)
    usual = getattr(os, failing)

    def full(*args: Any, **kwargs: Any) -> Any:
        if failing == "open" and not args[1] & os.O_CREAT:
            return usual(*args, **kwargs)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    monkeypatch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, full})
    store.keep(b"second", PARTS)
    monkeypatch.undo()
    assert len(files(folder)) == 1


def test_the_entries_that_were_not_used_for_longest_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE_SIZE", "1")
    part = bytes(200 << 10)
    keys = [b"%d" % number for number in range(6)]
    for age, key in enumerate(keys[:5]):
        store.keep(key, [part])
        os.utime(folder / store._name(key), (1000 + age, 1000 + age))
    assert store.fetch(keys[0]) is not None  # used again, so it is the newest
    store.keep(keys[5], [part])
    assert [store.fetch(key) is not None for key in keys] == [True, False, False, False, True, True]


@pytest.mark.parametrize("processes", [1, 400])
def test_many_small_entries_make_room_too(folder: Path, monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE_SIZE", "1")
    for number in range(400):
        if number % (400 // processes) == 0:
            monkeypatch.setattr(store, "_written", store._Written())  # as if a process began
        store.keep(b"%d" % number, [bytes(4 << 10)])
    kept = sum(path.stat().st_size for path in files(folder))
    assert (1 << 20) * 2 // 3 < kept <= (1 << 20) + (1 << 18)


def test_an_entry_that_is_larger_than_the_cache_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE_SIZE", "1")
    store.keep(b"small", PARTS)
    store.keep(b"large", [bytes(2 << 20)])
    assert store.fetch(b"large") is None and store.fetch(b"small") == PARTS


def test_a_size_that_is_no_number_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE_SIZE", "lots")
    with pytest.raises(TensorExprError, match="TENSOREXPR_CACHE_SIZE=lots: expected a number of megabytes; TENSOREXPR_CACHE=0 switches"):
        store.keep(b"key", PARTS)


# Each process writes and reads all the time; what it finds is whole, and of its key.
_RACE = """
import sys
from tensorexpr.runtime import store
hits = 0
for turn in range(100):
    key = b"key %d" % (turn % 5)
    found = store.fetch(key)
    assert found is None or found == (key * 40000,), "torn"
    hits = hits + 1 if found else hits
    store.keep(key, [key * 40000])
assert hits
"""


def test_processes_that_write_and_evict_at_once_read_whole_entries(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    evicting = subprocess.Popen([sys.executable, "-c", _RACE], env={**environment, "TENSOREXPR_CACHE_SIZE": "1"})
    writing = subprocess.Popen([sys.executable, "-c", _RACE], env={**environment, "TENSOREXPR_CACHE_SIZE": "9"})
    assert (evicting.wait(60), writing.wait(60)) == (0, 0)
    assert {path.name for path in files(folder)} <= {store._name(b"key %d" % number) for number in range(5)}
