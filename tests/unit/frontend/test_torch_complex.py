"""Programs of PyTorch of complex numbers, spectra and linear algebra: the graph means what PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError, TypeMismatchError
from tensorexpr.frontend.torch import from_exported_program
from tensorexpr.relax.evaluator import Evaluator

torch: Any = pytest.importorskip("torch", reason="programs of PyTorch are read by PyTorch")
from .test_torch import F, Wrapped, arrays_of, check, compare, exported, numbers  # noqa: E402  # which asks for PyTorch, too

X, Y, Z = numbers(2, 8), numbers(2, 8) + 1, numbers(2, 4, 8)
PAIRS = numbers(2, 4, 2)
REGULAR = numbers(3, 3) @ numbers(3, 3).T + 3 * torch.eye(3)
STACK = torch.stack([REGULAR, REGULAR + torch.eye(3)])


class Rotary(torch.nn.Module):  # type: ignore[misc]
    """Positions as rotations, which a buffer holds as complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        angle = torch.outer(torch.arange(4.0), torch.tensor([1.0, 0.1, 0.01, 0.001]))
        self.register_buffer("turns", torch.polar(torch.ones_like(angle), angle))

    def forward(self, x: Any) -> Any:
        pairs = torch.view_as_complex(x.reshape(2, 4, 4, 2))
        return torch.view_as_real(pairs * self.turns).flatten(2)


