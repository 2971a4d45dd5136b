"""What code is built for: a CPU with its vector features, cores and caches.

A target is written as `"llvm"`, `"llvm -mcpu=znver5 -num-cores=2"`, a dict, its JSON text, or a `Target`.
Without `-mcpu` it means the machine this process runs on.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import TracebackType
from typing import Any, TypeAlias

from . import processor
from .errors import TargetError

_BUILT_KINDS = ("llvm",)
_NVIDIA = {"max_num_threads": 1024, "thread_warp_size": 32}
# What code can be scheduled and transformed for, though not generated: labels, and what is assumed of the device.
_KNOWN_KINDS: dict[str, tuple[tuple[str, ...], dict[str, int]]] = {
    "c": (("cpu",), {}),
    "cuda": (("cuda", "gpu"), _NVIDIA),
    "hexagon": (("hexagon", "cpu"), {}),
    "metal": (("metal", "gpu"), {"max_num_threads": 256, "thread_warp_size": 16}),
    "nvptx": (("cuda", "gpu"), _NVIDIA),
    "opencl": (("opencl", "gpu"), {"max_num_threads": 256, "thread_warp_size": 1}),
    "rocm": (("rocm", "gpu"), {"max_num_threads": 256, "thread_warp_size": 64}),
    "vulkan": (("vulkan", "gpu"), {"max_num_threads": 256, "thread_warp_size": 1}),
    "webgpu": (("webgpu", "gpu"), {"max_num_threads": 256}),
}
_NUMBER = re.compile(r"^[1-9][0-9]*$")
_active: ContextVar[tuple[Target, ...]] = ContextVar("tensorexpr_targets", default=())

TargetLike: TypeAlias = "Target | str | Mapping[str, Any]"


class TargetKind(str):
    """The kind of a target; equal to, and printed as, its name."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The kind's name, such as "llvm"."""
        return str(self)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value or any(c.isspace() for c in value):
        raise TargetError(f"target option -{name} takes a word, not {value!r}")
    return value


def _words(name: str, value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, Sequence) or not items:
        raise TargetError(f"target option -{name} takes words joined by commas or a list of them, not {value!r}")
    return tuple(_text(name, item) for item in items)


def _features(name: str, value: Any) -> tuple[str, ...]:
    words = _words(name, value)
    for word in words:
        if word[0] not in "+-" or len(word) < 2:
            raise TargetError(f"target option -{name}: {word!r} needs a sign, as in '+avx2,-avx512f'")
    return words


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not _NUMBER.match(str(value)):
        raise TargetError(f"target option -{name} takes a positive integer, not {value!r}")
    return int(value)


# In the order of the canonical string. Those that only label a target (keys, device, model, libs) choose schedules and strategies.
_OPTIONS: dict[str, Callable[[str, Any], Any]] = {
    "keys": _words,
    "device": _text,
    "libs": _words,
    "mattr": _features,
    "mcpu": _text,
    "model": _text,
    "mtriple": _text,
    "num-cores": _positive,
    "vector-width": _positive,
}


