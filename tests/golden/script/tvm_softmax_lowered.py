# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((8, 16), "float32"), O: T.Buffer((8, 16), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
        mx = T.allocate([8], "float32", "global")
        ex = T.allocate([128], "float32", "global")
        mx_1 = T.Buffer((8,), data=mx, align=32)
        A_1 = T.Buffer((128,), data=A.data)
        for i in range(8):
            mx_1[i] = T.float32(-340282346638528859811704183484516925440.0)
            for k in range(16):
                mx_1[i] = T.max(mx_1[i], A_1[i * 16 + k])
        ex_1 = T.Buffer((128,), data=ex)
        for i, j in T.grid(8, 16):
            cse_var_1: T.int32 = i * 16 + j
            ex_1[cse_var_1] = T.exp(A_1[cse_var_1] - mx_1[i])
        mx_2 = T.Buffer((8,), data=mx, align=32)
        for i in range(8):
            mx_2[i] = T.float32(0.0)
            for k2 in range(16):
                mx_2[i] = mx_2[i] + ex_1[i * 16 + k2]
        for i, j in T.grid(8, 16):
            cse_var_2: T.int32 = i * 16 + j
            O_1 = T.Buffer((128,), data=O.data)
            O_1[cse_var_2] = ex_1[cse_var_2] / mx_2[i]
