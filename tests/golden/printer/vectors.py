# from tensorexpr.script import tir as T

@T.prim_func
def main(A: T.Buffer((64,), "float32"), out: T.Buffer((64,), "float32")):
    T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
    acc = T.allocate([2], "float32x16", "register")
    acc_1 = T.Buffer((2,), "float32x16", data=acc, scope="register")
    acc_1[0] = T.Broadcast(T.float32(0.0), 16)
    for i in range(4):
        acc_1[0] = acc_1[0] + A.vload([T.Ramp(i * 16, 1, 16)], predicate=T.Ramp(i * 16, 1, 16) < T.Broadcast(60, 16))
        out.vstore([T.Ramp(i * 16, 1, 16)], acc_1[0], predicate=T.Ramp(i * 16, 1, 16) < T.Broadcast(60, 16))
    out[16:32] = A[0:32:2]
    out[0:2] = T.Shuffle([A[0:8]], [7, 6])
    out[0:8] = A[T.Ramp(7, -1, 8)]
