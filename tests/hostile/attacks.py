"""How hostile files are made, written and judged."""

import pytest

from .campaign import judgements
from .seeds import FORMATS, seeds

few_and_full = pytest.mark.parametrize(
    "full", [pytest.param(False, id="few"), pytest.param(True, id="full", marks=pytest.mark.slow)]
)
"""Test of few positions in every run, and of all of them in slow runs."""
TEXTS = tuple(kind for kind in FORMATS if kind not in ("C3D", "netCDF", "stages"))
XML = {
    "OpenSim": '<OpenSimDocument Version="40000"><Model name="m">%s</Model></OpenSimDocument>',
    "MJCF": "<mujoco>%s<worldbody><body/></worldbody></mujoco>",
    "URDF": '<robot name="r"><link name="a"/>%s</robot>',
}


def survive(folder, contents, *, refused=False):
    """Writes and reads files, (format, content or seed), and asserts that none of them did harm."""
    pairs = []
    for number, (kind, content) in enumerate(contents):
        name, files = content if isinstance(content, tuple) else (seeds(kind)[0][0], {seeds(kind)[0][0]: content})
        place = folder / str(number)
        place.mkdir()
        for each, raw in files.items():
            (place / each).write_bytes(raw)
        pairs.append((kind, place / name))
    return judge(pairs, refused=refused)


def judge(pairs, *, refused=False):
    """Read files (format, path), assert that none failed, and return the message of each."""
    verdicts = judgements(pairs)
    for (kind, path), (verdict, said) in zip(pairs, verdicts, strict=True):
        assert verdict != "failed", f"{kind} {path!a}: {said}"
        assert not refused or verdict == "refused", f"{kind} {path!a} was read"
    return [said for _, said in verdicts]


def changed(change, most=None):
    """Return a seed of each text format with up to `most` of the texts that `change` makes of it."""
    for turn, kind in enumerate(TEXTS):
        name, files, target = small(kind)
        for content in thinned(change(files[target]), most, turn):
            yield kind, (name, files | {target: content})


def thinned(items, most, turn=0):
    """Return at most `most` of the items, spread over all of them, different ones in each call; None for all."""
    items = list(items)
    step = 1 if most is None else -(-len(items) // most)
    return items[turn % step :: step]


def small(kind):
    """The smallest seed of a format that is made here: the name to be read, its files, the one to be changed."""
    name, files = min(seeds(kind), key=lambda seed: sum(map(len, seed[1].values())))
    return name, files, name if name in files else min(files)
