"""CasADi, imported in this one place: an optional package that only optimal control needs."""

from __future__ import annotations

from typing import Any

from borelli.errors import SettingsError

try:
    import casadi
except ImportError:
    raise SettingsError('Optimal control needs CasADi. Install it with `pip install "borelli[optimal]"`.') from None

ca: Any = casadi
"""The package, without its types, which differ from version to version."""
