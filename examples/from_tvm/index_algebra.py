"""The algebra of indices as a library: bounds, congruences, proofs, maps of iterators.

python examples/from_tvm/index_algebra.py
"""

import tensorexpr as tvm
from tensorexpr import arith, te, tir


def main() -> None:
    """Ask an analyzer what it knows of an index into tiles, and take the index apart."""
    i, j = te.var("i"), te.var("j")
    index = i * 8 + j
    analyzer = arith.Analyzer()
    analyzer.bind(i, tvm.ir.Range(0, 16))
    analyzer.bind(j, tvm.ir.Range(0, 8))

    bound = analyzer.const_int_bound(index)
    print(f"{index} lies in {bound.min_value}..{bound.max_value}")
    assert (bound.min_value, bound.max_value) == (0, 127)

    print(f"in tiles of 8 that is the tile {analyzer.simplify(index // 8)} and the place {analyzer.simplify(index % 8)}")
    assert analyzer.can_prove_equal(index // 8, i) and analyzer.can_prove(index < 128)
    assert analyzer.modular_set(i * 8 + 3).coeff == 8

    ranges = {i: tvm.ir.Range(0, 16), j: tvm.ir.Range(0, 8)}
    assert arith.detect_iter_map([index], ranges, check_level="bijective").indices, "each value once"
    assert not arith.detect_iter_map([i * 4 + j], ranges, check_level="bijective").indices, "some values twice"
    assert tvm.ir.structural_equal(arith.detect_linear_equation(index, [i, j])[0], tir.const(8, "int32"))


if __name__ == "__main__":
    main()
