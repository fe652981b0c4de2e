"""Whether this installation works: versions, cache, kernels, and one motion whose answer is known."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from importlib import metadata
from typing import NamedTuple

from borelli.errors import BorelliError
from borelli.kernels.jit import JIT_ON, cache_root

NEEDED = ("numpy", "scipy", "numba", "xarray", "h5netcdf", "matplotlib", "pillow")
WELCOME = {"viser": "the browser view", "mujoco": "comparison", "pin": "comparison"}
FALL_TOLERANCE = 1e-9  # [m]: semi-implicit Euler falls by g h^2 n(n+1)/2 exactly


class Finding(NamedTuple):
    """One thing looked at."""

    text: str
    ok: bool
    found: str
    needed: bool = True


def examine(report: Callable[[str], None] = lambda _: None) -> list[Finding]:
    """Everything that was checked, in order."""
    report("looking at versions")
    findings = [Finding("Python", (3, 11) <= sys.version_info[:2] < (3, 14), platform.python_version())]
    findings += [_package(name) for name in NEEDED]
    findings += [_package(name, purpose) for name, purpose in WELCOME.items()]
    findings.append(_cache())
    findings.append(_kernels(report))
    report("letting a ball fall")
    findings.append(_free_fall())
    return findings


def _package(name: str, purpose: str = "") -> Finding:
    try:
        return Finding(name, True, metadata.version(name), not purpose)
    except metadata.PackageNotFoundError:
        return Finding(name, False, f"not installed{f' (only for {purpose})' if purpose else ''}", not purpose)


def _cache() -> Finding:
    folder = cache_root()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return Finding("kernel cache", False, f"{folder}: {error.strerror}; name another folder in BORELLI_CACHE")
    return Finding("kernel cache", True, str(folder))


def _kernels(report: Callable[[str], None]) -> Finding:
    if not JIT_ON:
        return Finding("kernels", True, "not compiled: BORELLI_JIT is 0", needed=False)
    from borelli.kernels.compile_cache import compile_kernels

    seconds = compile_kernels(lambda what, share: report(f"compiling {what} ({share:.0%})"))
    return Finding("kernels", True, f"ready after {seconds:.1f} s")


def _free_fall() -> Finding:
    """A ball let go for 0.1 s, against the sum that semi-implicit Euler must give."""
    from borelli.model.inertia import body_from_shapes
    from borelli.model.model import Model, Shape
    from borelli.physics.simulate import simulate

    steps, step = 100, 1e-3
    model = Model("ball", (body_from_shapes("ball", (Shape("sphere", (0.1,)),)),))
    try:
        result = simulate(model, duration=steps * step, step=step)
    except BorelliError as error:
        return Finding("free fall", False, str(error))
    fallen = -float(result["body_position"].values[-1, 0, 2])
    expected = -model.gravity[2] * step**2 * steps * (steps + 1) / 2
    right = abs(fallen - expected) < FALL_TOLERANCE
    return Finding("free fall", right, f"{fallen:.6f} m in 0.1 s, should be {expected:.6f} m")
