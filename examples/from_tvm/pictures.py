"""A function of loops written as Python, and pictures of a schedule as Graphviz text and SVG.

python examples/from_tvm/pictures.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.contrib import tedd, utils


@te.hybrid.script
def outer(a, b):  # type: ignore[no-untyped-def]  # the text is parsed, never run
    """All products of two vectors."""
    c = output_tensor((8, 4), "float32")  # type: ignore[name-defined]  # noqa: F821
    for i in range(8):
        for j in range(4):
            c[i, j] = a[i] * b[j]
    return c


def main() -> None:
    """Double the products, draw the stages, and check the numbers."""
    a, b = te.placeholder((8,), name="a"), te.placeholder((4,), name="b")
    products = outer(a, b)
    doubled = te.compute((8, 4), lambda i, j: products[i, j] * 2.0, name="doubled")
    s = te.create_schedule(doubled.op)
    s[doubled].split(doubled.op.axis[0], factor=4)

    with utils.tempdir() as folder:
        tedd.viz_schedule_tree(s, dot_file_path=folder.relpath("tree.dot"))
        assert folder.listdir() == ["tree.dot"]
    text = tedd.viz_dataflow_graph(s, output_dot_string=True)
    assert text is not None and text.startswith("digraph")
    print(text.splitlines()[0])
    assert "<svg" in tedd.as_svg(tedd.viz_itervar_relationship_graph, s)

    func = tvm.build(s, [a, b, doubled])
    x, y, z = np.arange(8, dtype="float32"), np.arange(4, dtype="float32"), np.zeros((8, 4), "float32")
    func(x, y, z)
    np.testing.assert_array_equal(z, 2 * np.outer(x, y))


if __name__ == "__main__":
    main()
