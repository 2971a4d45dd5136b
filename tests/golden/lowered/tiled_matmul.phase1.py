# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 24), "float32"), B: T.Buffer((24, 64), "float32"), C: T.Buffer((16, 64), "float32"), out: T.Buffer((16, 64), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer_j_outer_fused in T.parallel(4):
            matmul = T.allocate([256], "float32", "global")
            matmul_1 = T.Buffer((256,), data=matmul)
            for i_init in range(8):
                for j_init in T.vectorized(32):
                    matmul_1[i_init * 32 + j_init] = T.float32(0.0)
            for k_outer, k_inner, i in T.grid(3, 8, 8):
                for j in T.vectorized(32):
                    A_1 = T.Buffer((384,), data=A.data)
                    B_1 = T.Buffer((1536,), data=B.data)
                    matmul_1[i * 32 + j] = matmul_1[i * 32 + j] + A_1[i_outer_j_outer_fused // 2 * 192 + i * 24 + k_outer * 8 + k_inner] * B_1[k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32 + j]
            for i_inner in range(8):
                for j_inner in T.vectorized(32):
                    out_1 = T.Buffer((1024,), data=out.data)
                    C_1 = T.Buffer((1024,), data=C.data)
                    out_1[i_outer_j_outer_fused // 2 * 512 + i_inner * 64 + i_outer_j_outer_fused % 2 * 32 + j_inner] = matmul_1[i_inner * 32 + j_inner] + C_1[i_outer_j_outer_fused // 2 * 512 + i_inner * 64 + i_outer_j_outer_fused % 2 * 32 + j_inner]
