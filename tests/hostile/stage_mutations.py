"""Damage to stage and result files: of their bytes, and through HDF5; mostly with the checksum stamped again."""

import hashlib
import io
import json
import re
from contextlib import suppress

import h5py
import numpy as np

from borelli.files.netcdf import TRAILER, TRAILER_SIZE

from .mutations import BYTES, mutate_bytes, mutate_text
from .netcdf_mutations import CHANGES

ODD = (
    None, True, 0, -1, 1, 2**70, 10**400, 1e300, float("nan"), float("inf"), "", "x", "\x1b[2J\n", "\ud800", [], {},
    [1], [[]], {"a": 1}, [{"text": "x"}], "newton_euler", "stepped", "n" * 5000,
)  # fmt: skip
TIMES = (np.nan, np.inf, -1.0, 0.0, 1e300, -1e9, 1e12)


def stamped(content):
    """Return HDF5 content with its checksum."""
    return content + TRAILER + hashlib.sha256(content).hexdigest().encode() + b"\n"


def unstamped(content):
    """Return a file without its checksum."""
    return content[:-TRAILER_SIZE]


def mutate_stage(content, rng, others):
    """A file with its bytes changed, with or without the right checksum, or with parts changed through HDF5."""
    kind = rng.random()
    if kind < 0.1:
        return mutate_bytes(content, rng, others)
    content = unstamped(content)
    if kind < 0.4:
        return stamped(mutate_bytes(content, rng, [unstamped(other) for other in others]))
    if kind < 0.5:
        return stamped(_flip(content, rng))
    if kind < 0.65:
        return stamped(_forge_headers(content, rng))
    memory = io.BytesIO(content)
    with (
        suppress(RuntimeError, OSError),
        np.errstate(all="ignore"),
        h5py.File(memory, "r+") as file,
    ):  # HDF5 gives up on what some changes made of it
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            groups = [file] + [file[name] for name in _hard_links(file) if isinstance(file[name], h5py.Group)] * 3
            group = rng.choice(groups)
            if names := _hard_links(group):
                rng.choice((*CHANGES, *_CHANGES, *_CHANGES))(group, rng.choice(names), rng)
    return stamped(memory.getvalue())


def _hard_links(group):
    """Return the names in a group that are no links to elsewhere, which may not be followed."""
    return sorted(name for name in group if isinstance(group.get(name, getlink=True), h5py.HardLink))


def _flip(content, rng):
    """Return the content with some bits flipped where the structure is: in its first part."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        at = rng.randrange(len(changed) if rng.random() < 0.5 else min(len(changed), 6000))
        changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _forge_headers(content, rng):
    """Change bytes of object headers and give them the checksum that HDF5 expects (lookup3 of Bob Jenkins)."""
    changed = bytearray(content)
    headers = [match.start() for match in re.finditer(rb"OHDR\x02", content)]
    for start in rng.sample(headers, min(len(headers), rng.choice((1, 1, 2, 5)))):
        flags = content[start + 5]
        place = start + 6 + 16 * bool(flags & 0x20) + 4 * bool(flags & 0x10)
        width = 1 << (flags & 3)
        end = place + width + int.from_bytes(content[place : place + width], "little")
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(place + width, end)
            changed[at] = rng.choice((*BYTES, changed[at] ^ (1 << rng.randrange(8))))
        changed[end : end + 4] = lookup3(changed[start:end]).to_bytes(4, "little")
    return bytes(changed)


def lookup3(data):
    """Return the hash of HDF5's metadata."""

    def rot(x, k):
        return ((x << k) | (x >> (32 - k))) & 0xFFFFFFFF

    a = b = c = (0xDEADBEEF + len(data)) & 0xFFFFFFFF
    while len(data) > 12:
        a, b, c = ((x + int.from_bytes(data[i : i + 4], "little")) & 0xFFFFFFFF for x, i in ((a, 0), (b, 4), (c, 8)))
        for k in (4, 6, 8, 16, 19, 4):
            a = ((a - c) & 0xFFFFFFFF) ^ rot(c, k)
            c = (c + b) & 0xFFFFFFFF
            a, b, c = b, c, a
        data = data[12:]
    if not data:
        return c
    data = bytes(data) + bytes(12 - len(data))
    a, b, c = ((x + int.from_bytes(data[i : i + 4], "little")) & 0xFFFFFFFF for x, i in ((a, 0), (b, 4), (c, 8)))
    for k in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - rot(b, k)) & 0xFFFFFFFF
        a, b, c = b, c, a
    return b


