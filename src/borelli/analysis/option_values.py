"""Names of methods and sources, as users write them."""

from __future__ import annotations

from collections.abc import Collection

from borelli.errors import SettingsError, unknown_name


def option_value(what: str, value: str, known: Collection[str]) -> str:
    """Return the known value that `value` names; a hyphen counts as an underscore, as on the command line."""
    name = value.replace("-", "_")
    if name not in known:
        raise SettingsError(unknown_name(what, value, known))
    return name
