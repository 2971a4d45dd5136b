"""The Smith normal form of an integer matrix: unimodular row and column operations that leave a diagonal."""

from __future__ import annotations

from collections.abc import Sequence

from ..dataclass import dataclass

Matrix = list[list[int]]


@dataclass(slots=True)
class SmithForm:
    """left * matrix * right is diagonal; `diagonal` holds its nonzero entries, `right_inverse` inverts `right`."""

    left: Matrix
    right: Matrix
    right_inverse: Matrix
    diagonal: list[int]


def extended_gcd(a: int, b: int) -> tuple[int, int, int]:
    """(g, x, y) with a*x + b*y == g; (a, 1, 0) if a divides b."""
    # The pivot stays if it divides: with other coefficients a row would be filled again that was just cleared, without end.
    if b % a == 0:
        return a, 1, 0
    x, y, u, v = 1, 0, 0, 1
    while b:
        q = a // b
        a, b, x, y, u, v = b, a - q * b, u, v, x - q * u, y - q * v
    return a, x, y


def smith_normal_form(matrix: Sequence[Sequence[int]], columns: int) -> SmithForm:
    """The form of a matrix with so many columns; the diagonal's entries need not divide one another."""
    work = [list(row) for row in matrix]
    left, right, inverse = _identity(len(work)), _identity(columns), _identity(columns)
    diagonal: list[int] = []
    while (pivot := _pivot(work, len(diagonal))) is not None:
        place = len(diagonal)
        row, column = pivot
        _swap_rows(work, left, place, row)
        _swap_columns(work, right, inverse, place, column)
        # Clearing the column may fill the row again, but the pivot is a smaller divisor each time, so it ends.
        while True:
            column = next((j for j in range(place + 1, columns) if work[place][j]), -1)
            row = next((i for i in range(place + 1, len(work)) if work[i][place]), -1)
            if column >= 0:
                _clear_column(work, right, inverse, place, column)
            elif row >= 0:
                _clear_row(work, left, place, row)
            else:
                break
        diagonal.append(work[place][place])
    return SmithForm(left, right, inverse, diagonal)


def _identity(size: int) -> Matrix:
    return [[int(i == j) for j in range(size)] for i in range(size)]


def _pivot(work: Matrix, place: int) -> tuple[int, int] | None:
    """The first nonzero entry below and to the right of a place, column by column."""
    entries = ((i, j) for j in range(place, len(work[0]) if work else 0) for i in range(place, len(work)))
    return next(((i, j) for i, j in entries if work[i][j]), None)


def _swap_rows(work: Matrix, left: Matrix, i: int, j: int) -> None:
    for matrix in (work, left):
        matrix[i], matrix[j] = matrix[j], matrix[i]


def _swap_columns(work: Matrix, right: Matrix, inverse: Matrix, i: int, j: int) -> None:
    for matrix in (work, right):
        for row in matrix:
            row[i], row[j] = row[j], row[i]
    inverse[i], inverse[j] = inverse[j], inverse[i]


def _clear_row(work: Matrix, left: Matrix, place: int, i: int) -> None:
    """Combines two rows so that the second has no entry under the pivot."""
    a, b = work[place][place], work[i][place]
    g, x, y = extended_gcd(a, b)
    for matrix in (work, left):
        top, low = matrix[place], matrix[i]
        matrix[place] = [x * p + y * q for p, q in zip(top, low, strict=True)]
        matrix[i] = [b // g * p - a // g * q for p, q in zip(top, low, strict=True)]


def _clear_column(work: Matrix, right: Matrix, inverse: Matrix, place: int, j: int) -> None:
    """Combines two columns so that the second has no entry beside the pivot; the inverse undoes it on rows."""
    a, b = work[place][place], work[place][j]
    g, x, y = extended_gcd(a, b)
    u, v = b // g, -a // g
    for matrix in (work, right):
        for row in matrix:
            row[place], row[j] = x * row[place] + y * row[j], u * row[place] + v * row[j]
    det = x * v - y * u  # 1 or -1
    # The inverse of [[x, u], [y, v]], applied to the rows.
    top, low = inverse[place], inverse[j]
    inverse[place] = [(v * p - u * q) // det for p, q in zip(top, low, strict=True)]
    inverse[j] = [(x * q - y * p) // det for p, q in zip(top, low, strict=True)]