def squared(value: Any) -> Any:
    return value.real**2 + value.imag**2


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "products of pairs": (lambda x: torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(x + 1)), (PAIRS,)),
    "quotients": (lambda x: torch.view_as_real((torch.view_as_complex(x) + 2) / torch.view_as_complex(x + 3) - 1j), (PAIRS,)),
    "polar": (lambda x, y: torch.view_as_real(torch.polar(x.abs(), y)), (X, Y)),
    "angles": (lambda x, y: (torch.angle(torch.complex(x, y)), torch.complex(x, y).abs(), torch.angle(x)), (X, Y)),
    "conjugates": (lambda x, y: torch.view_as_real((torch.complex(x, y).conj() * 2).T.resolve_conj()), (X, Y)),
    "exponentials": (lambda x: torch.view_as_real(torch.exp(1j * x)), (X,)),
    "products of matrices": (lambda x, y: squared(torch.complex(x, y) @ torch.complex(y, x).T), (X, Y)),
    "both parts moved": (lambda x, y: torch.view_as_real(torch.cat([torch.complex(x, y), torch.complex(y, x)])[1:, None].sum(2)), (X, Y)),
    "chosen": (lambda x, y: torch.view_as_real(torch.where(x > 0, torch.complex(x, y), x * 2)), (X, Y)),
    "filled and padded": (lambda x, y: torch.view_as_real(F.pad(torch.complex(x, y).masked_fill(x > 0, 0.5), (1, 2), value=3.0)), (X, Y)),
    "joined with real ones": (lambda x, y: torch.view_as_real(torch.cat([torch.complex(x, y), x])), (X, Y)),
    "rotary positions": (Rotary(), (numbers(2, 4, 8),)),
    "spectrum": (lambda x: torch.fft.fft(x).abs(), (X,)),
    "half of a spectrum": (lambda x: torch.view_as_real(torch.fft.rfft(x, norm="ortho")), (X,)),
    "there and back": (lambda x: torch.fft.irfft(torch.fft.rfft(x) * 0.5), (X,)),
    "two axes": (lambda x: (torch.fft.fft2(x).real, torch.fft.irfft2(torch.fft.rfft2(x))), (Z,)),
    "back, divided": (lambda x, y: torch.fft.ifft(torch.complex(x, y), norm="forward").imag, (X, Y)),
    "convolution by spectra": (lambda x, y: torch.fft.irfft(torch.fft.rfft(x, n=16) * torch.fft.rfft(y, n=16), n=16), (X, Y)),
    "spectrogram": (lambda x: torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True).abs(), (numbers(2, 32),)),
    "inverses": (lambda x: (torch.inverse(x), torch.linalg.inv(x), torch.linalg.pinv(x[:, :, :2])), (STACK,)),
    "cholesky": (lambda x: (torch.linalg.cholesky(x), torch.linalg.cholesky(x, upper=True)), (STACK,)),
    "by cholesky": (lambda x: (torch.cholesky_inverse(x), torch.cholesky_solve(x[:, :1], x.triu(), upper=True)), (REGULAR,)),
    "solutions": (lambda x: (torch.linalg.solve(x, x[0]), torch.linalg.solve(x[0], x[1, 0]), torch.linalg.solve(x, x[:, 0])), (STACK,)),
    "from the right": (lambda x: torch.linalg.solve(x, x[:, :2], left=False), (STACK,)),
    "triangles": (lambda x: torch.linalg.solve_triangular(x.triu(), x[:, :1], upper=True, left=False, unitriangular=True), (STACK,)),
    "triangles of before": (lambda x: torch.triangular_solve(x[:, :2], x, upper=False, transpose=True)[0], (REGULAR,)),
    "determinants": (lambda x: (*torch.linalg.slogdet(x), torch.logdet(x), torch.det(x)), (STACK,)),
    "eigenvalues": (lambda x: torch.linalg.eigvalsh(x), (STACK,)),
    "factors": (lambda x: (lambda q, r: (q @ r, r.abs()))(*torch.linalg.qr(x[:, :2])), (REGULAR,)),
    "singular values": (lambda x: (torch.linalg.svdvals(x), torch.linalg.matrix_rank(x), torch.linalg.cond(x)), (numbers(4, 3),)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    module, args = PROGRAMS[name]
    module = module if isinstance(module, torch.nn.Module) else Wrapped(module)
    mod = from_exported_program(exported(module, *args))
    compare(Evaluator(mod)("main", *(arg.numpy() for arg in args)), module, args, 1e-4)


Z1 = torch.complex(numbers(3, 4), numbers(4, 3).T.contiguous())
# Of complex inputs, with complex results.
WHOLE: dict[str, Callable[..., Any]] = {
    "moved": lambda z: (z, (z * 2 + 1j).conj(), z.T, z.abs(), torch.fft.fftshift(z), z.sum(0)),
    "spectra": lambda z: (torch.fft.fft2(z), torch.fft.ifft(z), torch.fft.hfft(z), torch.fft.rfft(z.real)),
    "roots and powers": lambda z: (z.log(), z.sqrt(), (-z).sqrt(), z**3, z**-2, z**0.5, 2**z, z.real ** (1 + 1j), z**0),
    "waves": lambda z: (z.sin(), z.cos(), z.sinh(), z.cosh(), (30 * z).tanh(), z.sigmoid(), z.exp()),
    "truths": lambda z: (z == z.real, z != z, torch.isfinite(z / z.real.relu()), torch.isnan(z), torch.sgn(z * (z.real > 0))),
    "products": lambda z: (F.linear(z, z * 2, z[:, 0]), torch.vdot(z[0], z[1]), torch.addmm(z[:, :3], z, z.T, alpha=2), z @ z[0]),
    "solutions": lambda z: (torch.linalg.solve(z[:, :3], z), torch.linalg.solve(z[:, :3], z[:, 3]), torch.linalg.inv(z[:, 1:])),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_complex_inputs_and_results(name: str) -> None:
    """They are tensors of both parts along a last axis."""
    module = Wrapped(WHOLE[name])
    found = arrays_of(Evaluator(from_exported_program(exported(module, Z1)))("main", torch.view_as_real(Z1).numpy()))
    for one, wanted in zip(found, module(Z1), strict=True):
        like = torch.view_as_real(wanted.resolve_conj()) if wanted.is_complex() else wanted
        np.testing.assert_allclose(one, like.numpy(), 1e-4, 1e-4)


def test_factors_and_exponentials() -> None:
    """By what they multiply to, where they aren't unique."""
    wide, square = numbers(2, 3, 5), STACK
    module = Wrapped(
        lambda w, x: (
            *torch.linalg.lu(w),
            torch.linalg.lu_solve(*torch.linalg.lu_factor(x), x[:, :, :2]),
            *torch.lu_unpack(*torch.linalg.lu_factor(x)),
            torch.matrix_exp(x - 3 * torch.eye(3)),
            torch.linalg.eig(x)[0].real.sort()[0],
            torch.linalg.householder_product(x[:, :, :2], x[:, 0, :2]),
        )
    )
    compare(
        Evaluator(from_exported_program(exported(module, wide, square)))("main", wide.numpy(), square.numpy()), module, (wide, square), 1e-4
    )


def test_what_runs() -> None:
    check(Wrapped(lambda x: (torch.fft.irfft(torch.fft.rfft(x) * 1j), torch.linalg.solve(x[:, :2], x))), X, tolerance=1e-4)


def test_sizes_that_a_run_knows() -> None:
    size = torch.export.Dim("size", min=2, max=64)
    module = Wrapped(lambda x: (torch.fft.rfft(x).abs(), torch.linalg.svdvals(x)))
    mod = from_exported_program(exported(module, X, dynamic_shapes={"args": ({0: size},)}))
    for rows in (2, 5, 11):
        compare(Evaluator(mod)("main", numbers(rows, 8).numpy()), module, (numbers(rows, 8),), 1e-4)
    along = exported(module, X, dynamic_shapes={"args": ({1: size},)})
    with pytest.raises(TypeMismatchError, match=r"along an axis of \w+ elements; export with a fixed size"):
        from_exported_program(along)


REFUSED: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "what pairs have no form of": (lambda x: torch.fft.fft(x).cumprod(0).real, X, "cumprod of complex tensors has no counterpart"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    function, arg, said = REFUSED[name]
    with pytest.raises(TypeMismatchError, match=said):
        from_exported_program(exported(Wrapped(function), arg))


def test_operators_of_matrices() -> None:
    wide, whole = relax.Var("x", relax.TensorStructInfo((2, 3))), relax.Var("i", relax.TensorStructInfo((3, 3), "int32"))
    with pytest.raises(DeclarationError, match=r"relax.op.linalg.inv: x has as many rows as columns"):
        relax.op.linalg.inv(wide)
    with pytest.raises(TypeMismatchError, match="floating-point numbers"):
        relax.op.linalg.cholesky(whole)
    with pytest.raises(DeclarationError, match=r"a @ x = b has no such shapes"):
        relax.op.linalg.solve(relax.Var("a", relax.TensorStructInfo((3, 3))), wide)
    known = relax.op.linalg.svd(wide, full_matrices=False).struct_info
    assert [str(one.shape) for one in known.fields] == ["R.shape([2, 2])", "R.shape([2])", "R.shape([2, 3])"]  # type: ignore[attr-defined]
