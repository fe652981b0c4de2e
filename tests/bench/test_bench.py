"""Benchmark report: its structure, its error metrics, and known results of peers."""

import io

import numpy as np
import pytest
from rich.console import Console

from borelli.bench import main, peers_mujoco, peers_ode, peers_pinocchio, poses
from borelli.bench.ground_truth import motion, torque_truth
from borelli.bench.metrics import JOBS, Measurement, torque_error, tracking_errors
from borelli.numerics.quaternions import quaternion_product, rotation_exponential

HDM = {job.name: job for job in JOBS}

needs_ode = pytest.mark.skipif(peers_ode.absent() is not None, reason=str(peers_ode.absent()))
needs_mujoco = pytest.mark.skipif(peers_mujoco.absent() is not None, reason=str(peers_mujoco.absent()))
needs_pinocchio = pytest.mark.skipif(peers_pinocchio.absent() is not None, reason=str(peers_pinocchio.absent()))


class StubEngine:
    """Substitute for borelli where only the report is tested."""

    def measure_job(self, job, recording):
        found = {"marker_rms_mm": 0.1, "angle_rms_deg": 0.2} if job.markers else {}
        return Measurement(10.0, 9.0, 11.0, found)

    def measure_torques(self, recording):
        return Measurement(20.0, 19.0, 21.0, {"error_percent": 0.01})

    def measure_chain(self, links, steps):
        return Measurement(0.5 * links, 0.4 * links, 0.6 * links)

    def compile_seconds(self, fresh):
        return 1.0


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setattr(main, "run_borelli", StubEngine())


def test_truth_has_no_error():
    recording = motion(seconds=0.25)
    errors = tracking_errors(recording.poses[1:], recording)
    assert errors["marker_rms_mm"] < 1e-9
    assert errors["angle_rms_deg"] < 1e-5  # half the digits: the angle of a unit quaternion near 1
    truth = torque_truth(seconds=0.25)
    assert torque_error(truth[:-1], truth) == 0.0
    assert torque_error(1.01 * truth[:-1], truth) == pytest.approx(1.0)


def test_errors_of_known_offsets():
    recording = motion(seconds=0.25)
    shifted = recording.poses[1:].copy()
    shifted[..., 0] += 0.002
    errors = tracking_errors(shifted, recording)
    assert errors["marker_rms_mm"] == pytest.approx(2.0)
    assert errors["angle_rms_deg"] < 1e-5
    bent = recording.poses[1:].copy()
    head = 4
    bent[:, head, 3:] = quaternion_product(bent[:, head, 3:], rotation_exponential(np.array([0.0, 0.1, 0.0])))
    assert tracking_errors(bent, recording)["angle_rms_deg"] == pytest.approx(np.degrees(0.1) / np.sqrt(20))


def test_report_without_peers_has_no_peer_keys(stub):
    result = main.run(peers=False, quick=True)
    assert {"hdm_full", "contacts", "markers", "torques", "chain", "compile_s"} <= set(result)
    assert set(result["contacts"]) == {"us"}
    assert set(result["torques"]) == {"us", "error_percent"}
    assert set(result["chain"]["10"]) == {"us"}
    assert set(result["rnea"]) == {"us", "error_percent"} and result["smoothed"] is result["poses"]["smoothed"]
    assert result["pipeline"]["us"] >= result["pipeline"]["ik_us"] > 0.0
    assert set(result["poses"]["exact"]) == {"us", "angle_rms_deg", "start_ms"}
    assert result["poses"]["smoothed"]["torque_rms_nm"] < result["poses"]["framewise"]["torque_rms_nm"]
    assert "absent" not in result
    assert set(result["muscle_paths"]) == set(result["load_sharing"]) == {"skeleton"}
    assert not any("mujoco" in key for key in result["muscle_paths"]["skeleton"])


def test_report_with_peers(stub):
    result = main.run(peers=True, quick=True)
    absent = set(result["absent"])
    for name in {"ode", "mujoco"} - absent:
        for job in ("hdm_full", "contacts", "markers"):
            assert result[job][f"{name}_us"] > 0.0
        assert result["chain"]["20"][f"{name}_us"] > result["chain"]["10"][f"{name}_us"]
    if "ode" not in absent:
        assert result["torques"]["ode_error_percent"] > 0.0
    for name in absent:
        assert not any(key.startswith(name) for key in result["contacts"])
    text = io.StringIO()
    main.print_report(result, Console(file=text, width=160))
    assert "collapsing" in text.getvalue()
    assert "borelli" in text.getvalue()


def test_every_chain_of_the_full_run_is_named():
    assert list(main.CHAIN_STEPS) == [10, 20, 40, 80, 100, 160, 320, 1000]


@pytest.mark.crosscheck
@needs_ode
def test_ode_tracks_markers_as_published():
    errors = peers_ode.measure_job(HDM["markers"], motion()).accuracy
    # an independent program for ODE 0.16.2 on this job: 0.108 mm, 0.170 deg
    assert errors["marker_rms_mm"] == pytest.approx(0.108, abs=0.001)
    assert errors["angle_rms_deg"] == pytest.approx(0.170, abs=0.001)
    assert peers_ode.measure_job(HDM["contacts"], motion(seconds=0.25)).accuracy["contacts"] == 16


@pytest.mark.crosscheck
@needs_ode
def test_ode_recovers_torques_as_published():
    assert peers_ode.measure_torques(motion()).accuracy["error_percent"] == pytest.approx(0.124, abs=0.002)


def test_ode_is_reported_absent_without_a_compiler(monkeypatch):
    monkeypatch.setattr(peers_ode.shutil, "which", lambda _: None)
    assert "compiler" in peers_ode.absent.__wrapped__()


@pytest.mark.crosscheck
@needs_mujoco
@needs_pinocchio
def test_mujoco_and_pinocchio_recover_the_same_torques():
    recording = motion(seconds=0.5)
    errors = [peer.measure_torques(recording).accuracy["error_percent"] for peer in (peers_mujoco, peers_pinocchio)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)  # both differentiate the same numbers
    assert errors[0] < 0.02
    assert poses.measure_rnea(recording).accuracy["error_percent"] < 0.02  # differentiates Cardan angles of the balls


@pytest.mark.crosscheck
@needs_mujoco
def test_mujoco_detects_ground_contacts_and_does_not_diverge():
    recording = motion()
    assert peers_mujoco.measure_job(HDM["contacts"], recording).accuracy["contacts"] == 16
    collapse = peers_mujoco.measure_job(HDM["collapse"], recording)
    assert "diverged" not in collapse.accuracy
    assert 4 < collapse.accuracy["contacts"] <= 16
