"""When the kernels count as compiled."""

import pytest

from borelli import compiling
from borelli.errors import BorelliError
from borelli.jit import JIT_ON, cache_directory
from borelli.physics import warmup
from borelli.view import render

pytestmark = pytest.mark.skipif(not JIT_ON, reason="nothing is compiled with BORELLI_JIT=0")


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BORELLI_CACHE", str(tmp_path))
    monkeypatch.setattr(render, "warm_up_renderer", lambda: None)

    def pretend(report, meanwhile):
        cache_directory().mkdir(parents=True, exist_ok=True)
        report("half of it", 0.5)
        meanwhile()
        report("done", 1.0)
        return 1.0

    monkeypatch.setattr(warmup, "warm_up", pretend)


def test_ready_only_after_everything_was_compiled(empty_cache):
    assert not compiling.kernels_ready()
    heard = []
    compiling.compile_kernels(lambda what, share: heard.append(share))
    assert compiling.kernels_ready()
    assert heard == sorted(heard) and heard[-1] == 1.0


def test_interrupted_compilation_is_not_taken_for_a_full_cache(empty_cache, monkeypatch):
    def fail():
        raise BorelliError("interrupted")

    monkeypatch.setattr(render, "warm_up_renderer", fail)
    with pytest.raises(BorelliError):
        compiling.compile_kernels()
    assert cache_directory().exists() and not compiling.kernels_ready()


def test_other_copy_of_the_sources_is_not_ready(empty_cache, monkeypatch, tmp_path):
    """numba keeps machine code by the path of its source."""
    compiling.compile_kernels()
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path)
    assert not compiling.kernels_ready()
