"""Tiles for tensor cores: what the programs compute, their layouts, and code for a GPU of what postprocessing makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import te, tir
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule.schedule_rule.multi_level_tiling_tensor_core import MultiLevelTilingTensorCore
from tensorexpr.schedule.blocks import Schedule, Trace
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.tensor_intrin.cuda import get_wmma_intrin_group

A100 = Target("nvidia/nvidia-a100")
OLD = Target("cuda -arch=sm_70 -max_threads_per_block=1024 -max_shared_memory_per_block=49152")


def product(n: int, m: int, k: int, dtype: str = "float16", sums: str = "float32", trans: bool = False) -> tvm.IRModule:
    """A @ B, or A @ B.T."""
    a, b = te.placeholder((n, k), dtype, name="A"), te.placeholder((m, k) if trans else (k, m), dtype, name="B")
    r = te.reduce_axis((0, k), "r")

    def element(i: Any, j: Any) -> Any:
        return te.sum(a[i, r].astype(sums) * (b[j, r] if trans else b[r, j]).astype(sums), axis=r)

    return module_of(a, b, te.compute((n, m), element, name="C"))


def convolution() -> tvm.IRModule:
    """3 x 3, channels last, without a border: rows of a product are pixels, its sum goes over windows and channels."""
    a, w = te.placeholder((1, 6, 6, 16), "float16", name="A"), te.placeholder((3, 3, 16, 16), "float16", name="W")
    y, x, c = (te.reduce_axis((0, extent), name) for extent, name in ((3, "y"), (3, "x"), (16, "c")))

    def element(n: Any, h: Any, v: Any, f: Any) -> Any:
        return te.sum(a[n, h + y, v + x, c].astype("float32") * w[y, x, c, f].astype("float32"), axis=[y, x, c])

    return module_of(a, w, te.compute((1, 4, 4, 16), element, name="C"))


def module_of(*tensors: Tensor) -> tvm.IRModule:
    return tvm.IRModule({"main": te.create_prim_func(list(tensors))})


def rule(**given: Any) -> MultiLevelTilingTensorCore:
    reuse = {"req": "must", "scope": "shared.dyn"}
    options: dict[str, Any] = {
        "intrin_groups": [get_wmma_intrin_group("shared.dyn", "shared.dyn", "float16", "float32", trans) for trans in (False, True)],
        "structure": "SSSRRSRS",
        "tile_binds": ["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        "max_innermost_factor": 4,
        "vector_load_lens": [1, 2, 4, 8],
        "reuse_read": ms.schedule_rule.ReuseType(**reuse, levels=[4]),
        "reuse_write": ms.schedule_rule.ReuseType(**reuse, levels=[2]),
    }
    return MultiLevelTilingTensorCore(**{**options, **given})


def spaces(mod: tvm.IRModule, *rules: ms.ScheduleRule, target: Target = A100, seed: int = 1) -> list[Schedule]:
    generator = ms.space_generator.PostOrderApply(sch_rules=list(rules), postprocs=[], mutator_probs={})
    return ms.TuneContext(mod, target=target, space_generator=generator, rand_state=seed).generate_design_space()  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("mod", "shapes", "reference"),
    [
        (product(20, 17, 30), [(20, 30), (30, 17), (20, 17)], lambda a, b: a @ b),
        (product(16, 16, 32, trans=True), [(16, 32), (16, 32), (16, 16)], lambda a, b: a @ b.T),
        (
            convolution(),
            [(1, 6, 6, 16), (3, 3, 16, 16), (1, 4, 4, 16)],
            lambda a, w: np.einsum(
                "nhvyxc,yxcf->nhvf", np.lib.stride_tricks.sliding_window_view(a, (3, 3), (1, 2)).transpose(0, 1, 2, 4, 5, 3), w
            ),
        ),
    ],
)
def test_tiles_compute_what_was_asked_for(mod: tvm.IRModule, shapes: list[tuple[int, ...]], reference: Any) -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, shape).astype("float16") for shape in shapes[:2])
    found = spaces(mod, rule())
    assert len(found) == 2  # operands are brought into either layout
    # the second layout is that of the second case's operand
    for sch in found[: 1 if len(shapes[0]) > 2 else 2]:
        out = np.full(shapes[2], np.nan, "float32")
        interpret(sch.mod["main"], [a, b, out])
        np.testing.assert_array_equal(out, reference(a.astype("float32"), b.astype("float32")))


def test_what_an_intrinsic_does_is_marked() -> None:
    texts = [sch.mod.script() for sch in spaces(product(64, 64, 64), rule())]
    texts.sort(key=lambda text: "f16_b_trans" in text)
    for text, trans in zip(texts, ("", "_trans"), strict=True):
        for name in (
            f"wmma_sync_16x16x16_f16f16f32{trans}", "wmma_fill_16x16x16_f32", "wmma_load_16x16x16_f16_a_shared_dyn",
            f"wmma_load_16x16x16_f16_b{trans}_shared_dyn", "wmma_store_16x16x16_f32_shared_dyn",
        ):  # fmt: skip
            assert f'"{name}"' in text
        assert '"warp_execution": 1' in text and '"buffer_dim_align": [[0, 0, 32, 8]]' in text
        assert text.count('"meta_schedule.cooperative_fetch"') == 3


def test_loads_run_ahead() -> None:
    (sch,) = spaces(product(64, 64, 64), rule(intrin_groups=rule().intrin_groups[:1], use_software_pipeline=True))
    text = sch.mod.script()
    assert '"software_pipeline_order": [0, 3, 1, 4, 5, 2, 6]' in text and '"software_pipeline_stage": [0, 0, 1]' in text
    assert text.count('"tir.manifest_shared_memory_local_stage": 1') == 2


@pytest.mark.parametrize("mod", [product(64, 64, 64, "float32"), product(64, 64, 64, "float16", "float16")])
def test_other_products_stay_for_the_rules_after_it(mod: tvm.IRModule) -> None:
    (sch,) = spaces(mod, rule())
    assert "auto_tensorize" not in sch.mod.script()


def test_fragments_go_through_shared_memory() -> None:
    with pytest.raises(TuningError, match="reuse_write is None"):
        rule(reuse_write=None)
    with pytest.raises(TuningError, match="names init, load_a, load_b, compute, store"):
        rule(intrin_groups=[{"compute": "wmma_sync_16x16x16_f16f16f32"}])


@pytest.mark.parametrize(("target", "expected"), [(A100, 2), (OLD, 0)])
def test_chips_with_tensor_cores_use_them(target: Target, expected: int) -> None:
    context = ms.TuneContext(product(64, 64, 64), target=target, space_generator="post-order-apply")
    assert sum("auto_tensorize" in sch.mod.script() for sch in context.generate_design_space()) == expected  # type: ignore[union-attr]


def test_postprocessed_programs_become_code() -> None:
    mod = product(64, 64, 64)
    context = ms.TuneContext(mod, target=A100, space_generator="post-order-apply", rand_state=0)
    space = context.generate_design_space()[0]
    assert isinstance(space, Schedule) and context.space_generator is not None and space.trace is not None
    for seed in range(30):
        sch = Schedule(mod, seed=seed)
        Trace(space.trace.insts, {}).apply_to_schedule(sch, remove_postproc=True)
        if all(postproc.apply(sch) for postproc in context.space_generator.postprocs):
            break
    else:
        pytest.fail("no program within the limits of the GPU")
    module: Any = tvm.build(sch.mod, target=A100)
    text = module.get_source("ptx")
    for name in ("wmma.load.a.sync", "wmma.load.b.sync", "wmma.mma.sync", "wmma.store.d.sync"):
        assert name in text
    assert isinstance(sch.mod["main"], tir.PrimFunc)
