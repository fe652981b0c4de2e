"""Symmetric 6 x 6 blocks as 21 numbers, unrolled so that they stay in registers.

A lower triangle is packed row by row: 00 10 11 20 21 22 30 ... 55, element (i, j) at i (i + 1)/2 + j. The
factorization is L E L^T with unit L and diagonal E: no square roots, whose latency would equal that of all the rest;
the reciprocals of E are on L's diagonal. The work is done by 3 x 3 parts, D = [A B^T; B C].
"""

from __future__ import annotations

from borelli.kernels.jit import inline

DIAGONAL = (0, 2, 5, 9, 14, 20)
"""Indices of the diagonal in the packed triangle."""
ZERO_BLOCK = (0.0,) * 21


@inline
def load6(array, k, at):
    """Return six numbers of row k from column `at`."""
    return array[k, at], array[k, at + 1], array[k, at + 2], array[k, at + 3], array[k, at + 4], array[k, at + 5]


@inline
def load21(array, k, at):
    """Return 21 numbers of row k from column `at`."""
    last = (array[k, at + 18], array[k, at + 19], array[k, at + 20])
    return load6(array, k, at) + load6(array, k, at + 6) + load6(array, k, at + 12) + last


@inline
def store6(array, k, at, x):
    """Write six numbers into row k from column `at`."""
    array[k, at], array[k, at + 1], array[k, at + 2] = x[0], x[1], x[2]
    array[k, at + 3], array[k, at + 4], array[k, at + 5] = x[3], x[4], x[5]


@inline
def store21(array, k, at, D):
    """Write 21 numbers into row k from column `at`."""
    store6(array, k, at, D[:6])
    store6(array, k, at + 6, D[6:12])
    store6(array, k, at + 12, D[12:18])
    array[k, at + 18], array[k, at + 19], array[k, at + 20] = D[18], D[19], D[20]


