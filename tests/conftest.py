"""Fixtures for all tests, and the one place that skips tests whose data are not here."""

import os
import sys
from importlib.util import find_spec

import pytest

from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import analyze
from borelli.synthetic.recordings import synthetic_recording

from .shared_data import SHARED_DATA, allow_shared_data

NO_DATA = f"there are no recordings in {SHARED_DATA}"


@pytest.fixture(scope="session")
def walk():
    return synthetic_recording("walk")


@pytest.fixture(scope="session")
def analyzed(walk, tmp_path_factory):
    """Return the analysis of the walk, run once for all tests."""
    folder = tmp_path_factory.mktemp("walk")
    walk.recording.to_netcdf(folder / "walk.nc")
    return analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0]


@pytest.fixture(scope="session")
def opensim_python() -> str:
    """A Python that can import opensim."""
    if chosen := os.environ.get("BORELLI_OPENSIM_PYTHON"):
        return chosen
    if find_spec("opensim") is None:
        pytest.skip(
            "opensim is not installed: `pip install opensim`, or set BORELLI_OPENSIM_PYTHON to a Python with it"
        )
    return sys.executable


def pytest_collection_modifyitems(items):
    if not SHARED_DATA.is_dir():
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(pytest.mark.skip(reason=NO_DATA))


def pytest_runtest_setup(item):
    allow_shared_data(item.get_closest_marker("data") is not None)


def pytest_terminal_summary(terminalreporter):
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if NO_DATA in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(
            f"{len(skipped)} tests were skipped because {NO_DATA}. Set BORELLI_DATA to a folder of recordings and "
            "models laid out as CONTRIBUTING.md describes to run them."
        )
