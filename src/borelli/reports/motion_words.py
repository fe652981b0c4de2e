"""Section of the report with the 3-D player, and the motion in words for readers who cannot use it."""

from __future__ import annotations

from html import escape

import numpy as np

from borelli.analysis.energetics.energy import Energy
from borelli.analysis.motion import Motion
from borelli.analysis.strides import motion_events
from borelli.export.gait_curves import SIDES, Gait
from borelli.recording.forces.gait_events import OFF, STRIKE
from borelli.reports.html_parts import folded, scroll
from borelli.reports.motion_player import shown_frames

MAX_EVENTS = 60
"""Number of events of a kind in the table."""
EVENTS = {STRIKE: "foot strike", OFF: "toe-off"}
PLAYER = """
<p class="lead">Motion of the model with markers and ground reaction forces. Click a plot over time to show that time; a
cursor with a triangle marks it in all plots.</p>
<div id="stage"><canvas role="img" aria-label="Motion of the model in 3-D" aria-describedby="motion-words"></canvas>
<div class="clock"></div><div class="hint">drag: rotate · shift-drag: move · wheel: zoom</div></div>
<noscript><p>The 3-D player needs JavaScript; the motion in words is below.</p></noscript>
<div class="controls"><button type="button">Play</button><input type="range" min="0" value="0" aria-label="time">
<select aria-label="speed"><option value="1">1 x</option><option value="0.5">0.5 x</option>
<option value="0.25">0.25 x</option><option value="0.1">0.1 x</option></select>
<label><input type="checkbox" name="bodies" checked>bodies</label>
<label><input type="checkbox" name="measured" checked><i style="background:#ed6b1a"></i>measured markers</label>
<label><input type="checkbox" name="modeled"><i style="background:#263342"></i>model markers</label>
<label><input type="checkbox" name="errors"><i style="background:#c71a1a"></i>marker errors, 10 x</label>
<label><input type="checkbox" name="forces" checked><i style="background:#1a8552"></i>ground reaction forces</label>
"""
MUSCLE_SWITCH = """<label><input type="checkbox" name="muscles" checked><i class="activation"></i>muscles, by activation
</label>
"""


def player_section(energy: Energy, gait: Gait) -> str:
    """Return the player and its text alternative: the motion in words, and the times of gait events."""
    motion = energy.torques.motion
    words = f'<p id="motion-words">{escape(motion_in_words(energy, gait))}</p>{_event_table(motion)}'
    player = PLAYER + (MUSCLE_SWITCH if energy.muscles is not None else "") + "</div>"
    return _excerpt_note(motion) + player + folded("The motion in words", words)


def motion_in_words(energy: Energy, gait: Gait) -> str:
    """Return a description of the motion: duration, distance, strides, ranges of the leg angles, peak forces."""
    motion, data = energy.torques.motion, energy.torques.data
    time = motion.data["time"].values
    sentences = [f"The motion lasts {np.ptp(time):.2f} s, from {time[0]:.2f} to {time[-1]:.2f} s."]
    distance, speed = (energy.summary.get(name, float("nan")) for name in ("distance_m", "speed_m_per_s"))
    if np.isfinite(distance) and np.isfinite(speed):
        sentences.append(
            f"The center of mass moves {distance:.2f} m over the ground at a mean speed of {speed:.2f} m/s."
        )
    counts = {side: sum(one.side == side for one in gait.strides) for side in SIDES}
    if gait.strides:
        sentences.append(
            f"There are {counts['right']} whole strides of the right foot and {counts['left']} of the left."
        )
    for curve in gait.curves:
        if not all(np.isfinite(own).any() for own in curve.sides.values()):
            continue
        if curve.name in ("hip_flexion", "knee_flexion", "ankle_dorsiflexion"):
            ranges = [f"{side} {np.nanmin(own):.0f} to {np.nanmax(own):.0f}" for side, own in curve.sides.items()]
            sentences.append(f"{curve.title} ranges from {', '.join(ranges)} degrees.")
        if curve.name == "ground_force_vertical":
            peaks = [f"{side} {np.nanmax(own):.0f}" for side, own in curve.sides.items()]
            sentences.append(f"The vertical ground reaction force peaks at {', '.join(peaks)} % of body weight.")
    if "ground_reaction_force" not in data:
        sentences.append("Ground reaction forces are unknown.")
    return " ".join(sentences)


def _event_table(motion: Motion) -> str:
    """Return the times of foot strikes and toe-offs of each foot."""
    events = motion_events(motion)
    rows = ""
    for side in SIDES:
        for label, words in EVENTS.items():
            times = [f"{event.time:.2f}" for event in events if (event.context.lower(), event.label) == (side, label)]
            more = f" and {len(times) - MAX_EVENTS} more" if len(times) > MAX_EVENTS else ""
            if times:
                rows += f"<tr><td>{side.capitalize()} {words}</td><td>{', '.join(times[:MAX_EVENTS])}{more}</td></tr>"
    return scroll(f"<table><tr><th>Event</th><th>Times [s]</th></tr>{rows}</table>") if rows else ""


def _excerpt_note(motion: Motion) -> str:
    """Return a sentence on the part of a long trial that the player shows."""
    shown, count = shown_frames(motion), int(motion.data.sizes["time"])
    if shown == count:
        return ""
    time = motion.data["time"].values
    return (
        f"<p>The trial has {count} frames; the player shows an excerpt, from {time[0]:.0f} to {time[shown - 1]:.0f} s."
        "</p>"
    )
