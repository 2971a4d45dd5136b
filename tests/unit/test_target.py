"""Targets: what is read, what is meant, what is printed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tensorexpr import processor
from tensorexpr.errors import TargetError
from tensorexpr.target import (
    Target,
    TargetKind,
    VirtualDevice,
    codegen,
    generic_func,
    get_native_generic_func,
    list_tags,
    make_compilation_config,
    models,
    override_native_generic_func,
    register_tag,
    tag,
)

FORMS: list[Any] = [
    "llvm",
    "llvm -mcpu=znver5 -num-cores 2",
    "llvm --num-cores=1",
    "llvm -mattr=+avx2,-avx512f -keys=cpu,fast -model=epyc",
    "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1 -device=arm_cpu",
    {"kind": "llvm", "mcpu": "skylake", "num-cores": 4, "mattr": ["+avx2"]},
    json.dumps({"kind": "llvm", "keys": ["a", "b"], "libs": ["x"]}),
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_survives_its_string_its_dict_and_its_repr(form: Any) -> None:
    target = Target(form)
    assert Target(str(target)) == target
    assert Target(target.export()) == target
    assert Target(json.dumps(target.export())) == target
    assert repr(target) == f"Target({str(target)!r})"
    assert len({target, Target(str(target))}) == 1


def test_canonical_string() -> None:
    assert str(Target("llvm -num-cores 2 --mcpu=znver5")) == "llvm -keys=cpu -mcpu=znver5 -num-cores=2"
    assert str(Target("llvm -device=arm_cpu")) == "llvm -keys=arm_cpu,cpu -device=arm_cpu"


def test_kind_is_text_and_has_a_name() -> None:
    kind = Target("llvm").kind
    assert (str(kind), kind.name, kind == "llvm") == ("llvm", "llvm", True)
    assert Target.list_kinds()[0] == "llvm" and {"cuda", "opencl", "c", "ext_dev"} <= set(Target.list_kinds())
    assert kind.options["num-cores"] == TargetKind.options_from_name("llvm")["num-cores"] == "positive int"


def test_default_is_this_machine() -> None:
    target = Target("llvm")
    assert (target.mcpu, target.triple) == (processor.host_cpu(), processor.host_triple())
    assert target.features == processor.host_features()
    assert target.num_cores == processor.usable_cores() >= 1
    assert target == Target({"kind": "llvm"})


def test_host_cpu_by_name_has_the_features_of_the_host() -> None:
    assert Target(f"llvm -mcpu={processor.host_cpu()}").features == processor.host_features()


def test_a_virtual_machine_may_show_another_model() -> None:
    linux = "x86_64-unknown-linux-gnu"
    ice = processor.features_of(linux, "icelake-server", "", ())
    assert processor._unmasked("icelake-server", linux, ice) == "icelake-server"
    assert processor._unmasked("icelake-server", linux, ice | {"amx-tile"}) == "sapphirerapids"
    grown = processor.features_of(linux, "graniterapids", "", ())
    assert processor._unmasked("graniterapids", linux, grown) == "graniterapids"


@pytest.mark.parametrize(
    ("text", "has", "lacks", "bits", "registers"),
    [
        ("-mcpu=x86-64", {"sse2"}, {"sse4.1", "avx"}, 128, 16),
        ("-mcpu=haswell", {"avx2", "fma", "f16c"}, {"avx512f"}, 256, 16),
        ("-mcpu=skylake-avx512", {"avx512f", "avx512vl", "avx512bw"}, {"avx512vnni", "avx512bf16"}, 512, 32),
        ("-mcpu=znver5", {"avx512vnni", "avx512bf16", "avxvnni"}, {"amx-tile", "avx512fp16"}, 512, 32),
        ("-mcpu=haswell -mattr=-avx2", {"avx"}, {"avx2"}, 256, 16),
        ("-mcpu=x86-64 -mattr=+avx2", {"avx2", "avx", "sse4.2"}, {"fma"}, 256, 16),
    ],
)
def test_features_of_named_cpus(text: str, has: set[str], lacks: set[str], bits: int, registers: int) -> None:
    target = Target(f"llvm -mtriple=x86_64-unknown-linux-gnu {text}")
    assert has <= target.features
    assert not lacks & target.features
    assert (target.vector_bits, target.vector_registers) == (bits, registers)


def test_features_of_another_architecture() -> None:
    target = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1")
    assert {"neon", "sve", "dotprod"} <= target.features
    assert (target.arch, target.vector_bits, target.vector_registers) == ("aarch64", 128, 32)
    assert Target("llvm -mtriple=aarch64-linux-gnu").mcpu == "generic"


@pytest.mark.parametrize(
    ("text", "bits", "registers", "masks"),
    [("", 128, 16, False), ("-mattr=+v", 128, 32, True), ("-mcpu=spacemit-x60", 256, 32, True), ("-mcpu=sifive-x280", 512, 32, True)],
)
def test_vectors_of_riscv_are_as_long_as_all_cpus_of_the_name_have_them(text: str, bits: int, registers: int, masks: bool) -> None:
    target = Target(f"llvm -mtriple=riscv64-linux-gnu {text}")
    assert (target.arch, target.vector_bits, target.vector_registers) == ("riscv64", bits, registers)
    assert target.machine.mask_registers == masks and not target.runs_here


def test_vectors_of_sve_are_those_of_the_width_that_is_asked_for() -> None:
    text = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1"
    assert (Target(text).sve_bits, Target(f"{text} -vector-width=128").sve_bits) == (0, 0)
    wide = Target(f"{text} -vector-width=256")
    assert (wide.sve_bits, wide.machine.mask_registers, wide.machine.fma_per_cycle) == (256, True, 2.0)
    assert Target("llvm -mtriple=aarch64-linux-gnu -mattr=+sve -vector-width=512").sve_bits == 512
    for refused in (f"{text} -vector-width=512", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -vector-width=256"):
        with pytest.raises(TargetError, match="the widest registers of neoverse"):
            _ = Target(refused).vector_bits


def test_vectors_of_sve_run_in_registers_of_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1 -vector-width=256")
    features = wide.features
    monkeypatch.setattr(processor, "host_triple", lambda: "aarch64-linux-gnu")
    monkeypatch.setattr(processor, "host_cpu", lambda: "neoverse-v1")
    monkeypatch.setattr(processor, "host_features", lambda: features)
    for bits, runs in ((256, True), (128, False)):
        monkeypatch.setattr(processor, "host_sve_bits", lambda bits=bits: bits)
        assert wide.runs_here == runs


def test_vector_width_can_be_narrowed() -> None:
    assert Target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver5 -vector-width=256").vector_bits == 256


def test_omp_num_threads_limits_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert Target("llvm").num_cores == 1
    assert Target("llvm -num-cores=7").num_cores == 7
    monkeypatch.setenv("OMP_NUM_THREADS", "nonsense")
    assert Target("llvm").num_cores >= 1


def test_cache_sizes_are_plausible() -> None:
    target = Target("llvm")
    assert 4 << 10 <= target.l1_cache_size_bytes <= target.l2_cache_size_bytes
    assert target.l3_cache_size_bytes > 0
    assert target.cache_line_bytes in (32, 64, 128, 256)


def test_host_takes_no_part_in_equality() -> None:
    target = Target(target="llvm", host="llvm -num-cores=1")
    assert target == Target("llvm")
    assert target.host is not None and target.host.num_cores == 1
    assert Target(target.export()).host == target.host
    assert Target(target).host == target.host


def test_resolved_leaves_nothing_to_the_machine() -> None:
    resolved = Target("llvm").resolved()
    assert {"mcpu", "mtriple", "num-cores"} <= set(resolved.attrs)
    assert resolved.resolved() == resolved


def test_current_target_nests() -> None:
    assert Target.current() is None
    with Target("llvm -num-cores=1") as outer:
        with Target("llvm -num-cores=2") as inner:
            assert Target.current() is inner
        assert Target.current() is outer
        assert Target.target_or_current(None) is outer
        assert Target.target_or_current("llvm -num-cores=3").num_cores == 3
    assert Target.current() is None
    assert Target.target_or_current(None) == Target("llvm")


def test_a_device_that_code_is_not_generated_for_describes_what_to_schedule_for() -> None:
    target = Target("cuda -arch=sm_80 -libs=cudnn", host="llvm")
    assert (target.keys, target.max_num_threads, target.thread_warp_size) == (("cuda", "gpu"), 1024, 32)
    assert target.attrs["arch"] == "sm_80" and target.host == Target("llvm")
    assert Target(str(target)) == target and Target(target.export()) == target
    assert not target.is_built and Target("llvm").is_built
    with pytest.raises(TargetError, match="target cuda: `build` makes kernels for it, and nothing else makes code of it"):
        target.check_built()


def test_current_target_ends_with_an_error() -> None:
    with pytest.raises(KeyError), Target("llvm"):
        raise KeyError
    assert Target.current() is None


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("gcc", "no target kind 'gcc'; built: llvm, cuda, c; not built yet: aocl,"),
        ("lllvm", "no target kind 'lllvm', did you mean 'llvm'? built: llvm, cuda, c; not built yet: aocl,"),
        ("nvidia/geforce-rtx-309", "no target tag 'nvidia/geforce-rtx-309'; similar: nvidia/geforce-rtx-3090"),
        ("cuda -mtriple=x", "no target option -mtriple. Known: -keys"),
        ("cuda -max_num_threads=many", "-max_num_threads takes an integer from 0, not 'many'"),
        ("vulkan -supports_int8=perhaps", "-supports_int8 takes 1 or 0, true or false, not 'perhaps'"),
        ("-mcpu=znver5", "a target starts with its kind"),
        ("", "a target starts with its kind"),
        ("llvm -num_cores=2", "no target option -num_cores. Did you mean -num-cores?"),
        ({"kind": "llvm", "colour": "red"}, "no target option -colour. Known: -keys"),
        ("llvm -mcpu", "option -mcpu has no value"),
        ("llvm fast", "'fast' is no option"),
        ("llvm -mcpu=a -mcpu=b", "option -mcpu is given twice"),
        ("llvm -num-cores=0", "-num-cores takes a positive integer, not '0'"),
        ({"kind": "llvm", "num-cores": True}, "-num-cores takes a positive integer, not True"),
        ("llvm -mattr=avx2", "'avx2' needs a sign"),
        ({"kind": "llvm", "keys": 3}, "-keys takes words joined by commas or a list of them, not 3"),
        ({"kind": "llvm", "mcpu": "a b"}, "-mcpu takes a word, not 'a b'"),
        ("llvm -vector-width=100", "-vector-width takes 128, 256 or 512 bits, not 100"),
        ('{"kind": ', "is no JSON"),
        ("llvm 'x", "No closing quotation"),
        (17, "a target is a string, dict or Target, not int 17"),
    ],
)
def test_what_is_refused_says_what_is_known(form: Any, message: str) -> None:
    with pytest.raises(TargetError) as error:
        Target(form)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-mtriple=x86_64-linux-gnu -mcpu=pentium", "mcpu 'pentium' is no x86_64 CPU that LLVM knows"),
        ("-mtriple=x86_64-linux-gnu -mcpu=nonsense", "mcpu 'nonsense' is no x86_64 CPU that LLVM knows"),
        ("-mtriple=aarch64-linux-gnu -mcpu=znver5", "mcpu 'znver5' is no aarch64 CPU that LLVM knows"),
        ("-mtriple=x86_64-linux-gnu -mcpu=znver5 -mattr=+avx1024", "mattr: avx1024 is no feature of x86_64 that LLVM knows"),
        ("-mtriple=vax-dec-ultrix", "no code generation for 'vax'; known architectures: x86_64, aarch64, riscv64"),
        ("-mtriple=riscv64-linux-gnu -mcpu=znver5", "mcpu 'znver5' is no riscv64 CPU that LLVM knows"),
        ("-mtriple=riscv64-linux-gnu -mattr=+zvl256b", "mattr: features that begin with zv go with +v"),
        ("-mtriple=riscv64-linux-gnu -mcpu=sifive-x280 -mattr=-v", "-v takes V from no CPU"),
        ("-mtriple=riscv64-linux-gnu -mattr=+nonsense", "mattr: nonsense is no feature of riscv64 that LLVM knows"),
    ],
)
def test_unknown_cpus_and_features_are_refused_when_asked_for(text: str, message: str) -> None:
    target = Target(f"llvm {text}")
    with pytest.raises(TargetError) as error:
        _ = target.features
    assert message in str(error.value)


def test_no_current_target_can_be_an_error() -> None:
    with pytest.raises(TargetError, match="no current target"):
        Target.current(allow_none=False)


def test_target_of_a_device() -> None:
    assert Target.from_device("cpu") == Target({"kind": "llvm", "mcpu": processor.host_cpu(), "mtriple": processor.host_triple()})
    with pytest.raises(TargetError, match="no target for device cuda"):
        Target.from_device("cuda(0)")


OTHER_KINDS: list[Any] = [
    "cuda",
    "cuda -arch=sm_80 -max_num_threads=512 -host=llvm",
    "nvidia/geforce-rtx-3090",
    "opencl -device=mali",
    "vulkan -supports_int8=1 -supports_float32=0",
    "metal",
    "ext_dev",
    {"kind": "rocm", "mcpu": "gfx906", "keys": []},
]


@pytest.mark.parametrize("form", OTHER_KINDS, ids=str)
def test_targets_of_other_kinds_survive_their_string_and_their_dict(form: Any) -> None:
    target = Target(form)
    assert Target(str(target)) == target == Target(target.export()) == target.resolved()
    assert Target(target.export()).host == target.host
    assert target.vector_bits == 128 and not target.features


def test_limits_of_gpus_are_attributes_with_their_kinds_defaults() -> None:
    target = Target("cuda -arch=sm_80")
    assert str(target) == "cuda -keys=cuda,gpu -arch=sm_80 -max_num_threads=1024 -thread_warp_size=32"
    assert (target.arch, target.max_num_threads, target.thread_warp_size, target.get_target_device_type()) == ("sm_80", 1024, 32, 2)
    assert target.attrs == {"arch": "sm_80", "max_num_threads": 1024, "thread_warp_size": 32}
    with pytest.raises(TargetError, match="has no max_shared_memory_per_block"):
        _ = target.max_shared_memory_per_block
    assert Target("llvm").max_function_args == 0 and Target("opencl").max_function_args == 128
    assert Target("vulkan -supports_integer_dot_product=1").supports_integer_dot_product is True
    assert target.get_kind_attr("default_keys") == ("cuda", "gpu")


def test_tags_stand_for_machines() -> None:
    card = Target("nvidia/geforce-rtx-3090")
    assert (card.arch, card.max_shared_memory_per_block, card.attrs["registers_per_block"]) == ("sm_86", 49152, 65536)
    assert Target("nvidia/nvidia-a100").l2_cache_size_bytes == 40 << 20
    assert Target("nvidia/jetson-nano").attrs["registers_per_block"] == 32768
    board = Target("raspberry-pi/4b-aarch64")
    assert board.num_cores == 4 and board.host == board
    assert all(Target(name) == found for name, found in list_tags().items())


def test_a_tag_can_be_registered() -> None:
    made = register_tag("mine/board", {"kind": "llvm", "mcpu": "haswell"})
    try:
        assert Target("mine/board") == made
        with pytest.raises(TargetError, match="exists"):
            register_tag("mine/board", {"kind": "cuda"})
        assert register_tag("mine/board", {"kind": "cuda"}, override=True).kind == "cuda"
    finally:
        del tag.TAGS["mine/board"]
    with pytest.raises(TargetError, match="can't be a tag"):
        register_tag("llvm", {"kind": "cuda"})


def test_targets_of_device_families_by_function() -> None:
    assert str(models.cuda(arch="sm_80", options="-max_num_threads=512")).endswith(
        "-max_num_threads=512 -model=unknown -thread_warp_size=32"
    )
    assert models.arm_cpu("rasp4b64").mcpu == "cortex-a72" and models.arm_cpu("new").model == "new"
    assert models.mali().keys == ("mali", "opencl", "gpu") and models.intel_graphics().thread_warp_size == 16
    assert models.hexagon("v69").vtcm_capacity == 8 << 20
    assert models.riscv_cpu().triple == "riscv64-unknown-linux-gnu" and models.rasp() == models.arm_cpu("rasp3b")
    assert models.stm32("stm32F4xx").attrs["mcpu"] == "cortex-m4" and models.create("llvm") == Target("llvm")
    assert str(models.micro("stm32h7xx")) == "c -keys=arm_cpu,cpu -mcpu=cortex-m7 -model=stm32h7xx"
    assert str(models.micro("host", "-mcpu=cortex-m3")) == "c -keys=cpu -mcpu=cortex-m3 -model=host"
    for family, wrong in (
        (models.stm32, {"series": "x"}),
        (models.micro, {"model": "x"}),
        (models.hexagon, {"cpu_ver": "v1"}),
        (models.hexagon, {"hvx": 3}),
    ):
        with pytest.raises(TargetError):
            family(**wrong)


def test_code_is_refused_for_what_is_not_built() -> None:
    for text, message in (("opencl", "'opencl' is not built yet; built: llvm, cuda, c"), ("llvm -mabi=lp64d", "-mabi is not served")):
        with pytest.raises(TargetError, match=message):
            Target(text).check_built()
    Target("llvm -opt-level=3 -jit=orcjit").check_built()


def test_options_that_say_yes_need_no_value_and_those_of_old_logs_are_read() -> None:
    assert Target("llvm -fast-math -opt-level=3").attrs["fast-math"] and Target("llvm --fast-math").attrs["fast-math"]
    old = Target("llvm -keys=cpu -link-params=0 -runtime=c -system-lib -mcpu=broadwell")
    assert not old.attrs["link-params"] and old.attrs["system-lib"] and old.mcpu == "broadwell"
    Target("llvm -fast-math").check_built()  # a permission that code generation makes no use of
    with pytest.raises(TargetError, match="-mcpu has no value"):
        Target("llvm -mcpu")


def test_hosts_are_given_to_one_or_many() -> None:
    target, host = Target.canon_target_and_host("cuda", "llvm")
    assert target is not None and target.host == host == Target("llvm") == Target("cuda").with_host("llvm").host
    assert Target.canon_target_and_host(None) == (None, None)
    targets, host = Target.canon_target_map_and_host({"llvm": 1, "cuda": 2}, "llvm -num-cores=1")
    assert list(targets.values()) == [1, 2] and all(one.host == host for one in targets)
    assert Target.canon_multi_target("llvm") == Target.canon_multi_target(["llvm"]) == [Target("llvm")]
    assert Target.canon_multi_target({"cpu": "llvm"}) == [Target("llvm")] and Target.canon_multi_target(None) is None
    assert [one.host for one in Target.canon_multi_target_and_host(["cuda", "llvm"], "llvm")] == [Target("llvm")] * 2
    with pytest.raises(TargetError, match="no target"):
        Target.canon_multi_target_and_host([])


def test_generic_functions_are_chosen_by_label() -> None:
    @generic_func
    def lanes() -> int:
        """As said."""
        return 8

    lanes.register(["gpu", "mine"])(lambda: 32)
    assert lanes() == 8 and lanes.__doc__ == "As said."
    with Target("cuda"):
        assert lanes() == 32
    with Target("llvm -keys=mine,cpu"):
        assert lanes() == 32
    with pytest.raises(TargetError, match="lanes is registered for gpu"):
        lanes.register(lambda: 1, "gpu")
    native = get_native_generic_func("test.native")
    with pytest.raises(TargetError, match=r"test.native has no implementation for target None"):
        native()
    assert override_native_generic_func("test.native")(lambda: 3) is native and native() == 3


def test_a_cpu_that_llvm_does_not_know_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TargetError, match="mcpu 'nobody' is no x86_64 CPU"):
        _ = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=nobody").features
    assert capfd.readouterr().err == ""


def test_what_llvm_knows() -> None:
    haswell = "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell"
    assert (codegen.llvm_version_major() or 0) >= 15 and {"x86_64", "aarch64"} <= set(codegen.llvm_get_targets())
    assert codegen.target_has_features("avx2", haswell) and not codegen.llvm_cpu_has_features(["avx2", "avx512f"], haswell)
    assert {"haswell", "znver4"} <= set(codegen.llvm_get_cpu_archlist(haswell))
    assert codegen.llvm_get_cpu_features(haswell)["avx2"]
    assert (codegen.llvm_get_system_cpu(), codegen.llvm_get_system_triple()) == (processor.host_cpu(), processor.host_triple())
    assert codegen.llvm_get_system_x86_vendor() in ("intel", "amd", "other", "unknown")
    assert codegen.llvm_get_intrinsic_name(codegen.llvm_lookup_intrinsic_id("llvm.fabs")) == "llvm.fabs"
    with pytest.raises(TargetError, match="LLVM lists no CPUs"):
        codegen.llvm_get_cpu_archlist("llvm -mtriple=vax-dec-ultrix")


def test_features_can_be_asked_by_attribute() -> None:
    features = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1").features
    assert features.has_asimd and features.has_dotprod and features.is_aarch64 and not features.has_sme
    with pytest.raises(AttributeError, match="has_<feature>"):
        _ = features.nonsense


def test_virtual_devices_know_their_device_type() -> None:
    assert VirtualDevice(None, Target("cuda")).device_type == 2 and VirtualDevice().device_type_int == -1


def test_a_compilation_has_one_target_for_each_device() -> None:
    both = make_compilation_config(None, {"gpu": "cuda", "cpu": "llvm -num-cores=1"}, "llvm -num-cores=2")
    assert [str(target.kind) for target in both.primitive_targets] == ["llvm", "cuda"]
    assert all(target.host == both.host_target == Target("llvm -num-cores=2") for target in both.primitive_targets)
    assert both.default_primitive_virtual_device.target == Target("llvm -num-cores=1") and both.optional_homogenous_target is None
    alone = make_compilation_config(None, "cuda")
    assert alone.optional_homogenous_target == Target("cuda") == alone.default_primitive_virtual_device.target
    assert alone.host_virtual_device.device_type == 1
    with pytest.raises(TargetError, match="one target for each kind of device, not llvm"):
        make_compilation_config(None, ["llvm", "llvm -num-cores=1"])
    with pytest.raises(TargetError, match="no target"):
        make_compilation_config(None, [])
