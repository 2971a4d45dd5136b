"""Pictures of networks: what is drawn, and that users' parsers and plotters are asked."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import relay_viz
from tensorexpr.contrib.relay_viz.dot import DotPlotter
from tensorexpr.contrib.relay_viz.terminal import TermPlotter
from tensorexpr.errors import DeclarationError
from tensorexpr.relay.viz.interface import DefaultVizParser, VizEdge, VizNode, VizParser


def network() -> tvm.IRModule:
    x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(3, 4))
    y = relay.nn.dense(x, w, units=3)
    return tvm.IRModule.from_expr(relay.Function((x, w), relay.add(relay.nn.relu(y), y)))


def test_a_tree_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    relay_viz.RelayVisualizer(network(), relay_param={"w": None}).render()
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0] == "@main" and "Function" in lines[1]
    order = ["add", "nn.relu", "nn.dense", "Var(Input)", "Var(Param)"]
    assert [text.index(f" {one}") for one in order] == sorted(text.index(f" {one}") for one in order)
    assert text.count("nn.dense (") == 1 and text.count("nn.dense ...") == 1  # used twice, and told once
    assert "name_hint: w, type: Tensor[(3, 4), float32]" in text and "units: 3" in text


def test_deep_networks_are_drawn(tmp_path: Path) -> None:
    x: Any = relay.var("x", shape=(2,))
    y = x
    for _ in range(3000):
        y = relay.tanh(y)
    relay_viz.RelayVisualizer(tvm.IRModule.from_expr(relay.Function((x,), y)), plotter=TermPlotter()).render(str(tmp_path / "t.txt"))
    assert (tmp_path / "t.txt").read_text().count("tanh") == 3000


class Hiding(VizParser):
    """Draws variables as they are, calls without their attributes, and nothing else."""

    def __init__(self) -> None:
        self._other = DefaultVizParser()

    def get_node_edges(
        self, node: Any, relay_param: Mapping[str, Any], node_to_id: Mapping[Any, str]
    ) -> tuple[VizNode | None, list[VizEdge]]:
        if isinstance(node, relay.Var):
            return self._other.get_node_edges(node, relay_param, node_to_id)
        if isinstance(node, relay.Call):
            own = node_to_id[node]
            return VizNode(own, f'my "{node.op.name}"', ""), [VizEdge(node_to_id[arg], own) for arg in node.args]
        return None, []


def test_one_thing_by_two_paths() -> None:
    assert relay_viz.interface.VizParser is VizParser and relay_viz.RelayVisualizer is relay.viz.RelayVisualizer


def test_boxes_and_arrows(tmp_path: Path) -> None:
    def colours(node: VizNode) -> dict[str, str]:
        return {"fillcolor": "green", "style": "filled"} if "relu" in node.type_name else {}

    plotter = DotPlotter(graph_attr={"color": "red"}, node_attr={"color": "blue"}, get_node_attr=colours)
    relay_viz.RelayVisualizer(network(), plotter=plotter, parser=Hiding()).render(str(tmp_path / "net"))
    text = (tmp_path / "net.dot").read_text()
    assert 'graph [color="red"];' in text and text.count("->") == 5 and text.count('fillcolor="green"') == 1
    assert 'label="my \\"nn.relu\\""' in text and "units" not in text
    picture = ElementTree.fromstring((tmp_path / "net.svg").read_text())
    assert "green" in ElementTree.tostring(picture, "unicode")


def test_every_function_is_drawn(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2,))
    functions: Any = {"main": relay.Function((x,), relay.tanh(x)), "other": relay.Function((x,), relay.exp(x))}
    mod = tvm.IRModule(functions)
    relay_viz.RelayVisualizer(mod, plotter=DotPlotter()).render(str(tmp_path / "net"))
    assert "tanh" in (tmp_path / "net.dot").read_text() and "exp" in (tmp_path / "net_other.dot").read_text()
    with pytest.raises(DeclarationError, match="no function of Relay"):
        relay_viz.RelayVisualizer(tvm.IRModule({}))
