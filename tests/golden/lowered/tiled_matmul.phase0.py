# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 24), "float32"), B: T.Buffer((24, 64), "float32"), C: T.Buffer((16, 64), "float32"), out: T.Buffer((16, 64), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer_j_outer_fused in T.parallel(4):
            matmul = T.Buffer((16, 64))
            T.realize(matmul[i_outer_j_outer_fused // 2 * 8:i_outer_j_outer_fused // 2 * 8 + 8, i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused % 2 * 32 + 32])
            for i_init in range(8):
                for j_init in T.vectorized(32):
                    matmul[i_outer_j_outer_fused // 2 * 8 + i_init, i_outer_j_outer_fused % 2 * 32 + j_init] = T.float32(0.0)
            for k_outer, k_inner, i in T.grid(3, 8, 8):
                for j in T.vectorized(32):
                    matmul[i_outer_j_outer_fused // 2 * 8 + i, i_outer_j_outer_fused % 2 * 32 + j] = matmul[i_outer_j_outer_fused // 2 * 8 + i, i_outer_j_outer_fused % 2 * 32 + j] + A[i_outer_j_outer_fused // 2 * 8 + i, k_outer * 8 + k_inner] * B[k_outer * 8 + k_inner, i_outer_j_outer_fused % 2 * 32 + j]
            for i_inner in range(8):
                for j_inner in T.vectorized(32):
                    out[i_outer_j_outer_fused // 2 * 8 + i_inner, i_outer_j_outer_fused % 2 * 32 + j_inner] = matmul[i_outer_j_outer_fused // 2 * 8 + i_inner, i_outer_j_outer_fused % 2 * 32 + j_inner] + C[i_outer_j_outer_fused // 2 * 8 + i_inner, i_outer_j_outer_fused % 2 * 32 + j_inner]
