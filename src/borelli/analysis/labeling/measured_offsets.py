"""Measured offsets: how far from the places of the atlas markers are seen on the posed generic human."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np

from borelli.files.text import check_format, parse_toml
from borelli.numerics.vectors import Array

FORMAT = "borelli-measured-offsets"
VERSION = 1
PRIOR_SETS = 1.0
"""Number of marker sets with an offset of zero that stands for the atlas: one set alone counts half."""


@cache
def measured_offsets(without: tuple[str, ...] = ()) -> Mapping[str, Array]:
    """Return the mean offset [m] of each landmark over marker sets, on the right side of the generic human.

    Args:
        without: Marker sets that are not known.
    """
    sets = [offsets for name, offsets in _table().items() if name not in without]
    names = dict.fromkeys(landmark for offsets in sets for landmark in offsets)
    found = {name: [offsets[name] for offsets in sets if name in offsets] for name in names}
    return {name: 1e-3 * np.sum(rows, axis=0) / (len(rows) + PRIOR_SETS) for name, rows in found.items()}


def offset_on_side(landmark: str, side: str, without: tuple[str, ...] = ()) -> Array:
    """Return the offset [m] of a landmark on a side; zero if it was never measured."""
    offset = measured_offsets(without).get(landmark, np.zeros(3))
    return np.array(offset * (1.0, {"right": 1.0, "middle": 0.0, "left": -1.0}[side], 1.0))


@cache
def _table() -> dict[str, dict[str, list[float]]]:
    name = "measured_offsets.toml"
    table = parse_toml((files("borelli.analysis.labeling") / name).read_text(encoding="utf-8"), name)
    check_format(table, FORMAT, VERSION, name)
    return dict(table["offsets"])