@dataclass(frozen=True, init=False, repr=False)
class Target:
    """A machine to build code for. Equal targets have equal canonical strings; `host` takes no part in equality.

    Args:
        target: a string such as `"llvm -mcpu=znver5 -num-cores=2"` (`--num-cores=2` and `-num-cores 2` are
            read too), a dict `{"kind": "llvm", "mcpu": ...}`, its JSON text, or a Target.
        host: where the host part of the code runs; for CPUs the target itself.

    Raises:
        TargetError: for a kind or option that doesn't exist; the message lists the known ones. Kinds of devices that code
            isn't generated for yet describe what to schedule for; building for them is refused.
    """

    kind: TargetKind
    options: tuple[tuple[str, Any], ...]
    host: Target | None = field(compare=False)

    def __init__(self, target: TargetLike, host: TargetLike | None = None) -> None:
        config = _parse(target)
        named_host = config.pop("host", None)
        host = host if host is not None else named_host
        object.__setattr__(self, "kind", _parse_kind(config.pop("kind", None)))
        object.__setattr__(self, "options", _parse_options(config, self.kind))
        object.__setattr__(self, "host", host if isinstance(host, Target) or host is None else Target(host))

    @property
    def attrs(self) -> dict[str, Any]:
        """The options that were given, by name."""
        return dict(self.options)

    @property
    def keys(self) -> tuple[str, ...]:
        """Labels by which schedules and strategies are chosen, most specific first."""
        return tuple(self.attrs["keys"])

    @property
    def is_built(self) -> bool:
        """Whether code is generated for targets of this kind."""
        return self.kind.name in _BUILT_KINDS

    def check_built(self) -> None:
        """Refuse a target that code isn't generated for.

        Raises:
            TargetError: naming the kinds that are built.
        """
        if not self.is_built:
            raise TargetError(f"target kind {self.kind.name!r} is not built yet; built: {', '.join(_BUILT_KINDS)}")

    @property
    def max_num_threads(self) -> int:
        """Threads of a block on the device."""
        return int(self.attrs.get("max_num_threads", 1))

    @property
    def thread_warp_size(self) -> int:
        """Threads that run in step."""
        return int(self.attrs.get("thread_warp_size", 1))

    @property
    def max_shared_memory_per_block(self) -> int:
        """Bytes of shared memory of a block on the device; 0 where it isn't said."""
        return int(self.attrs.get("max_shared_memory_per_block", 0))

    @property
    def mcpu(self) -> str:
        """LLVM's name of the CPU; this machine's unless another one is named."""
        return str(self.attrs.get("mcpu") or (processor.host_cpu() if self.is_host_platform else processor.base_cpu(self.triple)))

    @property
    def mattr(self) -> tuple[str, ...]:
        """The features that were switched on or off by hand, as `+name` and `-name`."""
        return tuple(self.attrs.get("mattr", ()))

    @property
    def triple(self) -> str:
        """LLVM's name of the platform; this machine's unless `-mtriple` names another one."""
        return str(self.attrs.get("mtriple") or processor.host_triple())

    @property
    def arch(self) -> str:
        """The architecture: "x86_64" or "aarch64"."""
        return processor.architecture(self.triple)

    @property
    def model(self) -> str:
        """The label of the hardware model."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def device_name(self) -> str:
        """The label given with `-device`, or nothing."""
        return str(self.attrs.get("device", ""))

    @property
    def libs(self) -> tuple[str, ...]:
        """Names of libraries that operators may call, given with `-libs`."""
        return tuple(self.attrs.get("libs", ()))

    @property
    def num_cores(self) -> int:
        """Threads that parallel loops use: `-num-cores`, or the cores this process may run on (at most OMP_NUM_THREADS)."""
        return int(self.attrs.get("num-cores") or processor.usable_cores())

    @property
    def is_host_platform(self) -> bool:
        """Whether the triple is this machine's."""
        return "mtriple" not in self.attrs or self.triple == processor.host_triple()

    @property
    def is_host_cpu(self) -> bool:
        """Whether the CPU is this machine's, named or by default."""
        return self.is_host_platform and self.attrs.get("mcpu") in (None, processor.host_cpu())

    @property
    def feature_string(self) -> str:
        """What LLVM is told about features: all of this machine's when it is the CPU, then the changes of `mattr`."""
        return ",".join(((processor.host_feature_string(),) if self.is_host_cpu else ()) + self.mattr)

    @property
    def features(self) -> frozenset[str]:
        """The names of the CPU's features, as LLVM spells them.

        Raises:
            TargetError: for an mcpu or mattr that LLVM doesn't know.
        """
        if self.is_host_cpu and not self.mattr:
            return processor.host_features()
        return processor.features_of(self.triple, self.mcpu, processor.host_feature_string() if self.is_host_cpu else "", self.mattr)

    @property
    def vector_bits(self) -> int:
        """Bits of the widest vector register: `-vector-width`, or what the features give."""
        given = self.attrs.get("vector-width")
        if given:
            return int(given)
        features = self.features
        return 512 if "avx512f" in features else 256 if "avx" in features else 128

    @property
    def vector_registers(self) -> int:
        """How many vector registers there are: 32 with AVX-512VL or NEON, else 16."""
        return 32 if self.features & {"avx512vl", "neon"} else 16

    @property
    def l1_cache_size_bytes(self) -> int:
        """Bytes of one core's L1 data cache."""
        return processor.cache_sizes()[0]

    @property
    def l2_cache_size_bytes(self) -> int:
        """Bytes of the L2 cache that one core sees."""
        return processor.cache_sizes()[1]

    @property
    def l3_cache_size_bytes(self) -> int:
        """Bytes of the L3 cache that one core sees."""
        return processor.cache_sizes()[2]

    @property
    def cache_line_bytes(self) -> int:
        """Bytes of a cache line."""
        return processor.cache_line_bytes()

    def resolved(self) -> Target:
        """This target with CPU and core count written out, so that it means the same on every machine."""
        return Target({**self.export(), "mcpu": self.mcpu, "mtriple": self.triple, "num-cores": self.num_cores})

    def export(self) -> dict[str, Any]:
        """The target as a dict that JSON can hold and `Target` reads."""
        config = {name: list(value) if isinstance(value, tuple) else value for name, value in self.options}
        host = {} if self.host is None else {"host": self.host.export()}
        return {"kind": self.kind.name, **config, **host}

    def __str__(self) -> str:
        words = [f"-{name}={','.join(value) if isinstance(value, tuple) else value}" for name, value in self.options]
        return " ".join([self.kind.name, *words])

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def __enter__(self) -> Target:
        _active.set((*_active.get(), self))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _active.set(_active.get()[:-1])

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost `with target:` around the caller.

        Raises:
            TargetError: if there is none and `allow_none` is False.
        """
        stack = _active.get()
        if not stack and not allow_none:
            raise TargetError("no current target: pass one, or call inside `with Target(...):`")
        return stack[-1] if stack else None

    @staticmethod
    def canon_target(target: TargetLike | None) -> Target | None:
        """`target` as a Target; None stays None."""
        return target if target is None or isinstance(target, Target) else Target(target)

    @staticmethod
    def target_or_current(target: TargetLike | None) -> Target:
        """`target`, else the current one, else this machine."""
        return Target.canon_target(target) or Target.current() or Target("llvm")

    @staticmethod
    def from_device(device: Any) -> Target:
        """The target of a device such as `cpu()` or `"cpu"`.

        Raises:
            TargetError: for devices that code isn't built for yet.
        """
        if str(device).split("(")[0] in ("cpu", "llvm"):
            return Target("llvm")
        raise TargetError(f"no target for device {device!s}: only cpu is built")

    @staticmethod
    def list_kinds() -> list[str]:
        """The kinds of targets that code can be built for."""
        return list(_BUILT_KINDS)


def _parse(target: Any) -> dict[str, Any]:
    """Kind, options and host of any form of target, unchecked."""
    match target:
        case Target():
            return {"kind": target.kind.name, **target.attrs, "host": target.host}
        case Mapping():
            return dict(target)
        case str() if target.lstrip().startswith("{"):
            try:
                config = json.loads(target)
            except ValueError as error:
                raise TargetError(f"target {target!r} is no JSON: {error}") from None
            return dict(config)
        case str():
            return _parse_words(target)
    raise TargetError(f"a target is a string, dict or Target, not {type(target).__name__} {target!r}")


def _parse_words(text: str) -> dict[str, Any]:
    """`"llvm -a=1 --b 2"` as {"kind": "llvm", "a": "1", "b": "2"}."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise TargetError(f"target {text!r}: {error}") from None
    config: dict[str, Any] = {"kind": words.pop(0)} if words and not words[0].startswith("-") else {}
    while words:
        word = words.pop(0)
        name, has_value, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise TargetError(f"target {text!r}: {word!r} is no option; options are written -name=value or -name value")
        if not has_value:
            if not words or name not in _OPTIONS:
                raise TargetError(f"target {text!r}: option -{name} has no value. {_known_options(name)}")
            value = words.pop(0)
        if name in config:
            raise TargetError(f"target {text!r}: option -{name} is given twice")
        config[name] = value
    return config