def _metadata(group, name, rng):
    """Change one value anywhere in the JSON, its text, or nest it deeply."""
    file = group.file
    text = file.attrs.get("borelli_metadata")
    if not isinstance(text, str):
        return
    kind = rng.random()
    if kind < 0.2:
        text = mutate_text(text.encode(), rng, [text.encode()])[:60_000].replace(b"\0", b"").decode("utf-8", "replace")
    elif kind < 0.3:
        depth = rng.choice((5, 30, 900, 100_000))
        text = text[:-1] + ', "deep": ' + "[" * depth + "]" * depth + "}"
    else:
        try:
            table = json.loads(text)
        except ValueError:
            return
        part, key = table, None
        while isinstance(part, dict | list) and part and (key is None or rng.random() < 0.8):
            inside, key = part, rng.choice(sorted(part) if isinstance(part, dict) else range(len(part)))
            part = inside[key]
        if key is None:
            return
        if rng.random() < 0.25:
            del inside[key]
        else:
            inside[key] = rng.choice(ODD)
        text = json.dumps(table)
    file.attrs["borelli_metadata"] = text


def _model(group, name, rng):
    """Change the text of the model."""
    text = group.file.attrs.get("model")
    if isinstance(text, str):
        new = mutate_text(text.encode(), rng, [text.encode()])[:60_000].replace(b"\0", b"")
        group.file.attrs["model"] = new.decode("utf-8", "replace")


def _kind(group, name, rng):
    """Change the kind of the file."""
    group.file.attrs["borelli_stage"] = rng.choice(("motion", "torques", "energy", "fit", "uncertainty", "x", 3, ""))


def _times(group, name, rng):
    """Change a time, all times, or their order."""
    time = group["time"] if "time" in _hard_links(group) else None
    if not isinstance(time, h5py.Dataset) or not time.size or time.dtype.kind != "f" or time.size > 10_000:
        return
    values = np.atleast_1d(time[()])
    kind = rng.randrange(4)
    if kind == 0:
        values[rng.randrange(len(values))] = rng.choice(TIMES)
    elif kind == 1:
        values[:] = rng.choice(TIMES)
    elif kind == 2:
        values = values[::-1]
    else:
        values = values * rng.choice((-1.0, 0.0, 1e-9, 1e9, 1e-300))
    time[...] = values.reshape(time.shape)


def _resize(group, name, rng):
    """Replace a variable by one of another size or type with the same dimensions."""
    old = group.get(name)
    if not isinstance(old, h5py.Dataset) or not old.shape or old.size > 10_000:
        return
    scales = [other for other in _hard_links(group) if isinstance(group[other], h5py.Dataset)]
    shape = tuple(max(0, n + rng.choice((-1, 0, 0, 1, 500))) for n in old.shape)
    kind = rng.choice(("f8", "f8", "f4", "i4", "?", "S3", h5py.string_dtype()))
    axes = [rng.choice(scales) for _ in shape]
    del group[name]
    new = group.create_dataset(name, shape=shape, dtype=kind)
    for axis, scale in enumerate(axes):
        if scale in group and group[scale].is_scale:
            new.dims[axis].attach_scale(group[scale])


def _swap(group, name, rng):
    """Exchange two variables, or two groups."""
    names = sorted(group)
    other = rng.choice(names)
    if other != name and "odd" not in group:
        group.move(name, "odd")
        group.move(other, name)
        group.move("odd", other)


def _many(group, name, rng):
    """Add many variables, attributes or groups, or large attributes."""
    kind = rng.randrange(5)
    if kind == 0:
        for i in range(rng.choice((10, 1100))):
            group.create_group(f"more{i}")
    elif kind == 1:
        for i in range(rng.choice((10, 300))):
            group.attrs[f"more{i}"] = i
    elif kind == 2:
        group.attrs["large"] = "x" * rng.choice((1000, 60_000, 400_000))
    elif kind == 3:
        group.attrs.create("strings", ["y" * 1000] * rng.choice((2, 3000)), dtype=h5py.string_dtype())
    else:
        group.attrs["table"] = np.zeros(3, [("a", "f8"), ("b", "i4")])


def _huge(group, name, rng):
    """Replace a variable by one that takes gigabytes, in a few bytes of the file."""
    del group[name]
    kind = rng.randrange(4)
    if kind == 0:
        group.create_dataset(name, shape=(22 * 2**27,), dtype="f8")
    elif kind == 1:
        group.create_dataset(name, shape=(2**20, 2**12), dtype="f8", chunks=(2**10, 2**10), fillvalue=1.0)
    elif kind == 2:
        group.create_dataset(name, data=np.zeros(10**7), chunks=(10**6,), compression="gzip")
    else:
        group.create_dataset(name, shape=(2**22,), dtype=h5py.string_dtype())


def _cycle(group, name, rng):
    """Link a group into itself or into another."""
    place = rng.choice((group, group.file))
    if "again" not in place:
        place["again"] = rng.choice((group, group.file, h5py.SoftLink("/"), h5py.ExternalLink("energy.nc", "/")))


_CHANGES = (
    _metadata, _metadata, _metadata, _metadata, _model, _kind, _times, _times, _resize, _resize, _swap, _many, _huge,
    _cycle,
)  # fmt: skip
