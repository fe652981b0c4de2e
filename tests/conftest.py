"""Fixtures for all tests, and the one place that skips tests whose data are not here."""

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
