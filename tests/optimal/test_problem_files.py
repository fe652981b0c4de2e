"""Problem files and the documentation page with two of them."""

import re
from pathlib import Path

import numpy as np
import pytest

from borelli.errors import BorelliError, FileFormatError, SettingsError
from borelli.optimal import read_problem, solve
from borelli.optimal.expression_parser import parse_expression
from borelli.optimal.namespace import Namespace

PAGE = Path(__file__).parents[2] / "docs" / "optimal-control.md"
CAR = """
name = "car"
[systems.car]
states = {x = {unit = "m"}, v = {unit = "m/s"}}
controls = {force = {unit = "N"}}
parameters = {mass = {unit = "kg", value = 2.0}}
rates = {x = "v", v = "force / mass"}
outputs = {power = "force * v"}
output_units = {power = "W"}
[[phases]]
name = "drive"
system = "car"
duration = 2.0
nodes = 3
start = {x = 0, v = 0}
end = {x = 1, v = 0}
cost = "force**2"
"""


def write(tmp_path, text):
    path = tmp_path / "problem.toml"
    path.write_text(text)
    return path


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_page_runs(tmp_path, monkeypatch):
    """The files of the page are read, and its code runs as printed."""
    monkeypatch.chdir(tmp_path)
    files = {re.search(r'name = "(.*)"', text)[1]: text for text in blocks("toml")}
    assert set(files) == {"car", "sliding mass"}
    for name, text in files.items():
        (tmp_path / f"{name.replace(' ', '-')}.toml").write_text(text)
    names = {}
    for text in blocks("python"):
        exec(compile(text, str(PAGE), "exec"), names)
    car, mass = (solve(read_problem(f"{name}.toml")) for name in ("car", "sliding-mass"))
    assert car.solved and car.objective == pytest.approx(1.5, abs=1e-9)
    assert mass.solved and mass.duration == pytest.approx(0.4, abs=1e-4)  # 2 sqrt(m d / F)


def test_car_of_two_kilograms(tmp_path):
    solution = solve(read_problem(write(tmp_path, CAR)))
    assert solution.solved
    assert solution.objective == pytest.approx(4.0 * 1.5, abs=1e-8)  # 12 m^2 d^2 / T^3
    np.testing.assert_allclose(solution.value("power"), solution.value("force") * solution.value("v"))


def test_phases_links_and_constraints(tmp_path):
    text = CAR.replace('name = "drive"', 'name = "first"').replace("duration = 2.0", "duration = [0.2, 5]")
    text = text.replace("end = {x = 1, v = 0}", "end = {x = [0.2, 0.4]}")
    text += """
path = [{name = "power", expression = "power", upper = 10.0}]
[[phases]]
name = "second"
system = "car"
duration = [0.2, 5]
nodes = 4
end = {x = 1, v = 0}
cost = {effort = "force**2"}
[[links]]
before = "first"
after = "second"
states = ["x"]
conditions = [{name = "speed", expression = "start.v - end.v", lower = 0, upper = 0}]
[[constraints]]
name = "total"
expression = "first.duration + second.duration"
lower = 2
upper = 2
"""
    solution = solve(read_problem(write(tmp_path, text)))
    assert solution.solved, solution.certificate
    assert solution.objective == pytest.approx(6.0, abs=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "car"', 'title = "car"', "Unknown key 'title'"),
        ('cost = "force**2"', 'cots = "force**2"', "Unknown key 'cots'.*did you mean 'cost'"),
        ('system = "car"', 'system = "cat"', "Unknown system 'cat'.*did you mean 'car'"),
        ('"force**2"', '"forse**2"', "Unknown name 'forse'.*did you mean 'force'"),
        ('"force**2"', '"force**"', "not an expression"),
        ('"force**2"', '"sinn(force)"', "Unknown function 'sinn'.*did you mean 'sin"),
        ('"force**2"', "2.0", "wrong kind|expected|Give an expression"),
        ('v = "force / mass"', 'w = "force / mass"', "rate"),
        ("duration = 2.0", 'duration = "long"', "wrong kind"),
        ("nodes = 3", "nodes = 1", "1 nodes"),
        ("end = {x = 1, v = 0}", "end = {y = 1}", "Unknown name 'y'"),
        ("[[phases]]", "[phases]", "Expected a table|wrong kind"),
        ('unit = "N"', 'units = "N"', "Unknown key 'units'"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, message):
    assert old in CAR
    with pytest.raises(FileFormatError, match=message):
        read_problem(write(tmp_path, CAR.replace(old, new, 1)))


@pytest.mark.parametrize(
    "text",
    [
        "end",
        "x",
        "end.__class__",
        "end.x.__class__",
        "end.x.T",
        "end._values",
        "other.x",
        "(end).x.real",
        "end[0]",
        "1.0.real",
    ],
)
def test_hostile_names_after_dots_are_refused(text):
    namespaces = (Namespace("end", {"x": 1.0}), Namespace("start", {"x": 2.0}))
    with pytest.raises(SettingsError):
        parse_expression(text, "test", ("end", "start"))(*namespaces)
    assert parse_expression("start.x - end.x", "test", ("end", "start"))(*namespaces) == 1.0


@pytest.mark.parametrize("expression", ["drive.duratoin", "drive.end.y", "ride.duration", "drive.integrals.effort"])
def test_wrong_names_in_constraints_of_the_problem(tmp_path, expression):
    text = f'{CAR}[[constraints]]\nname = "time"\nexpression = "{expression}"\nupper = 3\n'
    with pytest.raises(FileFormatError, match="Unknown"):
        read_problem(write(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "x.__class__",
        "().__class__.__bases__",
        "[x for x in (1, 2)]",
        "lambda: 1",
        "x if x else 1",
        "x; x",
        "open('a')",
        "'a' * 9",
        "x @ x",
        "x < 1",
        "sin(x=1)",
        "sin(*x)",
        "sin(x, x)",
        "True",
        "9 ** 9 ** 9 ** 9",
        "(-1) ** 0.5",
        "1 / 0",
        "1e999j",
        "",
        "x" * 3000,
        "(" * 300 + "x" + ")" * 300,
        "-" * 300 + "x",
        "+".join(["x"] * 400),
        "x\0",
    ],
)
def test_hostile_expressions_are_refused(text):
    with pytest.raises(SettingsError):
        parse_expression(text, "test")(Namespace("test", {"x": 1.0}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2*x - x/4 + x**2", 8.5),
        ("-x + +x", 0.0),
        ("sin(pi / x) + cos(0)", 2.0),
        ("exp(log(x)) * sqrt(4)", 4.0),
        ("atan2(x, x) * 4 / pi", 1.0),
        ("max(x, 3) + min(x, 3) + abs(-x)", 7.0),
    ],
)
def test_expressions(text, value):
    assert float(parse_expression(text, "test")(Namespace("test", {"x": 2.0}))) == pytest.approx(value)


def test_damaged_files_are_refused(tmp_path):
    for content in (b"\xff\xfe", b"name = ", b"[" * 5000, b"name = 3\nsystems = 4\nphases = 5"):
        path = tmp_path / "damaged.toml"
        path.write_bytes(content)
        with pytest.raises(BorelliError):
            read_problem(path)
