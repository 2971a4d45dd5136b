"""PassContext: what it accepts, what it refuses, and which one is current."""

from __future__ import annotations

import threading

import pytest

from tensorexpr.errors import LoweringError
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.options import LoopPartitionConfig, UnrollLoopConfig


def test_current_is_the_innermost() -> None:
    outside = PassContext.current()
    with PassContext(opt_level=3) as outer:
        assert PassContext.current() is outer
        with PassContext() as inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer
    assert PassContext.current() is outside


def test_contexts_belong_to_their_thread() -> None:
    seen: list[PassContext] = []
    with PassContext(opt_level=0) as mine:
        thread = threading.Thread(target=lambda: seen.append(PassContext.current()))
        thread.start()
        thread.join()
    assert seen[0] is not mine


def test_defaults() -> None:
    ctx = PassContext()
    assert (ctx.opt_level, ctx.required_pass, ctx.disabled_pass, dict(ctx.config)) == (2, (), (), {})
    assert ctx.option(UnrollLoopConfig) == UnrollLoopConfig(auto_max_step=0, auto_max_depth=8, auto_max_extent=0, explicit_unroll=True)


def test_structs_are_made_of_mappings() -> None:
    ctx = PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16, "explicit_unroll": 0}, "tir.disable_vectorize": True})
    option = ctx.option(UnrollLoopConfig)
    assert (option.auto_max_step, option.explicit_unroll) == (16, False)
    assert ctx.flag("tir.disable_vectorize")
    assert not ctx.flag("tir.disable_cse_tir")


def test_structs_are_taken_as_they_are() -> None:
    option = LoopPartitionConfig(partition_const_loop=True)
    assert PassContext(config={"tir.LoopPartition": option}).option(LoopPartitionConfig) is option


def test_keys_without_meaning_on_a_cpu_are_accepted() -> None:
    config = {"tir.use_async_copy": 1, "tir.usmp.algorithm": "greedy", "tir.InjectDoubleBuffer": {"split_loop": 2}}
    assert set(PassContext(config=config).config) == set(config)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"tir.UnrolLoop": {}}, r"no config 'tir.UnrolLoop'; did you mean 'tir.UnrollLoop'\?"),
        ({"tir.UnrollLoop": {"auto_max_steps": 1}}, r"no option 'auto_max_steps'; did you mean 'auto_max_step'\?"),
        ({"tir.UnrollLoop": 3}, "takes a mapping of options or a UnrollLoopConfig, not 3"),
        ({"tir.UnrollLoop": {"auto_max_step": "many"}}, "'auto_max_step' is an integer or a bool, not 'many'"),
        ({"tir.disable_vectorize": "yes"}, "'tir.disable_vectorize' takes IntImm, not 'yes'"),
        ({"tir.add_lower_pass": 1}, "'tir.add_lower_pass' takes Array, not 1"),
    ],
)
def test_bad_configs(config: dict[str, object], message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        PassContext(config=config)


def test_pass_names_are_a_list() -> None:
    with pytest.raises(LoweringError, match=r"disabled_pass takes a list of pass names, not 'tir\.Simplify'"):
        PassContext(disabled_pass="tir.Simplify")


def test_list_configs() -> None:
    known = PassContext.list_configs()
    assert known["tir.UnrollLoop"] == {"type": "tir.transform.UnrollLoopConfig"}
    assert known["tir.disable_vectorize"] == {"type": "IntImm"}
    assert len(known) >= 39


def test_levels_and_names_decide_what_runs() -> None:
    ctx = PassContext(opt_level=1, required_pass=["wanted"], disabled_pass=["unwanted"])
    assert ctx.enables("any", 1)
    assert not ctx.enables("any", 2)
    assert ctx.enables("wanted", 3)
    assert not ctx.enables("unwanted", 0)


def test_traces_form_a_stack() -> None:
    ctx = PassContext(trace="first")
    ctx.push_trace("second")
    assert (ctx.get_current_trace(), ctx.get_trace_stack_size()) == ("second", 2)
    assert ctx.pop_trace() == "second"
    assert ctx.get_trace_stack() == ["first"]
    ctx.pop_trace()
    with pytest.raises(LoweringError, match="the trace stack is empty"):
        ctx.pop_trace()
