"""Damage to files where a format has its counts, names, numbers and brackets."""

import re
import struct

NUMBERS = (
    b"0", b"-1", b"1", b"2", b"3", b"255", b"256", b"65535", b"65536", b"99999999", b"2147483648", b"-2147483649",
    b"18446744073709551616", b"9" * 400, b"1e9", b"1e18", b"1e30", b"1e154", b"1e300", b"1e308", b"1e309", b"-1e309",
    b"1e-320", b"-0.0", b"nan", b"NaN", b"-nan", b"inf", b"-Infinity", b"1_000", b"0x1F", b"1,5", b"1.#QNAN", b"",
    b"--3", b"+", b".", b"1e", b"\xd9\xa3",
)  # fmt: skip
WORDS = (
    b"", b" ", b"\t" * 40, b"," * 40, b"\x00", b"\x1b[31m", b"\xff\xfe", b"\xe9\xa0", b"\xc3\xa9", b"\xf0\x9f\x92\x80",
    b"(", b")", b"{", b"}", b"[", b"]", b"<", b">", b'"', b"'", b"=", b":", b"#", b";", b"&", b"\\", b"/", b"..",
    b"*1", b"ground", b"world", b"root", b"time", b"true", b"none", b"%s%n", b"a" * 300, b"\xe2\x80\xa8", b"\x85",
)  # fmt: skip
BYTES = (0, 1, 2, 3, 80, 84, 85, 86, 127, 128, 254, 255)

NUMBER = re.compile(rb"(?<![\w.])[+-]?\d[\d.]*(?:[eE][+-]?\d+)?")
WORD = re.compile(rb"[A-Za-z_#:][\w.:#-]*")
LARGEST = 3_000_000
"""[bytes] of a mutant; so that all of them can be read in the end."""


def mutate_text(text, rng, others, words=()):
    """Text with one to six changes: numbers, words, lines and blocks, delimiters, encoding."""
    lines = text.split(b"\n")
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        # headers come first and decide how the rest is read
        at = rng.randrange(len(lines)) if rng.random() < 0.5 else rng.randrange(min(len(lines), 14))
        _LINES[rng.randrange(len(_LINES))](lines, at, rng, others, words)
        lines = lines or [b""]
    return mutate_whole(b"\n".join(lines), rng, others)


def _number(lines, at, rng, others, words):
    lines[at] = replaced(lines[at], NUMBER, rng.choice(NUMBERS), rng)


def _word(lines, at, rng, others, words):
    lines[at] = replaced(lines[at], WORD, rng.choice(words) if words and rng.random() < 0.5 else rng.choice(WORDS), rng)


def _put(lines, at, rng, others, words):
    place = rng.randrange(len(lines[at]) + 1)
    piece = rng.choice((*WORDS, *NUMBERS, *words))
    lines[at] = lines[at][:place] + piece + lines[at][place + rng.choice((0, 1, len(piece))) :]


def _cell(lines, at, rng, others, words):
    for delimiter in (b"\t", b",", b" "):
        if delimiter in lines[at]:
            cells = lines[at].split(delimiter)
            place = rng.randrange(len(cells))
            cells[place : place + 1] = rng.choice(
                ([], [b""], [rng.choice(NUMBERS)], [cells[place]] * 2, [rng.choice(cells)])
            )
            lines[at] = delimiter.join(cells)
            return


def _cut(lines, at, rng, others, words):
    lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]


def _drop(lines, at, rng, others, words):
    del lines[at : at + rng.choice((1, 1, 1, 2, 10, 1000))]


