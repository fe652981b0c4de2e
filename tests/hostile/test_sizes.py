"""Files of implausible size, depth and length."""

import re

import pytest

from .attacks import XML, changed, few_and_full, survive, thinned
from .seeds import MJCF, URDF, seeds


@few_and_full
@pytest.mark.parametrize("kind", XML)
def test_xml_of_implausible_size_or_depth_is_read_or_refused(kind, full, tmp_path):
    frame = XML[kind]
    contents = [
        frame % ("<a>" * 100_000 + "</a>" * 100_000),
        frame % ("<body>" * 199 + "</body>" * 199),
        frame % f'<a b="{"x" * 5_000_000}"/>',
        frame % f'<compiler meshdir="{"x" * 500_000}"/>',
        frame % f"<a>{'1 ' * 2_000_000}</a>",
        frame % ("<a/>" * 500_000),
        frame % f"<{'a' * 1_000_000}/>",
        frame % ("<a " + " ".join(f'b{i}=""' for i in range(100_000)) + "/>"),
        frame % f"<!--{'-' * 1_000_000}-->",
        frame % ("<!-- -- -->" * 100_000),
        frame % ("<a b='x'c='y'/>" * 20_000),
        frame % f"<![CDATA[{'<' * 1_000_000}]]>",
        "<" * 1_000_000,
        f"<!--{'x' * 1_000_000}-->",
        '<?xml version="1.0" encoding="idna"?>' + frame % "",
        '<?xml version="1.0" encoding="UTF-7"?>' + frame % "",
        '<?xml version="1.0" encoding="hex"?>' + frame % "",
        f'<?xml version="1.0" encoding="{"x" * 10_000}"?>' + frame % "",
    ]
    contents = thinned(contents, None if full else 6, list(XML).index(kind))
    survive(tmp_path, [(kind, content.encode()) for content in contents])


def test_names_and_numbers_of_implausible_length_in_xml(tmp_path):
    long = b"n" * 200_000
    contents = [("MJCF", MJCF.replace(b'"a"', b'"' + long + b'"')), ("URDF", URDF.replace(b"shoulder", long))]
    contents += [
        ("MJCF", MJCF.replace(b"0 0 1", b"1" * 100_000)),
        ("URDF", URDF.replace(b'"1"', b'"' + b"9" * 5000 + b'"')),
    ]
    for _, files in seeds("OpenSim")[:2]:
        (text,) = files.values()
        contents.append(("OpenSim", re.sub(rb'name="(\w)', b'name="' + long[:5000] + rb"\1", text)))
        contents.append(("OpenSim", re.sub(rb">[-\d.]+<", b">" + b"9" * 5000 + b"<", text)))
    contents.append(("OpenSim", b'<OpenSimDocument Version="' + b"9" * 10_000 + b'"><Model/></OpenSimDocument>'))
    contents += [("MJCF", MJCF.replace(b"<site ", b"<site " + b'user="' + b"1 " * 100_000 + b'" ', 1))]
    survive(tmp_path, contents)


def test_deeply_nested_brackets(tmp_path):
    deep = 100_000
    joints = b"".join(b"JOINT j%d\n{\nOFFSET 0 0 0\n" % i for i in range(20_000))
    bones = b"".join(
        b"begin\nid %d\nname b%d\ndirection 1 0 0\nlength 1\naxis 0 0 0 XYZ\nend\n" % (i, i) for i in range(9000)
    )
    chain = b"root b0\n" + b"".join(b"b%d b%d\n" % (i, i + 1) for i in range(8999))
    head = seeds("ASF")[0][1]["x.asf"].partition(b":bonedata")[0]
    bodies = b"".join(b"b%d box 1 1 1\n" % i for i in range(2000))
    pagoda = bodies + b"".join(b"hinge b%d(0 0 1) <- b%d(0 0 1)\n" % (i, i + 1) for i in range(1999))
    links = "".join(f'<link name="l{i}"/>' for i in range(1500))
    turns = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
        for i in range(1499)
    )
    contents = [
        ("BVH", b"HIERARCHY\nROOT r\n{\nOFFSET 0 0 0\n" + joints),
        ("BVH", b"HIERARCHY\nROOT r\n" + b"{\n" * deep),
        ("ASF", head + b":bonedata\n" + bones + b":hierarchy\nbegin\n" + chain + b"end\n"),
        ("pagoda", pagoda),
        ("URDF", f'<robot name="r">{links}{turns}</robot>'.encode()),
        ("native", b'format = "borelli-model"\nversion = 2\nname = ' + b"[" * deep),
        ("native", b'format = "borelli-model"\nversion = 2\n' + b"x = {a = " * deep),
        ("native", b'format = "borelli-model"\nversion = 2\n[' + b"a." * deep + b"a]\n"),
        ("native", b'format = "borelli-model"\nversion = ' + b"1" * deep),
        ("scene", b'format = "borelli-scene"\nversion = 1\nname = "x"\nstep = ' + b"[" * deep),
        ("CSV", b"# borelli recording 2\n# subject: " + b"[" * deep + b"\n\ntime [s],a.x [m]\n0,1\n"),
        (
            "CSV",
            b"# borelli recording 2\n# rate_hz: " + b"9" * deep + b"\n\ntime [s],a.x [m],a.y [m],a.z [m]\n0,1,1,1\n",
        ),
    ]
    survive(tmp_path, contents)


