# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((11, 5), "float32"), B: T.Buffer((5, 37), "float32"), C: T.Buffer((11, 37), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        for j_outer in T.parallel(3):
            A_1 = T.Buffer((55,), data=A.data)
            B_1 = T.Buffer((185,), data=B.data)
            C_1 = T.Buffer((407,), data=C.data)
            if j_outer < 2:
                for i_outer in range(2):
                    C_local = T.allocate([4], "float32x16", "register")
                    C_local_1 = T.Buffer((4,), "float32x16", data=C_local, scope="register")
                    C_local_1[0] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[1] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[2] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[3] = T.Broadcast(T.float32(0.0), 16)
                    for k in range(5):
                        C_local_1[0] = C_local_1[0] + T.Broadcast(A_1[i_outer * 20 + k], 16) * B_1[k * 37 + j_outer * 16:k * 37 + j_outer * 16 + 16]
                        C_local_1[1] = C_local_1[1] + T.Broadcast(A_1[i_outer * 20 + 5 + k], 16) * B_1[k * 37 + j_outer * 16:k * 37 + j_outer * 16 + 16]
                        C_local_1[2] = C_local_1[2] + T.Broadcast(A_1[i_outer * 20 + 10 + k], 16) * B_1[k * 37 + j_outer * 16:k * 37 + j_outer * 16 + 16]
                        C_local_1[3] = C_local_1[3] + T.Broadcast(A_1[i_outer * 20 + 15 + k], 16) * B_1[k * 37 + j_outer * 16:k * 37 + j_outer * 16 + 16]
                    C_1[i_outer * 148 + j_outer * 16:i_outer * 148 + j_outer * 16 + 16] = C_local_1[0]
                    C_1[i_outer * 148 + 37 + j_outer * 16:i_outer * 148 + 37 + j_outer * 16 + 16] = C_local_1[1]
                    C_1[i_outer * 148 + 74 + j_outer * 16:i_outer * 148 + 74 + j_outer * 16 + 16] = C_local_1[2]
                    C_1[i_outer * 148 + 111 + j_outer * 16:i_outer * 148 + 111 + j_outer * 16 + 16] = C_local_1[3]
                C_local = T.allocate([3], "float32x16", "register")
                C_local_1 = T.Buffer((3,), "float32x16", data=C_local, scope="register")
                C_local_1[0] = T.Broadcast(T.float32(0.0), 16)
                C_local_1[1] = T.Broadcast(T.float32(0.0), 16)
                C_local_1[2] = T.Broadcast(T.float32(0.0), 16)
                for k in range(5):
                    C_local_1[0] = C_local_1[0] + T.Broadcast(A_1[k + 40], 16) * B_1[k * 37 + j_outer * 16:k * 37 + j_outer * 16 + 16]
                    C_local_1[1] = C_local_1[1] + T.Broadcast(A_1[k + 45], 16) * B_1[k * 37 + j_outer * 16:k * 37 + j_outer * 16 + 16]
                    C_local_1[2] = C_local_1[2] + T.Broadcast(A_1[k + 50], 16) * B_1[k * 37 + j_outer * 16:k * 37 + j_outer * 16 + 16]
                C_1[j_outer * 16 + 296:j_outer * 16 + 296 + 16] = C_local_1[0]
                C_1[j_outer * 16 + 333:j_outer * 16 + 333 + 16] = C_local_1[1]
                C_1[j_outer * 16 + 370:j_outer * 16 + 370 + 16] = C_local_1[2]
            else:
                for i_outer in range(2):
                    C_local = T.allocate([4], "float32x16", "register")
                    C_local_1 = T.Buffer((4,), "float32x16", data=C_local, scope="register")
                    C_local_1[0] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[1] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[2] = T.Broadcast(T.float32(0.0), 16)
                    C_local_1[3] = T.Broadcast(T.float32(0.0), 16)
                    for k in range(5):
                        C_local_1[0] = C_local_1[0] + T.Broadcast(A_1[i_outer * 20 + k], 16) * B_1.vload([T.Ramp(k * 37 + 32, 1, 16)], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                        C_local_1[1] = C_local_1[1] + T.Broadcast(A_1[i_outer * 20 + 5 + k], 16) * B_1.vload([T.Ramp(k * 37 + 32, 1, 16)], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                        C_local_1[2] = C_local_1[2] + T.Broadcast(A_1[i_outer * 20 + 10 + k], 16) * B_1.vload([T.Ramp(k * 37 + 32, 1, 16)], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                        C_local_1[3] = C_local_1[3] + T.Broadcast(A_1[i_outer * 20 + 15 + k], 16) * B_1.vload([T.Ramp(k * 37 + 32, 1, 16)], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                    C_1.vstore([T.Ramp(i_outer * 148 + 32, 1, 16)], C_local_1[0], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                    C_1.vstore([T.Ramp(i_outer * 148 + 37 + 32, 1, 16)], C_local_1[1], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                    C_1.vstore([T.Ramp(i_outer * 148 + 74 + 32, 1, 16)], C_local_1[2], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                    C_1.vstore([T.Ramp(i_outer * 148 + 111 + 32, 1, 16)], C_local_1[3], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                C_local = T.allocate([3], "float32x16", "register")
                C_local_1 = T.Buffer((3,), "float32x16", data=C_local, scope="register")
                C_local_1[0] = T.Broadcast(T.float32(0.0), 16)
                C_local_1[1] = T.Broadcast(T.float32(0.0), 16)
                C_local_1[2] = T.Broadcast(T.float32(0.0), 16)
                for k in range(5):
                    C_local_1[0] = C_local_1[0] + T.Broadcast(A_1[k + 40], 16) * B_1.vload([T.Ramp(k * 37 + 32, 1, 16)], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                    C_local_1[1] = C_local_1[1] + T.Broadcast(A_1[k + 45], 16) * B_1.vload([T.Ramp(k * 37 + 32, 1, 16)], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                    C_local_1[2] = C_local_1[2] + T.Broadcast(A_1[k + 50], 16) * B_1.vload([T.Ramp(k * 37 + 32, 1, 16)], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                C_1.vstore([T.Ramp(328, 1, 16)], C_local_1[0], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                C_1.vstore([T.Ramp(365, 1, 16)], C_local_1[1], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
                C_1.vstore([T.Ramp(402, 1, 16)], C_local_1[2], predicate=T.Ramp(32, 1, 16) < T.Broadcast(37, 16))
