# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((9, 40), "float32"), B: T.Buffer((40, 24), "float32"), C: T.Buffer((9, 24), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for j_outer in T.parallel(2):
            B_global = T.allocate([640], "float32", "global")
            B_1 = T.Buffer((960,), data=B.data)
            A_1 = T.Buffer((360,), data=A.data)
            C_1 = T.Buffer((216,), data=C.data)
            if j_outer < 1:
                B_global_1 = T.Buffer((640,), data=B_global)
                for ax0 in range(40):
                    B_global_1[ax0 * 16:ax0 * 16 + 16] = B_1[ax0 * 24 + j_outer * 16:ax0 * 24 + j_outer * 16 + 16]
                for i_outer in range(2):
                    C_local = T.allocate([4], "float32x16", "register")
                    C_local_1 = T.Buffer((4,), "float32x16", data=C_local, scope="register")
                    C_local_1[0] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[1] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[2] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[3] = T.Broadcast(T.float32(0.0), 16)
                    for k in range(40):
                        C_local_1[0] = C_local_1[0] + T.Broadcast(A_1[i_outer * 160 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                        C_local_1[1] = C_local_1[1] + T.Broadcast(A_1[i_outer * 160 + 40 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                        C_local_1[2] = C_local_1[2] + T.Broadcast(A_1[i_outer * 160 + 80 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                        C_local_1[3] = C_local_1[3] + T.Broadcast(A_1[i_outer * 160 + 120 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                    C_1[i_outer * 96 + j_outer * 16:i_outer * 96 + j_outer * 16 + 16] = C_local_1[0]
                    C_1[i_outer * 96 + 24 + j_outer * 16:i_outer * 96 + 24 + j_outer * 16 + 16] = C_local_1[1]
                    C_1[i_outer * 96 + 48 + j_outer * 16:i_outer * 96 + 48 + j_outer * 16 + 16] = C_local_1[2]
                    C_1[i_outer * 96 + 72 + j_outer * 16:i_outer * 96 + 72 + j_outer * 16 + 16] = C_local_1[3]
                C_local = T.allocate([1], "float32x16", "register")
                C_local_1 = T.Buffer((1,), "float32x16", data=C_local, scope="register")
                C_local_1[0] = T.Broadcast(T.float32(0.0), 16)
                for k in range(40):
                    C_local_1[0] = C_local_1[0] + T.Broadcast(A_1[k + 320], 16) * B_global_1[k * 16:k * 16 + 16]
                C_1[j_outer * 16 + 192:j_outer * 16 + 192 + 16] = C_local_1[0]
            else:
                B_global_1 = T.Buffer((640,), data=B_global)
                for ax0 in range(40):
                    B_global_1[ax0 * 16:ax0 * 16 + 16] = B_1.vload([T.Ramp(ax0 * 24 + 16, 1, 16)], predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16))
                for i_outer in range(2):
                    C_local = T.allocate([4], "float32x16", "register")
                    C_local_1 = T.Buffer((4,), "float32x16", data=C_local, scope="register")
                    C_local_1[0] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[1] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[2] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[3] = T.Broadcast(T.float32(0.0), 16)
                    for k in range(40):
                        C_local_1[0] = C_local_1[0] + T.Broadcast(A_1[i_outer * 160 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                        C_local_1[1] = C_local_1[1] + T.Broadcast(A_1[i_outer * 160 + 40 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                        C_local_1[2] = C_local_1[2] + T.Broadcast(A_1[i_outer * 160 + 80 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                        C_local_1[3] = C_local_1[3] + T.Broadcast(A_1[i_outer * 160 + 120 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                    C_1.vstore([T.Ramp(i_outer * 96 + 16, 1, 16)], C_local_1.vload([0], predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16)), predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16))
                    C_1.vstore([T.Ramp(i_outer * 96 + 24 + 16, 1, 16)], C_local_1.vload([1], predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16)), predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16))
                    C_1.vstore([T.Ramp(i_outer * 96 + 48 + 16, 1, 16)], C_local_1.vload([2], predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16)), predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16))
                    C_1.vstore([T.Ramp(i_outer * 96 + 72 + 16, 1, 16)], C_local_1.vload([3], predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16)), predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16))
                C_local = T.allocate([1], "float32x16", "register")
                C_local_1 = T.Buffer((1,), "float32x16", data=C_local, scope="register")
                C_local_1[0] = T.Broadcast(T.float32(0.0), 16)
                for k in range(40):
                    C_local_1[0] = C_local_1[0] + T.Broadcast(A_1[k + 320], 16) * B_global_1[k * 16:k * 16 + 16]
                C_1.vstore([T.Ramp(208, 1, 16)], C_local_1.vload([0], predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16)), predicate=T.Ramp(16, 1, 16) < T.Broadcast(24, 16))
