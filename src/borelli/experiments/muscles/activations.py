"""Activations of muscles in one push-up (Weinstein, Guendelman and Fedkiw, section 6).

The paper colors muscles by activation and gives no numbers. Push-ups are work of the elbow extensors, the flexors and
adductors of the shoulder, the protractors of the scapula and the abdominal muscles (electromyography: Cogley et al.
2005; Youdas et al. 2010); their antagonists rest.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from xarray import DataArray, Dataset

from borelli.experiments.experiment import Request, figure
from borelli.experiments.muscles.pushup_motion import pushup_model, pushup_path
from borelli.experiments.muscles.pushup_run import PERIOD, pushup_run
from borelli.experiments.outcome import Claim, Outcome, Rows, above

STEP = 1 / 180
GROUPS = {
    "elbow extensors": ("TRIlong", "TRIlat", "TRImed"),
    "elbow flexors": ("BIClong", "BICshort", "BRA"),
    "anterior deltoid": ("DELT1",),
    "posterior deltoid": ("DELT3",),
    "pectoralis major": ("PECM1", "PECM2", "PECM3"),
    "serratus anterior": ("SerratusAnterior_S", "SerratusAnterior_M", "SerratusAnterior_I"),
    "abdominal muscles": ("rectus_abdominis", "external_oblique", "internal_oblique"),
    "erector spinae": ("longissimus", "iliocostalis"),
    "quadriceps": ("vaslat", "vasmed", "vasint", "recfem"),
    "hamstrings": ("semimem", "semiten", "bflh"),
}
"""Muscles by the start of their names."""
WORKING = ("elbow extensors", "anterior deltoid", "pectoralis major", "serratus anterior", "abdominal muscles")
RESTING = {"elbow extensors": "elbow flexors", "anterior deltoid": "posterior deltoid", "quadriceps": "hamstrings"}
"""Groups with their antagonists."""


def group_activations(data: Dataset) -> dict[str, DataArray]:
    """Return the mean activation (time,) of each group, right side."""
    names = [str(name) for name in data["muscle"].values]
    chosen = {
        group: [name for name in names if name.startswith(starts) and name.endswith("_r")]
        for group, starts in GROUPS.items()
    }
    return {group: data["muscle_activation"].sel(muscle=own).mean("muscle") for group, own in chosen.items()}


def run(request: Request) -> Outcome:
    """Run the experiment as listed in the catalog."""
    request.log("push-up by muscles")
    seconds = PERIOD / 2.0 if request.quick else PERIOD  # the descent, or all of it
    data = pushup_run(pushup_path(pushup_model()), seconds=seconds, step=STEP).data
    groups = group_activations(data)
    force = data["muscle_force"]
    rows: Rows = [
        {"muscles": name, "mean_activation": float(values[1:].mean()), "peak_activation": float(values[1:].max())}
        for name, values in groups.items()
    ]
    _draw(data, groups, request.plot)
    strongest = str(force["muscle"].values[int(force.max("time").values.argmax())])
    about = f"activations of {data.sizes['muscle']} muscles in a push-up of {seconds:g} s; largest force: {strongest}"
    return Outcome(request.name, about, rows, _claims(rows), (request.plot,))


def _claims(rows: Rows) -> list[Claim]:
    mean = {row["muscles"]: row["mean_activation"] for row in rows}
    claims = [above(f"mean activation of {name}", mean[name], "active", 0.05) for name in WORKING]
    for name, other in RESTING.items():
        claims.append(
            above(f"mean activation of {name}, less that of {other}", mean[name] - mean[other], "larger", 0.0)
        )
    return claims


def _draw(data: Dataset, groups: dict[str, DataArray], path: Path) -> None:
    with figure(path, "mean activation of a group", "muscle", size=(13.0, 5.0)) as (lines, image):
        for name, values in groups.items():
            lines.plot(data["time"].values[1:], values.values[1:], lw=1.2, label=name)
        active = data["muscle_activation"].values[1:]
        order = np.argsort(-active.max(axis=0))[:40]
        end = float(data["time"].values[-1])
        image.imshow(
            active[:, order].T, aspect="auto", cmap="Reds", vmin=0.0, vmax=1.0, extent=(0.0, end, len(order), 0)
        )
        image.set_yticks(np.arange(len(order)) + 0.5, [str(data["muscle"].values[i]) for i in order], fontsize=5)
