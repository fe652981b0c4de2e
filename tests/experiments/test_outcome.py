"""Claims: published, derived and required values are separate, and a failed one names its condition."""

from __future__ import annotations

import pytest

from borelli.commands.experiment import _check
from borelli.errors import BorelliError
from borelli.experiments.outcome import NOT_GIVEN, PASSED_MEANING, Claim, Outcome, above, below, near, within_fraction


def test_conditions_are_stated():
    assert below("x", 1.0, NOT_GIVEN, 0.5).required == "below 0.5"
    assert above("x", 1.0, "presses", 0.5) == Claim("x", 1.0, "presses", "above 0.5", True)
    assert near("x", 1.0, NOT_GIVEN, 1.01, 0.1, "1.01").required == "1.01 to within 0.1"
    assert within_fraction("x", 1.0, "2", 2.0, 0.01).required == "2 to within 1 %"


def test_failed_claim_names_what_is_required():
    outcome = Outcome("jump", "about", [{"a": 1.0}], [below("deviation [m]", 0.2, NOT_GIVEN, 0.15)])
    with pytest.raises(BorelliError, match=r"required: below 0\.15"):
        _check("jump", outcome)
    assert "derived" in PASSED_MEANING and "required" in PASSED_MEANING