def many(size, head, piece, tail=""):
    """So many bytes: a head, pieces made of their numbers, a tail."""
    return (head + "".join(map(piece, range((size - len(head)) // len(piece(10**4))))) + tail).encode()


@few_and_full
def test_more_elements_than_a_body_has(full, tmp_path):
    """Sound files but for their size: what is read must take time in proportion, and the rest be refused."""
    toml, most = 'format = "borelli-model"\nversion = 2\nname = "x"\n', 950_000
    body = toml + '[[bodies]]\nname = "b"\nmass = 1.0\ninertia = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]\n'
    hinge = 'kind = "hinge"\nparent = "ground"\naxes = [[1.0, 0.0, 0.0]]\n'
    muscle = "max_isometric_force = 1.0\noptimal_fiber_length = 1.0\ntendon_slack_length = 1.0\n"
    scene = 'format = "borelli-scene"\nversion = 1\nname = "x"\nmodel = "human"\n'
    urdf = '<robot name="r"><link name="base"/>'
    hung = '<link name="l{0}"/><joint name="j{0}" type="{1}"><parent link="{2}"/><child link="l{0}"/></joint>'
    osim = '<OpenSimDocument Version="40000"><Model name="m">'
    contents = [
        ("native", many(most, body, lambda i: f'[[joints]]\nname = "j{i}"\nchild = "b"\n{hinge}')),
        ("native", many(most, toml, lambda i: f'[[bodies]]\nname = "b{i}"\nmass = 1.0\nshapes = [{{kind = "box"}}]\n')),
        ("native", many(most, body + "shapes = [", lambda i: '{ kind = "sphere", size = [1.0] }, ', "]\n")),
        (
            "native",
            many(
                most,
                body + "shapes = [{ kind = 'mesh', vertices = [",
                lambda i: f"[{i}.0, {i % 7}.0, {i % 11}.0], ",
                "]}]\n",
            ),
        ),
        (
            "native",
            many(
                most,
                body + f'[[muscles]]\nname = "m"\n{muscle}path = [',
                lambda i: "{ body = 'b', position = [0.0, 0.0, 0.0] }, ",
                "]\n",
            ),
        ),
        (
            "native",
            many(
                most,
                toml + f'[[bodies]]\nname = "{"n" * 500_000}"\nshapes = [',
                lambda i: "{ kind = 'sphere', size = [1.0] }, ",
                "]\n",
            ),
        ),
        ("native", many(most, body, lambda i: f"k{i}.a.b.c.d.e.f.g = 1\n")),
        ("native", many(4 * most, body, lambda i: f"k{i} = 1\n")),
        ("scene", many(most, scene, lambda i: '[[forces]]\nbody = "pelvis"\nforce = [0.0, 1.0, 0.0]\n')),
        ("scene", many(most, scene + "[coordinates]\n", lambda i: f"k{i} = 1.0\n")),
        ("URDF", many(3_000_000, urdf, lambda i: hung.format(i, "continuous", "base"), "</robot>")),
        ("URDF", many(3_000_000, urdf, lambda i: hung.format(i, "fixed", f"l{i - 1}" if i else "base"), "</robot>")),
        ("URDF", many(200_000, urdf, lambda i: hung.format(i, "fixed", f"l{i - 1}" if i else "base"), "</robot>")),
        (
            "URDF",
            many(
                3_000_000,
                urdf + '<link name="a"><collision><geometry>',
                lambda i: '<box size="1 1 1"/>',
                "</geometry></collision></link></robot>",
            ),
        ),
        ("URDF", many(1_500_000, urdf, lambda i: f"<g{i}/>", "</robot>")),
        (
            "MJCF",
            many(
                2_000_000,
                "<mujoco><worldbody>",
                lambda i: f'<body><joint name="j{i}"/><geom size="1"/></body>',
                "</worldbody></mujoco>",
            ),
        ),
        (
            "OpenSim",
            many(
                4_000_000,
                f"{osim}<BodySet><objects>",
                lambda i: f'<Body name="b{i}"><mass>1</mass></Body>',
                "</objects></BodySet></Model></OpenSimDocument>",
            ),
        ),
        ("pagoda", many(1_500_000, "", lambda i: f"b{i} box 1 1 1\n")),
        ("pagoda", b"b box 1 1 1\nc box 1 1 1\n" + b"hinge b(0 0 1) <- c(0 0 1)\n" * 20_000),
        ("pagoda", b"b box 1 1 1\n" + b"#\n" * 20_000_000),
        ("ASF", seeds("ASF")[0][1]["x.asf"] + b"#\n" * 20_000_000),
        ("CSV", many(1_000_000, "time,", lambda i: f"c{i},", "\n0,1\n1,1\n")),
        ("CSV", many(400_000, "time,a\n", lambda i: '0,"\n')),
    ]
    survive(tmp_path, contents if full else contents[::6])


NASTY = (
    b"_ground_force_",
    b" [",
    b"((",
    b"    ",
    b"r l ",
    b"R.L.",
    b"a=",
    b"\xc3\xa9",
    b"9",
    b"ground_",
    b"/a",
    b"._-x",
    b'""',
)


@few_and_full
def test_lines_and_names_of_a_quarter_of_a_megabyte(full, tmp_path):
    def longer(text):
        words = [found.span() for found in re.finditer(rb"[A-Za-z_]\w+", text)]
        for number, piece in enumerate(NASTY):
            for start, end in words[number % 3 :: max(1, len(words) // 3)]:
                yield text[:start] + b"a" + piece * (250_000 // len(piece)) + b"b" + text[end:]
        yield b" ".join(text.split(b"\n") * (250_000 // len(text)))
        for blank in (b"\n", b" ", b"\t\n", b"#\n", b"0 ", b","):
            yield from (blank * 250_000 + text, text + blank * 250_000)

    survive(tmp_path, changed(longer, None if full else 4))
