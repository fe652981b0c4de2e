"""Recordings, models and reference answers that are not part of the repository."""

import os
from pathlib import Path

SHARED_DATA = Path(os.environ.get("BORELLI_DATA", Path(__file__).parents[2] / "shared" / "data"))
"""Set `BORELLI_DATA` to use another folder. Tests that use it are marked `data`."""
UNREADABLE_MODELS = {"ThoracoscapularShoulderModel.osim": "ScapulothoracicJoint", "gonzalez_wrist.osim": "before 2.0"}
"""Models among them that borelli refuses, and what the refusal must mention."""
_allowed = True


def shared(name: str) -> Path:
    """Return the path of one file or folder of the data; a test that asks for it without the mark `data` fails."""
    assert _allowed, f"{name} is not part of the repository: mark the test with pytest.mark.data"
    return SHARED_DATA / name


def allow_shared_data(allowed: bool) -> None:
    """Let the test that begins use the data, or not."""
    global _allowed
    _allowed = allowed
