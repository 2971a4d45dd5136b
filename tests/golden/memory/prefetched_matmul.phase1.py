# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((16, 32), "float32"), C: T.Buffer((4, 32), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i in range(4):
            C_1 = T.Buffer((128,), data=C.data)
            for j_init in T.vectorized(32):
                C_1[i * 32 + j_init] = T.float32(0.0)
            for k in range(16):
                B_1 = T.Buffer((512,), data=B.data)
                for line0 in T.unroll(2):
                    T.prefetch(B_1[k * 32 + line0 * 16 + 128], 0, 3, 1)
                for j in T.vectorized(32):
                    A_1 = T.Buffer((64,), data=A.data)
                    C_1[i * 32 + j] = C_1[i * 32 + j] + A_1[i * 16 + k] * B_1[k * 32 + j]