@inline
def dot6(a, b):
    """Return the scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@inline
def axpy6(s, a, b):
    """Return s a + b."""
    return s * a[0] + b[0], s * a[1] + b[1], s * a[2] + b[2], s * a[3] + b[3], s * a[4] + b[4], s * a[5] + b[5]


@inline
def add_outer(D, s, a):
    """Return D + s a a^T."""
    t0, t1, t2, t3, t4, t5 = s * a[0], s * a[1], s * a[2], s * a[3], s * a[4], s * a[5]
    return (
        D[0] + t0 * a[0],
        D[1] + t1 * a[0], D[2] + t1 * a[1],
        D[3] + t2 * a[0], D[4] + t2 * a[1], D[5] + t2 * a[2],
        D[6] + t3 * a[0], D[7] + t3 * a[1], D[8] + t3 * a[2], D[9] + t3 * a[3],
        D[10] + t4 * a[0], D[11] + t4 * a[1], D[12] + t4 * a[2], D[13] + t4 * a[3], D[14] + t4 * a[4],
        D[15] + t5 * a[0], D[16] + t5 * a[1], D[17] + t5 * a[2], D[18] + t5 * a[3], D[19] + t5 * a[4],
        D[20] + t5 * a[5],
    )


@inline
def add6(a, b):
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5]


@inline
def add21(D, array, k, at):
    """Return D plus 21 numbers of row k from column `at`."""
    first, second = add6(D[:6], load6(array, k, at)), add6(D[6:12], load6(array, k, at + 6))
    last = (D[18] + array[k, at + 18], D[19] + array[k, at + 19], D[20] + array[k, at + 20])
    return first + second + add6(D[12:18], load6(array, k, at + 12)) + last


@inline
def multiply6(D, x):
    """Return the symmetric block times a vector."""
    return (
        D[0] * x[0] + D[1] * x[1] + D[3] * x[2] + D[6] * x[3] + D[10] * x[4] + D[15] * x[5],
        D[1] * x[0] + D[2] * x[1] + D[4] * x[2] + D[7] * x[3] + D[11] * x[4] + D[16] * x[5],
        D[3] * x[0] + D[4] * x[1] + D[5] * x[2] + D[8] * x[3] + D[12] * x[4] + D[17] * x[5],
        D[6] * x[0] + D[7] * x[1] + D[8] * x[2] + D[9] * x[3] + D[13] * x[4] + D[18] * x[5],
        D[10] * x[0] + D[11] * x[1] + D[12] * x[2] + D[13] * x[3] + D[14] * x[4] + D[19] * x[5],
        D[15] * x[0] + D[16] * x[1] + D[17] * x[2] + D[18] * x[3] + D[19] * x[4] + D[20] * x[5],
    )


@inline
def _factor3(a00, a10, a11, a20, a21, a22):
    """Return the 3 x 3 factor with reciprocals on the diagonal, and its smallest pivot."""
    r0 = 1.0 / a00
    l10, l20 = a10 * r0, a20 * r0
    s1 = a11 - l10 * a10
    r1 = 1.0 / s1
    t21 = a21 - l20 * a10
    l21 = t21 * r1
    s2 = a22 - l20 * a20 - l21 * t21
    return r0, l10, r1, l20, l21, 1.0 / s2, min(a00, s1, s2)


@inline
def _forward3(l10, l20, l21, x, y, z):
    y = y - l10 * x
    return x, y, z - l20 * x - l21 * y


@inline
def factor6(D):
    """Return L and E of D = L E L^T, and the smallest pivot (not positive: D has no factor)."""
    r0, l10, r1, l20, l21, r2, least = _factor3(D[0], D[1], D[2], D[3], D[4], D[5])
    s00, s01, s02 = _forward3(l10, l20, l21, D[6], D[7], D[8])
    s10, s11, s12 = _forward3(l10, l20, l21, D[10], D[11], D[12])
    s20, s21, s22 = _forward3(l10, l20, l21, D[15], D[16], D[17])
    b00, b01, b02 = s00 * r0, s01 * r1, s02 * r2
    b10, b11, b12 = s10 * r0, s11 * r1, s12 * r2
    b20, b21, b22 = s20 * r0, s21 * r1, s22 * r2
    r3, m10, r4, m20, m21, r5, last = _factor3(
        D[9] - (b00 * s00 + b01 * s01 + b02 * s02),
        D[13] - (b10 * s00 + b11 * s01 + b12 * s02),
        D[14] - (b10 * s10 + b11 * s11 + b12 * s12),
        D[18] - (b20 * s00 + b21 * s01 + b22 * s02),
        D[19] - (b20 * s10 + b21 * s11 + b22 * s12),
        D[20] - (b20 * s20 + b21 * s21 + b22 * s22),
    )
    L = (
        r0, l10, r1, l20, l21, r2,
        b00, b01, b02, r3,
        b10, b11, b12, m10, r4,
        b20, b21, b22, m20, m21, r5,
    )
    return L, (least if least < last else last)


@inline
def forward6(L, b):
    """Return x of L x = b."""
    x0, x1, x2 = _forward3(L[1], L[3], L[4], b[0], b[1], b[2])
    x3, x4, x5 = _forward3(
        L[13], L[18], L[19],
        b[3] - (L[6] * x0 + L[7] * x1 + L[8] * x2),
        b[4] - (L[10] * x0 + L[11] * x1 + L[12] * x2),
        b[5] - (L[15] * x0 + L[16] * x1 + L[17] * x2),
    )
    return x0, x1, x2, x3, x4, x5


@inline
def scale6(L, x):
    """Return E^-1 x."""
    return L[0] * x[0], L[2] * x[1], L[5] * x[2], L[9] * x[3], L[14] * x[4], L[20] * x[5]


@inline
def backward6(L, b):
    """Return x of L^T x = b."""
    x4 = b[4] - L[19] * b[5]
    x3 = b[3] - L[13] * x4 - L[18] * b[5]
    c2 = b[2] - (L[8] * x3 + L[12] * x4 + L[17] * b[5])
    c1 = b[1] - (L[7] * x3 + L[11] * x4 + L[16] * b[5])
    c0 = b[0] - (L[6] * x3 + L[10] * x4 + L[15] * b[5])
    x1 = c1 - L[4] * c2
    return c0 - L[1] * x1 - L[3] * c2, x1, c2, x3, x4, b[5]


@inline
def solve6(L, b):
    """Return x of L E L^T x = b."""
    return backward6(L, scale6(L, forward6(L, b)))
