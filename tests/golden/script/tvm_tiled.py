# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for i_outer in T.parallel(8):
            for j_outer in range(2):
                C_1 = T.Buffer((4096,), data=C.data)
                for i_inner_init in range(8):
                    C_1[i_outer * 512 + i_inner_init * 64 + j_outer * 32:i_outer * 512 + i_inner_init * 64 + j_outer * 32 + 32] = T.Broadcast(T.float32(0.0), 32)
                for k_outer, i_inner in T.grid(16, 8):
                    cse_var_5: T.int32 = j_outer * 32
                    cse_var_4: T.int32 = i_outer * 512 + i_inner * 64
                    cse_var_3: T.int32 = k_outer * 256 + cse_var_5
                    cse_var_2: T.int32 = cse_var_4 + k_outer * 4
                    cse_var_1: T.int32 = cse_var_4 + cse_var_5
                    A_1 = T.Buffer((4096,), data=A.data)
                    B_1 = T.Buffer((4096,), data=B.data)
                    C_1[cse_var_1:cse_var_1 + 32] = C_1[cse_var_1:cse_var_1 + 32] + T.Broadcast(A_1[cse_var_2], 32) * B_1[cse_var_3:cse_var_3 + 32]
                    C_1[cse_var_1:cse_var_1 + 32] = C_1[cse_var_1:cse_var_1 + 32] + T.Broadcast(A_1[cse_var_2 + 1], 32) * B_1[cse_var_3 + 64:cse_var_3 + 64 + 32]
                    C_1[cse_var_1:cse_var_1 + 32] = C_1[cse_var_1:cse_var_1 + 32] + T.Broadcast(A_1[cse_var_2 + 2], 32) * B_1[cse_var_3 + 128:cse_var_3 + 128 + 32]
                    C_1[cse_var_1:cse_var_1 + 32] = C_1[cse_var_1:cse_var_1 + 32] + T.Broadcast(A_1[cse_var_2 + 3], 32) * B_1[cse_var_3 + 192:cse_var_3 + 192 + 32]
