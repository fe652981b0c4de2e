"""Native model files: exact both ways, and helpful about every mistake."""

import stat
from dataclasses import dataclass
from math import inf

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from borelli.errors import BorelliError, FileFormatError, ModelError, SettingsError
from borelli.files.text import MAX_BYTES, format_toml, from_table, parse_toml, to_table
from borelli.model import (
    Body,
    Coordinate,
    Coupling,
    Frame,
    Function,
    Joint,
    Marker,
    Model,
    Muscle,
    PathPoint,
    Shape,
    Softness,
    Surface,
    TransformAxis,
    body_from_shapes,
    list_marker_sets,
    model_from_table,
    model_from_text,
    model_to_table,
    model_to_text,
    read_model,
    write_model,
)
from borelli.model.model import CoordinateRange, PathWrap, WrapObject
from borelli.people.human import human

number = st.floats(-1e6, 1e6)
positive = st.floats(1e-6, 1e6)
unsigned = st.floats(0.0, 1e6)
share = st.floats(0.0, 1.0)
text = st.text(min_size=1, max_size=8)
vectors = st.tuples(number, number, number)
frames = st.builds(
    Frame, vectors, st.sampled_from([(1.0, 0.0, 0.0, 0.0), (0.6, 0.0, 0.8, 0.0), (0.5, -0.5, 0.5, -0.5)])
)
softnesses = st.one_of(
    st.builds(Softness, st.one_of(positive, st.just(inf)), unsigned, share),
    st.builds(Softness, erp=share, cfm=unsigned),
)
surfaces = st.builds(Surface, unsigned, share, unsigned, softnesses, vectors)
functions = st.builds(
    lambda start, gaps, pieces: Function(
        tuple(float(b) for b in np.cumsum([start, *gaps[: len(pieces)]])), tuple(map(tuple, pieces))
    ),
    st.floats(-10.0, 10.0),
    st.lists(st.floats(0.1, 10.0), min_size=3, max_size=3),
    st.lists(st.lists(number, min_size=1, max_size=4), min_size=1, max_size=3),
)
tetrahedron = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
sizes = {"sphere": 1, "box": 3, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "mesh": 0}


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kind = draw(st.sampled_from(list(sizes)))
    size = tuple(draw(positive) for _ in range(sizes[kind]))
    vertices = tetrahedron if kind == "mesh" else ()
    return Shape(kind, size, draw(frames), draw(positive), draw(surfaces), draw(st.booleans()), vertices, draw(text))


@st.composite
def bodies(draw: st.DrawFn, name: str) -> Body:
    a, b, c = (draw(st.floats(0.01, 10.0)) for _ in range(3))
    inertia = ((b + c, 0.0, 0.0), (0.0, a + c, 0.0), (0.0, 0.0, a + b))
    parts = tuple(draw(st.lists(shapes(), max_size=2)))
    return Body(name, draw(positive), draw(vectors), inertia, parts, draw(frames), draw(st.booleans()))


@st.composite
def coordinates(draw: st.DrawFn, name: str, rotational: bool) -> Coordinate:
    lower, default, upper = sorted(draw(number) for _ in range(3))
    if draw(st.booleans()):
        lower, upper = -inf, inf
    usual = draw(st.one_of(st.none(), st.just((-1.5, inf))))
    return Coordinate(name, default, lower, upper, draw(softnesses), draw(st.booleans()), rotational, usual)


TURNS = {"free": "sssttt", "ball": "ttt", "universal": "tt", "hinge": "t", "slider": "s", "planar": "sst", "fixed": ""}
AXES = ((1.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, -1.0))
COUNTS = {"ball": 3, "free": 3, "planar": 2, "universal": 2, "hinge": 1, "slider": 1, "fixed": 0}


@st.composite
def joints(draw: st.DrawFn, name: str, parent: str, child: str) -> Joint:
    kind = draw(st.sampled_from([*TURNS, "coordinate"]))
    shared = (draw(frames), draw(frames))
    softness = draw(softnesses)
    if kind == "coordinate":
        own = draw(coordinates(f"{name}.q", True))
        parts = tuple(TransformAxis(axis, draw(functions), own.name) for axis in AXES * 2)
        return Joint(name, kind, parent, child, *shared, (), (own,), parts, softness)
    named = tuple(draw(coordinates(f"{name}.{i}", turn == "t")) for i, turn in enumerate(TURNS[kind]))
    axes = AXES[: COUNTS[kind]] if draw(st.booleans()) else ()
    return Joint(name, kind, parent, child, *shared, axes, named, (), softness)


