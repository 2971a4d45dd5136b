"""Target: a machine to build code for.

A target is written as `"llvm"`, `"llvm -mcpu=znver5 -num-cores=2"`, a tag such as `"nvidia/geforce-rtx-3090"`, a dict, its JSON
text, or a `Target`. Without `-mcpu`, "llvm" means the machine this process runs on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import processor
from ..dataclass import dataclass, field
from ..errors import TargetError
from .cores import SVE_BITS
from .kinds import BUILT_KINDS, CACHE_OPTIONS, DEVICE_KINDS, KINDS, MADE_KINDS, NOT_SERVED, NOT_USED, SOURCE_KINDS
from .reading import check_kind, check_options, read

if TYPE_CHECKING:
    from .machine import Machine

# A tuple, not a list: a thread or task that inherits it can't change what others see.
_active: ContextVar[tuple[Target, ...]] = ContextVar("tensorexpr_targets", default=())

# Common names of features that LLVM calls otherwise.
_SPELLED = {"asimd": "neon", "fp16_simd": "fullfp16", "matmul_i8": "i8mm"}

TargetLike: TypeAlias = "Target | str | Mapping[str, Any]"


class TargetKind(str):
    """The kind of a target; equal to, and printed as, its name."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The kind's name, such as "llvm"."""
        return str(self)

    @property
    def options(self) -> dict[str, str]:
        """What each option of the kind holds, by name."""
        return KINDS[self].all_options()

    @staticmethod
    def options_from_name(kind_name: str) -> dict[str, str]:
        """What each option of a kind holds, by name.

        Raises:
            TargetError: for a kind that doesn't exist.
        """
        return KINDS[check_kind(kind_name)].all_options()


class TargetFeatures(frozenset[str]):
    """The names of a CPU's features, as LLVM spells them; `has_avx2` and the like ask for one, `is_aarch64` for the architecture."""

    __slots__ = ()

    def __getattr__(self, name: str) -> bool:
        if name.startswith("has_"):
            wanted = name.removeprefix("has_")
            # LLVM writes dots and dashes, as in sse4.2, where attributes of Python can't.
            return _SPELLED.get(wanted, wanted) in self or wanted.replace("_", ".") in self or wanted.replace("_", "-") in self
        if name.startswith("is_"):
            return {"is_aarch64": "neon", "is_x86_64": "fxsr"}.get(name) in self
        raise AttributeError(f"features of a target have no attribute {name!r}; ask with has_<feature>")


