"""Tables of docs/performance.md."""

from borelli.bench.main import CHAIN_STEPS
from borelli.bench.markdown import markdown
from borelli.bench.metrics import JOBS

STEP = {"us": 10.0, "ode_us": 1234.5, "marker_rms_mm": 0.1079}
RESULT = {job.name: STEP for job in JOBS} | {
    "compile_s": 80.0,
    "torques": {"us": 27.0, "error_percent": 0.0177, "pinocchio_us": 1.0, "pinocchio_error_percent": 0.02},
    "rnea": {"us": 2.5, "error_percent": 0.0096, "pinocchio_us": 3.0, "pinocchio_error_percent": 0.0096},
    "pipeline": {"ik_us": 43.0, "id_us": 40.0, "times_real_time": 101.0},
    "poses": {"exact": {"us": 90.0, "angle_rms_deg": 0.0}, "smoothed": {"us": 5e3, "torque_rms_nm": 0.09}},
    "muscle_paths": {
        "skeleton": {"us": 90.0, "muscles": 274.0, "us_per_muscle": 0.3285, "virtual_work_m": 1e-9},
        "myolegs": {"us": 20.0, "muscles": 80.0, "us_per_muscle": 0.25, "mujoco_us_per_muscle": 0.34},
    },
    "load_sharing": {"gait2392": {"us": 73.0, "opensim_us": 72500.0, "opensim_times": 993.0}},
    "chain": {str(links): {"us": float(links)} for links in CHAIN_STEPS} | {"10": {"us": 5.0, "ode_us": 90.0}},
}


def lines_with(text):
    return [line for line in markdown(RESULT).splitlines() if text in line]


def test_every_job_and_chain_has_its_line():
    for job in JOBS:
        assert any(line.startswith(f"| {job.title} | 10.0 | 1,234 |") for line in lines_with(job.title))
    assert lines_with("| 1000 | 1,000 | - |")


def test_engine_without_results_has_no_column():
    assert all("us per muscle" in line for line in lines_with("MuJoCo"))
    assert len(lines_with("Pinocchio")) == 2


def test_columns_agree_with_their_heading():
    for table in markdown(RESULT).split("\n\n"):
        if table.startswith("|"):
            assert len({line.replace("\\|", "").count("|") for line in table.splitlines()}) == 1


def test_trials_have_their_times():
    assert lines_with("| synthetic walk with plates | 43.0 | 40.0 | 101 |")


def test_poses_have_a_line_per_method():
    assert lines_with("| smoothed, 1 mm noise | 5,000 | - | 0.09 |")


def test_muscles_have_a_line_per_model():
    assert lines_with("| borelli's full skeleton | 274 | 90.0 | 0.329 | - | 1e-09 |")
    assert lines_with("| MyoSim legs | 80.0 | 20.0 | 0.25 | 0.34 | - |")
    assert lines_with("| 73.0 | 72,500 | 993 | - | - |")
