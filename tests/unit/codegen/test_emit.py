"""The module as a whole: names, signatures, promises to LLVM, and the cap on its size."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tensorexpr.codegen.builder import LINE_LIMIT
from tensorexpr.codegen.emit import emit_module
from tensorexpr.codegen.signature import BufferParam, ScalarParam
from tensorexpr.errors import CodegenError
from tensorexpr.runtime import engine
from tensorexpr.target import Target
from tensorexpr.tir import intrin
from tensorexpr.tir.buffer import decl_buffer
from tensorexpr.tir.expr import SizeVar, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import NOP, seq

from .harness import compile_function, flat, host, load, loop, parse, primfunc, ramp, store


def test_a_signature_lists_arrays_numbers_and_symbols() -> None:
    n, m, scale = SizeVar("n", "int32"), Var("m", "int64"), Var("scale", "float32")
    a = decl_buffer((n, m), "float32", "A", strides=(m * 2, 1), data_alignment=128)
    handle, out = Var("a", "handle"), flat("out", n, "bool")
    out_handle = Var("out", "handle")
    view = flat("view", 100)
    view = type(view)(a.data, "float32", view.shape, name="A_flat")
    body = store(out, 0, load(view, 0) > scale)
    func = PrimFunc((handle, scale, out_handle, n), body, None, {handle: a, out_handle: out}).with_attr("tir.noalias", True)
    emitted = emit_module({"main": func}, host())
    signature = emitted.signatures["main"]
    assert signature.name == "main" and signature.symbols == (m,) and signature.errors == ()
    first, second, third, fourth = signature.params
    assert isinstance(first, BufferParam) and first.name == "A" and first.shape == (n, m) and first.strides[0] is (m * 2)
    assert (first.alignment, first.is_read, first.is_written) == (4, True, False)
    assert isinstance(third, BufferParam) and (third.alignment, third.is_read, third.is_written) == (1, False, True)
    assert isinstance(second, ScalarParam) and second.var is scale and isinstance(fourth, ScalarParam) and fourth.var is n
    head = re.search(r"define i32 @main\((.*?)\) #0", emitted.text)
    assert head is not None
    kinds = [re.sub(r" %\S+", "", argument) for argument in head[1].split(", ")]
    assert kinds == ["ptr noalias readonly align 4", "double", "ptr noalias align 1", "i64", "i64"]
    parse(emitted.text, host())


def test_constant_shapes_promise_their_bytes() -> None:
    a, out = flat("a", 6, "float64"), flat("out", 6, "float64")
    text = emit_module({"f": primfunc([a, out], store(out, 0, load(a, 5)))}, host()).text
    assert text.count("nonnull dereferenceable(48) align 8") == 2
    assert "dereferenceable" not in emit_module({"f": primfunc([flat("e", 0)], NOP)}, host()).text


def test_a_weak_alignment_is_respected() -> None:
    a = decl_buffer((4,), "float32", "a", data_alignment=2)
    compiled = compile_function(primfunc([a], store(a, 1, load(a, 0) + 1.0)))
    assert "align 4" not in compiled.text
    memory = np.zeros(18, np.uint8)
    array = memory[2:].view(np.float32) if memory.ctypes.data % 4 == 2 else memory[:16].view(np.float32)
    compiled(array)
    assert array[1] == 1.0


def test_several_functions_and_odd_names() -> None:
    out = flat("out", 1)
    names = ("plain", "with space", 'quo"te', "ünï", "0digit", "a.b$c-d")
    funcs = {name: primfunc([out], store(out, 0, float(i)), name=name) for i, name in enumerate(names)}
    emitted = emit_module(funcs, host())
    module = parse(emitted.text, host())
    assert {f.name for f in module.functions} >= set(names)
    with pytest.raises(CodegenError, match="two functions of the module have one symbol: same, same"):
        emit_module({"a": primfunc([out], NOP, name="same"), "b": primfunc([out], NOP, name="same")}, host())


def test_a_function_may_not_be_called_as_the_c_function_that_it_needs() -> None:
    a, out = flat("a", 1, "float64"), flat("out", 1, "float64")
    func = primfunc([a, out], store(out, 0, intrin.erf(load(a, 0))), name="erf")
    with pytest.raises(CodegenError, match="the module defines erf, which is also a function of the system that it needs"):
        emit_module({"erf": func}, host())


def test_a_handle_without_a_buffer_is_an_address() -> None:
    module = emit_module({"f": PrimFunc((Var("raw", "handle"),), NOP)}, host())
    assert len(module.signatures["f"].params) == 1


def test_the_size_of_the_text_is_capped_while_it_is_written() -> None:
    out = flat("out", 1 << 20)
    func = primfunc([out], seq(*(store(out, i, float(i)) for i in range(3000))))
    with pytest.raises(CodegenError, match="exceeds 2000 lines of LLVM IR: unroll less"):
        emit_module({"f": func}, host(), line_limit=2000)
    assert emit_module({"f": func}, host()).text.count("\n") < LINE_LIMIT == 200_000


def test_text_does_not_depend_on_what_was_emitted_before() -> None:
    a, out = flat("a", 64), flat("out", 64)
    func = primfunc([a, out], loop("i", 4, lambda i: store(out, ramp(i * 16, 16), intrin.exp(load(a, ramp(i * 16, 16))))))
    assert emit_module({"f": func}, host()).text == emit_module({"f": func}, host()).text


@pytest.mark.parametrize(
    ("target", "bits", "product"),
    [
        ("aarch64-linux-gnu -mattr=+sve", 128, r"fmul\s+v"),
        ("aarch64-linux-gnu -mattr=+sve -vector-width=256", 256, r"fmul\s+z"),
        ("aarch64-linux-gnu -mattr=+sve -vector-width=512", 512, r"fmul\s+z"),
        ("riscv64-linux-gnu -mattr=+v", 128, r"vfmul\.vv\s+v"),
        ("riscv64-linux-gnu -mcpu=sifive-x280", 512, r"vfmul\.vv\s+v"),
    ],
)
def test_a_vector_is_in_one_register_of_another_architecture(target: str, bits: int, product: str) -> None:
    a, b, lanes = flat("a", 64), flat("b", 64), bits // 32
    body = loop(
        "i", 64 // lanes, lambda i: store(b, ramp(i * lanes, lanes), load(a, ramp(i * lanes, lanes)) * load(a, ramp(i * lanes, lanes)))
    )
    text = assembly_for(primfunc([a, b], body), Target(f"llvm -mtriple={target} -num-cores=1"))
    assert len(re.findall(product, text)) == text.count("fmul") == 1


def assembly_for(func: PrimFunc, target: Target) -> str:
    """What LLVM makes of a function for another machine."""
    assert target.vector_bits
    return engine.emit_assembly(emit_module({"main": func}, target).text, target)


@pytest.mark.parametrize("cpu", ("x86-64", "haswell", "x86-64-v4", "x86-64-v4 -vector-width=256"))
def test_code_for_one_cpu_holds_no_instruction_of_another(cpu: str) -> None:
    from .harness import assembly

    a, out = flat("a", 64), flat("out", 64)
    func = primfunc([a, out], store(out, ramp(0, 16), intrin.tanh(load(a, ramp(0, 16)))))
    target = Target(f"llvm -mcpu={cpu}")
    machine_code = assembly(emit_module({"f": func}, target).text, target)
    assert ("%zmm" in machine_code) == (cpu == "x86-64-v4")
    assert ("%ymm" in machine_code) == (cpu not in ("x86-64", "x86-64-v4"))


def test_code_for_aarch64() -> None:
    import llvmlite.binding as llvm

    a, out = flat("a", 64), flat("out", 64)
    func = primfunc([a, out], loop("i", 4, lambda i: store(out, ramp(i * 16, 16), intrin.exp(load(a, ramp(i * 16, 16))))))
    target = Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1 -num-cores=2")
    emitted = emit_module({"f": func}, target)
    assert "x86" not in emitted.text
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(cpu=target.mcpu, opt=2)
    machine_code = str(machine.emit_assembly(llvm.parse_assembly(emitted.text)))
    assert "fmla" in machine_code and "\tbl\t" not in machine_code


def test_names_of_variables_may_begin_with_a_digit() -> None:
    source, out = flat("0", 4), flat("1.out", 4)
    body = loop("2", 4, lambda i: store(out, i, load(source, i) * 2.0))
    compiled = compile_function(primfunc([source, out], body))
    result = np.zeros(4, "float32")
    compiled(np.arange(4, dtype="float32"), result)
    assert result.tolist() == [0.0, 2.0, 4.0, 6.0]
