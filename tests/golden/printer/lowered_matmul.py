# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32"), out: T.Buffer((64, 64), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer in T.parallel(8):
            matmul = T.allocate([512], "float32", "global")
            for j_outer in range(3):
                matmul_1 = T.Buffer((512,), data=matmul)
                for i, j in T.grid(8, 24):
                    matmul_1[i * 24 + j] = T.float32(0.0)
                    for k in range(64):
                        A_1 = T.Buffer((4096,), data=A.data)
                        B_1 = T.Buffer((4096,), data=B.data)
                        matmul_1[i * 24 + j] = matmul_1[i * 24 + j] + A_1[i_outer * 512 + i * 64 + k] * B_1[k * 64 + j_outer * 24 + j]
                for i_inner in range(8):
                    for j_inner in T.vectorized(24):
                        if T.likely(j_outer * 24 + j_inner < 64):
                            out_1 = T.Buffer((4096,), data=out.data)
                            C_1 = T.Buffer((4096,), data=C.data)
                            out_1[i_outer * 512 + i_inner * 64 + j_outer * 24 + j_inner] = matmul_1[i_inner * 24 + j_inner] + C_1[i_outer * 512 + i_inner * 64 + j_outer * 24 + j_inner]
