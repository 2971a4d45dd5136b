import tensorexpr as tvm
from tensorexpr import tir
from tensorexpr.script import tir as T

@T.prim_func
def f1(A: T.Buffer((16,), "float32"), B: T.Buffer((16,16), "float32"), n: T.int32):
    for j in T.vectorized(8):
        A[j] = 1
    for i in range(16):
        for j in T.vectorized(16):
            B[i, j] = A[j] * 2.0 + T.float32(1)
    for j in T.vectorized(16):
        B[j, 3] = A[15 - j]

@T.prim_func
def f2(a: T.handle, n: T.int32, x: T.int32):
    A = T.match_buffer(a, (25,), "float32")
    for i in T.vectorized(4):
        if x < n:
            A[i] = A[i] + T.float32(1)
        else:
            if i < n:
                A[i] = T.float32(2)

@T.prim_func
def f3(A: T.Buffer((25,), "float32"), B: T.Buffer((25,), "int32")):
    for i in T.vectorized(4):
        v: T.float32 = A[i] + T.float32(1)
        A[i] = v + T.float32(2)
    for i in T.vectorized(4):
        A[i] = T.if_then_else(i > 0, A[i] + T.float32(1), A[i])
    for i in range(3):
        for j in T.vectorized(4):
            A[i * 4 + j] = T.if_then_else(i > 0, A[i * 4 + j], T.float32(0))
    for j in T.vectorized(8):
        A[j] = T.exp(A[j]) + T.Cast("float32", B[j * 2]) + T.Cast("float32", j)
    for j in T.vectorized(8):
        A[j] = T.Select(j < 3, T.float32(1), A[j // 2])
    for j in T.vectorized(8):
        B[j] = B[j] % 3 + j // 2 + j % 4 + T.max(j, 3) - j * 2

@T.prim_func
def f4(A: T.Buffer((25,), "float32")):
    for j in T.vectorized(4):
        for k in range(3):
            A[j * 3 + k] = T.float32(0)
    for j in T.vectorized(4):
        for k in range(j):
            A[k] = T.float32(0)
    for j in T.vectorized(4):
        T.evaluate(T.call_extern("int32", "foo", j))
    for j in T.vectorized(4):
        T.evaluate(T.call_pure_extern("int32", "foo", 3))
    for j in T.vectorized(4):
        assert j < 3, "oh"
        A[j] = T.float32(1)

@T.prim_func
def f5(A: T.Buffer((32,), "float32x4"), B: T.Buffer((128,), "float32")):
    for j in T.vectorized(4):
        A[j] = T.Broadcast(T.float32(1), 4)
    for j in T.vectorized(4):
        B[j * 4 : j * 4 + 4] = T.Broadcast(T.float32(1), 4)
    for j in T.vectorized(4):
        A[j] = A[j + 3]
    for j in T.vectorized(4):
        B[T.Ramp(j, 4, 4)] = T.Broadcast(T.float32(1), 4)

@T.prim_func
def f6(A: T.Buffer((32,), "float32"), B: T.Buffer((128,), "float32")):
    for j in T.vectorized(4):
        t = T.allocate([3], "float32", "local")
        tb = T.Buffer((3,), "float32", data=t, scope="local")
        for k in range(3):
            tb[k] = B[j]
        A[j] = tb[2]
    for j in T.vectorized(4):
        A[j] = B[j + 1]
    for j in T.vectorized(4):
        A[0] = B[j]
    for j in T.vectorized(1):
        A[j] = B[j]
    for i in T.vectorized(2):
        for j in T.vectorized(4):
            A[i * 4 + j] = B[i * 4 + j]

for f in (f1, f2, f3, f4, f5, f6):
    try:
        print(tir.transform.VectorizeLoop()(tvm.IRModule.from_expr(f.with_attr("global_symbol","main")))["main"].script())
    except Exception as e:
        print("ERR", str(e).splitlines()[-1])
