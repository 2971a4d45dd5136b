# from tensorexpr.script import tir as T

@T.prim_func
def main(C: T.Buffer((4, 4), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    with T.block("root"):
        T.reads()
        T.writes(C[0:4, 0:4])
        for i, j in T.grid(4, 4):
            with T.block(""):
                vi = T.axis.opaque(4, i)
                vj = T.axis.scan(4, j)
                vk = T.axis.reduce((2, 6), j + 2)
                T.reads()
                T.writes(C[vi, vj])
                C[vi, vj] = T.Cast("float32", vk)
