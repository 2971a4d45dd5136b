# from tensorexpr.script import ir as I
# from tensorexpr.script import tir as T

@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        for i, j in T.grid(4, 4):
            D = T.allocate([16], "float64", "local")
            D_1 = T.Buffer((16,), "float64", data=D, scope="local")
            for x, y in T.grid(4, 4):
                A_1 = T.Buffer((256,), data=A.data)
                D_1[x * 4 + y] = T.Cast("float64", A_1[i * 64 + j * 4 + x * 16 + y])
            for p, q in T.grid(4, 4):
                B_1 = T.Buffer((256,), data=B.data)
                B_1[i * 64 + p * 16 + j * 4 + q] = T.Cast("float32", D_1[p * 4 + q]) + T.float32(1.0)
