"""Check of the installation: versions, cache, kernels, and a simulation with a known result."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from importlib import metadata
from typing import NamedTuple

from borelli.errors import BorelliError
from borelli.kernels.cache_folder import cache_root, private_folder
from borelli.kernels.jit import JIT_ON

REQUIRED = ("numpy", "scipy", "numba", "xarray", "h5netcdf", "matplotlib", "pillow")
OPTIONAL = {"viser": "the browser viewer", "mujoco": "comparison", "pin": "comparison"}
FALL_TOLERANCE = 1e-9
"""Difference [m] from the exact result of semi-implicit Euler, g h^2 n(n+1)/2."""


class Finding(NamedTuple):
    """Result of one check."""

    name: str
    ok: bool
    result: str
    required: bool = True


def check_installation(log: Callable[[str], None] = lambda _: None) -> list[Finding]:
    """Run all checks; `log` is called with the running one."""
    log("checking versions")
    findings = [Finding("Python", (3, 11) <= sys.version_info[:2] < (3, 14), platform.python_version())]
    findings += [_package(name) for name in REQUIRED]
    findings += [_package(name, purpose) for name, purpose in OPTIONAL.items()]
    findings.append(_cache())
    findings.append(_kernels(log))
    log("simulating free fall")
    findings.append(_free_fall())
    return findings


def _package(name: str, purpose: str = "") -> Finding:
    try:
        return Finding(name, True, metadata.version(name), not purpose)
    except metadata.PackageNotFoundError:
        return Finding(name, False, f"not installed{f' (only for {purpose})' if purpose else ''}", not purpose)


def _cache() -> Finding:
    try:
        folder = private_folder(cache_root())
    except BorelliError as error:
        return Finding("kernel cache", False, str(error))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Finding("kernel cache", True, f"{folder} ({size / 1e6:.0f} MB)")


def _kernels(log: Callable[[str], None]) -> Finding:
    if not JIT_ON:
        return Finding("kernels", True, "not compiled, since BORELLI_JIT is 0", required=False)
    from borelli.kernels.compile_cache import compile_kernels

    try:
        seconds = compile_kernels(lambda name, done: log(f"compiling {name} ({done:.0%})"))
    except BorelliError as error:
        return Finding("kernels", False, str(error))
    return Finding("kernels", True, f"ready after {seconds:.1f} s")


def _free_fall() -> Finding:
    """Compare a ball that falls for 0.1 s with the exact result of semi-implicit Euler."""
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
    ok = abs(fallen - expected) < FALL_TOLERANCE
    return Finding("free fall", ok, f"{fallen:.6f} m in 0.1 s, expected {expected:.6f} m")
