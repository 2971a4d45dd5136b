"""Steps of instructions that touch memory or other threads, made once for each instruction."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dataclass import dataclass, field
from . import alu, warps
from .compute import operand, symbol_address, widened
from .faults import OutOfBounds
from .memory import CONSTANT, LOCAL, SHARED, check_alignment, count_conflicts, count_sectors
from .parser import Instruction, Kernel

if TYPE_CHECKING:
    from .machine import Block

Array = np.ndarray[Any, np.dtype[Any]]
Step = Callable[["Block", "Array | None"], None]
_MATRIX_ROW = 16  # bytes
_SPACES = ("global", "shared", "local", "param", "const")


def narrowest(kernel: Kernel) -> int:
    """Bytes of the narrowest access to memory that may be shared; they begin at multiples of their size."""
    least = 16
    for one in kernel.instructions:
        if one.words[0] in ("ld", "st", "atom", "red") and not {"param", "global", "local", "const"} & set(one.words):
            several = one.operands[1 if one.words[0] == "st" else 0] if one.words[0] in ("ld", "st") else ""
            least = min(least, alu.SIZE[one.words[-1]] * len(names_of(several)))
        elif one.words[:2] == ("cp", "async") and len(one.operands) > 2 and "bulk" not in one.words:
            least = min(least, int(one.operands[2]) if one.operands[2].isdigit() else 4)
        elif one.words[0] in ("wmma", "stmatrix"):
            least = min(least, 4)
    return least


def address_of(kernel: Kernel, text: str) -> Callable[[Block, Array | None], Array]:
    """The addresses that `[register + offset]` or `[variable + offset]` names, as 64-bit numbers."""
    inner = text.strip("[]").replace(" ", "")
    place = symbol_address(kernel, inner)
    if place is not None:
        return lambda block, lanes: np.full(block.count(lanes), place(block), np.uint64)
    register, _, more = inner.partition("+") if "+" in inner else (inner, "", "0")
    if not register.startswith("%"):
        address = int(register) + int(more)
        return lambda block, lanes: np.full(block.count(lanes), address, np.uint64)
    offset = int(more)
    step = np.uint64(offset & (2**64 - 1))

    def get(block: Block, lanes: Array | None) -> Array:
        value = block.read(register, lanes)
        if value.dtype == np.uint32:  # of shared and local memory, which wrap at 32 bits
            return ((value + np.uint32(offset & 0xFFFFFFFF)) if offset else value).astype(np.uint64)
        return value + step if offset else value

    return get


def names_of(text: str) -> list[str]:
    """The registers between braces."""
    return [name.strip() for name in text.strip("{}").split(",")]


@dataclass(frozen=True)
class Form:
    """An access: its space ("" for a generic address), the type and bytes of an element, and how many there are."""

    space: str
    kind: str
    width: int
    count: int

    @property
    def size(self) -> int:
        """Bytes of the access of one thread."""
        return self.width * self.count


def _form(one: Instruction, registers: int) -> Form:
    space = next((word for word in one.words if word.split("::")[0] in _SPACES), "").split("::")[0]
    return Form(space, one.words[-1], alu.SIZE[one.words[-1]], registers)


def _load(kernel: Kernel, one: Instruction) -> Step | None:
    into = names_of(one.operands[0])
    form = _form(one, len(into))
    if form.space == "param":
        return _parameter(one, into, form)
    address = address_of(kernel, one.operands[1])

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        unknown: list[Array] = []
        values = read_memory(block, form, address(block, lanes), threads, one.line, unknown)
        for name, value in zip(into, values, strict=True):
            block.write(name, lanes, widened(name, form.kind, value))
            for those in unknown:
                block.poison.mark(name, those, np.full(len(those), one.line, np.int32))

    return run


def _parameter(one: Instruction, into: list[str], form: Form) -> Step:
    name, _, offset = one.operands[1].strip("[]").partition("+")
    index = int(offset or 0) // form.width

    def run(block: Block, lanes: Array | None) -> None:
        data = np.frombuffer(np.asarray(block.arguments[name]).tobytes().ljust(form.size, b"\0"), alu.BITS[form.kind])
        for number, register in enumerate(into):
            value = np.full(block.count(lanes), data[index + number])
            block.write(register, lanes, widened(register, form.kind, value))

    return run


def _store(kernel: Kernel, one: Instruction) -> Step:
    names = names_of(one.operands[1])
    form = _form(one, len(names))
    address = address_of(kernel, one.operands[0])
    getters = [operand(kernel, name, form.kind) for name in names]

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        values = [np.asarray(get(block, lanes)).astype(alu.BITS[form.kind], copy=False) for get in getters]
        write_memory(block, form, address(block, lanes), threads, values, one.line)

    return run


def _space_of(form: Form, addresses: Array) -> tuple[str, Array]:
    """The space of an access, of a generic address by its window, and the addresses within it."""
    if form.space:
        return form.space, addresses
    lowest = int(addresses.min())
    for base, space in ((CONSTANT, "const"), (LOCAL, "local"), (SHARED, "shared")):
        if lowest >= base:
            return space, addresses - np.uint64(base)
    return "global", addresses


def read_memory(block: Block, form: Form, addresses: Array, threads: Array, line: int, unknown: list[Array] | None = None) -> list[Array]:
    """The values of an access, `count` arrays; into `unknown` go the threads that read of shared memory what nothing has written."""
    space, addresses = _space_of(form, addresses)
    where = block.where()
    check_alignment(addresses, form.size, where, threads)
    if space == "shared":
        offsets = block.shared_places(addresses, form.size, threads)
        unwritten = block.shared.note_read(offsets, form.size, where, threads, line, early=unknown is not None)
        if unwritten is not None and unknown is not None:
            unknown.append(unwritten)
        _count_shared(block, offsets, form.size, threads)
        return block.shared.read(offsets, form.width, form.count)
    if space == "local":
        rows = _local_rows(block, addresses, form.size, threads)
        return list(np.ascontiguousarray(block.local[threads[:, None], rows]).view(alu.BITS[form.kind]).T)
    _count_global(block, addresses, form.size, threads)
    found = [np.empty(len(addresses), alu.BITS[form.kind]) for _ in range(form.count)]
    # Of three elements side by side LLVM reads four where these are aligned together: no page ends between them. Nobody knows the fourth.
    for number, lanes in block.memory.locate(addresses, form.width, where, threads):
        typed, start = block.memory.view(number, form.width)
        offsets = (addresses if lanes is None else addresses[lanes]) - np.uint64(start)
        if block.memory.watch is not None:
            who = threads if lanes is None else threads[lanes]
            block.memory.watch.note(number, offsets.astype(np.int64), form.size, line, where, who, block.blocks[who])
        at = offsets // np.uint64(form.width)
        for element in range(form.count):
            there = at + np.uint64(element)
            inside = there < len(typed)
            value = typed[there] if inside.all() else block.memory.beyond(number, form.width, there)
            found[element][slice(None) if lanes is None else lanes] = value
    return found


def write_memory(block: Block, form: Form, addresses: Array, threads: Array, values: list[Array], line: int) -> None:
    """Store the values of an access."""
    space, addresses = _space_of(form, addresses)
    where = block.where()
    check_alignment(addresses, form.size, where, threads)
    if space == "shared":
        offsets = block.shared_places(addresses, form.size, threads)
        together = np.stack(values, axis=-1)
        block.shared.note_write(offsets, form.size, where, threads, line, together)
        _count_shared(block, offsets, form.size, threads)
        block.shared.write(offsets, form.width, values)
    elif space == "local":
        rows = _local_rows(block, addresses, form.size, threads)
        block.local[threads[:, None], rows] = np.ascontiguousarray(np.stack(values, axis=-1)).view(np.uint8).reshape(len(threads), -1)
    else:
        _count_global(block, addresses, form.size, threads)
        for number, lanes in block.memory.locate(addresses, form.size, where, threads):
            typed, start = block.memory.view(number, form.width)
            offsets = (addresses if lanes is None else addresses[lanes]) - np.uint64(start)
            at = offsets // np.uint64(form.width)
            if block.memory.watch is not None:
                who, chosen = (threads, values) if lanes is None else (threads[lanes], [value[lanes] for value in values])
                changed = np.any([typed[at + np.uint64(element)] != value for element, value in enumerate(chosen)], axis=0)
                block.memory.watch.note(number, offsets.astype(np.int64), form.size, line, where, who, block.blocks[who], changed)
            for element, value in enumerate(values):
                typed[at + np.uint64(element)] = value if lanes is None else value[lanes]


def _local_rows(block: Block, addresses: Array, size: int, threads: Array) -> Array:
    offsets = addresses.astype(np.int64)
    if int(offsets.max()) + size > block.local.shape[1]:
        raise OutOfBounds(f"{block.where()}: byte {int(offsets.max())} of local memory, and a thread has {block.local.shape[1]}")
    return np.asarray(offsets[:, None] + np.arange(size))


def _count_global(block: Block, addresses: Array, size: int, threads: Array) -> None:
    owners = threads // 32
    block.counters.global_requests += len(np.unique(owners))
    block.counters.global_transactions += count_sectors(addresses, size, owners)


def _count_shared(block: Block, offsets: Array, size: int, threads: Array) -> None:
    requests, conflicts = count_conflicts(offsets, size, threads)
    block.counters.shared_requests += requests
    block.counters.bank_conflicts += conflicts


# Asynchronous copies


@dataclass
class Copies:
    """The copies of a block that are under way: the group of each, its threads, places and bytes."""

    threads: int
    committed: Array = field(init=False)
    under_way: list[tuple[Array, Array, Array, Array, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.committed = np.zeros(self.threads, np.int64)

    def land(self, block: Block, threads: Array, pending: int | Array) -> None:
        """Let all but the last `pending` groups of threads arrive."""
        waits = np.full(self.threads, -1, np.int64)
        waits[threads] = self.committed[threads] - pending
        rest = []
        for groups, who, offsets, rows, line in self.under_way:
            done = groups < waits[who]
            if done.any():
                block.shared.land(offsets[done], rows[done], block.where(), who[done], line)
            if not done.all():
                keep = ~done
                rest.append((groups[keep], who[keep], offsets[keep], rows[keep], line))
        self.under_way = rest


def _copy(kernel: Kernel, one: Instruction) -> Step | None:
    """cp.async and what goes with it."""
    if one.words[1] != "async":
        return None
    if "bulk" in one.words or "mbarrier" in one.words:
        from .barriers import arrive_behind_copies  # both are made of what is here
        from .bulk_copies import bulk

        return bulk(kernel, one) if "bulk" in one.words else arrive_behind_copies(kernel, one)
    if one.words[2] == "commit_group":

        def commit(block: Block, lanes: Array | None) -> None:
            block.copies.committed[block.threads if lanes is None else lanes] += 1

        return commit
    if one.words[2] in ("wait_group", "wait_all"):
        pending = int(one.operands[0]) if one.words[2] == "wait_group" else -1

        def wait(block: Block, lanes: Array | None) -> None:
            threads = block.threads if lanes is None else lanes
            block.copies.land(block, threads, pending)

        return wait
    size = int(one.operands[2])
    into, source = address_of(kernel, one.operands[0]), address_of(kernel, one.operands[1])
    taken = operand(kernel, one.operands[3], "u32") if len(one.operands) > 3 else None

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        where = block.where()
        offsets, addresses = block.shared_places(into(block, lanes), size, threads), source(block, lanes)
        rows = np.zeros((len(threads), size), np.uint8)
        chosen = np.nonzero(taken(block, lanes))[0] if taken is not None else np.arange(len(threads))
        if len(chosen):
            form = Form("global", "b32", 4, size // 4)
            values = read_memory(block, form, addresses[chosen], threads[chosen], one.line)
            rows[chosen] = np.ascontiguousarray(np.stack(values, axis=-1)).view(np.uint8)
        check_alignment(offsets, size, where, threads)
        block.shared.begin_copy(offsets, size, where, threads, one.line)
        _count_shared(block, offsets, size, threads)
        block.copies.under_way.append((block.copies.committed[threads], threads, offsets, rows, one.line))

    return run


# Warps


def _by_warp(values: Array) -> Array:
    return values.reshape(-1, 32)


def _barrier_of_warp(kernel: Kernel, one: Instruction) -> Step | None:
    if one.words[:2] != ("bar", "warp"):
        return None

    def run(block: Block, lanes: Array | None) -> None:
        block.shared.turns[np.unique((block.threads if lanes is None else lanes) // 32)] += 1

    return run


def _padded(block: Block, lanes: Array | None, value: Array) -> tuple[Array, Array]:
    """Values as rows of 32 lanes; of warps that are not full, or have lost threads, the others hold zero. And where each thread is."""
    threads = block.threads if lanes is None else lanes
    whole = len(threads) % 32 == 0 and (lanes is None or bool((threads[::32] % 32 == 0).all() and (threads[31::32] % 32 == 31).all()))
    if whole:
        return value.reshape(-1, 32), np.arange(len(threads))
    numbers, row = np.unique(threads // 32, return_inverse=True)
    rows = np.zeros((len(numbers), 32), value.dtype)
    at = row * 32 + threads % 32
    rows.reshape(-1)[at] = value
    return rows, at


def _shuffle(kernel: Kernel, one: Instruction) -> Step:
    into = one.operands[0].split("|")
    value, shift, clamp = (operand(kernel, text, "b32") for text in one.operands[1:4])
    kind = one.words[2]

    def run(block: Block, lanes: Array | None) -> None:
        rows, at = _padded(block, lanes, value(block, lanes))
        shifts, clamps = (_padded(block, lanes, get(block, lanes))[0].astype(np.int64) for get in (shift, clamp))
        moved, valid = warps.shuffled(kind, rows, shifts, clamps)
        block.write(into[0], lanes, moved.reshape(-1)[at])
        if len(into) > 1:
            block.write(into[1], lanes, valid.reshape(-1)[at])

    return run


def _load_matrix(kernel: Kernel, one: Instruction) -> Step:
    into, trans = names_of(one.operands[0]), "trans" in one.words
    address = address_of(kernel, one.operands[1])

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        offsets = _by_warp(block.shared_places(_space_of(_form(one, 1), address(block, lanes))[1], _MATRIX_ROW, threads))
        where, owners = block.where(), _by_warp(threads)
        for number, name in enumerate(into):
            rows_at, who = offsets[:, 8 * number : 8 * number + 8].ravel(), owners[:, 8 * number : 8 * number + 8].ravel()
            check_alignment(rows_at, 16, where, who)
            block.shared.note_read(rows_at, 16, where, who, one.line)
            _count_shared(block, rows_at, 16, who)
            halves = np.stack(block.shared.read(rows_at, 2, 8), axis=-1).reshape(-1, 8, 8)
            block.write(name, lanes, warps.matrix_rows(trans, halves).reshape(-1))

    return run


def _multiply_matrices(kernel: Kernel, one: Instruction) -> Step:
    words = one.words
    shape = next(word for word in words if re.match(r"^m\d+n\d+k\d+$", word))
    m, n, k = map(int, re.findall(r"\d+", shape))
    d_kind, a_kind, b_kind, c_kind = words[-4:]
    into, *sources = ([name for name in names_of(text)] for text in one.operands)
    stored = {"f32": "f32", "f16": "b32", "s32": "b32", "f64": "b64", "s8": "b32", "u8": "b32", "bf16": "b32", "tf32": "b32"}

    def run(block: Block, lanes: Array | None) -> None:
        a, b, c = (
            [_by_warp(np.ascontiguousarray(operand(kernel, name, stored[kind])(block, lanes))) for name in names]
            for names, kind in zip(sources, (a_kind, b_kind, c_kind), strict=True)
        )
        results = warps.multiplied((m, n, k), (a_kind, b_kind, d_kind), a, b, c)
        for name, value in zip(into, results, strict=True):
            block.write(name, lanes, value.reshape(-1))

    return run


def _active(kernel: Kernel, one: Instruction) -> Step:
    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        masks = np.zeros(-(-block.size // 32), np.uint32)
        np.bitwise_or.at(masks, threads // 32, np.uint32(1) << (threads % 32).astype(np.uint32))
        block.write(one.operands[0], lanes, masks[threads // 32])

    return run


def _atomic(kernel: Kernel, one: Instruction) -> Step | None:
    """atom and red: the threads one after the other."""
    operation = next((word for word in one.words if word in ("add", "min", "max", "and", "or", "xor", "exch")), None)
    if operation is None:
        return None
    returns = one.words[0] == "atom"
    into = one.operands[0] if returns else "_"
    place, value = one.operands[1:3] if returns else one.operands[0:2]
    form = _form(one, 1)
    address, get = address_of(kernel, place), operand(kernel, value, form.kind)

    def run(block: Block, lanes: Array | None) -> None:
        threads = block.threads if lanes is None else lanes
        places, values = address(block, lanes), get(block, lanes)
        if block.memory.watch is not None and form.space != "shared":
            block.memory.watch.synchronise()
        old = np.empty(len(threads), alu.BITS[form.kind])
        for lane in range(len(threads)):
            one_lane, who = places[lane : lane + 1], threads[lane : lane + 1]
            space, within = _space_of(form, one_lane)
            if space == "shared":
                had = block.shared.read(within.astype(np.int64), form.width, 1)[0]
            else:
                had = read_memory(block, form, one_lane, who, one.line)[0]
            old[lane : lane + 1] = had
            added = values[lane : lane + 1]
            pair = alu.seen(had, form.kind), alu.seen(added, form.kind)
            new = added if operation == "exch" else alu.binary(operation, one.words, form.kind, *pair)
            if space == "shared":
                block.shared.write(within.astype(np.int64), form.width, [alu.bits(new, form.kind)])
            else:
                write_memory(block, form, one_lane, who, [alu.bits(new, form.kind)], one.line)
        block.write(into, lanes, old)

    return run


def _nothing(kernel: Kernel, one: Instruction) -> Step:
    """Fences and hints: threads of this interpreter see each write at once."""
    return lambda block, lanes: None


MAKERS: dict[str, Callable[[Kernel, Instruction], Step | None]] = {
    "ld": _load,
    "st": _store,
    "cp": _copy,
    "bar": _barrier_of_warp,
    "shfl": _shuffle,
    "ldmatrix": _load_matrix,
    "mma": _multiply_matrices,
    "activemask": _active,
    "atom": _atomic,
    "red": _atomic,
    **dict.fromkeys(("membar", "prefetch", "prefetchu"), _nothing),
}
