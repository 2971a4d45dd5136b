# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((11, 5), "float32"), B: T.Buffer((5, 37), "float32"), C: T.Buffer((11, 37), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for j_outer in T.parallel(3):
            for i_outer in range(3):
                C_local = T.allocate([4], "float32x16", "register")
                C_local_1 = T.Buffer((4,), "float32x16", data=C_local, scope="register")
                C_local_1.vstore([0], T.Broadcast(T.float32(0.0), 16), predicate=T.Broadcast(T.likely(i_outer < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16))
                C_local_1.vstore([1], T.Broadcast(T.float32(0.0), 16), predicate=T.Broadcast(T.likely(i_outer + 1 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16))
                C_local_1.vstore([2], T.Broadcast(T.float32(0.0), 16), predicate=T.Broadcast(T.likely(i_outer + 2 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16))
                C_local_1.vstore([3], T.Broadcast(T.float32(0.0), 16), predicate=T.Broadcast(T.likely(i_outer + 3 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16))
                for k in range(5):
                    A_1 = T.Buffer((55,), data=A.data)
                    B_1 = T.Buffer((185,), data=B.data)
                    C_local_1.vstore([0], C_local_1.vload([0], predicate=T.Broadcast(T.likely(i_outer < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16)) + T.Broadcast(A_1[i_outer * 20 + k], 16) * B_1.vload([T.Ramp(k * 37 + j_outer * 16, 1, 16)], predicate=T.Broadcast(T.likely(i_outer < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16)), predicate=T.Broadcast(T.likely(i_outer < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16))
                    C_local_1.vstore([1], C_local_1.vload([1], predicate=T.Broadcast(T.likely(i_outer + 1 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16)) + T.Broadcast(A_1[i_outer * 20 + 5 + k], 16) * B_1.vload([T.Ramp(k * 37 + j_outer * 16, 1, 16)], predicate=T.Broadcast(T.likely(i_outer + 1 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16)), predicate=T.Broadcast(T.likely(i_outer + 1 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16))
                    C_local_1.vstore([2], C_local_1.vload([2], predicate=T.Broadcast(T.likely(i_outer + 2 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16)) + T.Broadcast(A_1[i_outer * 20 + 10 + k], 16) * B_1.vload([T.Ramp(k * 37 + j_outer * 16, 1, 16)], predicate=T.Broadcast(T.likely(i_outer + 2 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16)), predicate=T.Broadcast(T.likely(i_outer + 2 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16))
                    C_local_1.vstore([3], C_local_1.vload([3], predicate=T.Broadcast(T.likely(i_outer + 3 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16)) + T.Broadcast(T.if_then_else(T.likely(i_outer + 3 < 5), A_1[i_outer * 20 + 15 + k], T.float32(0.0)), 16) * B_1.vload([T.Ramp(k * 37 + j_outer * 16, 1, 16)], predicate=T.Broadcast(T.likely(i_outer + 3 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16)), predicate=T.Broadcast(T.likely(i_outer + 3 < 5), 16) and T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16))
                C_1 = T.Buffer((407,), data=C.data)
                C_1.vstore([T.Ramp(i_outer * 148 + j_outer * 16, 1, 16)], C_local_1.vload([0], predicate=T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16) and T.Broadcast(T.likely(i_outer < 5), 16)), predicate=T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16) and T.Broadcast(T.likely(i_outer < 5), 16))
                C_1.vstore([T.Ramp(i_outer * 148 + 37 + j_outer * 16, 1, 16)], C_local_1.vload([1], predicate=T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16) and T.Broadcast(T.likely(i_outer + 1 < 5), 16)), predicate=T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16) and T.Broadcast(T.likely(i_outer + 1 < 5), 16))
                C_1.vstore([T.Ramp(i_outer * 148 + 74 + j_outer * 16, 1, 16)], C_local_1.vload([2], predicate=T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16) and T.Broadcast(T.likely(i_outer + 2 < 5), 16)), predicate=T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16) and T.Broadcast(T.likely(i_outer + 2 < 5), 16))
                C_1.vstore([T.Ramp(i_outer * 148 + 111 + j_outer * 16, 1, 16)], C_local_1.vload([3], predicate=T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16) and T.Broadcast(T.likely(i_outer + 3 < 5), 16)), predicate=T.Ramp(j_outer * 16, 1, 16) < T.Broadcast(37, 16) and T.Broadcast(T.likely(i_outer + 3 < 5), 16))
