"""What is public, and what importing it costs."""

import subprocess
import sys
from pathlib import Path

import borelli

PUBLIC = [
    "Analysis", "Animation", "MonteCarloResult", "AnalysisUncertainty", "Body", "BorelliError", "CarriedLoad", "Control", "Coordinate", "Coupling",
    "DivergedError", "Drive", "Energy", "Event", "Issue", "FileFormatError", "FileSource", "Fit", "AppliedForce", "Frame",
    "Function", "Joint", "TrackingSettings", "LivePose", "Marker", "Measurement", "MinimumJerk", "Model", "ModelError", "Motion",
    "TransformAxis", "MoveGround", "Muscle", "Note", "Obstacle", "PD", "ModelComparison", "PathPoint", "AnalysisSettings", "DragResult", "Push",
    "Recording", "ScaleResult", "Scene", "SolverSettings", "SettingsError", "Shape", "Softness", "CoordinateRange", "Surface", "Torques",
    "WeakenedJoint", "WrapObject", "__version__", "add_events", "add_plates", "analyze", "animate", "assign_plates",
    "body_from_shapes", "clean", "make_controls", "crop", "drag_point", "compute_energy", "swap_markers", "swap_plates", "swap_sides",
    "fill_gaps", "propagate_uncertainty", "check_recording", "find_gaps", "fit_model", "live_inverse_kinematics", "inverse_kinematics",
    "track_targets", "full_skeleton", "gait_events", "gallery_scene", "human", "inverse_dynamics", "keyframes",
    "loads_from_setup", "list_marker_sets", "monte_carlo", "compare_models", "parse_perturbation", "picture", "plot", "plot_deviation",
    "plot_recording", "read_external_loads", "read_id_setup", "read_ik_setup", "read_model",
    "read_pagoda", "read_qtvr", "read_recording", "read_scale_setup", "read_scene", "read_stage", "identify_marker_set",
    "remove_spikes", "write_report", "resample", "resize_body", "repair_time_stamps", "run_scene", "scale_mass", "scale_model",
    "show", "simulate", "lowpass_filter", "strobe", "synthetic_recording", "threshold_plates", "repair_label_swaps", "validate",
    "video", "add_marker_set", "write_frames", "write_model", "write_recording", "write_scene", "write_stage",
    "zero_plates",
]  # fmt: skip

HEAVY = ("viser", "matplotlib", "plotly", "casadi", "dask", "numba", "scipy", "xarray", "PIL")
IMPORT_LIMIT = 0.5  # [s]: what `import borelli` may take by itself


def in_fresh_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_public_names_are_these():
    assert sorted(borelli.__all__) == sorted(PUBLIC)
    assert sorted(dir(borelli)) == sorted(PUBLIC)


def test_every_public_name_loads_and_is_documented():
    for name in PUBLIC:
        value = getattr(borelli, name)
        assert name == "__version__" or value.__doc__, f"{name} has no docstring"


def test_unknown_name_is_an_attribute_error():
    code = "import borelli\ntry: borelli.nonsense\nexcept AttributeError as e: print(e)"
    assert "nonsense" in in_fresh_python(code)


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
    root = Path(__file__).parents[2]
    assert f"version: {borelli.__version__}\n" in (root / "CITATION.cff").read_text()
    assert f"## {borelli.__version__}" in (root / "CHANGELOG.md").read_text()


def test_every_public_name_is_in_the_documentation():
    pages = [path.read_text() for path in (Path(__file__).parents[2] / "docs").glob("*.md")]
    missing = [name for name in PUBLIC if not name.startswith("__") and not any(name in page for page in pages)]
    assert not missing
