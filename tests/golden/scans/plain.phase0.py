# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer((6, 5), "float32"), sums: T.Buffer((6, 5), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        first = T.Buffer((1, 5))
        T.realize(first[0:1, 0:5])
        for i in range(5):
            first[0, i] = X[0, i]
        for sums_out0_i1 in range(5):
            sums[0, sums_out0_i1] = first[0, sums_out0_i1]
        for sums_idx in range(5):
            kept = T.Buffer((6, 5))
            T.realize(kept[sums_idx + 1:sums_idx + 1 + 1, 0:5])
            for i in range(5):
                kept[sums_idx + 1, i] = sums[sums_idx + 1 - 1, i] * T.float32(1.0)
            for i in range(5):
                sums[sums_idx + 1, i] = kept[sums_idx + 1, i] + X[sums_idx + 1, i]
