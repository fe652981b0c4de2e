"""C3D files made by hand, slowly and obviously, in every encoding: the twin of the reader under test."""

import struct

import numpy as np

PROCESSORS = {"Intel": 84, "DEC": 85, "SGI": 86}


def float_bytes(value, processor):
    """A 32-bit number as this processor writes it."""
    if processor == "SGI":
        return struct.pack(">f", value)
    if processor == "Intel":
        return struct.pack("<f", value)
    low, high = struct.unpack("<HH", struct.pack("<f", 4.0 * value))
    return struct.pack("<HH", high, low)


def word_bytes(value, processor):
    return struct.pack(">H" if processor == "SGI" else "<H", int(value) & 0xFFFF)


def parameter_bytes(name, group, value, processor):
    """A parameter of texts (list or str), floats or whole numbers (arrays, first index fastest in the file)."""
    if isinstance(value, str):
        kind, dims, raw = 255, [len(value)], value.encode()
    elif isinstance(value, list) and value and isinstance(value[0], str):
        width = max(map(len, value))
        kind, dims, raw = 255, [width, len(value)], b"".join(text.encode().ljust(width) for text in value)
    else:
        array = np.asarray(value)
        dims = list(array.shape[::-1])
        kind = 4 if array.dtype.kind == "f" else 2
        raw = b"".join((float_bytes if kind == 4 else word_bytes)(item, processor) for item in array.ravel().tolist())
    body = bytes([kind, len(dims), *dims]) + raw + b"\0"
    return bytes([len(name), group]) + name.encode() + word_bytes(2 + len(body), processor) + body


def section_bytes(groups, processor="Intel"):
    chain = b""
    for number, (group, content) in enumerate(groups.items(), start=1):
        chain += bytes([len(group), 256 - number]) + group.encode() + word_bytes(3, processor) + b"\0"
        for name, value in content.items():
            chain += parameter_bytes(name, number, value, processor)
    chain += b"\0\0"
    blocks = -(-(4 + len(chain)) // 512)
    return (bytes([1, 0x50, blocks, PROCESSORS[processor]]) + chain).ljust(512 * blocks, b"\0")


def header_bytes(processor, *, points, analog, first, last, scale, block, samples, rate):
    raw = bytes([2, 0x50])
    for word in (points, analog, first, last, 0):
        raw += word_bytes(word, processor)
    raw += float_bytes(scale, processor) + word_bytes(block, processor) + word_bytes(samples, processor)
    return (raw + float_bytes(rate, processor)).ljust(512, b"\0")


def c3d_bytes(
    markers, groups=None, *, processor="Intel", real=True, scale=0.1, rate=100.0, first=1, analog=None, header=None
):
    """Return a complete file: markers in its own unit, shape (frames, points, 3), NaN where missing.

    Args:
        markers: Positions.
        groups: Parameters beyond the necessary ones, which they may replace; None as a value removes one.
        processor: Whose numbers.
        real: 32-bit reals, or 16-bit integers of `scale`.
        scale: Step of integers.
        rate: Frames per second.
        first: Number of the first frame.
        analog: Raw samples, shape (frames, samples, channels).
        header: Numbers of the header that are to be wrong.
    """
    frames, points = markers.shape[:2]
    samples, channels = analog.shape[1:] if analog is not None else (1, 0)
    signed = -scale if real else scale
    point = {"USED": points, "FRAMES": frames, "SCALE": float(signed), "RATE": float(rate), "UNITS": "mm"}
    values = {"POINT": point | {"DATA_START": 0}, "ANALOG": {"USED": channels, "RATE": rate * samples}}
    for group, content in (groups or {}).items():
        values.setdefault(group, {}).update(content)
    values = {g: {n: v for n, v in content.items() if v is not None} for g, content in values.items()}
    block = 2 + len(section_bytes(values, processor)) // 512
    if "DATA_START" in values["POINT"]:
        values["POINT"]["DATA_START"] = block
    told = {"points": points, "analog": samples * channels, "first": first, "last": first + frames - 1}
    told |= {"scale": signed, "block": block, "samples": samples, "rate": rate} | (header or {})
    raw = header_bytes(processor, **told) + section_bytes(values, processor)
    for f in range(frames):
        for p in range(points):
            missing = np.isnan(markers[f, p]).any()
            for number in [0.0] * 3 if missing else markers[f, p].tolist():
                raw += float_bytes(number, processor) if real else word_bytes(round(number / scale), processor)
            fourth = -1 if missing else 0x0305
            raw += float_bytes(fourth, processor) if real else word_bytes(fourth, processor)
        for number in analog[f].ravel().tolist() if analog is not None else []:
            raw += float_bytes(number, processor) if real else word_bytes(number, processor)
    return raw + bytes(-len(raw) % 512)
