import pytest

from borelli.pipeline.analysis_settings import AnalysisSettings
from borelli.pipeline.analyze import analyze
from borelli.synthetic.recordings import synthetic_recording


@pytest.fixture(scope="session")
def walk():
    return synthetic_recording("walk")


@pytest.fixture(scope="session")
def analysed(walk, tmp_path_factory):
    """The walk analysed by the whole pipeline, once for all tests."""
    folder = tmp_path_factory.mktemp("walk")
    walk.recording.to_netcdf(folder / "walk.nc")
    return analyze([folder / "walk.nc"], folder / "out", AnalysisSettings())[0]
