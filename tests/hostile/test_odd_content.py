"""Odd but readable recordings through every command: one sentence or a result, a documented exit code, no traceback."""

import json
import os

import pytest
import typer

from borelli.cli import app

from .odd_campaign import campaign, judge, line
from .odd_content import FORMATS, ODDITIES, odd_trial, write_odd

SLICE = 18
"""Files of the short campaign, which takes 10 s."""


def check(total, files):
    print(line(total))
    assert not total["failed"], "\n".join(total["failed"])
    assert total["files"] == files
    codes = {name.split()[1] for name in total["runs"]}
    assert codes == {"0", "1"}


def test_odd_files_give_results_or_one_sentence():
    """Every 23rd file: each third oddity, in all formats; every ninth of them through the whole analysis."""
    total = campaign(SLICE, step=23, every=9)
    check(total, SLICE)
    assert total["runs"]["info 0"] > SLICE, "files that cannot be read test only the readers"
    assert total["runs"]["analyze 0"] > 0


@pytest.mark.slow
def test_two_thousand_odd_files():
    total = campaign(2000, workers=len(os.sched_getaffinity(0)))
    check(total, 2000)
    made_by_borelli = {"demo", "bench", "simulate"}  # they read no recording
    for command in set(typer.main.get_command(app).commands) - made_by_borelli:
        assert total["runs"][f"{command} 0"] > 0, command


def test_every_oddity_and_format_is_in_the_campaign():
    single = {(form, names[0]) for _, form, names in map(odd_trial, range(len(ODDITIES) * len(FORMATS)))}
    assert single == {(form, name) for form in FORMATS for name in ODDITIES}
    combined = [odd_trial(number)[2] for number in range(len(single), 2000)]
    assert all(len(set(names)) >= 2 for names in combined)


def test_files_are_the_same_every_time(tmp_path):
    for number in (0, 17, 500, 1234):
        contents = [write_odd(number, tmp_path)[0].read_bytes() for _ in range(2)]
        if odd_trial(number)[1] != "nc":  # which states when it was written
            assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("code", "printed", "errors", "words"),
    [
        (-1, "", "", "exit code -1"), (2, "", "Usage: ...", "exit code 2"), (1, "", "", "without a reason"),
        (0, "mass np.float64(70.0)", "", "np.float64("), (0, "", "x.py:1: RuntimeWarning: invalid", "RuntimeWarning"),
        (1, "", "borelli: One.\nTwo.", "not one sentence"), (0, "", "borelli: One.", "but exit code 0"),
    ],
)  # fmt: skip
def test_the_judge_finds_what_users_must_not_read(code, printed, errors, words):
    assert words in judge(["info", "a"], code, printed, errors, "")


def test_the_judge_requires_json():
    for printed in ("", "nothing", "[1]", '{"value": NaN}', '{"value": 1}{"value": 2}'):
        assert judge(["info", "a", "--json"], 0, printed, "", "")
    assert not judge(["info", "a", "--json"], 0, json.dumps({"value": None}), "", "")
    assert judge(["info", "a", "--json"], 1, json.dumps({"value": 1}), "borelli: No.", "")
    assert not judge(["info", "a", "--json"], 1, json.dumps({"error": "No.", "file": "a"}), "borelli: No.", "")
