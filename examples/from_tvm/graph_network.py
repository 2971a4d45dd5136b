"""A network on a graph (Kipf and Welling 2017) by Relay's names, with weights that aren't trained: sparse products of a graph's edges.

python examples/from_tvm/graph_network.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import graph_executor


def edges_of(nodes: int, edges: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Data, columns and row starts of the normalised adjacency of a graph of random edges, each node its own neighbour."""
    rng = np.random.default_rng(seed)
    dense = np.eye(nodes, dtype="float32")
    ends = rng.integers(0, nodes, (edges, 2))
    dense[ends[:, 0], ends[:, 1]] = dense[ends[:, 1], ends[:, 0]] = 1
    degrees = dense.sum(1)
    dense /= np.sqrt(np.outer(degrees, degrees))
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(nodes + 1)).astype("int32")
    return dense[rows, columns], columns.astype("int32"), starts


def layer(features: relay.Expr, weight: relay.Expr, graph: tuple[relay.Expr, ...]) -> relay.Expr:
    """Of each node the sum over its neighbours of their features times the weights: A (X W), as A sparse times (W^T X^T)^T."""
    products = relay.nn.dense(weight, features)  # [out, nodes]: sparse_dense multiplies rows with the transposed sparse matrix
    return relay.transpose(relay.nn.sparse_dense(products, graph))


def main() -> None:
    """Two layers on 200 nodes, built and compared with NumPy."""
    nodes, width, hidden, classes = 200, 32, 16, 7
    values, columns, starts = edges_of(nodes, 600)
    rng = np.random.default_rng(1)
    weights = {"w0": rng.standard_normal((hidden, width)), "w1": rng.standard_normal((classes, hidden))}
    params = {name: (one / 4).astype("float32") for name, one in weights.items()}
    params |= {"data": values, "indices": columns, "indptr": starts}
    graph = tuple(relay.var(name, shape=params[name].shape, dtype=str(params[name].dtype)) for name in ("data", "indices", "indptr"))
    x = relay.var("features", shape=(nodes, width))
    w0, w1 = (relay.var(name, shape=params[name].shape) for name in ("w0", "w1"))
    out = relay.nn.softmax(layer(relay.nn.relu(layer(x, w0, graph)), w1, graph))
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(out), out))

    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    features = rng.standard_normal((nodes, width)).astype("float32")
    module.run(features=features)
    got = module.get_output(0).numpy()

    dense = np.zeros((nodes, nodes), "float32")
    for row in range(nodes):
        dense[row, columns[starts[row] : starts[row + 1]]] = values[starts[row] : starts[row + 1]]
    scores = dense @ (np.maximum(dense @ (features @ params["w0"].T), 0) @ params["w1"].T)
    expected = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(got, expected / expected.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)
    print(f"{nodes} nodes, {len(values)} entries: probabilities of {got.shape[1]} classes agree with NumPy")


if __name__ == "__main__":
    main()
