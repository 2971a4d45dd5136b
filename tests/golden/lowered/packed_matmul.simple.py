# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((9, 40), "float32"), B: T.Buffer((40, 24), "float32"), C: T.Buffer((9, 24), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for j_outer in T.parallel(2):
            B_global = T.allocate([640], "float32", "global")
            B_global_1 = T.Buffer((640,), data=B_global)
            for ax0 in range(40):
                B_1 = T.Buffer((960,), data=B.data)
                B_global_1[ax0 * 16:ax0 * 16 + 16] = B_1.vload([T.Ramp(ax0 * 24 + j_outer * 16, 1, 16)], predicate=T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(24, 16))
            for i_outer in range(3):
                C_local = T.allocate([4], "float32x16", "register")
                C_local_1 = T.Buffer((4,), "float32x16", data=C_local, scope="register")
                C_local_1[0] = T.Broadcast(T.float32(0.0), 16)
                if T.likely(i_outer * 4 + 1 < 9):
                    C_local_1[1] = T.Broadcast(T.float32(0.0), 16)
                if T.likely(i_outer * 4 + 2 < 9):
                    C_local_1[2] = T.Broadcast(T.float32(0.0), 16)
                if T.likely(i_outer * 4 + 3 < 9):
                    C_local_1[3] = T.Broadcast(T.float32(0.0), 16)
                for k in range(40):
                    A_1 = T.Buffer((360,), data=A.data)
                    C_local_1[0] = C_local_1[0] + T.Broadcast(A_1[i_outer * 160 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                    if T.likely(i_outer * 4 + 1 < 9):
                        C_local_1[1] = C_local_1[1] + T.Broadcast(A_1[i_outer * 160 + 40 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                    if T.likely(i_outer * 4 + 2 < 9):
                        C_local_1[2] = C_local_1[2] + T.Broadcast(A_1[i_outer * 160 + 80 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                    if T.likely(i_outer * 4 + 3 < 9):
                        C_local_1[3] = C_local_1[3] + T.Broadcast(A_1[i_outer * 160 + 120 + k], 16) * B_global_1[k * 16:k * 16 + 16]
                C_1 = T.Buffer((216,), data=C.data)
                C_1.vstore([T.Ramp(i_outer * 96 + j_outer * 16, 1, 16)], C_local_1.vload([0], predicate=T.Broadcast(T.likely(i_outer * 4 < 9), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(24, 16)), predicate=T.Broadcast(T.likely(i_outer * 4 < 9), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(24, 16))
                C_1.vstore([T.Ramp(i_outer * 96 + 24 + j_outer * 16, 1, 16)], C_local_1.vload([1], predicate=T.Broadcast(T.likely(i_outer * 4 + 1 < 9), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(24, 16)), predicate=T.Broadcast(T.likely(i_outer * 4 + 1 < 9), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(24, 16))
                C_1.vstore([T.Ramp(i_outer * 96 + 48 + j_outer * 16, 1, 16)], C_local_1.vload([2], predicate=T.Broadcast(T.likely(i_outer * 4 + 2 < 9), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(24, 16)), predicate=T.Broadcast(T.likely(i_outer * 4 + 2 < 9), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(24, 16))
                C_1.vstore([T.Ramp(i_outer * 96 + 72 + j_outer * 16, 1, 16)], C_local_1.vload([3], predicate=T.Broadcast(T.likely(i_outer * 4 + 3 < 9), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(24, 16)), predicate=T.Broadcast(T.likely(i_outer * 4 + 3 < 9), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(24, 16))
