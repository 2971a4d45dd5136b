# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.handle, B: T.handle):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        n = T.int32()
        A_1 = T.match_buffer(A, (n,))
        B_1 = T.match_buffer(B, (n,))
        for i_outer in T.parallel((n + 15) // 16):
            B_1.vstore([T.Ramp(i_outer * 16, 1, 16)], A_1.vload([T.Ramp(i_outer * 16, 1, 16)], predicate=T.Ramp(i_outer * 16, 1, 16) < T.Broadcast(n, 16)) * T.Broadcast(T.float32(2.0), 16), predicate=T.Ramp(i_outer * 16, 1, 16) < T.Broadcast(n, 16))
