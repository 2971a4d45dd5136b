"""Frames: what goes in comes out however the bytes are cut; anything else is refused."""

from __future__ import annotations

import json
import os
import struct
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.tune.measure import protocol
from tensorexpr.tune.measure.protocol import MAGIC, Channel, Frame, FrameDecoder, ProtocolError, encode
from tests.effort import share_of

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
frames = st.builds(
    lambda fields, blobs: Frame({**fields, "type": "x"}, tuple(blobs)),
    st.dictionaries(st.text(), json_values, max_size=4),
    st.lists(st.binary(max_size=300), max_size=4),
)


def prefix(header_bytes: int, blobs: int) -> bytes:
    return struct.pack("<4sII", MAGIC, header_bytes, blobs)


@settings(deadline=None, derandomize=True, max_examples=share_of(100))
@given(st.lists(frames, min_size=1, max_size=4), st.lists(st.integers(1, 400), min_size=1))
def test_frames_survive_any_cutting(sent: list[Frame], cuts: list[int]) -> None:
    data = b"".join(map(encode, sent))
    decoder, position = FrameDecoder(), 0
    received: list[Frame] = []
    for number in range(len(data)):
        piece = data[position : position + cuts[number % len(cuts)]]
        received.extend(decoder.feed(piece))
        position += len(piece)
    assert received == sent
    assert not decoder.is_torn


@settings(deadline=None, derandomize=True, max_examples=share_of(100))
@given(frames, st.data())
def test_a_cut_frame_is_torn_not_an_error(frame: Frame, data: st.DataObject) -> None:
    whole = encode(frame)
    decoder = FrameDecoder()
    assert list(decoder.feed(whole[: data.draw(st.integers(1, len(whole) - 1))])) == []
    assert decoder.is_torn


@settings(deadline=None, derandomize=True, max_examples=share_of(300))
@given(frames, st.data())
def test_damaged_bytes_raise_protocol_errors_only(frame: Frame, data: st.DataObject) -> None:
    damaged = bytearray(encode(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        for received in FrameDecoder().feed(bytes(damaged)):
            assert isinstance(received.type, str)
    except ProtocolError:
        pass


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"garbage", "a frame starts with b'TXM1', not b'garbage'"),
        (b"TXM2", "a frame starts with"),
        (prefix(protocol.MAX_HEADER_BYTES + 1, 0), "over the limit of 16777216"),
        (prefix(2, protocol.MAX_BLOBS + 1), "257 blobs is over the limit"),
        (prefix(2, 1) + struct.pack("<I", protocol.MAX_BLOB_BYTES + 1), "a blob of 268435457 bytes"),
        (prefix(2, 5) + struct.pack("<5I", *[protocol.MAX_BLOB_BYTES] * 5), "bytes of blobs is over the limit"),
        (prefix(2, 0) + b"{]", "no JSON"),
        (prefix(1, 0) + b"\xff", "no JSON"),
        (prefix(3, 0) + b"NaN", "NaN, which is no JSON"),
        (prefix(2, 0) + b"[]", "an object with a type"),
        (prefix(2, 0) + b"{}", "an object with a type"),
        (prefix(10, 0) + b'{"type":1}', "an object with a type"),
        (prefix(200_000, 0) + b"[" * 200_000, "no JSON"),
    ],
)
def test_what_is_no_frame_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        list(FrameDecoder().feed(data))
    assert message in str(caught.value)


def test_the_first_wrong_byte_is_enough() -> None:
    with pytest.raises(ProtocolError):
        list(FrameDecoder().feed(b"T?"))


@pytest.mark.parametrize("header", [{"type": "x", "cost": float("nan")}, {"type": "x", "object": object()}])
def test_what_json_can_not_hold_is_not_sent(header: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="'x' can't be sent"):
        encode(Frame(header))


def test_a_channel_carries_large_frames_and_notices_the_end() -> None:
    read, write = os.pipe()
    sent = [Frame({"type": "a", "n": n}, (bytes([n]) * 300_000,)) for n in range(3)]

    def send() -> None:
        for frame in sent:
            Channel(-1, write).send(frame)
        os.close(write)

    sender = threading.Thread(target=send)
    sender.start()
    channel = Channel(read, -1)
    assert [channel.receive() for _ in sent] == sent
    assert channel.receive() is None
    sender.join()
    os.close(read)


def test_a_channel_that_ends_within_a_frame_is_an_error() -> None:
    read, write = os.pipe()
    os.write(write, encode(Frame({"type": "a"}))[:-1])
    os.close(write)
    with pytest.raises(ProtocolError, match="in the middle of a frame"):
        Channel(read, -1).receive()
    os.close(read)


def test_headers_are_plain_json_on_the_wire() -> None:
    data = encode(Frame({"type": "a", "n": 1}, (b"xyz",)))
    assert data[:4] == MAGIC
    assert data.endswith(json.dumps({"type": "a", "n": 1}, separators=(",", ":")).encode() + b"xyz")
