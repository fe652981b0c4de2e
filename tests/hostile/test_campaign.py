"""Mutants of every format: each is read or refused in one sentence, within five seconds and a gigabyte."""

import pytest

from .attacks import few_and_full
from .campaign import campaign, judgements, line, mutant
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


def test_mutants_are_read_or_refused_in_one_sentence(tmp_path):
    pairs = []
    for kind in FORMATS:
        for number in range({"netCDF": 20, "stages": 80}.get(kind, 40)):
            name, files = mutant(kind, number)
            folder = tmp_path / kind.replace("/", "") / str(number)
            folder.mkdir(parents=True)
            for each, content in files.items():
                (folder / each).write_bytes(content)
            pairs.append((kind, folder / name))
    verdicts = judgements(pairs)
    for (kind, path), (verdict, said) in zip(pairs, verdicts, strict=True):
        assert verdict != "failed", f"{kind} {path.parent.name}: {said}"
    for wanted in ("read", "refused"):
        assert {kind for (kind, _), (verdict, _) in zip(pairs, verdicts, strict=True) if verdict == wanted} == {
            *FORMATS
        }


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_twenty_thousand_mutants(kind):
    total = check(kind, 20_000 if kind != "netCDF" else 3000)
    messages = list(total["messages"].values())
    print(*(f"    {message[:200]}" for message in messages[:: max(1, len(messages) // 20)]), sep="\n")


@few_and_full
def test_commands_that_read_mutants_of_stage_files(full):
    check("commands", 200 if full else 6)
