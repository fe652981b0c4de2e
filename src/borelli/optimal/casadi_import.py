"""CasADi, imported in this one place: an optional package that only optimal control needs."""

from __future__ import annotations

from borelli.errors import SettingsError

try:
    import casadi as ca
except ImportError:  # pragma: no cover - the tests hide the package in a process of its own
    raise SettingsError('Optimal control needs CasADi. Install it with `pip install "borelli[optimal]"`.') from None

__all__ = ["ca"]
