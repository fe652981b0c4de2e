"""Where recordings, models and reference answers lie that are not part of the repository."""

import os
from pathlib import Path

SHARED_DATA = Path(os.environ.get("BORELLI_DATA", Path(__file__).parents[2] / "shared" / "data"))
"""Set `BORELLI_DATA` to use another folder."""
