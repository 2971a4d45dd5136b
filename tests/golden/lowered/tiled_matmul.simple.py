# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 24), "float32"), B: T.Buffer((24, 64), "float32"), C: T.Buffer((16, 64), "float32"), out: T.Buffer((16, 64), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer_j_outer_fused in T.parallel(4):
            matmul = T.allocate([8], "float32x32", "register")
            matmul_1 = T.Buffer((8,), "float32x32", data=matmul, scope="register")
            matmul_1[0] = T.Broadcast(T.float32(0.0), 32)
            matmul_1[1] = T.Broadcast(T.float32(0.0), 32)
            matmul_1[2] = T.Broadcast(T.float32(0.0), 32)
            matmul_1[3] = T.Broadcast(T.float32(0.0), 32)
            matmul_1[4] = T.Broadcast(T.float32(0.0), 32)
            matmul_1[5] = T.Broadcast(T.float32(0.0), 32)
            matmul_1[6] = T.Broadcast(T.float32(0.0), 32)
            matmul_1[7] = T.Broadcast(T.float32(0.0), 32)
            for k_outer, k_inner in T.grid(3, 8):
                A_1 = T.Buffer((384,), data=A.data)
                B_1 = T.Buffer((1536,), data=B.data)
                matmul_1[0] = matmul_1[0] + T.Broadcast(A_1[i_outer_j_outer_fused // 2 * 192 + k_outer * 8 + k_inner], 32) * B_1[k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32:k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32 + 32]
                matmul_1[1] = matmul_1[1] + T.Broadcast(A_1[i_outer_j_outer_fused // 2 * 192 + 24 + k_outer * 8 + k_inner], 32) * B_1[k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32:k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32 + 32]
                matmul_1[2] = matmul_1[2] + T.Broadcast(A_1[i_outer_j_outer_fused // 2 * 192 + 48 + k_outer * 8 + k_inner], 32) * B_1[k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32:k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32 + 32]
                matmul_1[3] = matmul_1[3] + T.Broadcast(A_1[i_outer_j_outer_fused // 2 * 192 + 72 + k_outer * 8 + k_inner], 32) * B_1[k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32:k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32 + 32]
                matmul_1[4] = matmul_1[4] + T.Broadcast(A_1[i_outer_j_outer_fused // 2 * 192 + 96 + k_outer * 8 + k_inner], 32) * B_1[k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32:k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32 + 32]
                matmul_1[5] = matmul_1[5] + T.Broadcast(A_1[i_outer_j_outer_fused // 2 * 192 + 120 + k_outer * 8 + k_inner], 32) * B_1[k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32:k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32 + 32]
                matmul_1[6] = matmul_1[6] + T.Broadcast(A_1[i_outer_j_outer_fused // 2 * 192 + 144 + k_outer * 8 + k_inner], 32) * B_1[k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32:k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32 + 32]
                matmul_1[7] = matmul_1[7] + T.Broadcast(A_1[i_outer_j_outer_fused // 2 * 192 + 168 + k_outer * 8 + k_inner], 32) * B_1[k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32:k_outer * 512 + k_inner * 64 + i_outer_j_outer_fused % 2 * 32 + 32]
            out_1 = T.Buffer((1024,), data=out.data)
            C_1 = T.Buffer((1024,), data=C.data)
            out_1[i_outer_j_outer_fused // 2 * 512 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + i_outer_j_outer_fused % 2 * 32 + 32] = matmul_1[0] + C_1[i_outer_j_outer_fused // 2 * 512 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + i_outer_j_outer_fused % 2 * 32 + 32]
            out_1[i_outer_j_outer_fused // 2 * 512 + 64 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 64 + i_outer_j_outer_fused % 2 * 32 + 32] = matmul_1[1] + C_1[i_outer_j_outer_fused // 2 * 512 + 64 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 64 + i_outer_j_outer_fused % 2 * 32 + 32]
            out_1[i_outer_j_outer_fused // 2 * 512 + 128 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 128 + i_outer_j_outer_fused % 2 * 32 + 32] = matmul_1[2] + C_1[i_outer_j_outer_fused // 2 * 512 + 128 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 128 + i_outer_j_outer_fused % 2 * 32 + 32]
            out_1[i_outer_j_outer_fused // 2 * 512 + 192 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 192 + i_outer_j_outer_fused % 2 * 32 + 32] = matmul_1[3] + C_1[i_outer_j_outer_fused // 2 * 512 + 192 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 192 + i_outer_j_outer_fused % 2 * 32 + 32]
            out_1[i_outer_j_outer_fused // 2 * 512 + 256 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 256 + i_outer_j_outer_fused % 2 * 32 + 32] = matmul_1[4] + C_1[i_outer_j_outer_fused // 2 * 512 + 256 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 256 + i_outer_j_outer_fused % 2 * 32 + 32]
            out_1[i_outer_j_outer_fused // 2 * 512 + 320 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 320 + i_outer_j_outer_fused % 2 * 32 + 32] = matmul_1[5] + C_1[i_outer_j_outer_fused // 2 * 512 + 320 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 320 + i_outer_j_outer_fused % 2 * 32 + 32]
            out_1[i_outer_j_outer_fused // 2 * 512 + 384 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 384 + i_outer_j_outer_fused % 2 * 32 + 32] = matmul_1[6] + C_1[i_outer_j_outer_fused // 2 * 512 + 384 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 384 + i_outer_j_outer_fused % 2 * 32 + 32]
            out_1[i_outer_j_outer_fused // 2 * 512 + 448 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 448 + i_outer_j_outer_fused % 2 * 32 + 32] = matmul_1[7] + C_1[i_outer_j_outer_fused // 2 * 512 + 448 + i_outer_j_outer_fused % 2 * 32:i_outer_j_outer_fused // 2 * 512 + 448 + i_outer_j_outer_fused % 2 * 32 + 32]