@st.composite
def models(draw: st.DrawFn) -> Model:
    names = draw(st.lists(text.filter(lambda n: n != "ground"), min_size=1, max_size=4, unique=True))
    linked = tuple(draw(joints(f"to {n}", p, n)) for p, n in zip(["ground", *names], names, strict=False))
    if len(names) > 1:
        linked += (Joint("loop", "fixed", "ground", names[-1], closes_loop=True),)
    known = [c.name for joint in linked for c in joint.coordinates]
    couplings = (Coupling("c", known[0], known[1], draw(functions), draw(softnesses)),) if len(known) > 1 else ()
    carrier = st.sampled_from([*names, "ground"])
    spans = st.one_of(
        st.none(), st.builds(CoordinateRange, st.sampled_from(known), number, st.one_of(number, st.just(inf)))
    )
    moving = st.lists(st.builds(TransformAxis, st.just(AXES[0]), functions, st.sampled_from(known)), max_size=3).map(
        tuple
    )
    points = (
        st.builds(PathPoint, carrier, vectors, text, spans, moving) if known else st.builds(PathPoint, carrier, vectors)
    )
    wraps = (
        WrapObject(
            "w", "cylinder", draw(carrier), (draw(positive), draw(positive)), draw(frames), "-y", draw(st.booleans())
        ),
        WrapObject("v", "torus", draw(carrier), (1.0, 2.0)),
    )
    over = (PathWrap("w", 0, 1, "axial"), PathWrap("v", 1, side_point=draw(points)))
    return Model(
        name=draw(text),
        bodies=tuple(draw(bodies(n)) for n in names),
        joints=linked,
        markers=tuple(
            Marker(label, draw(carrier), draw(vectors), tuple(draw(st.lists(text, max_size=2))))
            for label in draw(st.lists(text, max_size=3, unique=True))
        ),
        couplings=couplings,
        muscles=(
            Muscle("m", tuple(draw(st.lists(points, min_size=2, max_size=3))), draw(positive), 0.1, 0.2, draw(share)),
            Muscle(
                "n",
                tuple(draw(st.lists(points, min_size=2, max_size=3))),
                *(1.0, 0.1, 0.2, 0.0, draw(text), draw(positive), draw(positive), draw(positive), draw(share)),
                wraps=over,
                parameters=tuple(draw(st.lists(st.tuples(text, number), max_size=3))),
            ),
        ),
        ground=(Shape("plane"), *draw(st.lists(shapes(), max_size=1))),
        gravity=draw(vectors),
        self_collision=draw(st.booleans()),
        notes=tuple(draw(st.lists(text, max_size=2))),
        wrap_objects=wraps,
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(models())
def test_round_trip_is_exact(model: Model) -> None:
    back = model_from_text(model_to_text(model))
    assert back == model
    assert back.notes == model.notes  # not part of equality
    assert model_from_table(model_to_table(model)) == model
    assert model_to_text(back) == model_to_text(model)


@pytest.mark.parametrize("markers", list_marker_sets())
def test_human_round_trips_through_a_file(tmp_path, markers: str) -> None:
    model = human(mass=61.3, height=1.63, sex="female", markers=markers)
    write_model(model, tmp_path / "human.toml")
    assert read_model(tmp_path / "human.toml") == model
    assert [path.name for path in tmp_path.iterdir()] == ["human.toml"]
    assert (tmp_path / "human.toml").stat().st_mode & stat.S_IRUSR


@dataclass(frozen=True)
class Settings:
    count: int = 3
    point: tuple[float, float] | None = None
    share: float = 0.5
    loud: bool = False


def test_tables_restore_any_dataclass() -> None:
    chosen = Settings(7, (1.0, 2.5), 1, True)
    back = from_table(Settings, parse_toml(format_toml(to_table(chosen)), "text"), "text")
    assert back == chosen
    assert type(back.count) is int
    assert to_table(Settings()) == {}
    with pytest.raises(FileFormatError, match=r"count: Expected an integer, got 7.5"):
        from_table(Settings, {"count": 7.5}, "text")


def test_numpy_numbers_are_written_as_plain_ones() -> None:
    model = Model("m", (Body("a", np.float64(1.25), tuple(np.array([0.1, 0.2, 0.3]))),))
    assert model_from_text(model_to_text(model)) == model


def test_defaults_are_left_out() -> None:
    text = model_to_text(Model("m", (Body("a", 1.0),)))
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == [
        'format = "borelli-model"',
        "version = 2",
        'name = "m"',
        "[[bodies]]",
        'name = "a"',
        "mass = 1.0",
        "center_of_mass = [0.0, 0.0, 0.0]",
        "inertia = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]",
    ]


HEAD = 'format = "borelli-model"\nversion = 2\nname = "m"\n'
SHAPES = '[[bodies]]\nname = "a"\nshapes = [{ kind = "box", size = [0.1, 0.2, 0.3], density = 500 }]\n'


def test_missing_mass_comes_from_the_shapes() -> None:
    shape = Shape("box", (0.1, 0.2, 0.3), density=500.0)
    assert model_from_text(HEAD + SHAPES).bodies == (body_from_shapes("a", [shape]),)
    assert model_from_text(HEAD + SHAPES + "mass = 3").bodies == (body_from_shapes("a", [shape], mass=3.0),)


BODY = SHAPES + "mass = 3\n"
MISTAKES = {
    "empty": ("", "The format is nothing, expected"),
    "other format": ('format = "other"', "The format is 'other'"),
    "from the future": (HEAD.replace("version = 2", "version = 3") + BODY, "The version is 3, expected"),
    "old version": (HEAD.replace("version = 2", "version = 1") + BODY, "Rename the key 'stop' .* set version = 2"),
    "version as truth": (HEAD.replace("version = 2", "version = false") + BODY, "The version is False"),
    "no bodies": (HEAD, "The key 'bodies' is missing"),
    "bodies no list": (HEAD + "bodies = 3", "bodies: Expected a list, got 3"),
    "body no table": (HEAD + "bodies = [3]", r"bodies\[0\]: Expected a table, got 3"),
    "unknown key": (HEAD + BODY + "weight = 1", r"bodies\[0\] 'a': Unknown key 'weight'; known: name, mass"),
    "near key": (HEAD + BODY + 'kinematik = true', "did you mean 'kinematic'"),
    "text for number": (HEAD + SHAPES + 'mass = "3"', r"bodies\[0\] 'a': mass: Expected a number, got '3'"),
    "truth for number": (HEAD + SHAPES + "mass = true", "mass: Expected a number, got True"),
    "number for truth": (HEAD + BODY + "kinematic = 1", "kinematic: Expected true or false, got 1"),
    "number for text": (HEAD + BODY.replace('"a"', "7"), "name: Expected .*, got 7"),
    "two of three": (HEAD + BODY + "frame = { position = [1, 2] }", "frame: position: Expected 3 entries, got 2"),
    "huge number": (HEAD + SHAPES + "mass = 1" + "0" * 400, "The number is too large"),
    "center without inertia": (HEAD + BODY + "center_of_mass = [0, 0, 1]", "center_of_mass is given without inertia"),
    "wrong sizes": (HEAD + BODY.replace("[0.1, 0.2, 0.3]", "[0.1]"), r"'a': Shape 0: A box has 3 sizes \(found 1\)"),
    "no shapes": (HEAD + '[[bodies]]\nname = "a"\nmass = 1', "Body 'a' has neither shapes nor inertia"),
    "zero mass": (HEAD + SHAPES + "mass = 0", "Body 'a' has a mass of 0.0 kg"),
    "mass not a number": (HEAD + SHAPES + "mass = nan", "Body 'a' has a mass of nan"),
    "unknown body": (HEAD + BODY + '[[markers]]\nname = "M"\nbody = "b"\nposition = [0, 0, 0]', "Unknown body 'b'"),
    "nested deep": (HEAD + "notes = " + "[" * 100_000, "nested too deeply"),
    "key given twice": (HEAD + 'name = "n"', "line 4: Invalid TOML"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_named(text: str, sentence: str) -> None:
    with pytest.raises((FileFormatError, ModelError), match=sentence) as caught:
        model_from_text(text, path="man.toml")
    assert str(caught.value).startswith("man.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fraction", [0.1, 0.33, 0.5, 0.77, 0.95])
def test_line_of_a_truncated_file_is_reported(tmp_path, fraction: float) -> None:
    text = model_to_text(human())
    cut = text[: int(fraction * len(text))]
    cut = cut[: cut.rindex(", ")]  # inside a list, so that no valid file remains
    (tmp_path / "cut.toml").write_text(cut)
    with pytest.raises(FileFormatError, match=rf"cut.toml, line {cut.count(chr(10)) + 1}: Invalid TOML"):
        read_model(tmp_path / "cut.toml")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2000), st.integers(0, 2000), st.binary(max_size=3))
def test_damaged_text_raises_only_own_errors(start: int, length: int, noise: bytes) -> None:
    """A damaged file gives a model or a BorelliError, nothing else."""
    text = model_to_text(human())[:6000]
    damaged = text[:start] + noise.decode("latin-1") + text[start + length :]
    try:
        model_from_text(damaged)
    except BorelliError as error:
        assert "\n" not in str(error)


def test_unreadable_files_are_refused(tmp_path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="Unknown model format"):
        read_model(tmp_path / "binary")
    with pytest.raises(FileFormatError, match="missing: The file does not exist"):
        read_model(tmp_path / "missing")
    with pytest.raises(SettingsError, match="does not exist"):
        write_model(human(), tmp_path / "nowhere" / "model.toml")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(FileFormatError, match="maximum"):
        read_model(tmp_path / "large")


def test_failed_write_leaves_the_old_file(tmp_path) -> None:
    path = tmp_path / "model.toml"
    write_model(human(), path)
    before = path.read_text()
    with pytest.raises(TypeError):
        write_model(Model("m", (Body("a", None),)), path, overwrite=True)  # type: ignore[arg-type]
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.toml"]
