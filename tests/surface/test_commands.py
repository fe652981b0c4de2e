"""The command line: help, options, errors, scenes and models."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import borelli

ROOT = Path(__file__).parents[2]
COMMANDS = (
    "demo", "analyze", "fit", "ik", "id", "muscles", "energy", "report", "info", "markers", "doctor", "clean",
    "convert", "compare", "simulate", "animate", "optimize", "experiment", "bench",
)  # fmt: skip


def run(*arguments, folder=None, columns="200"):
    environment = {**os.environ, "COLUMNS": columns, "NO_COLOR": "1"}
    command = [sys.executable, "-m", "borelli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def assert_one_sentence(done, *words):
    """Assert exit code 1, one line on stderr with these words, nothing on stdout and no traceback."""
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("borelli: "), done.stderr
    for word in words:
        assert word in lines[0], lines[0]


def test_version():
    assert run("--version").stdout.strip() == borelli.__version__


def test_help_lists_every_command_and_loads_no_large_library():
    done = run("--help")
    assert done.returncode == 0
    assert all(re.search(rf"\b{name}\b", done.stdout) for name in COMMANDS)
    code = (
        "import sys; sys.argv = ['borelli', '--help']\n"
        "from borelli.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.split())
    assert "typer" in loaded
    assert not loaded & {"numba", "scipy", "xarray", "pandas", "matplotlib", "h5py", "numpy"}


def test_every_command_and_option_is_documented():
    assert "<!-- commands -->" in (ROOT / "docs" / "cli.md").read_text()
    page = runpy.run_path(str(ROOT / "docs" / "hooks" / "cli_reference.py"))["reference"]()
    for name in COMMANDS:
        assert f"## `borelli {name}" in page
        options = set(re.findall(r"--[a-z-]+", run(name, "--help").stdout)) - {"--help"}
        assert not {option for option in options if option not in page}, name


@pytest.mark.parametrize("columns", ["80", "120"])
def test_help_states_units_and_defaults_in_words(columns):
    """Units stay in the text (rich would take them for styles), flags have no type, defaults are words."""
    units = {
        "analyze": {"[kg]", "[m]", "[Hz]", "[s]", "[mm]"}, "fit": {"[kg]", "[m]", "[s]"}, "ik": {"[s]"}, "id": {"[Hz]"},
        "clean": {"[Hz]", "[s]", "[N]"}, "simulate": {"[s]"},
        "animate": {"[kg]", "[m]", "[Hz]", "[s]", "[body weights]"},
    }  # fmt: skip
    for name in COMMANDS:
        text = run(name, "--help", columns=columns).stdout
        assert max(map(len, text.splitlines())) <= int(columns), name
        words = " ".join(text.split())
        assert units.get(name, set()) <= set(re.findall(r"\[[^]]*\]", words)), name
        for banned in ("<bool>", "<class", "None", "inf]", "\\[", "[default"):
            assert banned not in words, (name, banned)


def test_defaults_in_help_texts_are_the_defaults():
    """A number after "Default:" in the help text of an option is the default of its parameter."""
    import typer

    from borelli.cli import app
    from borelli.pipeline.analysis_settings import DEFAULT_HEIGHT, DEFAULT_MASS
    from borelli.recording.cleaning.filtering import CUTOFF

    computed = {"mass": DEFAULT_MASS, "height": DEFAULT_HEIGHT, "cutoff": CUTOFF}
    checked = 0
    for name, command in typer.main.get_command(app).commands.items():
        for option in command.params:
            stated = re.search(r"Default: (?:.*else )?([\d./]+)(?: \w+)?[.,]", getattr(option, "help", "") or "")
            if stated:
                default = option.default if option.default is not None else computed[option.name]
                numerator, _, denominator = stated[1].rstrip(".").partition("/")
                assert float(numerator) / float(denominator or 1) == pytest.approx(float(default)), (name, option.name)
                checked += 1
    assert checked > 15


def test_gallery_is_listed():
    from borelli.scenes.gallery import GALLERY

    done = run("simulate", "--list")
    assert done.returncode == 0 and all(name in done.stdout for name in GALLERY)


def test_unknown_scene_suggests_the_nearest():
    assert_one_sentence(run("simulate", "pendulun"), "pendulun", "did you mean 'pendulum'?")


def test_no_scene():
    assert_one_sentence(run("simulate"), "No scene is given")


@pytest.mark.parametrize("option", ["--step=0", "--step=-0.01", "--duration=0", "--step=nan", "--duration=inf"])
def test_step_and_duration_must_be_positive(option):
    assert_one_sentence(run("simulate", "pendulum", option), option[2:].split("=")[0], "positive")


@pytest.mark.parametrize("arguments", [("--out", "x.csv"), ("--video", "x.mp4"), ("--out", "nowhere/x.nc")])
def test_invalid_output_is_rejected_before_simulating(arguments, tmp_path):
    assert_one_sentence(run("simulate", "pendulum", *arguments, folder=tmp_path), arguments[1])


def test_scene_file_cut_in_half(tmp_path):
    path = tmp_path / "half.toml"
    borelli.scenes.write_scene(borelli.gallery_scene("stack"), path)
    text = path.read_text()
    # inside the last number of a line, so that the rest is not valid TOML
    path.write_text(text[: text.rindex("0.1") + 2].rstrip("."))
    assert_one_sentence(run("simulate", path), "half.toml")


ARM = """
format = "borelli-model"
version = 2
name = "arm"
[[bodies]]
name = "upper"
mass = 1.0
inertia = [[0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1]]
[[bodies]]
name = "lower"
mass = 2.0
inertia = [[0.2, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.2]]
[[joints]]
name = "shoulder"
kind = "fixed"
parent = "ground"
child = "upper"
[[joints]]
name = "elbow"
kind = "fixed"
parent = "upper"
child = "lower"
"""
INERTIA = "inertia = [[0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1]]"


READABLE = ("no mass", "inertia not positive definite")
"""Bodies of other programs that inverse dynamics accepts: they are read with a note, but not simulated."""


def changed(old, new):
    assert old in ARM
    return ARM.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(changed('parent = "ground"', 'parent = "lower"'), ["upper", "lower"], id="cycle of parents"),
        pytest.param(changed("mass = 2.0", "mass = 0.0"), ["'lower'", "Mass", "0.0"], id="no mass"),
        pytest.param(changed("mass = 2.0", "mass = -2.0"), ["'lower'", "Mass", "-2.0"], id="negative mass"),
        pytest.param(changed("mass = 2.0", "mass = nan"), ["'lower'", "mass", "nan"], id="mass NaN"),
        pytest.param(
            changed(INERTIA, INERTIA.replace("[0.0, 0.1, 0.0]", "[0.0, -0.1, 0.0]")),
            ["'upper'", "inertia"], id="inertia not positive definite",
        ),
        pytest.param(
            changed(INERTIA, INERTIA.replace("[[0.1, 0.0", "[[0.1, nan")),
            ["'upper'", "inertia"], id="inertia NaN",
        ),
        pytest.param(changed('parent = "upper"', 'parent = "uper"'), ["'elbow'", "mean 'upper'"], id="unknown body"),
        pytest.param(changed('name = "lower"', 'name = "upper"'), ["'upper'", "2 times"], id="duplicate body"),
        pytest.param(changed('name = "elbow"', 'name = "shoulder"'), ["'shoulder'"], id="duplicate joint"),
        pytest.param(ARM[: len(ARM) // 2], ["arm.toml"], id="cut in half"),
    ],
)  # fmt: skip
def test_invalid_model_is_rejected_by_name(text, words, tmp_path, request):
    (tmp_path / "arm.toml").write_text(ARM)
    assert run("info", tmp_path / "arm.toml").returncode == 0
    (tmp_path / "arm.toml").write_text(text)
    done = run("info", tmp_path / "arm.toml")
    if request.node.callspec.id in READABLE:
        assert done.returncode == 0 and "cannot be simulated" in done.stdout and words[0] in done.stdout
        assert run("doctor", tmp_path / "arm.toml").returncode == 1
    else:
        assert_one_sentence(done, *words)
    (tmp_path / "scene.toml").write_text('format = "borelli-scene"\nversion = 1\nname = "x"\nmodel = "arm.toml"\n')
    assert_one_sentence(run("simulate", tmp_path / "scene.toml"), *words)


def test_missing_file():
    assert_one_sentence(run("info", "absent.toml"), "absent.toml")
    assert_one_sentence(run("info", "absent.nc"), "absent.nc")


def test_file_of_another_kind(tmp_path):
    (tmp_path / "x.nc").write_text("not netCDF")
    assert_one_sentence(run("info", tmp_path / "x.nc"), "x.nc")
    (tmp_path / "x.toml").write_text('format = "other"\n')
    assert_one_sentence(run("info", tmp_path / "x.toml"), "x.toml", "other")
    (tmp_path / "y.toml").write_bytes(b"\xff\xfe\x00")
    assert_one_sentence(run("info", tmp_path / "y.toml"), "y.toml")


def test_debug_shows_the_traceback():
    done = run("--debug", "simulate", "nonsense")
    assert done.returncode == 1 and "Traceback" in done.stderr


def test_info_on_a_model_and_a_scene(tmp_path):
    borelli.write_model(borelli.human(mass=60.0), tmp_path / "human.toml")
    facts = json.loads(run("info", tmp_path / "human.toml", "--json").stdout)
    assert facts["kind"] == "model" and facts["bodies"] == 21 and facts["mass [kg]"] == pytest.approx(60.0)
    borelli.scenes.write_scene(borelli.gallery_scene("chain"), tmp_path / "chain.toml")
    facts = json.loads(run("info", tmp_path / "chain.toml", "--json").stdout)
    assert facts["kind"] == "scene" and facts["model bodies"] == 20


def test_tables_keep_their_units():
    done = run("simulate", "ramp", "--duration", "0.1")
    assert done.returncode == 0 and "step [s]" in done.stdout and "mass [kg]" in done.stdout
    assert "[s]" in run("simulate", "--list").stdout


def test_simulate_writes_result_video_and_scene(tmp_path):
    done = run(
        "simulate", "pendulum", "--duration", "0.2", "--out", "p.nc", "--video", "p.gif", "--save", "p.toml", "--json",
        folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["duration [s]"] == pytest.approx(0.2)
    assert (tmp_path / "p.gif").read_bytes()[:3] == b"GIF"
    assert borelli.read_scene(tmp_path / "p.toml").duration == 0.2
    facts = json.loads(run("info", tmp_path / "p.nc", "--json").stdout)
    assert facts["kind"] == "result" and facts["duration [s]"] == pytest.approx(0.2)


def test_demo_writes_an_image_and_prints_a_table(tmp_path):
    done = run("demo", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "computed" in done.stdout and "expected" in done.stdout
    assert "synthetic" in (tmp_path / "demo" / "walk" / "report.html").read_text()
    assert (tmp_path / "demo" / "human.png").read_bytes()[:4] == b"\x89PNG"


def test_doctor_accepts_this_installation():
    done = run("doctor", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    findings = json.loads(done.stdout)
    assert findings["free fall"]["ok"] and findings["kernels"]["ok"]
