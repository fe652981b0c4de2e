"""Mutants of every format: each is read or refused in one sentence, within five seconds and a gigabyte."""

import pytest

from .campaign import campaign, line
from .seeds import FORMATS


def check(kind, count):
    total = campaign(kind, count)
    print(line(total))
    assert not total["failed"], "\n".join(total["failed"])
    assert total["read"] + total["refused"] == count
    assert total["read"] > 0.04 * count, "mutations that leave nothing readable test only the first check"
    assert total["refused"] > 0.1 * count, "mutations that change nothing test nothing"
    assert total["memory"] < 1e9
    return total


@pytest.mark.parametrize("kind", FORMATS)
def test_mutants_are_read_or_refused_in_one_sentence(kind):
    check(kind, 150 if kind != "netCDF" else 40)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_twenty_thousand_mutants(kind):
    total = check(kind, 20_000 if kind != "netCDF" else 3000)
    messages = list(total["messages"].values())
    print(*(f"    {message[:200]}" for message in messages[:: max(1, len(messages) // 20)]), sep="\n")
