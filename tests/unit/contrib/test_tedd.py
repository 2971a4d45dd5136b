"""Pictures of schedules: what they show, as Graphviz text and as SVG."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tensorexpr import te
from tensorexpr.contrib import tedd
from tensorexpr.schedule import Schedule

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = [tedd.viz_schedule_tree, tedd.viz_itervar_relationship_graph, tedd.viz_dataflow_graph]


def program() -> Schedule:
    """A product of matrices, inlined before, clipped after, in parallel tiles."""
    a, w = te.placeholder((64, 64), name="A"), te.placeholder((64, 64), name="W")
    k = te.reduce_axis((0, 64), "k")
    twice = te.compute((64, 64), lambda i, j: a[i, j] * 2.0, name="twice")
    product = te.compute((64, 64), lambda i, j: te.sum(twice[i, k] * w[k, j], axis=k), name="product")
    clipped = te.compute((64, 64), lambda i, j: te.max(product[i, j], 0.0), name="clipped")
    s = te.create_schedule(clipped.op)
    s[twice].compute_inline()
    x, y, _, inner = s[clipped].tile(clipped.op.axis[0], clipped.op.axis[1], 8, 16)
    tile = s[clipped].fuse(x, y)
    s[clipped].parallel(tile)
    s[clipped].vectorize(inner)
    s[product].compute_at(s[clipped], tile)
    s[product].split(product.op.reduce_axis[0], nparts=4)
    return s


def test_the_tree_shows_where_stages_are_computed() -> None:
    text = tedd.viz_schedule_tree(program(), output_dot_string=True) or ""
    assert "i.outer.j.outer.fused parallel" in text and "j.inner vectorize" in text and "product  (reduction)" in text
    assert 's3 -> s4 [label="i.outer.j.outer.fused"];' in text or '[label="i.outer.j.outer.fused"];' in text
    assert '[label="inlined" style=dashed];' in text


def test_axes_come_from_axes() -> None:
    text = tedd.viz_itervar_relationship_graph(program(), output_dot_string=True) or ""
    assert "split ?, 8" in text and "split 4, ?" in text and ">fuse<" in text and text.count("subgraph cluster_") == 3


def test_data_flows_from_inputs_to_outputs() -> None:
    text = tedd.viz_dataflow_graph(program(), output_dot_string=True) or ""
    assert text.count("->") == 4 and "A  (input)" in text and "float32 [64, 64]" in text


@pytest.mark.parametrize("picture", PICTURES)
def test_texts_go_to_files_and_pictures_are_whole(picture: object, tmp_path: Path) -> None:
    assert picture in PICTURES
    draw = PICTURES[PICTURES.index(picture)]
    assert draw(program(), dot_file_path=str(tmp_path / "graph.dot")) is None
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph") and text.count("{") == text.count("}")
    drawn = ElementTree.fromstring(tedd.as_svg(draw, program()))
    width, height = float(drawn.attrib["width"]), float(drawn.attrib["height"])
    boxes = [element for element in drawn if element.tag.endswith("rect")]
    assert len(boxes) > 4
    for box in boxes:
        assert float(box.get("x", 0)) >= 0 and float(box.get("x", 0)) + float(box.attrib["width"]) <= width
        assert float(box.get("y", 0)) >= 0 and float(box.get("y", 0)) + float(box.attrib["height"]) <= height


def test_no_arrow_runs_through_a_box_on_its_way() -> None:
    """a is read two layers further down, past b."""
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
    c = te.compute((4,), lambda i: a[i] * b[i], name="c")
    drawn = ElementTree.fromstring(tedd.as_svg(tedd.viz_dataflow_graph, te.create_schedule(c.op)))
    boxes = [[float(r.attrib[k]) for k in ("x", "y", "width")] for r in drawn.iter(f"{SVG}rect") if "x" in r.attrib]
    (straight,) = (p.attrib["d"] for p in drawn.iter(f"{SVG}path") if "L" in p.attrib["d"] and "C" in p.attrib["d"])
    x, y = map(float, straight.split(" L")[0].split()[-1].split(","))
    assert not [box for box in boxes if box[1] == y and box[0] <= x <= box[0] + box[2]]
    assert [box for box in boxes if box[1] == y]


def test_reductions_are_shown_as_what_they_add() -> None:
    assert "product(i, j) += (twice[i, k]*W[k, j])" in (tedd.viz_schedule_tree(program(), output_dot_string=True) or "")
