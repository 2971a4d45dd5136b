# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 64), "float32"), out: T.Buffer((8, 64), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        T.attr(out.data, "nontemporal_store", 1)
        for i in T.parallel(8):
            for j in T.vectorized(64):
                out[i, j] = A[i, j] * T.float32(2.0)
