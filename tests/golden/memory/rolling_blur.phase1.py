# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((10, 18), "float32"), out: T.Buffer((8, 16), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer in T.parallel(2):
            B = T.allocate([48], "float32", "global")
            for i_inner in range(4):
                B_1 = T.Buffer((48,), data=B)
                A_1 = T.Buffer((180,), data=A.data)
                if i_inner == 0:
                    for i in range(2):
                        for j in T.vectorized(16):
                            B_1[i_outer * 16 + i * 16 + j] = A_1[i_outer * 72 + i * 18 + j] + A_1[i_outer * 72 + i * 18 + j + 1] + A_1[i_outer * 72 + i * 18 + j + 2]
                for j in T.vectorized(16):
                    B_1[(i_outer + i_inner + 2) % 3 * 16 + j] = A_1[i_outer * 72 + i_inner * 18 + j + 36] + A_1[i_outer * 72 + i_inner * 18 + j + 37] + A_1[i_outer * 72 + i_inner * 18 + j + 38]
                for j in T.vectorized(16):
                    out_1 = T.Buffer((128,), data=out.data)
                    out_1[i_outer * 64 + i_inner * 16 + j] = B_1[(i_outer + i_inner) % 3 * 16 + j] + B_1[(i_outer + i_inner + 1) % 3 * 16 + j] + B_1[(i_outer + i_inner + 2) % 3 * 16 + j]
