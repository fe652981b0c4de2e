"""Memory that a request needs, compared with what is available before anything is allocated."""

from __future__ import annotations

from pathlib import Path

from borelli.errors import SettingsError

ASSUMED_MEMORY = 4_000_000_000
"""Memory [bytes] assumed to be available where the system does not state it (other than Linux)."""
USABLE_FRACTION = 0.8
"""Fraction of the available memory that one request may take."""
ALWAYS_ALLOWED = 50_000_000
"""Memory [bytes] that is not compared with anything, so that small requests cost no time."""
MEMORY_INFO = Path("/proc/meminfo")
CGROUPS = Path("/sys/fs/cgroup")
CGROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat", "file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "cache"),
)
"""Limit, use and statistics of a container, of cgroup version 2 and 1; and the entry with the files it has cached."""


def available_memory() -> int:
    """Return the memory [bytes] that this process can still allocate: of the system, or of its container if less."""
    known = [amount for amount in (_system_memory(), *_container_memory()) if amount is not None]
    return min(known, default=ASSUMED_MEMORY)


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Refuse a request that needs more memory than is available.

    Args:
        needed: Estimated memory [bytes].
        what: The request, as the beginning of the sentence "... needs 24 GB of memory".
        remedy: What to change.

    Raises:
        SettingsError: The request does not fit.
    """
    if needed < ALWAYS_ALLOWED:
        return
    available = available_memory()
    if needed > USABLE_FRACTION * available:
        raise SettingsError(
            f"{what} needs about {_gigabytes(needed)} of memory, but {_gigabytes(available)} are available. {remedy}"
        )


def _gigabytes(amount: float) -> str:
    return f"{amount / 1e9:.3g} GB"


def _system_memory() -> int | None:
    fields = [line.split() for line in _read(MEMORY_INFO).splitlines() if line.startswith("MemAvailable:")]
    kilobytes = _number(fields[0][1]) if fields and len(fields[0]) > 1 else None
    return None if kilobytes is None else 1024 * kilobytes


def _container_memory() -> list[int | None]:
    """Return what is left of the limits of the container; None where there is no limit."""
    result: list[int | None] = []
    for limit_file, usage_file, statistics, entry in CGROUP_FILES:
        limit, usage = (_number(_read(CGROUPS / name)) for name in (limit_file, usage_file))
        # cached files count as used, but give way to an allocation
        lines = [line.split() for line in _read(CGROUPS / statistics).splitlines()]
        cached = next((_number(line[1]) for line in lines if len(line) == 2 and line[0] == entry), None)
        left = None if limit is None or usage is None else max(0, limit - max(0, usage - (cached or 0)))
        result.append(left)
    return result


def _number(text: str) -> int | None:
    """Return a number of bytes; None for "max", which is no limit, and for a missing file."""
    return int(text) if text.strip().isdigit() else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
