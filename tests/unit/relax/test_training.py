"""Losses, optimizers, and networks that are trained by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax, tir
from tensorexpr.errors import ArgumentError, DeclarationError, TypeMismatchError
from tensorexpr.relax import TensorStructInfo, op, training
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.training import AppendLoss, SetupTrainer, Trainer
from tensorexpr.relax.training.loss import CategoricalCrossEntropyLoss, CrossEntropyLoss, L1Loss, Loss, MSELoss
from tensorexpr.relax.training.optimizer import SGD, Adam, MomentumSGD, Optimizer
from tensorexpr.script import relax as R

RNG = np.random.default_rng(3)


def _loss(loss: Any, *values: Any) -> Any:
    function = loss(*(TensorStructInfo(value.shape, str(value.dtype)) for value in values))
    return Evaluator(tvm.IRModule({"main": function}))("main", *values)


def _log_softmax(x: Any, axis: int) -> Any:
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def _reduced(losses: Any, reduction: str) -> Any:
    return {"none": losses, "sum": losses.sum(), "mean": losses.mean()}[reduction]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_differences(reduction: str) -> None:
    a, b = RNG.standard_normal((2, 3, 4))
    np.testing.assert_allclose(_loss(L1Loss(reduction), a, b), _reduced(np.abs(a - b), reduction))
    np.testing.assert_allclose(_loss(MSELoss(reduction), a, b), _reduced((a - b) ** 2, reduction))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3, 2)])
def test_cross_entropy(shape: tuple[int, ...], reduction: str) -> None:
    """Of classes along axis 1, also where positions follow them; a target that is ignored and weights."""
    x, weights = RNG.standard_normal(shape), RNG.uniform(0.5, 2, 4)
    targets = RNG.integers(0, 4, (shape[0], *shape[2:]))
    logs = np.take_along_axis(_log_softmax(x, 1), targets[:, None], 1)[:, 0]
    np.testing.assert_allclose(_loss(CrossEntropyLoss(reduction), x, targets), _reduced(-logs, reduction))
    share = np.where(targets == 2, 0, weights[targets])
    expected = {"none": -logs * share, "sum": (-logs * share).sum(), "mean": (-logs * share).sum() / share.sum()}[reduction]
    np.testing.assert_allclose(_loss(CrossEntropyLoss(reduction, ignore_index=2), x, targets, weights), expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_of_rows_of_classes(reduction: str) -> None:
    x, weights, targets = RNG.standard_normal((5, 4)), RNG.uniform(0.5, 2, 4), RNG.integers(0, 4, 5)
    rows, logs = np.eye(4, dtype="int64")[targets], _log_softmax(x, 1)
    loss = CategoricalCrossEntropyLoss(reduction)
    np.testing.assert_allclose(_loss(loss, x, rows), _reduced(-logs * rows, reduction))
    np.testing.assert_allclose(_loss(loss, x, rows, weights), _reduced(-logs * rows * weights, reduction))
    ignoring = _loss(CategoricalCrossEntropyLoss(reduction, ignore_index=1), x, rows, weights)
    np.testing.assert_allclose(ignoring, _loss(CrossEntropyLoss(reduction, ignore_index=1), x, targets, weights))
    with pytest.raises(TypeMismatchError, match=r"targets are tensors of integers, one for the class, not R\.Tensor"):
        loss(TensorStructInfo((5, 4)), TensorStructInfo((5, 4)))


def test_a_loss_by_variables_and_of_another_reduction() -> None:
    p, t = relax.Var("p", TensorStructInfo((2,))), relax.Var("t", TensorStructInfo((2,)))
    made: Any = MSELoss()(p, t)
    assert [param.name_hint for param in made.params] == ["p", "t"] and made.params[0] is not p
    assert made.attrs["global_symbol"] == "mse_loss"
    with pytest.raises(ArgumentError, match="MSELoss: no reduction 'average'; there are mean, sum, none"):
        MSELoss("average")
    with pytest.raises(TypeMismatchError, match=r"predictions of a loss are a relax\.Var or a StructInfo, not tuple"):
        MSELoss()((2,), t)  # type: ignore[arg-type]


def _two_results() -> Any:
    n = tir.Var("n", "int64")
    x, y = relax.Var("x", TensorStructInfo((n, 3), "float64")), relax.Var("y", TensorStructInfo((3,), "float64"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        with bb.dataflow():
            results = bb.emit_output(x * y), bb.emit_output(y + y)
        bb.emit_func_output(results)
    return bb.get()


def test_a_loss_behind_a_function() -> None:
    """Its symbols are those of the results, other results follow the loss, and variables only the loss reads end with the block."""
    m = tir.Var("m", "int64")
    loss = MSELoss("sum")(TensorStructInfo((m, 3), "float64"), TensorStructInfo((m, 3), "float64"))
    mod = AppendLoss("main", loss)(_two_results())
    made: Any = mod["main_loss"]
    assert made.attrs["global_symbol"] == "main_loss" and "main" in mod
    assert [param.name_hint for param in made.params] == ["x", "y", "targets"]
    kinds = [type(one.var).__name__ for one in made.body.blocks[0].bindings]
    assert kinds == ["DataflowVar", "Var", "DataflowVar", "DataflowVar", "Var"]  # x * y, y + y, the difference, its square, the sum
    assert relax.analysis.well_formed(mod)
    x, y, t = RNG.standard_normal((2, 3)), RNG.standard_normal(3), RNG.standard_normal((2, 3))
    total, twice = Evaluator(mod)("main_loss", x, y, t)
    np.testing.assert_allclose(total, ((x * y - t) ** 2).sum())
    np.testing.assert_allclose(twice, y + y)
    derived = training.utils.AppendLoss("main", loss, new_func_name="other")(mod)
    (_, grads) = Evaluator(relax.transform.Gradient("other", require_grads=derived["other"].params[1])(derived))("other_adjoint", x, y, t)
    np.testing.assert_allclose(grads[0], (2 * (x * y - t) * x).sum(0))


def test_losses_that_do_not_fit() -> None:
    mod, info = _two_results(), TensorStructInfo((3,), "float64")
    with pytest.raises(DeclarationError, match=r"of main is .*\(n, 3\).*; parameter predictions of the loss is .*\(3,\)"):
        AppendLoss("main", MSELoss()(info, info))(mod)
    with pytest.raises(DeclarationError, match="3 results of main go to the loss; main has 2, and the loss 2 parameters"):
        AppendLoss("main", MSELoss()(info, info), 3)(mod)
    with pytest.raises(DeclarationError, match="a loss returns a variable that is a number, a tensor without axes"):
        AppendLoss("main", MSELoss("none")(info, info))(mod)

    @R.function  # type: ignore[untyped-decorator]
    def unblocked(x: R.Tensor((3,), "float64")) -> R.Tensor((), "float64"):  # type: ignore[valid-type]
        return R.sum(x)

    with pytest.raises(DeclarationError, match="the loss is more than one dataflow block; ConvertToDataflow"):
        AppendLoss("main", unblocked)(mod)


def _steps(optimizer: Any, shapes: Any, count: int = 4) -> tuple[list[Any], list[Any], list[Any]]:
    """The first parameters, the gradients of each step, and the parameters behind the last one."""
    variables = [relax.Var(f"p{n}", TensorStructInfo(shape, "float64")) for n, shape in enumerate(shapes)]
    function = optimizer.init(variables).get_function()
    run = Evaluator(tvm.IRModule({"main": function}))
    first = params = [RNG.standard_normal(shape) for shape in shapes]
    state: Any = [value.numpy() for value in optimizer.state]
    given = [[RNG.standard_normal(shape) for shape in shapes] for _ in range(count)]
    for grads in given:
        params, state = run("main", params, grads, state)
    assert int(state[0]) == count
    return first, given, params


@pytest.mark.parametrize("decay", [0, 0.1])
def test_gradient_descent(decay: float) -> None:
    first, given, found = _steps(SGD(0.01, decay), [(3, 2), (4,)])
    for n, p in enumerate(first):
        for grads in given:
            p = p - 0.01 * (grads[n] + decay * p)
        np.testing.assert_allclose(found[n], p)


@pytest.mark.parametrize("decay", [0, 0.1])
@pytest.mark.parametrize("dampening", [0, 0.85])
@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum(decay: float, dampening: float, nesterov: bool) -> None:
    first, given, found = _steps(MomentumSGD(0.01, 0.9, dampening, decay, nesterov), [(3, 2), (4,)])
    for n, p in enumerate(first):
        v = np.zeros_like(p)
        for grads in given:
            g = grads[n] + decay * p
            v = 0.9 * v + (1 - dampening) * g
            p = p - 0.01 * (g + 0.9 * v if nesterov else v)
        np.testing.assert_allclose(found[n], p)


@pytest.mark.parametrize("decay", [0, 0.1])
def test_adam(decay: float) -> None:
    first, given, found = _steps(Adam(0.01, (0.8, 0.85), 1e-7, decay), [(3, 2), (4,)])
    for n, p in enumerate(first):
        m, v = np.zeros_like(p), np.zeros_like(p)
        for step, grads in enumerate(given, 1):
            g = grads[n] + decay * p
            m, v = 0.8 * m + 0.2 * g, 0.85 * v + 0.15 * g * g
            p = p - 0.01 * (m / (1 - 0.8**step)) / (np.sqrt(v / (1 - 0.85**step)) + 1e-7)
        np.testing.assert_allclose(found[n], p)


def test_an_optimizer_of_ones_own() -> None:
    class Halves(Optimizer):
        tensors = ("last",)

        def step(self, bb: Any, name: str, param: Any, grad: Any, states: Any, numbers: Any) -> Any:
            return bb.emit(op.multiply(param, self._number(0.5)), f"{name}_new"), grad

    first, _, found = _steps(Halves("Halves"), [(2,)], 3)
    np.testing.assert_allclose(found[0], first[0] / 8)


def test_parameters_that_are_none() -> None:
    x, y = relax.Var("x", TensorStructInfo((2,))), relax.Var("y", TensorStructInfo((2,), "float64"))
    n = relax.Var("n", TensorStructInfo((2,), "int64"))
    for params, what in (
        ([x, x], "x appears twice"),
        ([x, y], "y is of float64, others are of float32"),
        (n, "n is of int64, no floating dtype"),
        (relax.Tuple([x]), "is no variable of a tensor"),  # type: ignore[arg-type]
        (relax.Var("o", TensorStructInfo((tir.Var("m", "int64"),))), "states are zeros like o, .* extents have to be numbers"),
    ):
        with pytest.raises(ArgumentError, match=what):
            SGD(0.1).init(params)  # type: ignore[arg-type]
            Adam(0.1).init(params)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match=r"SGD\.get_function: .* call init\(parameters\) first"):
        SGD(0.1).get_function()
    assert SGD(0.1).init(y).dtype == "float64"


def _network(states: bool) -> Any:
    """A layer with a norm of its batch, whose moving mean and variance are states, and a layer."""
    shapes: Any = {"x": (8, 5), "w0": (5, 16), "b0": (16,), "w1": (16, 3), "b1": (3,)}
    x, w0, b0, w1, b1 = (relax.Var(name, TensorStructInfo(shape)) for name, shape in shapes.items())
    moving = [relax.Var(name, TensorStructInfo((16,))) for name in ("centre", "spread")] if states else []
    bb = relax.BlockBuilder()
    with bb.function("backbone", [x, w0, b0, w1, b1, *moving]):
        with bb.dataflow():
            h = bb.emit(op.matmul(x, w0))
            more = []
            if states:
                normed = bb.emit(op.nn.batch_norm(h, op.ones((16,), "float32"), b0, *moving, axis=1))
                h, *more = [bb.emit(normed[n]) for n in range(3)]
            else:
                h = bb.emit(h + b0)
            results = [bb.emit_output(op.matmul(op.nn.relu(h), w1) + b1), *(bb.emit_output(one) for one in more)]
        bb.emit_func_output(results if states else results[0])
    return bb.get().with_attrs({"param_num": 4, "state_num": len(moving)})


INFOS = [TensorStructInfo((8, 3)), TensorStructInfo((8,), "int64")]


def _trainer(states: bool, optimizer: Any, legalize: bool) -> Any:
    mod = SetupTrainer(CrossEntropyLoss(), optimizer, INFOS, legalize)(_network(states))
    assert int(mod.attrs["input_num"]) == 1 and len(mod.attrs["optim_state"]) == len(optimizer.state)
    return Trainer(mod, relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu(), profile=True), tvm.cpu(), False)


@pytest.mark.parametrize(("states", "optimizer", "legalize"), [(False, Adam(0.05), True), (True, MomentumSGD(0.1, 0.9), False)])
def test_a_network_is_trained(states: bool, optimizer: Any, legalize: bool) -> None:
    trainer = _trainer(states, optimizer, legalize)
    rng = np.random.default_rng(0)
    xs = rng.standard_normal((64, 5)).astype("float32")
    ys = (xs @ rng.standard_normal((5, 3))).argmax(1)
    with pytest.raises(ArgumentError, match="parameters without values: w0, b0, w1, b1; load them or let them be initialized"):
        trainer.predict(xs[:8])
    np.random.seed(0)
    trainer.xaiver_uniform_init_params()
    if states:
        with pytest.raises(ArgumentError, match="states without values: centre, spread"):
            trainer.update(xs[:8], ys[:8])
        trainer.zero_init_states()
        trainer.load_states({"spread": np.ones(16, "float32")})
    bound = np.sqrt(6 / 21)
    assert 0.8 * bound < np.abs(trainer.export_params()["w0"].numpy()).max() <= bound
    batches = [(xs[at : at + 8], ys[at : at + 8]) for at in range(0, 64, 8)]
    losses = [float(np.mean([trainer.update(*batch).numpy() for batch in batches])) for _ in range(12)]
    assert losses[0] > 0.5 and losses[-1] < 0.2 * losses[0]
    found = np.concatenate([trainer.predict(x).numpy().argmax(1) for x, _ in batches])
    assert (found == ys).mean() > 0.9
    if states:
        # Moving means are near those of the whole set.
        centre = trainer.export_states()["centre"].numpy()
        np.testing.assert_allclose(centre, (xs @ trainer.export_params()["w0"].numpy()).mean(0), atol=0.3)
    report = trainer.profile_adjoint(*batches[0])
    assert "matmul" in str(report)
    other = Trainer(trainer.mod.with_attrs({"optim_state": ()}), trainer.vm, trainer.device)
    assert not other.predict(xs[:8]).numpy().any()
    other.load_params(trainer.export_params())
    other.load_states(list(trainer.export_states().values()))
    np.testing.assert_array_equal(other.predict(xs[:8]).numpy(), trainer.predict(xs[:8]).numpy())


def test_the_gradient_of_a_network_with_states() -> None:
    """By differences of the loss, through the statistics of the batch."""
    mod = SetupTrainer(CrossEntropyLoss(), SGD(0.1), INFOS, legalize=False)(_network(True))
    rng = np.random.default_rng(1)
    shapes = [tuple(map(int, param.struct_info.shape)) for param in mod["backbone"].params]  # type: ignore[attr-defined]
    values = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    values[-1] = np.ones(16, "float32")
    targets = rng.integers(0, 3, 8)
    run = Evaluator(mod)
    (loss, *_), grads = run("backbone_loss_adjoint", *values, targets)
    np.testing.assert_allclose(loss, run("backbone_loss", *values, targets)[0], rtol=1e-6)
    for at, grad in enumerate(grads, 1):
        direction = rng.standard_normal(shapes[at]).astype("float32")
        ends = []
        for sign in (1, -1):
            moved = [value + sign * 1e-2 * direction if n == at else value for n, value in enumerate(values)]
            ends.append(float(run("backbone_loss", *moved, targets)[0]))
        np.testing.assert_allclose((ends[0] - ends[1]) / 2e-2, (grad * direction).sum(), rtol=0.05, atol=5e-3)


def test_modules_that_train_nothing() -> None:
    setup = SetupTrainer(CrossEntropyLoss(), SGD(0.1), INFOS)
    mod = _network(True)
    with pytest.raises(DeclarationError, match='a function of a graph called "backbone"; the module has main'):
        setup(_two_results())
    with pytest.raises(DeclarationError, match="the attribute 'param_num' of the module says how many"):
        setup(mod.without_attr("param_num"))
    with pytest.raises(DeclarationError, match=r"backbone has 7 parameters, fewer than param_num \+ state_num = 12"):
        setup(mod.with_attr("param_num", 10))
    with pytest.raises(DeclarationError, match="backbone returns its results and then its 3 new states"):
        setup(mod.with_attrs({"param_num": 3, "state_num": 3}))
    with pytest.raises(ArgumentError, match="the module has no attribute 'input_num'"):
        Trainer(mod, None, tvm.cpu())  # type: ignore[arg-type]


def test_values_that_a_trainer_does_not_take() -> None:
    mod = SetupTrainer(CrossEntropyLoss(), SGD(0.1), INFOS)(_network(False))
    trainer = Trainer(mod, None, tvm.cpu())  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="there is no parameter 'w9'; there are w0, b0, w1, b1"):
        trainer.load_params({"w9": np.zeros(1)})
    with pytest.raises(ArgumentError, match="1 values for 4 parameters"):
        trainer.load_params([np.zeros(1)])
    with pytest.raises(ArgumentError, match="states are loaded from a list or a dict, not int"):
        trainer.load_states(1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="the network takes 1 inputs, not 2"):
        trainer.update([np.zeros(1), np.zeros(1)], np.zeros(1))


def test_the_base_of_losses_and_optimizers() -> None:
    class Hinge(Loss):
        def __call__(self, predictions: Any, targets: Any) -> Any:
            def compute(bb: Any, p: Any, t: Any) -> Any:
                return self._with_reduction(op.nn.relu(op.subtract(relax.const(1.0, "float64"), op.multiply(p, t))))

            return self._function(compute, predictions=predictions, targets=targets)

    a, b = RNG.standard_normal((2, 4))
    np.testing.assert_allclose(_loss(Hinge("hinge", 1), a, b), np.maximum(1 - a * b, 0).mean())
    assert Hinge("hinge", 1).num_backbone_outputs == 1
    with pytest.raises(NotImplementedError, match=r"Optimizer\.step is not written"):
        Optimizer("mine").init(relax.Var("x", TensorStructInfo((2,)))).get_function()


def test_gradients_are_those_of_pytorch() -> None:
    """Of a convolutional network with norms of batches and pools, and a step with momentum."""
    torch = pytest.importorskip("torch", reason="derivatives are compared with PyTorch's")
    shapes: Any = {
        "k0": (4, 1, 3, 3), "b0": (4,), "k1": (6, 4, 3, 3), "gamma": (6,), "beta": (6,), "w": (24, 3), "b": (3,), "centre": (6,),
        "spread": (6,),
    }  # fmt: skip
    x = relax.Var("x", TensorStructInfo((8, 1, 8, 8)))
    v = {name: relax.Var(name, TensorStructInfo(shape)) for name, shape in shapes.items()}
    bb = relax.BlockBuilder()
    with bb.function("backbone", [x, *v.values()]):
        with bb.dataflow():
            h = bb.emit(op.nn.relu(op.nn.conv2d(x, v["k0"], padding=1) + op.reshape(v["b0"], (1, 4, 1, 1))))
            h = bb.emit(op.nn.conv2d(op.nn.max_pool2d(h, 2, 2), v["k1"], padding=1))
            normed = bb.emit(op.nn.batch_norm(h, v["gamma"], v["beta"], v["centre"], v["spread"], axis=1))
            h = bb.emit(op.nn.avg_pool2d(op.nn.relu(normed[0]), 2, 2))
            results = [op.matmul(op.reshape(h, (8, 24)), v["w"]) + v["b"], normed[1], normed[2]]
            outputs = [bb.emit_output(one) for one in results]
        bb.emit_func_output(outputs)
    mod = bb.get().with_attrs({"param_num": 7, "state_num": 2})
    mod = SetupTrainer(CrossEntropyLoss(), MomentumSGD(0.1, 0.9, nesterov=True), INFOS)(mod)
    trainer = Trainer(mod, relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu()), tvm.cpu())
    trainer.load_params([RNG.uniform(-0.5, 0.5, shape).astype("float32") for shape in list(shapes.values())[:7]])
    xs, ys = RNG.standard_normal((8, 1, 8, 8)).astype("float32"), RNG.integers(0, 3, 8)
    params = [torch.tensor(one.numpy().copy(), requires_grad=True) for one in trainer.export_params().values()]
    optimizer, functional = torch.optim.SGD(params, 0.1, momentum=0.9, nesterov=True), torch.nn.functional
    for _ in range(3):
        k0, b0, k1, gamma, beta, w, b = params
        given = [xs, *trainer.export_params().values(), *trainer.export_states().values(), ys]
        (loss, *_), grads = trainer.vm["backbone_loss_adjoint"](*given)
        h = functional.max_pool2d(torch.relu(functional.conv2d(torch.tensor(xs), k0, b0, padding=1)), 2)
        h = functional.batch_norm(functional.conv2d(h, k1, padding=1), None, None, gamma, beta, training=True)
        expected = functional.cross_entropy(functional.avg_pool2d(torch.relu(h), 2).reshape(8, -1) @ w + b, torch.tensor(ys))
        optimizer.zero_grad()
        expected.backward()
        np.testing.assert_allclose(loss.numpy(), expected.item(), rtol=1e-4)
        for found, one in zip(grads, params, strict=True):
            np.testing.assert_allclose(found.numpy(), one.grad.numpy(), rtol=1e-3, atol=2e-5)
        trainer.update(xs, ys)
        optimizer.step()
    for found, one in zip(trainer.export_params().values(), params, strict=True):
        np.testing.assert_allclose(found.numpy(), one.detach().numpy(), rtol=1e-3, atol=1e-4)
