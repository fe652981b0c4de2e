"""How hostile files are made, written and judged."""

import pytest

from .campaign import judgements
from .seeds import FORMATS, seeds

few_and_full = pytest.mark.parametrize(
    "full", [pytest.param(False, id="few"), pytest.param(True, id="full", marks=pytest.mark.slow)]
)
"""A test of few places in every run, and of all of them in the long ones."""
TEXTS = tuple(kind for kind in FORMATS if kind not in ("C3D", "netCDF"))
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
    """Reads paths, (format, path), asserts that none did harm, and gives back what was said of each."""
    verdicts = judgements(pairs)
    for (kind, path), (verdict, said) in zip(pairs, verdicts, strict=True):
        assert verdict != "failed", f"{kind} {path!a}: {said}"
        assert not refused or verdict == "refused", f"{kind} {path!a} was read"
    return [said for _, said in verdicts]


def changed(change, most=None):
    """A seed of each format that is text, with what `change` makes of it: several texts, of which `most` are taken."""
    for turn, kind in enumerate(TEXTS):
        name, files, target = small(kind)
        for content in thinned(change(files[target]), most, turn):
            yield kind, (name, files | {target: content})


def thinned(items, most, turn=0):
    """At most so many of the items, from everywhere among them; other ones at each turn. None: all."""
    items = list(items)
    step = 1 if most is None else -(-len(items) // most)
    return items[turn % step :: step]


def small(kind):
    """The smallest seed of a format that is made here: the name to be read, its files, the one to be changed."""
    name, files = min(seeds(kind), key=lambda seed: sum(map(len, seed[1].values())))
    return name, files, name if name in files else min(files)
