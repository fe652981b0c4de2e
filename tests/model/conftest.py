"""Where the recordings and models that are not part of the repository are found."""

from pathlib import Path

import pytest

from ..shared_data import SHARED_DATA

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def hdm() -> Path:
    """The directory with the Human Dynamic Model's own tables and pagoda's skeleton."""
    return SHARED_DATA / "hdm"
