"""tvmc in Python: a model is loaded, tuned for some seconds, compiled, run and loaded again.

python examples/from_tvm/tvmc_python.py [--budget SECONDS]
"""

import argparse

import numpy as np

from tensorexpr.contrib import utils
from tensorexpr.driver import tvmc

NETWORK = """
#[version = "0.0.5"]
def @main(%x: Tensor[(8, 64), float32], %w: Tensor[(32, 64), float32]) {
  %0 = nn.dense(%x, %w);
  nn.relu(%0)
}
"""


def main() -> None:
    """Each step of tvmc."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=8.0)
    budget = parser.parse_args().budget
    with utils.tempdir() as folder:
        path = folder.relpath("net.relay")
        with open(path, "w", encoding="utf-8") as file:
            file.write(NETWORK)
        model = tvmc.load(path)
        model.summary()
        records = tvmc.tune(model, target="llvm", tuning_records=folder.relpath("records.json"), budget_s=budget)
        package = tvmc.compile(model, target="llvm", tuning_records=records, package_path=folder.relpath("net.tar"))
        rng = np.random.default_rng(0)
        given = {name: rng.standard_normal(shape).astype("float32") for name, shape in (("x", (8, 64)), ("w", (32, 64)))}
        result = tvmc.run(package, device="cpu", inputs=given, benchmark=True, repeat=2, number=2)
        np.testing.assert_allclose(result.get_output("output_0"), np.maximum(given["x"] @ given["w"].T, 0), rtol=1e-3, atol=1e-4)
        print(result)
        again = tvmc.run(tvmc.model.TVMCPackage(package_path=package.package_path), device="cpu", inputs=given)
        np.testing.assert_array_equal(again.get_output("output_0"), result.get_output("output_0"))
        print("the package computes the same when it is loaded again")


if __name__ == "__main__":
    main()
