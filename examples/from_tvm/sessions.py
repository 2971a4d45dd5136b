"""Run a compiled function in another session: send the library, call it there, time it there.

python examples/from_tvm/sessions.py
"""

import numpy as np

import tensorexpr as tvm
from tensorexpr import rpc, te
from tensorexpr.contrib import utils


def main() -> None:
    """The same program with a server of this machine and without one."""
    a = te.placeholder((256,), name="a")
    b = te.compute((256,), lambda i: a[i] * a[i], name="b")
    square = tvm.build(te.create_schedule(b.op), [a, b], target="llvm", name="square")
    values = np.linspace(0, 1, 256, dtype="float32")
    with utils.tempdir() as folder, rpc.Server(port=0, port_end=0, key="example", silent=True) as server:
        path = folder.relpath("square.tar")
        square.export_library(path)
        for session in (rpc.LocalSession(), rpc.connect("127.0.0.1", server.port, key="example")):
            session.upload(path)
            func = session.load_module("square.tar")
            device = session.cpu(0)
            x, y = tvm.nd.array(values, device), tvm.nd.array(np.zeros_like(values), device)
            func(x, y)
            np.testing.assert_allclose(y.numpy(), values**2, rtol=1e-6)
            seconds = func.time_evaluator(func.entry_name, device, number=10)(x, y).mean
            print(f"{type(session).__name__}: 256 squares on {device} in {seconds * 1e9:.0f} ns")


if __name__ == "__main__":
    main()
