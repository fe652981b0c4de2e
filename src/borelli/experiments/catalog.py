"""All experiments by name. Each sub-package lists its own: a line there, and a module with a function `run`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from borelli.errors import SettingsError, unknown_name
from borelli.experiments import control, movement, muscles, optimal
from borelli.experiments.experiment import Request
from borelli.experiments.outcome import Outcome

EXPERIMENTS = movement.EXPERIMENTS | control.EXPERIMENTS | muscles.EXPERIMENTS | optimal.EXPERIMENTS


def run_experiment(
    name: str,
    out: Path,
    *,
    recording: Path | None = None,
    quick: bool = False,
    overwrite: bool = False,
    log: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run an experiment and write its table, plots and images into a folder.

    Args:
        name: One of `EXPERIMENTS`.
        out: Output folder, created if it does not exist.
        recording: Recording to use instead of synthetic data, where the experiment can.
        quick: Run few trials, to check that the experiment works; not for results.
        overwrite: Replace files of the folder that are not results of the experiment.
        log: Called with a description of each step.

    Returns:
        The table, the criteria and the files written.

    Raises:
        SettingsError: The experiment is unknown, cannot use a recording, or must not replace a file.
    """
    if name not in EXPERIMENTS:
        raise SettingsError(unknown_name("experiment", name, EXPERIMENTS))
    if recording is not None and not EXPERIMENTS[name].takes_recording:
        raise SettingsError(f"Experiment {name!r} uses synthetic data only. Omit --recording.")
    return EXPERIMENTS[name].run(Request(name, out, recording, quick, log), overwrite=overwrite)
