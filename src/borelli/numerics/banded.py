"""Banded symmetric systems over frames: each frame couples only to its neighbors, so cost is linear in the frames."""

from __future__ import annotations

import numpy as np

from borelli.errors import BorelliError
from borelli.numerics.vectors import Array


class NotPositiveDefiniteError(BorelliError):
    """A matrix has no Cholesky factor because it is not positive definite."""


class BandedMatrix:
    """Symmetric matrix of (frames, frames) blocks of n by n, zero beyond `bandwidth` frames from the diagonal.

    Stored by columns: `entry[t, b, d]` is the entry d below the diagonal in the column of frame t and variable b, the
    layout of LAPACK.
    """

    def __init__(self, frames: int, variables: int, bandwidth: int) -> None:
        self.entry: Array = np.zeros((frames, variables, (bandwidth + 1) * variables))

    def add_blocks(self, blocks: Array, scale: float = 1.0) -> None:
        """Add blocks (frames, n, n) on the diagonal."""
        n = blocks.shape[-1]
        for b in range(n):
            self.entry[:, b, : n - b] += scale * blocks[:, b:, b]

    def add_entries(self, lag: int, a: int, b: int, values: Array) -> None:
        """Add values (frames,) that couple variable a of frame t + lag to variable b of frame t.

        Entries above the diagonal are ignored, as are the last `lag` values.
        """
        n = self.entry.shape[1]
        below = lag * n + a - b
        if below >= 0:
            end = len(self.entry) - lag
            self.entry[:end, b, below] += values[:end]

    def factor(self) -> BandedCholesky:
        """Return the Cholesky factor; overwrites the matrix."""
        from scipy.linalg.lapack import dpbtrf

        frames, n, width = self.entry.shape
        lower, failed = dpbtrf(self.entry.reshape(frames * n, width).T, lower=1, overwrite_ab=1)
        if failed:
            frame, variable = divmod(int(failed) - 1, n)
            what = "is not determined by any marker, spring or neighbor frame"
            raise NotPositiveDefiniteError(f"Variable {variable} of frame {frame} {what}.")
        return BandedCholesky(lower, frames, n)


class BandedCholesky:
    """Cholesky factor of a banded matrix."""

    def __init__(self, lower: Array, frames: int, variables: int) -> None:
        self._lower, self._shape = lower, (frames, variables)

    @property
    def log_determinant(self) -> float:
        """Natural logarithm of the determinant."""
        return float(2.0 * np.log(self._lower[0]).sum())

    def solve(self, right: Array) -> Array:
        """Return the solution (frames, n) for a right side (frames, n)."""
        from scipy.linalg.lapack import dpbtrs

        return np.asarray(dpbtrs(self._lower, right.reshape(-1, 1), lower=1)[0]).reshape(self._shape)
