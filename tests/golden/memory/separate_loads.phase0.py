# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 6), "float32"), W: T.Buffer((8, 3, 16), "float32"), out: T.Buffer((4, 16), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_init in range(4):
            for j_init in T.vectorized(16):
                out[i_init, j_init] = T.float32(0.0)
        for c in range(8):
            for r in T.unroll(3, annotations={"pragma_no_load_merge": T.bool(True)}):
                for i in range(4):
                    for j in T.vectorized(16):
                        out[i, j] = out[i, j] + A[c, i + r] * W[c, r, j]
