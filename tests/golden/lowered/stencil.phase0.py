# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((20,), "float32"), D: T.Buffer((18,), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer in range(5):
            B = T.Buffer((20,))
            T.realize(B[i_outer * 4:i_outer * 4 + 6])
            for i in range(6):
                if T.likely(i_outer * 4 + i < 20):
                    B[i_outer * 4 + i] = A[i_outer * 4 + i] + T.float32(1.0)
            C = T.Buffer((20,))
            T.realize(C[i_outer * 4:i_outer * 4 + 4])
            for i in range(4):
                C[i_outer * 4 + i] = B[i_outer * 4 + i] * T.float32(2.0)
            for i_inner in range(4):
                if T.likely(i_outer * 4 + i_inner < 18):
                    D[i_outer * 4 + i_inner] = C[i_outer * 4 + i_inner] - B[i_outer * 4 + i_inner + 2]
