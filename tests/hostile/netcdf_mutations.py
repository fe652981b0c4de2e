"""Damage done to netCDF files through HDF5 itself, so that what it writes is sound HDF5 and no sound recording."""

import io
import json
from contextlib import suppress

import h5py
import numpy as np

from .mutations import WORDS, mutate_bytes, mutate_text

VALUES = (np.nan, np.inf, -np.inf, 1e300, -1e31, 1e-320, 0.0, -1.0, 1e9)
SHAPES = ((), (0,), (1,), (3, 1), (2, 2, 2, 2), (10**6, 10**4, 3), (2**40,), (5, 3), (4, 5, 3))
TYPES = ("f8", "f4", "f2", "i8", "u1", "?", "c16", "S7", ">f8", "V3", [("a", "f8"), ("b", "i4")])
ATTRIBUTES = (
    "units", "_FillValue", "missing_value", "scale_factor", "add_offset", "dtype", "calendar", "coordinates", "rate_hz",
    "analog_rate_hz", "borelli_recording", "DIMENSION_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "CLASS", "NAME",
    "REFERENCE_LIST", "_Unsigned", "_Encoding", "file_units", "file_up", "grid_mapping", "bounds",
)  # fmt: skip
ELSEWHERE = ("/dev/zero", "/dev/stdin", "/etc/hostname", "nowhere", "files")


def mutate_netcdf(content, rng, others):
    """netCDF with variables, names, attributes or the description changed; or, half the time, any of its bytes."""
    if rng.random() < 0.5:
        return mutate_bytes(content, rng, others)
    memory = io.BytesIO(content)
    with suppress(RuntimeError, OSError), np.errstate(all="ignore"), h5py.File(memory, "r+") as file:
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):  # HDF5 gives up on what some changes made of it
            if names := sorted(file):
                rng.choice(CHANGES)(file, rng.choice(names), rng)
    return memory.getvalue()


def _value(file, name, rng):
    data = file.get(name)
    if isinstance(data, h5py.Dataset) and data.size and data.chunks is None and data.dtype.kind in "fiO":
        if data.size > 10_000:
            return
        values = np.atleast_1d(data[()])
        at = np.unravel_index(rng.randrange(values.size), values.shape)
        odd = rng.choice(VALUES)
        kind = data.dtype.kind
        values[at] = (
            odd
            if kind == "f"
            else rng.choice((0, -1, 2 ** (5 * data.dtype.itemsize)))
            if kind == "i"
            else _text(values, rng)
        )
        data[()] = values.reshape(data.shape)


def _text(values, rng):
    """A name that another element has, or a strange one."""
    word = rng.choice((rng.choice(values.ravel().tolist()), rng.choice(WORDS), b"n" * 100_000))
    return (word.encode() if isinstance(word, str) else word).replace(b"\0", b"")


def _description(file, name, rng):
    """The text of JSON, damaged as a text or with one value replaced."""
    said = file.attrs.get("borelli_recording")
    if not isinstance(said, str):
        return
    try:
        about = json.loads(said)
    except ValueError:
        about = None
    if rng.random() < 0.4 or not isinstance(about, dict) or not about:
        new = mutate_text(said.encode(), rng, [said.encode()])[:60_000].replace(b"\0", b"")
        file.attrs["borelli_recording"] = np.bytes_(new) if rng.random() < 0.1 else new.decode("utf-8", "replace")
        return
    note = {"text": "x", "kind": rng.choice(("problem", "other", 3)), "action": ""}
    odd = (None, 1, "x", [], {}, [1], {"a": {}}, float("nan"), float("inf"), True, [note], [{}], ["text"], "\x1b[2J\n")
    about[rng.choice((*about, "other", "data"))] = rng.choice(odd)
    if rng.random() < 0.2:
        del about[rng.choice(sorted(about))]
    file.attrs["borelli_recording"] = json.dumps(about)


def _attribute(file, name, rng):
    target = file if rng.random() < 0.4 else file.get(name)
    if target is None:
        return
    key = rng.choice((*ATTRIBUTES, *target.attrs))
    if rng.random() < 0.3:
        target.attrs.pop(key, None)
        return
    odd = (0, -1, 2**40, *VALUES, "x", "", "days since 0", "bool", [1.0, 2.0], [], "marker time", h5py.Empty("f8"))
    target.attrs[key] = rng.choice(odd)


def _drop(file, name, rng):
    del file[name]


def _rename(file, name, rng):
    new = rng.choice((*file, "other", "marker_residual", "column_value", "a\x1b[2Jb", "n" * 3000))
    if new not in file:
        file.move(name, new)


def _replace(file, name, rng):
    """A dataset of another shape and type under the old name; large ones are never written and take no room."""
    shape, kind = rng.choice(SHAPES), rng.choice(TYPES)
    old = file.get(name)
    if isinstance(old, h5py.Dataset) and rng.random() < 0.5:
        shape = old.shape
    del file[name]
    chunks = tuple(min(n, 64) for n in shape) if shape and 0 not in shape and rng.random() < 0.5 else None
    made = file.create_dataset(name, shape=shape, dtype=kind, chunks=chunks, compression="gzip" if chunks else None)
    if rng.random() < 0.5:
        made.make_scale(name)


def _link(file, name, rng):
    del file[name]
    links = (h5py.SoftLink(f"/{name}"), h5py.SoftLink("/time"), h5py.ExternalLink(rng.choice(ELSEWHERE), "/time"))
    file[name] = rng.choice((*links, file))


def _elsewhere(file, name, rng):
    """Add a dataset whose values are in another file, or copied from one."""
    del file[name]
    place = rng.choice(ELSEWHERE)
    if rng.random() < 0.7:
        file.create_dataset(name, shape=(4,), dtype="f8", external=[(place, 0, 32)])
    else:
        layout = h5py.VirtualLayout(shape=(4,), dtype="f8")
        layout[:] = h5py.VirtualSource(place, "x", shape=(4,))
        file.create_virtual_dataset(name, layout)


def _group(file, name, rng):
    inside = rng.choice((name, "group"))
    if inside in file:
        del file[inside]
    group = file.create_group(inside)
    for _ in range(rng.choice((0, 1, 50))):
        group = group.create_group("g")


def _bomb(file, name, rng):
    """Nothing but zeros, packed; or a single number in a block of a quarter of a gigabyte."""
    del file[name]
    if rng.random() < 0.5:
        file.create_dataset(name, data=np.zeros((4, 200_000)), chunks=(4, 200_000), compression="gzip")
    else:
        file.create_dataset(name, shape=(1,), maxshape=(None,), chunks=(2**25,), dtype="f8", compression="gzip")


CHANGES = (
    _value, _value, _value, _value, _description, _description, _description, _attribute, _attribute, _attribute,
    _drop, _rename, _replace, _link, _elsewhere, _group, _bomb,
)  # fmt: skip
