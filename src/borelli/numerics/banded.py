"""Systems in which every frame meets only its neighbours: banded, solved in time that grows with the frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from borelli.errors import BorelliError

Array = NDArray[np.float64]


class NotPositiveDefiniteError(BorelliError):
    """A matrix that should be positive definite is not."""


class BandedMatrix:
    """A symmetric matrix of (frames, frames) blocks of n by n, zero beyond `reach` frames from the diagonal.

    Kept by columns: `entry[t, b, d]` is the entry d below the diagonal in the column of frame t and variable b, as
    LAPACK wants it.
    """

    def __init__(self, frames: int, variables: int, reach: int) -> None:
        self.entry: Array = np.zeros((frames, variables, (reach + 1) * variables))
        self.reach = reach

    def add_blocks(self, blocks: Array, scale: float = 1.0) -> None:
        """Add blocks (frames, n, n) on the diagonal."""
        n = blocks.shape[-1]
        for b in range(n):
            self.entry[:, b, : n - b] += scale * blocks[:, b:, b]

    def add_entries(self, later: int, a: int, b: int, values: Array) -> None:
        """Add values (frames,) where variable a of the frame so much `later` meets variable b; above the diagonal: no.

        The last `later` values have no such frame and are passed over.
        """
        n = self.entry.shape[1]
        below = later * n + a - b
        if below >= 0:
            stop = len(self.entry) - later
            self.entry[:stop, b, below] += values[:stop]

    def free_only(self, held: NDArray[np.bool_]) -> None:
        """Take out the variables that are held (frames, n): their rows and columns become those of the unit matrix."""
        frames, n, width = self.entry.shape
        flat, entry = held.ravel(), self.entry.reshape(frames * n, width)
        entry[flat] = 0.0
        for column in np.flatnonzero(flat):
            first = max(0, column - width + 1)
            entry[np.arange(first, column), column - np.arange(first, column)] = 0.0
        entry[flat, 0] = 1.0

    def factor(self) -> BandedCholesky:
        """Cholesky's factor; the band is used up."""
        from scipy.linalg.lapack import dpbtrf

        frames, n, width = self.entry.shape
        lower, failed = dpbtrf(self.entry.reshape(frames * n, width).T, lower=1, overwrite_ab=1)
        if failed:
            frame, variable = divmod(int(failed) - 1, n)
            raise NotPositiveDefiniteError(
                f"variable {variable} of frame {frame} is held by nothing: no marker, spring or neighbour"
            )
        return BandedCholesky(lower, frames, n)


class BandedCholesky:
    """A banded matrix, factored."""

    def __init__(self, lower: Array, frames: int, variables: int) -> None:
        self._lower, self._shape = lower, (frames, variables)

    @property
    def log_determinant(self) -> float:
        """Natural logarithm of the determinant."""
        return float(2.0 * np.log(self._lower[0]).sum())

    def solve(self, right: Array) -> Array:
        """The solution (frames, n) for a right side (frames, n)."""
        from scipy.linalg.lapack import dpbtrs

        return np.asarray(dpbtrs(self._lower, right.reshape(-1, 1), lower=1)[0]).reshape(self._shape)