def _parse_kind(kind: Any) -> TargetKind:
    if kind in _BUILT_KINDS or kind in _KNOWN_KINDS:
        return TargetKind(kind)
    kinds = f"built: {', '.join(_BUILT_KINDS)}; not built yet: {', '.join(_KNOWN_KINDS)}"
    raise TargetError(f"a target starts with its kind ({kinds})" if kind is None else f"no target kind {kind!r}; {kinds}")


def _parse_options(config: dict[str, Any], kind: TargetKind) -> tuple[tuple[str, Any], ...]:
    labels, assumed = _KNOWN_KINDS.get(kind.name, (("cpu",), {}))
    if kind.name not in _BUILT_KINDS:
        config = {**assumed, **config}
    for name in config:
        if name not in _OPTIONS and kind.name in _BUILT_KINDS:
            raise TargetError(f"no target option -{name}. {_known_options(name)}")
    values = {name: parse(name, config[name]) for name, parse in _OPTIONS.items() if name in config}
    values.update({name: _device_value(value) for name, value in config.items() if name not in _OPTIONS})
    if values.get("vector-width") not in (None, 128, 256, 512):
        raise TargetError(f"target option -vector-width takes 128, 256 or 512 bits, not {values['vector-width']}")
    device = (values["device"],) if "device" in values else ()
    keys = tuple(dict.fromkeys((*values.get("keys", ()), *device, *(() if "keys" in values else labels))))
    return tuple({"keys": keys, **{name: value for name, value in values.items() if name != "keys"}}.items())


def _device_value(value: Any) -> Any:
    """An option of a device that code isn't generated for, kept as it was written; numbers as numbers."""
    return int(value) if isinstance(value, str) and _NUMBER.match(value) else value


def _known_options(name: str) -> str:
    close = get_close_matches(name.replace("_", "-"), _OPTIONS, 1)
    hint = f"Did you mean -{close[0]}? " if close else ""
    return f"{hint}Known: {', '.join(f'-{option}' for option in _OPTIONS)}"
