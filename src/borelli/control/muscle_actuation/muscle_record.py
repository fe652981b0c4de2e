"""Record of muscles over the steps of a run, and its part of the dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from borelli.analysis.load_sharing.dual_newton import ATTAINED, NOT_CONVERGED
from borelli.control.muscle_actuation.actuator import MuscleActuator
from borelli.errors import list_names

if TYPE_CHECKING:
    import xarray

UNATTAINED_FRACTION = 0.05
"""Unattained torque, relative to the largest torque of its coordinate, above which a run has a warning (Hicks et al.
2015: reserves of at most 5 % of the joint moment)."""
STATUS_MEANING = "0: torque attained; 1: nearest attainable torque; 2: not converged"


class MuscleRecord:
    """Activations, forces and torques at recorded steps; the first record is the start and has no step."""

    def __init__(self, actuator: MuscleActuator, frames: int, every: int) -> None:
        self.actuator, self._every = actuator, every
        muscles, coordinates = len(actuator.force), len(actuator.required)
        self.activation, self.force = np.zeros((frames, muscles)), np.zeros((frames, muscles))
        self.required, self.reserve, self.unattained = (np.zeros((frames, coordinates)) for _ in range(3))
        self.status = np.zeros(frames, np.int64)

    def prepare(self) -> None:
        """Limit the controls of the present step to what muscles can exert."""
        self.actuator.prepare()

    def share(self) -> bool:
        """Replace the impulses of controls in the present step by muscles, and record them; False: limited further."""
        actuator = self.actuator
        attained = actuator.share()
        made = actuator.simulation.index + 1
        if made % self._every:
            return attained
        frame = made // self._every
        self.activation[frame], self.force[frame] = actuator.activation, actuator.force
        self.required[frame], self.reserve[frame] = actuator.first_required, actuator.reserve
        self.unattained[frame] = actuator.first_required - actuator.torque
        self.status[frame] = max(actuator.status, actuator.is_limited)
        return attained

    def add_to(self, data: xarray.Dataset) -> xarray.Dataset:
        """Return a dataset with the variables of muscles, and `torque` that of muscles and reserves."""
        by_muscle, by_coordinate = ("time", "muscle"), ("time", "coordinate")
        attributes = data["torque"].attrs
        data = data.assign_coords(muscle=[m.name for m in self.actuator.simulation.compiled.model.muscles])
        data = data.assign(
            muscle_activation=(by_muscle, self.activation, {"units": "1"}),
            muscle_force=(by_muscle, self.force, {"units": "N", "frame": "along the tendon"}),
            torque=(by_coordinate, self.required - self.unattained, attributes),
            required_torque=(by_coordinate, self.required, attributes | {"frame": "joint; of the controls"}),
            reserve_torque=(by_coordinate, self.reserve, attributes | {"frame": "joint; of reserve actuators"}),
            unattained_torque=(by_coordinate, self.unattained, attributes | {"frame": "joint; not applied"}),
            sharing_status=("time", self.status, {"units": "1", "frame": STATUS_MEANING}),
        )
        text = self._warning(data)
        if text:
            data.attrs["notes"] = "; ".join(filter(None, (data.attrs["notes"], text)))
        return data

    def _warning(self, data: xarray.Dataset) -> str:
        """Return a warning of torque that was not attained, or of problems not solved; "" if there are none."""
        peak = np.abs(self.required).max(axis=0)
        missing = np.abs(self.unattained).max(axis=0)
        weak = np.flatnonzero(missing > UNATTAINED_FRACTION * np.maximum(peak, 1e-12))
        texts = []
        if len(weak):
            worst = weak[np.argsort(-missing[weak])]
            names = list_names([str(data["coordinate"].values[i]) for i in worst], 5)
            frames = float((self.status != ATTAINED).mean())
            texts.append(
                f"Muscles are too weak for the targets in {100.0 * frames:.0f} % of the recorded steps: up to "
                f"{missing[worst[0]]:.3g} N m are missing ({names}), and the body does not follow. Reduce the load, "
                "increase the strength or add reserves."
            )
        failed = int((self.status == NOT_CONVERGED).sum())
        if failed:
            texts.append(f"Load sharing did not converge in {failed} recorded steps; torques there are not reliable.")
        return " ".join(texts)
