# from tensorexpr.script import tir as T

@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
    for_1 = T.allocate([8], "float32", "global", annotations={"x": 1})
    for_2 = T.decl_buffer((8,), data=for_1)
    A_1 = T.Buffer((8,), data=A.data)
    for i in range(8):
        A_1[i] = A_1[i]
    for i, i_1 in T.grid(8, 8):
        A_1[i_1] = A_1[i] + for_2[i_1]
    for i in range(8):
        A[i] = A_1[i]
