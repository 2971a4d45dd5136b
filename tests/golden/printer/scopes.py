# from tensorexpr.script import tir as T

@T.prim_func
def other(A: T.Buffer((16,), "int32"), n: T.int32):
    T.func_attr({"tir.noalias": T.bool(False)})
    with T.LetStmt(n * 2) as x:
        T.attr(A, "storage_alignment", 64)
        A[0] = x
    i = T.int32()
    with T.attr(i, "pragma_hint", 1):
        T.call_extern("int32", "touch", A.data, "text", n)
    with T.launch_thread("vthread", 4) as vthread:
        A[vthread] = vthread
    T.evaluate(n)
    while A[0] < 10:
        A[0] = A[0] + 1
    assert n > 0, "n is \"0\""
    x: T.int32 = n // 2
    if x > 3:
        A[1] = x
    else:
        A[1] = 0 - x