@dataclass(frozen=True, init=False, repr=False)
class Target:
    """A machine to build code for. Equal targets have equal canonical strings; `host` takes no part in equality.

    Args:
        target: a string such as `"llvm -mcpu=znver5 -num-cores=2"` (`--num-cores=2` and `-num-cores 2` are
            read too), a tag, a dict `{"kind": "llvm", "mcpu": ...}`, its JSON text, or a Target.
        host: where the host part of the code runs; for CPUs the target itself.

    Raises:
        TargetError: for a kind or option that doesn't exist; the message lists the known ones.
    """

    kind: TargetKind
    options: tuple[tuple[str, Any], ...]
    host: Target | None = field(compare=False)

    def __init__(self, target: TargetLike, host: TargetLike | None = None) -> None:
        config = {**target.export(), "host": target.host} if isinstance(target, Target) else read(target)
        named_host = config.pop("host", None)
        host = host if host is not None else named_host
        kind = check_kind(config.pop("kind", None))
        object.__setattr__(self, "kind", TargetKind(kind))
        object.__setattr__(self, "options", check_options(kind, config))
        object.__setattr__(self, "host", host if isinstance(host, Target) or host is None else Target(host))

    @property
    def attrs(self) -> dict[str, Any]:
        """The options that were given or that the kind has by default, by name; not the labels, which are `keys`."""
        return dict(self.options[1:])  # labels stand first

    @property
    def keys(self) -> tuple[str, ...]:
        """Labels by which schedules and strategies are chosen, most specific first."""
        return tuple(self.options[0][1])

    @property
    def mcpu(self) -> str:
        """LLVM's name of the CPU; this machine's unless another one is named. Nothing for kinds that aren't CPUs."""
        if self.kind != "llvm":
            return str(self.attrs.get("mcpu", ""))
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
        """The architecture: "x86_64", "aarch64" or "riscv64"; of other kinds their `-arch`, such as "sm_80"."""
        if self.kind != "llvm":
            return str(self.attrs.get("arch", ""))
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
    def runs_here(self) -> bool:
        """Whether this machine can run code for the target: it has the architecture, all features and registers of SVE's length."""
        here = Target("llvm")
        if self == here or not self.is_built or self.arch != here.arch:
            return self == here
        return self.features <= here.features and self.sve_bits in (0, processor.host_sve_bits())

    @property
    def feature_string(self) -> str:
        """What LLVM is told about features: all of this machine's when it is the CPU, then the changes of `mattr`."""
        return ",".join(((processor.host_feature_string(),) if self.is_host_cpu else ()) + self.mattr)

    @property
    def features(self) -> TargetFeatures:
        """The names of the CPU's features, as LLVM spells them; none for kinds that aren't CPUs.

        Raises:
            TargetError: for an mcpu or mattr that LLVM doesn't know.
        """
        if self.kind != "llvm":
            return TargetFeatures()
        if self.is_host_cpu and not self.mattr:
            return TargetFeatures(processor.host_features())
        given = processor.host_feature_string() if self.is_host_cpu else ""
        return TargetFeatures(processor.features_of(self.triple, self.mcpu, given, self.mattr))

    @property
    def vector_bits(self) -> int:
        """Bits of the widest vector register: `-vector-width`, or what the features give; 128 of what is no CPU, its widest access.

        Vectors of SVE are used where `-vector-width` is above the 128 of NEON, and such code runs only where registers have as many bits.

        Raises:
            TargetError: if `-vector-width` asks for more than the CPU has.
        """
        features = self.features
        usual = 512 if features & {"avx512f", "zvl512b"} else 256 if features & {"avx", "zvl256b"} else 128
        widest = SVE_BITS.get(self.mcpu, 512) if "sve" in features else usual
        given = int(self.attrs.get("vector-width") or usual)
        if given > widest and self.kind == "llvm":
            raise TargetError(
                f"target {self}: -vector-width={given}, but the widest registers of {self.mcpu} have {widest} bits; "
                f"leave the option out, or name a CPU that has such registers with -mcpu"
            )
        return given

    @property
    def sve_bits(self) -> int:
        """Bits of SVE's registers, if vectors are computed in these; else 0."""
        return self.vector_bits if self.vector_bits > 128 and "sve" in self.features else 0

    @property
    def vector_registers(self) -> int:
        """How many vector registers there are: 32 with AVX-512VL, NEON or RISC-V's V, and of what is no CPU, else 16."""
        return 32 if self.kind != "llvm" or self.features & {"avx512vl", "neon", "v"} else 16

    @property
    def machine(self) -> Machine:
        """What schedules and cost models may know of the processor: pipes, registers, caches, address translation."""
        from .machine import machine_of

        return machine_of(self, self.num_cores)

    @property
    def l1_cache_size_bytes(self) -> int:
        """Bytes of one core's L1 data cache."""
        return self.machine.caches[0].size

    @property
    def l2_cache_size_bytes(self) -> int:
        """Bytes of the L2 cache that one core sees; of kinds that aren't CPUs their option, or 0."""
        return self.machine.caches[1].size if self.get_target_device_type() == 1 else int(self.attrs.get("l2_cache_size_bytes", 0))

    @property
    def l3_cache_size_bytes(self) -> int:
        """Bytes of the L3 cache that one core sees."""
        return self.machine.caches[2].size

    @property
    def cache_line_bytes(self) -> int:
        """Bytes of a cache line."""
        return self.machine.line_bytes

    @property
    def max_num_threads(self) -> int:
        """The most threads of a block, all its dimensions together."""
        return self._limit("max_num_threads")

    @property
    def thread_warp_size(self) -> int:
        """The threads that run in step."""
        return self._limit("thread_warp_size")

    @property
    def max_shared_memory_per_block(self) -> int:
        """Bytes of memory that the threads of a block can share."""
        return self._limit("max_shared_memory_per_block")

    @property
    def max_block_size_x(self) -> int:
        """The most threads of a block in its first dimension."""
        return self._limit("max_block_size_x")

    @property
    def max_block_size_y(self) -> int:
        """The most threads of a block in its second dimension."""
        return self._limit("max_block_size_y")

    @property
    def max_function_args(self) -> int:
        """The most arguments of a kernel; 0 where there is no limit."""
        return int(self.attrs.get("max_function_args", 0))

    @property
    def vtcm_capacity(self) -> int:
        """Bytes of Hexagon's tightly coupled memory; 0 elsewhere."""
        return int(self.attrs.get("vtcm-capacity", 0))

    @property
    def supports_integer_dot_product(self) -> bool:
        """Whether `-supports_integer_dot_product` was given."""
        return bool(self.attrs.get("supports_integer_dot_product", False))

    @property
    def supports_cooperative_matrix(self) -> bool:
        """Whether `-supports_cooperative_matrix` was given."""
        return bool(self.attrs.get("supports_cooperative_matrix", False))

    @property
    def tag(self) -> str:
        """The name that `-tag` gives, or nothing."""
        return str(self.attrs.get("tag", ""))

    def _limit(self, name: str) -> int:
        if name not in self.attrs:
            raise TargetError(f"target {self} has no {name}: it is an option of GPUs that this one wasn't given")
        return int(self.attrs[name])

    def get_target_device_type(self) -> int:
        """DLPack's number of the device that the code runs on: 1 for CPUs, 2 for CUDA, ..."""
        return KINDS[self.kind].device_type

    def get_kind_attr(self, attr_name: str) -> Any:
        """A property of the kind: "default_keys" or "device_type".

        Raises:
            TargetError: for another one.
        """
        found = {"default_keys": KINDS[self.kind].keys, "device_type": KINDS[self.kind].device_type}
        if attr_name not in found:
            raise TargetError(f"kind {self.kind} has no attribute {attr_name!r}; known: {', '.join(found)}")
        return found[attr_name]

    def with_host(self, host: TargetLike) -> Target:
        """The same target with another host."""
        return Target(self, host)

    @property
    def is_built(self) -> bool:
        """Whether code is generated for targets of this kind."""
        return self.kind in BUILT_KINDS

    def check_built(self) -> None:
        """Refuse a target that code isn't generated for.

        Raises:
            TargetError: for kinds and options that code generation doesn't serve.
        """
        if self.kind in SOURCE_KINDS:
            raise TargetError(
                f"target {self}: `build` writes C text for it, and nothing else makes code of it; build for target c and save or call the "
                "module, or give target llvm here"
            )
        if self.kind in DEVICE_KINDS:
            raise TargetError(
                f"target {self.kind.name}: `build` makes kernels for it, and nothing else makes code of it; give target llvm here"
            )
        if not self.is_built:
            raise TargetError(
                f"target kind {self.kind.name!r} is not built yet; built: {', '.join(MADE_KINDS)}. The target can be named and asked, "
                "and schedules for it can be made, lowered and printed"
            )
        for name in NOT_SERVED:
            if self.attrs.get(name):
                raise TargetError(f"target {self}: -{name} is not served by code generation; leave it out")
        unused = [name for name in NOT_USED if self.attrs.get(name)]
        if unused:
            import logging  # declaring, for which targets are asked too, loads nothing of logs

            from ..log import once

            once(logging.getLogger(__name__), f"target {self}: code generation makes no use of -{', -'.join(unused)}")

    def resolved(self) -> Target:
        """This target with CPU, core count and caches written out, so that it means the same on every machine."""
        if self.kind != "llvm":
            return self
        named = {"mcpu": self.mcpu, "mtriple": self.triple, "num-cores": self.num_cores}
        return Target({**self.export(), **named, **dict(zip(CACHE_OPTIONS, map(str, self.machine.caches), strict=True))})

    def export(self) -> dict[str, Any]:
        """The target as a dict that JSON can hold and `Target` reads."""
        config = {name: list(value) if isinstance(value, tuple) else value for name, value in self.options}
        host = {} if self.host is None else {"host": self.host.export()}
        return {"kind": self.kind.name, **config, **host}

    def __str__(self) -> str:
        words = [f"-{name}={_written(value)}" for name, value in self.options if value != ()]
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
    def canon_target_and_host(target: TargetLike | None, target_host: TargetLike | None = None) -> tuple[Target | None, Target | None]:
        """A target that has the host, and the host; the target's own where none is given."""
        chosen = Target.canon_target(target)
        if chosen is None:
            return None, Target.canon_target(target_host)
        chosen = chosen if target_host is None else chosen.with_host(target_host)
        return chosen, chosen.host

    @staticmethod
    def canon_target_map_and_host(
        target_map: Mapping[TargetLike, Any], target_host: TargetLike | None = None
    ) -> tuple[dict[Target, Any], Target | None]:
        """A mapping from targets that have the host, and the host."""
        pairs = [(Target.canon_target_and_host(target, target_host), value) for target, value in target_map.items()]
        host = next((host for (_, host), _ in pairs if host is not None), Target.canon_target(target_host))
        return {target: value for (target, _), value in pairs if target is not None}, host

    @staticmethod
    def canon_multi_target(multi_targets: TargetLike | Sequence[TargetLike] | Mapping[Any, TargetLike] | None) -> list[Target] | None:
        """One target, several, or those of a mapping from devices, as a list; None stays None."""
        if multi_targets is None:
            return None
        if isinstance(multi_targets, Mapping) and "kind" not in multi_targets:  # with a kind it is one target, as a dict
            return [Target(target) for target in multi_targets.values()]
        if isinstance(multi_targets, (Target, str, Mapping)):
            return [Target(multi_targets)]
        return [Target(target) for target in multi_targets]

    @staticmethod
    def canon_multi_target_and_host(
        target: TargetLike | Sequence[TargetLike] | Mapping[Any, TargetLike] | None, target_host: TargetLike | None = None
    ) -> list[Target]:
        """Targets that all have the host.

        Raises:
            TargetError: without a target.
        """
        found = Target.canon_multi_target(target)
        if not found:
            raise TargetError("no target: give one, or a list of them")
        return found if target_host is None else [one.with_host(target_host) for one in found]

    @staticmethod
    def target_or_current(target: TargetLike | None) -> Target:
        """`target`, else the current one, else this machine."""
        return Target.canon_target(target) or Target.current() or Target("llvm")

    @staticmethod
    def from_device(device: Any) -> Target:
        """The target of a device of this machine, such as `cpu()` or `"cpu"`.

        Raises:
            TargetError: for devices that this machine hasn't, or that can't be asked.
        """
        from .detect_target import detect_target_from_device

        return detect_target_from_device(device)

    @staticmethod
    def list_kinds() -> list[str]:
        """The kinds of targets. Code is built for "llvm"."""
        return list(KINDS)


def _written(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(int(value)) if isinstance(value, bool) else str(value)
