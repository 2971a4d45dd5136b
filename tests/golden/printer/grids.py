# from tensorexpr.script import tir as T

@T.prim_func
def main(A: T.Buffer((8, 8, 8), "float32")):
    T.func_attr({"from_legacy_te_schedule": T.bool(True), "tir.noalias": T.bool(True)})
    for i, j, k in T.grid(8, 8, 8):
        A[i, j, k] = T.float32(1.0)
    for i in range(8):
        for j, k in T.grid(i + 1, 8):
            A[i, j, k] = T.float32(1.0)
    for i in T.parallel(8):
        for j in range(8):
            for k in T.vectorized(8):
                A[i, j, k] = T.float32(1.0)
    for i in range(2, 5):
        for j in range(8):
            for k in T.serial(8, annotations={"note": "text"}):
                A[i, j, k] = T.float32(1.0)
    for i in range(8):
        for j in T.unroll(i, i + (8 - i)):
            for k in range(8):
                A[i, j, k] = T.float32(1.0)
