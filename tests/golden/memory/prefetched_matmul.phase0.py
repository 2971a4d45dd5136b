# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((16, 32), "float32"), C: T.Buffer((4, 32), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i in range(4):
            for j_init in T.vectorized(32):
                C[i, j_init] = T.float32(0.0)
            for k in range(16):
                T.attr(B, "prefetch_scope", 4)
                for j in T.vectorized(32):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]
