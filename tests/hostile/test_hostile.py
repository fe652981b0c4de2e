"""Malicious files of each kind: bombs, implausible counts, truncation, wrong byte order, unusual paths and names.

All are read in a separate process that may take five seconds and a gigabyte for each (see `campaign`).
"""

import os
import re
import socket
import sys
from pathlib import Path

import pytest

from .attacks import XML, changed, few_and_full, judge, small, survive, thinned
from .mutations import NUMBER, c3d_fields
from .seeds import FORMATS, MJCF, PAGODA, seeds


def test_unmodified_seeds_are_read(tmp_path):
    said = survive(tmp_path, [(kind, seed) for kind in FORMATS for seed in seeds(kind)])
    assert not any(said), said


def test_xml_bombs_are_refused_before_expansion(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
    long = "x" * 1_000_000
    heads = (
        f'<!DOCTYPE a [<!ENTITY l0 "ha">{laughs}]>',
        f'<!DOCTYPE a [<!ENTITY l11 "{long}">]>',
        f'<!DOCTYPE a [<!ENTITY l11 SYSTEM "file://{secret}">]>',
        f'<!DOCTYPE a SYSTEM "file://{secret}">',
        f'<!DOCTYPE a [<!ENTITY % p SYSTEM "file://{secret}"> %p;]>',
        '<!DOCTYPE a [<!ENTITY l11 SYSTEM "file:///dev/zero">]>',
        '<!DOCTYPE a [<!ENTITY l11 "&l11;">]>',
        '<!DOCTYPE a [<!ATTLIST mujoco model CDATA "x">]>',
        "<!DOCTYPE a>",
    )
    contents = []
    for kind, frame in XML.items():
        texts = [f'<?xml version="1.0"?>{head}{frame % "&l11;"}' for head in heads]
        raw = [text.encode() for text in texts]
        raw += [texts[0].encode("utf-16"), texts[0].replace("l11", "#x0").encode()]
        contents += [(kind, content) for content in raw]
    for said in survive(tmp_path, contents, refused=True):
        assert "the secret" not in said


def test_includes_that_loop_or_are_endless(tmp_path):
    def include(*names):
        parts = "".join(f'<include file="{name}"/>' for name in names)
        return f"<mujoco>{parts}<worldbody><body><geom size='1'/></body></worldbody></mujoco>".encode()

    twice = {f"{i}.xml": include(f"{i + 1}.xml", f"{i + 1}.xml") for i in range(40)}
    models = [
        {"m.xml": include("m.xml")},
        {"m.xml": include("n.xml"), "n.xml": include("m.xml")},
        {"m.xml": include("./n.xml"), "n.xml": include("../" + "5/" * 0 + "m.xml", "n.xml")},
        {"m.xml": include("0.xml")} | twice,
        {"m.xml": include("0.xml")} | {f"{i}.xml": include(f"{i + 1}.xml") for i in range(400)},
        {"m.xml": include(*(f"{i}.xml" for i in range(1500)))} | {f"{i}.xml": include() for i in range(1500)},
        {"m.xml": include("/dev/zero", ".", "pipe", "x" * 5000, "", "\x09", "nothing.xml")},
        {"m.xml": include("/dev/zero", ".", "pipe", "x" * 5000, "nothing.xml")},
        {"m.xml": MJCF.replace(b'vertex="0 0 0 1 0 0 0 1 0 0 0 1"', b'file="/dev/zero"')},
        {"m.xml": MJCF.replace(b'vertex="0 0 0 1 0 0 0 1 0 0 0 1"', b'file="m.xml"')},
        {"m.xml": MJCF.replace(b'vertex="0 0 0 1 0 0 0 1 0 0 0 1"', b'file="pipe.stl"')},
    ]
    for number in range(len(models)):
        (tmp_path / str(number)).mkdir()
        os.mkfifo(tmp_path / str(number) / "pipe")
        os.mkfifo(tmp_path / str(number) / "pipe.stl")
    pairs = []
    for number, files in enumerate(models):
        for name, content in files.items():
            (tmp_path / str(number) / name).write_bytes(content)
        pairs.append(("MJCF", tmp_path / str(number) / "m.xml"))
    said = judge(pairs)
    assert all("twice" in sentence for sentence in said[:4]), said[:4]


def strange_paths(folder, ending):
    """Make paths that are not regular files."""
    folder.mkdir()
    names = ("empty", "blank", "pipe", "loop", "one", "other", "dangling", "zero", "null", "socket", "folder", "huge")
    paths = {name: folder / f"{name}{ending}" for name in names}
    paths["empty"].write_bytes(b"")
    paths["blank"].write_bytes(b" \r\n\t\n\n \x0c")
    os.mkfifo(paths["pipe"])
    paths["loop"].symlink_to(paths["loop"])
    paths["one"].symlink_to(paths["other"])
    paths["other"].symlink_to(paths["one"])
    paths["dangling"].symlink_to(folder / "nowhere")
    paths["zero"].symlink_to("/dev/zero")
    paths["null"].symlink_to("/dev/null")
    paths["folder"].mkdir()
    with paths["huge"].open("wb") as file:
        file.truncate(20 * 1024**3)  # takes no room on the disk
    here = Path.cwd()
    os.chdir(folder)  # the address of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as ear:
            ear.bind(paths["socket"].name)
    finally:
        os.chdir(here)
    (folder / "file").write_bytes(b"x")
    more = (
        folder / f"missing{ending}", folder / ("n" * 5000 + ending), Path("/dev/urandom"), Path("/dev/zero"), folder,
        folder / f"file/below{ending}", folder / f"nul\0{ending}", Path("/proc/self/mem"), Path(),
    )  # fmt: skip
    return [*paths.values(), *more]


ENDINGS = {
    "C3D": ".c3d", "TRC": ".trc", "MOT/STO": ".mot", "CSV": ".csv", "exports": ".tsv", "BVH": ".bvh", "AMC": ".amc",
    "netCDF": ".nc", "stages": ".nc", "ASF": ".asf", "OpenSim": ".osim", "MJCF": ".xml", "URDF": ".urdf",
    "native": ".toml", "scene": ".toml", "pagoda": ".txt", "QtVR": "",
}  # fmt: skip


def test_paths_that_are_not_regular_files_are_refused_at_once(tmp_path):
    pairs = [
        (kind, path)
        for number, (kind, ending) in enumerate(ENDINGS.items())
        for path in strange_paths(tmp_path / str(number), ending)
    ]
    judge(pairs, refused=True)


def test_unreadable_files_are_refused(tmp_path):
    pairs = []
    for number, (kind, ending) in enumerate(ENDINGS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for path in (folder / f"shut{ending}", folder / "closed" / f"x{ending}"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x")
            pairs.append((kind, path))
        (folder / f"shut{ending}").chmod(0)
        (folder / "closed").chmod(0)
    try:
        if os.access(pairs[0][1], os.R_OK):
            pytest.skip("nothing is unreadable to the superuser")
        judge(pairs, refused=True)
    finally:
        for path in tmp_path.glob("*/closed"):
            path.chmod(0o700)


def test_an_amc_and_a_scene_that_name_paths_that_are_not_files(tmp_path):
    (name, files), *_ = seeds("AMC")
    pairs = []
    for number, target in enumerate(("/dev/zero", "/dev/null", ".", "nowhere")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).write_bytes(files[name])
        (folder / "x.asf").symlink_to(target)
        scene = folder / "s.toml"
        scene.write_text(f'format = "borelli-scene"\nversion = 1\nname = "x"\nmodel = "{target}"\n')
        pairs += [("AMC", folder / name), ("scene", scene)]
    judge(pairs, refused=True)


@few_and_full
def test_unusual_names_of_valid_and_damaged_files(full, tmp_path):
    names = [
        "a b", "line\nbreak", "tab\tbell\a", "\x1b[31mred", "quote'\"`", "%s%n{0}{x}", "ümläut", "💀", "\u202eltr",
        "-rf", "#", "...", "a" * 200, "\ufeffmark", os.fsdecode(b"raw\xff\xfe"),
    ]  # fmt: skip
    pairs, sound = [], []
    for turn, kind in enumerate(("C3D", "TRC", "MOT/STO", "CSV", "BVH", "OpenSim", "MJCF", "native", "pagoda")):
        name, files, target = small(kind)
        for number, strange in enumerate(thinned(names, None if full else 4, turn)):
            folder = tmp_path / kind.replace("/", "") / str(number)
            folder.mkdir(parents=True)
            for each, content in files.items():
                (folder / (strange + Path(name).suffix if each == name else each)).write_bytes(content)
            sound.append((kind, folder / (strange + Path(name).suffix)))
            (folder / strange).write_bytes(b"x" + files[target][: len(files[target]) // 3])
            pairs.append((kind, folder / strange))
    assert not any(judge(sound))
    judge(pairs)


@few_and_full
def test_a_c3d_file_truncated_at_every_block_and_within_its_header(full, tmp_path):
    contents = []
    for turn, (_, files) in enumerate(seeds("C3D")):
        (raw,) = files.values()
        contents += [("C3D", raw[:end]) for end in thinned(range(512, len(raw), 512), None if full else 5, turn)]
    (raw,) = seeds("C3D")[0][1].values()
    contents += [("C3D", raw[:end]) for end in (1, 2, 3, 20, 24, 300, 511, 513, 515, 516, 520, 700, 1023, 1025)]
    survive(tmp_path, contents, refused=True)


@few_and_full
def test_a_text_truncated_at_every_line(full, tmp_path):
    def cuts(text):
        ends = [found.end() for found in re.finditer(rb"\n|>", text)]
        return (text[:end] for end in (1, 2, 5, *ends, len(text) // 2, len(text) - 1))

    survive(tmp_path, changed(cuts, None if full else 10))


def test_numbers_of_another_processor_than_stated(tmp_path):
    contents = []
    for _, files in seeds("C3D"):
        (raw,) = files.values()
        at = 512 * (raw[0] - 1) + 3
        contents += [
            ("C3D", raw[:at] + bytes([processor]) + raw[at + 1 :]) for processor in (0, 83, 84, 85, 86, 87, 255)
        ]
        turned = bytearray(raw)
        turned[0:-1:2], turned[1::2] = raw[1::2], raw[0:-1:2]
        contents.append(("C3D", bytes(raw[:2] + turned[2:])))
    survive(tmp_path, contents)


@few_and_full
def test_every_count_and_pointer_of_a_c3d_file_made_implausible(full, tmp_path):
    (raw,) = seeds("C3D")[0][1].values()
    fields, _, _ = c3d_fields(raw)
    places = [(at, width, value) for at, width in fields for value in (b"\xff", b"\x00", b"\x80")]
    places = thinned(places, None if full else 150)
    survive(tmp_path, [("C3D", raw[:at] + value * width + raw[at + width :]) for at, width, value in places])


def test_counts_far_beyond_the_size_of_a_text(tmp_path):
    def with_count(kind, old, new):
        name, files, target = small(kind)
        text = re.sub(old, new, files[target], count=1)
        assert text != files[target], (kind, old)
        return kind, (name, files | {target: text})

    contents = []
    for count in (b"-1", b"0", b"4294967296", b"1e18", b"9" * 400, b"nan", b"inf"):
        contents += [
            with_count("BVH", rb"Frames: \d+", b"Frames: " + count),
            with_count("BVH", rb"CHANNELS \d+", b"CHANNELS " + count),
            with_count("BVH", rb"Frame Time: [\d.]+", b"Frame Time: " + count),
            with_count("MOT/STO", rb"datacolumns \d+", b"datacolumns " + count),
            with_count("MOT/STO", rb"datarows \d+", b"datarows " + count),
            with_count("exports", rb"NO_OF_MARKERS\t\d+", b"NO_OF_MARKERS\t" + count),
            with_count("exports", rb"FREQUENCY\t\d+", b"FREQUENCY\t" + count),
            with_count("AMC", rb"(?m)^2$", count),
            with_count("ASF", rb"id 1", b"id " + count),
            with_count("TRC", rb"100(?:\.0*)?\t", count + b"\t"),
            with_count("TRC", rb"(?<=\t)5\t(?=mm)", count + b"\t"),
            with_count("native", rb"version = \d+", b"version = " + count),
        ]
    survive(tmp_path, contents)


@few_and_full
def test_other_encodings_and_binary_in_a_text(full, tmp_path):
    def encoded(text):
        middle = len(text) // 2
        for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-7", "cp037"):
            yield text.decode("latin-1").encode(encoding)
        for piece in (b"\0", b"\xff\xfe", b"\xe9", bytes(range(256))):
            yield text[:middle] + piece + text[middle:]
        yield from (b"\xff\xfe", b"\xfe\xff", b"\xff\xfe" + text, b"\xef\xbb\xbf", bytes(range(256)) * 40, b"\0" * 4096)
        for end in (b"\r", b"\r\n", b"\n\r", b"\x85", b"\xe2\x80\xa8", b"\0"):
            yield text.replace(b"\n", end)

    survive(tmp_path, changed(encoded, None if full else 8))


NONE = (b"nan", b"inf", b"-1e999", b"1e308", b"1e-320", b"-1", b"0", b"1e30")


@few_and_full
def test_invalid_and_implausible_numbers_in_every_position(full, tmp_path):
    def numbers(text):
        yield from (NUMBER.sub(value, text) for value in NONE)
        places = [found.span() for found in NUMBER.finditer(text)]
        for i, (start, end) in enumerate(places):
            yield text[:start] + NONE[i % len(NONE)] + text[end:]

    survive(tmp_path, changed(numbers, None if full else 15))


@few_and_full
def test_every_format_given_as_every_other(full, tmp_path):
    contents = []
    for turn, kind in enumerate(FORMATS):
        for other in thinned(FORMATS, None if full else 4, turn):
            _, files, target = small(other)
            contents.append((kind, (f"x{ENDINGS[kind]}", {f"x{ENDINGS[kind]}": files[target]})))
    survive(tmp_path, contents)


def test_control_characters_in_files_do_not_reach_the_terminal(tmp_path):
    contents = [
        ("pagoda", PAGODA.replace(b"chest box", b"\x1b[2Jx box", 1)),
        ("pagoda", PAGODA + b"hinge \x1b]0;x\x07(0 0 0) <- arm(0 0 0)\n"),
        ("native", b'format = "borelli-model"\nversion = 2\nname = "x"\n"\\u001b[2J\\nx" = 1\n'),
        ("CSV", b"\x7f\xc2\x9b31m,b\n1,2\n"),
    ]
    for said in survive(tmp_path, contents, refused=True):
        assert said.isprintable()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory a process has")
def test_files_at_the_limits_are_read(tmp_path):
    """That the campaign can fail: a reader that takes its time or memory is found out."""
    from . import campaign

    campaign.signal.signal(campaign.signal.SIGALRM, campaign.CLOCK.ring)
    seconds, campaign.SECONDS = campaign.SECONDS, 0.2

    def endless(_):
        while True:
            pass

    def greedy(_):
        raise MemoryError

    try:
        assert campaign.judged(endless, tmp_path)[0] == "failed"
        assert campaign.judged(greedy, tmp_path)[0] == "failed"
        assert campaign.judged(Path.read_text, tmp_path / "nowhere")[0] == "refused"
        assert campaign.judged(Path.stat, tmp_path) == ("read", "")
    finally:
        campaign.SECONDS = seconds
        campaign.signal.signal(campaign.signal.SIGALRM, campaign.signal.SIG_DFL)


def test_mutants_that_once_failed(tmp_path):
    """Each of these hung, crashed or passed invalid data when mutants found it."""
    asf, bvh, csv = seeds("ASF")[0][1]["x.asf"], seeds("BVH")[0][1]["x.bvh"], seeds("CSV")[0][1]["w.csv"]
    trc = seeds("TRC")[0][1]["w.trc"]
    motive = dict(seeds("exports"))["motive.csv"]["motive.csv"]
    nexus = dict(seeds("exports"))["nexus.csv"]["nexus.csv"]
    simm = next(files["simm.mot"] for name, files in seeds("MOT/STO") if name == "simm.mot")
    toml = seeds("native")[0][1]["two.toml"]
    scene = b'format = "borelli-scene"\nversion = 1\nname = "x"\nmodel = "human"\n'
    labels = b"\t\t\t".join(b"R.marker%d" % i for i in range(20_000))
    contents = [
        ("ASF", asf.replace(b"upper lower", b"upper root lower")),
        ("ASF", asf.replace(b"length 2", b"length 1e200")),
        ("BVH", bvh.replace(b"OFFSET 0 1 0", b"OFFSET 0 1e300 0")),
        ("TRC", b"\n".join(line.split(b"\t")[0] if i > 4 else line for i, line in enumerate(trc.split(b"\n")))),
        ("TRC", re.sub(rb"LASI.*", labels, trc, count=1)),
        ("TRC", trc.rstrip() + b"\t" * 700_000 + b"\n"),
        ("exports", motive.replace(b"\n0,0.000000", b"\n0,inf").replace(b"\n1,0.010000", b"\n1,inf")),
        ("exports", nexus.replace(b"7,0,10,", b"7,0,1e999,").replace(b"7,0,1,700", b"7,0,inf,700")),
        ("MOT/STO", simm.replace(b"time\t", b"x\t").replace(b"range 0 0.1", b"range 5 0.1")),
        ("MOT/STO", b"\n" * 65_000 + b"x"),
        ("MOT/STO", b"a\nb= x" + b" " * 200_000 + b"y\n" + simm),
        ("CSV", re.sub(rb"(?m)^0\.01,", b"0,", csv)),
        ("CSV", re.sub(rb"(?m)^0\.01,[^,]*", b"0.01,-inf", csv)),
        ("CSV", csv.replace(b"# rate: 100.0", b"# rate: 1" + b"0" * 400)),
        ("native", toml.replace(b"0.1, 0.1, 0.3", b"1e200, 1e200, 1e200")),
        ("native", toml.replace(b"[0.1]", b"[1e-200]")),
        ("native", toml.replace(b"[[1.0, 0.0, 0.0]]", b"[[1e200, 1e200, 0.0]]")),
        ("native", b"a" + b".a" * 100_000 + b" = 1\n"),
        ("native", b"\n" * 65_000 + b"x"),
        ("scene", scene + b"[human]\nmass = 1" + b"0" * 400 + b"\n"),
        ("scene", scene + b"[human]\nsex = 1\n"),
        ("scene", scene + b"[twists]\npelvis = [1" + b"0" * 400 + b", 0, 0, 0, 0, 0]\n"),
        ("pagoda", PAGODA.replace(b"0.05*", b"1e-200*")),
        ("pagoda", PAGODA.replace(b"stops -90~90", b"stops" + b" " * 200_000 + b"a")),
        ("MJCF", MJCF.replace(b'joint1="j"', b'joint1="k"')),
        ("MJCF", MJCF.replace(b'type="capsule" fromto="0 0 0 0 0 1"', b'type="capsule" size="1e-120 1e-120"')),
    ]
    said = survive(tmp_path, contents)
    assert "cannot have a parent" in said[0]
    assert "cycle" in said[-2]


def test_netcdf_that_exceeds_memory_is_refused(tmp_path):
    import h5py

    path = tmp_path / "x.nc"
    with h5py.File(path, "w") as file:  # never written, so it takes no room in the file
        file.create_dataset("marker_position", shape=(10**6, 10**3, 3), dtype="f8", chunks=(1000, 100, 3))
        file.attrs["borelli_recording"] = "{}"
    (said,) = judge([("netCDF", path)], refused=True)
    assert "damaged" in said


def test_netcdf_with_external_links_is_refused_before_they_are_opened(tmp_path):
    import h5py

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # reading from it blocks
    (name, files), *_ = seeds("netCDF")
    layout = h5py.VirtualLayout(shape=(4,), dtype="f8")
    layout[:] = h5py.VirtualSource(str(pipe), "x", shape=(4,))
    changes = (
        lambda file: file.create_dataset("time", shape=(4,), dtype="f8", external=[(str(pipe), 0, 32)]),
        lambda file: file.create_virtual_dataset("time", layout),
        lambda file: file.__setitem__("time", h5py.ExternalLink(str(pipe), "/time")),
        lambda file: file.__setitem__("time", h5py.SoftLink("/time")),
        lambda file: file.__setitem__("time", file),
    )
    pairs = []
    for number, change in enumerate(changes):
        path = tmp_path / f"{number}.nc"
        path.write_bytes(files[name])
        with h5py.File(path, "r+") as file:
            del file["time"]
            change(file)
        pairs.append(("netCDF", path))
    for said in judge(pairs, refused=True):
        assert "'time" in said
