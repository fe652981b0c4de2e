"""Public names: which there are, that type checkers know them, and what importing them costs."""

import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import borelli

from . import api_page

ROOT = Path(__file__).parents[2]
RETURNING = ("Return", "Read", "Yield")
"""First words of sentences that state the result."""
PUBLIC = [
    "Analysis", "AnalysisSettings", "Animation", "BorelliError", "DivergedError", "Drive", "Energy", "FileFormatError",
    "Fit", "Model", "ModelError", "Motion", "MuscleForces", "PD", "Push", "Recording", "Scene", "SettingsError",
    "SolverSettings", "Torques", "TrackingSettings", "__version__", "add_marker_set", "add_muscles", "analysis",
    "analyze", "animate", "check_recording", "clean", "compute_energy", "control", "dynamics", "fit_model",
    "forward_dynamics", "full_skeleton", "gallery_scene", "human", "identify_marker_set", "inverse_dynamics",
    "inverse_kinematics", "live_inverse_kinematics", "model", "monte_carlo", "muscle_forces", "muscles", "optimal",
    "physics", "picture", "pipeline", "plot", "propagate_uncertainty", "read_model", "read_recording", "read_scene",
    "read_stage", "recording", "run_scene", "scale_model", "scenes", "show", "simulate", "strobe", "synthetic",
    "synthetic_recording", "track_targets", "validate", "video", "view", "write_model", "write_recording",
    "write_report", "write_stage",
]  # fmt: skip
PACKAGES = (
    "analysis",
    "control",
    "dynamics",
    "model",
    "muscles",
    "optimal",
    "physics",
    "pipeline",
    "recording",
    "scenes",
    "synthetic",
    "view",
)
LAZY = tuple(name for name in PACKAGES if name not in ("model", "recording"))
HEAVY = ("viser", "matplotlib", "plotly", "casadi", "dask", "numba", "scipy", "xarray", "PIL")
IMPORT_LIMIT = 0.5  # [s]: time of `import borelli`


def in_fresh_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def type_check(tmp_path, code):
    script = tmp_path / "script.py"
    script.write_text(code)
    # no project settings, only what a user of the package gets
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent",
               f"--cache-dir={tmp_path / 'cache'}", str(script)]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)


def test_public_names_are_these():
    assert sorted(borelli.__all__) == sorted(PUBLIC)
    assert set(PUBLIC) <= set(dir(borelli))


def test_every_public_name_loads_and_is_documented():
    for name in PUBLIC:
        value = getattr(borelli, name)
        assert name == "__version__" or value.__doc__, f"{name} has no docstring"


def _public_functions():
    for module in (borelli, *(import_module(f"borelli.{package}") for package in PACKAGES)):
        for name in module.__all__:
            if inspect.isfunction(value := getattr(module, name)):
                yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize(("name", "function"), dict(_public_functions()).items())
def test_public_functions_document_their_arguments_and_result(name, function):
    text = inspect.getdoc(function)
    signature = inspect.signature(function)
    _, _, arguments = text.partition("Args:\n")
    documented = re.findall(r"^    (?:\*\*?)?(\w+):", arguments.partition("\n\n")[0], re.MULTILINE)
    assert documented == list(signature.parameters), name
    summary = text.split()[0]
    assert signature.return_annotation in ("None", None) or summary in RETURNING or "Returns:" in text, name


@pytest.mark.parametrize("package", PACKAGES)
def test_names_of_packages_load(package):
    module = import_module(f"borelli.{package}")
    assert module.__doc__ and module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", LAZY)
def test_no_lazy_name_is_that_of_a_submodule(package):
    module = import_module(f"borelli.{package}")
    assert not {found.name for found in pkgutil.iter_modules(module.__path__)} & set(module.__all__)


def test_unknown_name_is_an_attribute_error():
    code = "import borelli\ntry: borelli.nonsense\nexcept AttributeError as e: print(e)"
    assert "nonsense" in in_fresh_python(code)


def test_type_checkers_know_every_public_name(tmp_path):
    names = [f"bo.{name}" for name in PUBLIC]
    for package in PACKAGES:
        names += [f"bo.{package}.{name}" for name in import_module(f"borelli.{package}").__all__]
    good = type_check(tmp_path, "import borelli as bo\n" + "".join(f"print({name})\n" for name in names))
    assert good.returncode == 0, good.stdout


def test_type_checkers_find_misspelt_names(tmp_path):
    code = "import borelli as bo\nbo.read_recordng('walk.c3d')\nbo.control.keyframe\n"
    bad = type_check(tmp_path, code)
    assert bad.returncode == 1
    assert '"read_recordng"' in bad.stdout and '"keyframe"' in bad.stdout


def test_import_loads_nothing_heavy():
    loaded = in_fresh_python("import sys, borelli; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_public_api_loads_neither_viewer_nor_plots():
    code = "import sys, borelli as bo; bo.simulate; bo.human; bo.read_scene; bo.show; bo.plot; print(*sys.modules)"
    loaded = in_fresh_python(code).split()
    assert not {"viser", "matplotlib", "plotly", "casadi", "dask"} & set(loaded)


def test_import_is_quick():
    code = "import time; t = time.perf_counter(); import borelli; print(time.perf_counter() - t)"
    assert min(float(in_fresh_python(code)) for _ in range(3)) < IMPORT_LIMIT


def test_citation_and_changelog_name_this_version():
    assert f"version: {borelli.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {borelli.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_api_pages_list_the_public_names():
    """`python -m tests.surface.api_page` writes the pages."""
    assert {path.name: path.read_text() for path in (ROOT / "docs" / "api").glob("*.md")} == api_page.pages()