def _repeat(lines, at, rng, others, words):
    piece = lines[at : at + rng.choice((1, 1, 2, 5, 20))]
    times = rng.choice((1, 1, 2, 3, 50) if rng.random() < 0.98 else (2000,))
    lines[at:at] = piece * min(times, LARGEST // (sum(map(len, piece)) + 1) + 1)


def _swap(lines, at, rng, others, words):
    other = rng.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _join(lines, at, rng, others, words):
    lines[at : at + 2] = [b" ".join(lines[at : at + 2])]


def _split(lines, at, rng, others, words):
    place = rng.randrange(len(lines[at]) + 1)
    lines[at : at + 1] = [lines[at][:place], lines[at][place:]]


def _widen(lines, at, rng, others, words):
    lines[at] = lines[at] * rng.choice((2, 3, *(30,) * 7, min(3000, LARGEST // (len(lines[at]) + 1))))


def _foreign(lines, at, rng, others, words):
    other = rng.choice(others).split(b"\n")
    start = rng.randrange(len(other))
    lines[at:at] = other[start : start + rng.choice((1, 3, 10))]


def _column(lines, at, rng, others, words):
    """The same number throughout one column."""
    number = rng.choice(NUMBERS)
    place = rng.randrange(8)
    for i in range(at, len(lines)):
        cells = lines[i].split(b"\t" if b"\t" in lines[i] else b"," if b"," in lines[i] else b" ")
        if place < len(cells):
            cells[place] = number
            lines[i] = (b"\t" if b"\t" in lines[i] else b"," if b"," in lines[i] else b" ").join(cells)


_LINES = (
    _number, _number, _number, _word, _word, _put, _put, _cell, _cell, _cut, _drop, _repeat, _swap, _join, _split,
    _widen, _foreign, _column,
)  # fmt: skip


def mutate_whole(text, rng, others):
    """Rarely, a change to the whole: its end, encoding, line ends or delimiters; a part of another file; blown up."""
    kind = rng.randrange(100)
    if kind < 4:
        return text[: rng.randrange(len(text) + 1)]
    if kind == 4:
        return text.decode("latin-1").encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32")))
    if kind == 5:
        return text.replace(b"\n", rng.choice((b"\r", b"\r\n", b"\n\n", b" ", b"\x00", b"\x0c")))
    if kind == 6:
        return text.replace(*rng.choice(((b"\t", b" "), (b"\t", b","), (b",", b";"), (b" ", b""), (b".", b","))))
    if kind == 7:
        return mutate_bytes(text, rng, others)
    if kind == 8:
        other = rng.choice(others)
        return text[: rng.randrange(len(text) + 1)] + other[rng.randrange(len(other) + 1) :]
    if kind == 9 and rng.random() < 0.1:
        return text + text[len(text) // 2 :] * min(rng.choice((10, 100, 1000)), LARGEST // (len(text) + 1))
    if kind == 10:
        return NUMBER.sub(lambda _: rng.choice(NUMBERS), text)
    return text


def replaced(text, pattern, new, rng):
    """The text with one thing that the pattern finds replaced."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    place = rng.choice(found)
    return text[: place.start()] + new + text[place.end() :]


def mutate_bytes(content, rng, others):
    """Change, remove, repeat or move single bytes, words and sections."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 40))):
        at = rng.randrange(len(content) + 1)
        if rng.random() < 0.4:
            at = min(at, rng.randrange(1024))
        kind = rng.randrange(8)
        if kind < 4:
            content[at : at + 1] = bytes([rng.choice(BYTES) if rng.random() < 0.7 else rng.randrange(256)])
        elif kind == 4:
            content[at : at + 4] = rng.choice(CELLS)
        elif kind == 5:
            del content[at : at + rng.choice((1, 2, 4, 16, 512))]
        elif kind == 6:
            start = rng.randrange(len(content) + 1)
            content[at:at] = content[start : start + rng.choice((1, 4, 64, 512))]
        else:
            start = rng.randrange(len(content) + 1)
            piece = content[start : start + rng.choice((4, 64, 512))]
            content[at : at + len(piece)] = piece
    if rng.random() < 0.05:
        del content[rng.randrange(len(content) + 1) :]
    return bytes(content)


_ODD = (float("nan"), float("inf"), float("-inf"), 3e38, 1e-42, -1.0, 0.0, 1e6, 1e20)
CELLS = (
    *(struct.pack(order + "f", value) for order in "<>" for value in _ODD),
    *(b"\xff" * 4, b"\xff\x7f\xff\xff", b"\x00\x80\x00\x00"),
)
"""Numbers of four bytes that are none, or hardly."""

_TAG = re.compile(rb"<(/?)([A-Za-z_][\w.-]*)([^<>]*?)(/?)>")
_VALUE = re.compile(rb'(?<==)"[^"<>]*"')
_CONTENT = re.compile(rb"(?<=>)[^<>]*[^\s<>][^<>]*(?=<)")


def mutate_xml(text, rng, others, words=()):
    """XML with one to six changes to values, contents, tags and whole elements; most stays well formed."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        kind = rng.randrange(20)
        if kind < 9:
            text = _changed_value(text, rng, words)
        elif kind < 17:
            text = _changed_element(text, rng, others)
        elif kind == 17:
            tag = rng.choice(list(_TAG.finditer(text)) or [None])
            new = rng.choice(list(_TAG.finditer(rng.choice(others))) or [tag])
            if tag and new:  # every element of one tag becomes one of another
                text = re.sub(rb"(?<=[</])" + re.escape(tag[2]) + rb"(?=[\s/>])", new[2].replace(b"\\", b""), text)
        else:
            text = mutate_whole(text, rng, others)
    return text if rng.random() < 0.95 else mutate_text(text, rng, others, words)


def _changed_value(text, rng, words):
    """An attribute or content replaced by a number, a word, another value of the file, or changed in one number."""
    pattern = _VALUE if rng.random() < 0.5 and b'="' in text else _CONTENT
    found = list(pattern.finditer(text))
    if not found:
        return text
    place, other = rng.choice(found), rng.choice(found)
    old = place[0].strip(b'"')
    kind = rng.randrange(6)
    if kind < 2:
        new = replaced(old, NUMBER, rng.choice(NUMBERS), rng)
    elif kind == 2:
        new = other[0].strip(b'"')
    elif kind == 3:
        new = rng.choice((*words, *WORDS)).replace(b"<", b"&lt;").replace(b'"', b"")
    elif kind == 4:
        parts = old.split()
        new = b" ".join(parts[: rng.randrange(len(parts) + 1)] * rng.choice((1, 2, 3, 400)))
    else:
        new = rng.choice(NUMBERS)
    if pattern is _VALUE:
        new = b'"' + new + b'"'
    return text[: place.start()] + new + text[place.end() :]


def _changed_element(text, rng, others):
    """Remove, repeat, move, wrap or empty an element, or insert one of another file."""
    place = _element(text, rng)
    if place is None:
        return text
    start, end = place
    kind = rng.randrange(7)
    if kind == 0:
        return text[:start] + text[end:]
    if kind == 1:
        return text[:end] + text[start:end] * rng.choice((1, 2, 30)) + text[end:]
    if kind == 2:
        other = _element(text, rng)
        return text[: other[0]] + text[start:end] + text[other[0] :] if other else text
    if kind == 3:
        other = rng.choice(others)
        found = _element(other, rng)
        return text[:start] + other[slice(*found)] + text[start:] if found else text
    if kind == 4:
        tag = _TAG.match(text, start)[2]
        deep = rng.choice((1, 3, 40, 300))
        return text[:start] + (b"<" + tag + b">") * deep + text[start:end] + (b"</" + tag + b">") * deep + text[end:]
    if kind == 5:
        tag = _TAG.match(text, start)
        return text[:start] + b"<" + tag[2] + tag[3] + b"/>" + text[end:]
    tag = _TAG.match(text, start)  # an attribute removed
    kept = re.sub(rb'\s[\w.-]+="[^"]*"', lambda m: m[0] if rng.random() < 0.6 else b"", tag[3])
    return text[:start] + b"<" + tag[2] + kept + tag[4] + b">" + text[tag.end() :]


def _element(text, rng):
    """Where an element chosen at random begins and ends."""
    tags = [tag for tag in _TAG.finditer(text) if not tag[1]]
    if not tags:
        return None
    tag = rng.choice(tags)
    if tag[4]:
        return tag.span()
    depth = 0
    for each in re.compile(rb"<(/?)" + re.escape(tag[2]) + rb"(?=[\s/>])[^<>]*?(/?)>").finditer(text, tag.start()):
        depth += 0 if each[2] else -1 if each[1] else 1
        if depth == 0:
            return tag.start(), each.end()
    return None


def c3d_fields(content):
    """Where a C3D file keeps its counts: (byte, width) of the header's words and of each entry of the parameters."""
    fields = [(0, 1), (1, 1), *((at, 2) for at in (2, 4, 6, 8, 10, 16, 18, 298, 300)), (12, 4), (20, 4), (304, 4)]
    values = []
    start = (content[0] - 1) * 512
    fields += [(start + 2, 1), (start + 3, 1)]
    order = "big" if content[start + 3] == 86 else "little"
    place = start + 4
    while place + 3 < len(content) and content[place] and content[place + 1]:
        length = content[place] if content[place] < 128 else 256 - content[place]
        after = place + 2 + length
        fields += [(place, 1), (place + 1, 1), (place + 2, min(length, 4)), (after, 2)]
        if content[place + 1] < 128:
            kind, count = content[after + 2], content[after + 3]
            fields += [(after + 2, 1), (after + 3, 1), *((after + 4 + k, 1) for k in range(count))]
            width = {4: 4, 2: 2}.get(kind, 1)
            size = width
            for k in range(count):
                size *= content[after + 4 + k]
            values += [(after + 4 + count + k, width) for k in range(0, min(size, 400), width)]
        step = int.from_bytes(content[after : after + 2], order)
        if not step:
            break
        place = after + step
    return fields, values, place


def mutate_c3d(content, rng, others):
    """C3D with counts, pointers, types, dimensions, values of parameters, samples or blocks changed."""
    fields, values, end = c3d_fields(content)
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        kind = rng.randrange(10)
        at, width = rng.choice(fields if kind < 4 else values or fields)
        if kind < 8:
            changed[at : at + width] = _cell_of(width, changed[at : at + width], rng)
        elif kind == 8 and end + 8 < len(changed):
            for _ in range(rng.choice((1, 20))):
                at = rng.randrange(end, len(changed) - 4)
                changed[at : at + 4] = rng.choice(CELLS)
        else:
            changed = bytearray(_moved(bytes(changed), rng, others))
        if len(changed) < 600:
            break
    return bytes(changed) if rng.random() < 0.85 else mutate_bytes(bytes(changed), rng, others)


def _cell_of(width, old, rng):
    """An extreme of that many bytes, or the old one changed a little, or its bytes the other way round."""
    kind = rng.randrange(4)
    if kind == 0 or not old:
        return bytes(rng.choice(BYTES) for _ in range(width))
    if kind == 1:
        return bytes(old[::-1])
    if kind == 2:
        value = int.from_bytes(old, "little") + rng.choice((-2, -1, 1, 2, 256))
        return (value % 256**width).to_bytes(width, "little")
    return rng.choice(CELLS)[:width]


def _moved(content, rng, others):
    """Remove, repeat, swap or truncate blocks of 512 bytes, or insert blocks of another file."""
    blocks = [content[i : i + 512] for i in range(0, len(content), 512)]
    at, other = rng.randrange(len(blocks)), rng.randrange(len(blocks))
    kind = rng.randrange(6)
    if kind == 0:
        del blocks[at]
    elif kind == 1:
        blocks[at:at] = [blocks[at]] * rng.choice((1, 3, 300))
    elif kind == 2:
        blocks[at], blocks[other] = blocks[other], blocks[at]
    elif kind == 3:
        del blocks[at:]
    elif kind == 4:
        stranger = rng.choice(others)
        blocks[at] = stranger[512 * at : 512 * at + 512]
    else:  # every word of the header, or of everything, in the other order
        whole = content[:512] if rng.random() < 0.5 else content
        turned = bytearray(whole[: len(whole) // 2 * 2])
        turned[0::2], turned[1::2] = turned[1::2], turned[0::2]
        return bytes(turned) + content[len(whole) :]
    return b"".join(blocks)
