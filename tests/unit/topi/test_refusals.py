"""Arguments that loops would read past, or divide by, are refused by name; what is merely empty is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.topi import vision
from tests.operators import run


@pytest.mark.parametrize(
    ("shapes", "call", "message"),
    [
        ([], lambda: topi.elemwise_sum([]), "there is no tensor"),
        ([(3,)], lambda x: topi.trilu(x, 0, True), "takes matrices"),
        ([(3,)], lambda x: topi.matrix_set_diag(x, x), "takes matrices"),
        ([(2, 3), (7,)], topi.matrix_set_diag, "the longest diagonal"),
        ([(4, 4), (2,)], topi.matrix_set_diag, "the longest diagonal"),
        ([(2, 3), (1, 2)], lambda x, v: topi.matrix_set_diag(x, v, (0, 1)), "the diagonals"),
        ([(2, 3), (3,)], lambda x, v: topi.matrix_set_diag(x, v, (0, 1)), "a row of one"),
        ([(5, 2, 3), (4, 2)], topi.matrix_set_diag, "extent 0 of data and diagonal"),
        ([(3,), (3,)], topi.sequence_mask, "steps and a batch"),
        ([(3, 3), (3,)], lambda x, n: topi.reverse_sequence(x, n, 1, -1), "are both 1"),
        ([(3, 4), (4,)], lambda x, n: topi.reverse_sequence(x, n, 1, 0), "extent of axis 0 must be equal, but they are 4 and 3"),
        ([(3,)], lambda x: topi.sliding_window(x, 0, (2,), (0,)), "each is 1 or more"),
        ([(2, 3), (1, 3), (1, 1)], lambda x, i, u: topi.scatter_elements(x, i, u, 0), "extent 1 of indices and updates"),
        ([(2, 3), (1, 5), (1, 5)], lambda x, i, u: topi.scatter_elements(x, i, u, 0), "it can't be larger"),
        ([(2, 3), (1, 5), (5, 4)], lambda x, i, u: topi.scatter_nd(x, i, u, "add"), "extent 1 of updates"),
        ([(2, 3), (1, 5), (4, 3)], lambda x, i, u: topi.scatter_nd(x, i, u, "add"), "extent 0 of updates"),
        ([(2, 2)], topi.invert_permutation, "1 dimensions"),
        ([(2, 4), (2,), (3,), (3,)], topi.nn.sparse_dense, "sparse_data and sparse_indices"),
        ([(1, 1, 2, 2)] * 2, lambda a, b: topi.nn.correlation_nchw(a, b, 1, 0, 1, 0, 0, True), "strides are 1 or more"),
        ([(1, 1, 0)], lambda x: topi.nn.adaptive_pool1d(x, 2, "avg"), "one or more of each"),
        ([(1, 1, 3)], lambda x: topi.nn.adaptive_pool1d(x, 0, "avg"), "one or more of each"),
        ([(1, 1, 0, 2)], vision.multibox_prior, "one or more of each"),
        ([(1, 3, 4, 4)], lambda x: vision.reorg(x, 2), "its square C"),
        ([(1, 4, 3, 4)], lambda x: vision.reorg(x, 2), "it divides H and W"),
    ],
)
def test_arguments_are_refused(shapes: Any, call: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        call(*(te.placeholder(shape, "float32" if n in (0, 2) else "int32") for n, shape in enumerate(shapes)))


@pytest.mark.parametrize(
    ("shape", "call", "wanted"),
    [
        ((3, 0), lambda x: topi.sort(x, 0), (3, 0)),
        ((3, 0), lambda x: topi.argsort(x, axis=0), (3, 0)),
        ((3, 0), lambda x: topi.topk(x, 2, 0, "values"), (2, 0)),
        ((3, 0, 2), lambda x: topi.cumsum(x, 0), (3, 0, 2)),
        ((3, 0, 2), topi.cumsum, (0,)),
        ((3, 0), lambda x: topi.argwhere((4, 2), x), (4, 2)),
    ],
)
def test_nothing_is_sorted_summed_and_found(shape: Any, call: Any, wanted: Any) -> None:
    found = run(call, np.zeros(shape, "float32"))
    assert (found[0] if isinstance(found, list) else found).shape == wanted
