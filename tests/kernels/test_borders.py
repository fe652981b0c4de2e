"""Arrays of every wrong kind at the border to kernels: each is refused with a sentence, or gives the right result."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from borelli.errors import SettingsError
from borelli.kernels.array_checks import as_floats, as_number, check_array, check_arrays, check_integer
from borelli.kernels.jit import JIT_ON
from borelli.physics.diagnostics import coordinates_and_velocities
from borelli.physics.run_soft_steps import Simulation, make_record
from borelli.physics.state import make_inputs, make_state
from tests.kernels.border_cases import COMPILED, MODEL

CASES = Path(__file__).with_name("border_cases.py")
SLICE = 24
"""One case in this many is run by the ordinary tests."""
pytestmark = pytest.mark.skipif(not JIT_ON, reason="Python checks the bounds of arrays")


def run_cases(*arguments):
    """Run cases in a process and return their number and the failures; a crash is a failure of the case it ended."""
    path = os.pathsep.join(filter(None, [*sys.path, str(CASES.parents[2])]))
    result = subprocess.run(
        [sys.executable, str(CASES), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    lines = result.stdout.splitlines()
    failures = [line for line in lines if line.startswith("FAILED")]
    if not lines or not lines[-1].startswith("done"):
        failures.append(f"exit code {result.returncode} in {lines[-1:]}: {result.stderr[-500:]}")
    return sum(line.startswith("case") for line in lines), failures


def test_slice_of_wrong_arrays():
    """Wrong sizes, indices and models, and a slice of the wrong arrays."""
    count, failures = run_cases("3", str(SLICE))
    assert count > 100 and failures == []


@pytest.mark.slow
def test_all_wrong_arrays():
    count, failures = run_cases("0", "1")
    print(f"{count} cases, {len(failures)} failures")
    assert count > 3000 and failures == []


def test_conversion_to_floats():
    for given in ([1, 2], np.array([1.0, 2.0], np.float32), np.array([1, 9, 2])[::2], np.array([1.0, 2.0], ">f8")):
        array = as_floats("x", given, (None,), finite=False)
        assert array.dtype == np.float64 and array.flags.carray and array.flags.owndata
    same = np.zeros(3)
    assert as_floats("x", same, (3,)) is same


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros(2), r"x: The array has shape \(2,\)\. Pass shape \(3,\)\."),
        (np.zeros((1, 3)), r"x: The array has shape \(1, 3\)\."),
        ([1.0, np.nan, 2.0], r"x: Element \[1\] is nan\. Pass finite numbers\."),
        (["1", "2", "3"], r"x: The values have type <U1\. Pass real numbers\."),
        ([1j, 2, 3], "complex128"),
        ([None, 2, 3], "object"),
        ([[1], [2, 3]], "x: The rows have different lengths"),
    ],
)
def test_wrong_numbers_are_named(given, message):
    with pytest.raises(SettingsError, match=message):
        as_floats("x", given, (3,))


def test_wrong_scalars_are_named():
    with pytest.raises(SettingsError, match="x: The value is NaN"):
        as_number("x", np.nan, finite=False)
    with pytest.raises(SettingsError, match=r"x: 1\.5 is not an integer"):
        check_integer("x", 1.5, 0)
    with pytest.raises(SettingsError, match=r"x: 7 is out of range\. Allowed: 0 to 6\."):
        check_integer("x", np.int64(7), 0, 6)


def test_arrays_that_kernels_would_misread_are_named():
    with pytest.raises(SettingsError, match="x: The array is read-only or not contiguous"):
        check_array("x", np.zeros((2, 6))[:, ::2], (None, 3))
    with pytest.raises(SettingsError, match=r"state\.twist: The values have type float32\. Pass float64\."):
        state = make_state(COMPILED)
        check_arrays("state", state._replace(twist=state.twist.astype(np.float32)), state)


def test_threads_that_simulate_one_compiled_model_do_not_disturb_one_another():
    steps = 4000
    speeds = (1.0, -3.0)

    def simulate(speed):
        state = make_state(COMPILED)
        state.twist[:, 3:] = speed
        state.position[:, 2] += 2.0
        record = make_record(COMPILED, steps)
        Simulation(COMPILED, state, make_inputs(COMPILED)).advance(steps, record)
        return record, coordinates_and_velocities(COMPILED, record.pose, record.twist)

    alone = [simulate(speed) for speed in speeds]
    for _ in range(3):
        with ThreadPoolExecutor(2) as threads:
            together = list(threads.map(simulate, speeds))
        for (record, coordinates), (own, own_coordinates) in zip(alone, together, strict=True):
            assert own.pose.tobytes() == record.pose.tobytes()
            assert own_coordinates[0].tobytes() == coordinates[0].tobytes()


def test_simulations_have_scratch_arrays_of_their_own():
    first, second = (Simulation(COMPILED, make_state(COMPILED), make_inputs(COMPILED)) for _ in range(2))
    assert not np.shares_memory(first.tables.joints.gap, second.tables.joints.gap)
    assert first.tables.joints.default is COMPILED.tables.joints.default
    assert len(MODEL.bodies) == 3
