"""The verb `info`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from borelli.commands.console import (
    complain,
    err,
    print_figures,
    print_json,
    print_marked,
    print_pairs,
    sentence,
    show_title,
)
from borelli.commands.options import Force, Forward, Json, Skeleton, Units, Up, check_target
from borelli.errors import BorelliError, SettingsError

PICTURES = (".png", ".pdf", ".svg")


def info(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Recordings, models, scenes, results.")],
    json: Json = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the recording: .png, .pdf or .svg.")] = None,
    units: Units = None,
    up: Up = None,
    forward: Forward = None,
    skeleton: Skeleton = None,
    force: Force = False,
) -> None:
    """Say what is in files, whatever they are."""
    if plot is not None:
        _check_plot(plot, files, force)
    reading = {"units": units, "up": up, "forward": forward, "skeleton": skeleton}
    found: dict[str, Any] = {}
    failed = False
    for number, file in enumerate(files):
        with err.status(escape(f"{number + 1} of {len(files)}: {file}")):
            try:
                found[str(file)] = _facts(file, reading, plot)
            except (BorelliError, OSError) as error:
                if len(files) == 1:
                    raise
                failed = True
                found[str(file)] = {"error": sentence(error)}
        if not json:
            _show(file, found[str(file)])
    if json:
        print_json(found[str(files[0])] if len(files) == 1 else found)
    if failed:
        raise typer.Exit(1)


def _facts(file: Path, reading: Mapping[str, Any], plot: Path | None) -> dict[str, Any]:
    from borelli.commands.detect_file import open_file
    from borelli.commands.file_summary import facts_of

    content = open_file(file, **reading)
    if plot is not None:
        if content.kind != "recording":
            raise SettingsError(f"{file}: holds a {content.kind}; --plot draws recordings")
        from borelli.view.recording_plots import plot_recording

        plot_recording(content.thing, plot)
    return facts_of(content)


def _check_plot(plot: Path, files: Sequence[Path], force: bool) -> None:
    if len(files) > 1:
        raise SettingsError(f"--plot draws one recording, but {len(files)} files are given")
    if plot.suffix.lower() not in PICTURES:
        raise SettingsError(f"{plot}: pictures are written as {', '.join(PICTURES)}; end the name with one")
    check_target(plot, files, force=force)


def _show(file: Path, facts: Mapping[str, Any]) -> None:
    if "error" in facts:
        complain(SettingsError(facts["error"]))
    elif facts["kind"] == "recording":
        _show_recording(file, facts)
    elif facts["kind"] == "model":
        _show_model(file, facts)
    else:
        # the model of a scene is told in counts; its parts are in the JSON
        plain = {key: value for key, value in facts.items() if not isinstance(value, dict | list)}
        print_figures(str(file), plain)
        print_marked([("note", note) for note in facts.get("model notes", ())])


def _show_model(file: Path, facts: Mapping[str, Any]) -> None:
    show_title(file)
    pairs = {
        "model": facts["name"],
        "mass": f"{facts['mass [kg]']:.6g} kg",
        "gravity": f"{', '.join(f'{g:g}' for g in facts['gravity [m/s^2]'])} m/s^2",
    }
    parts = {
        "bodies": "body masses [kg]",
        "joints": "joint kinds",
        "coordinates": "coordinate ranges [rad or m]",
        "markers": "marker bodies",
        "muscles": "muscle peak forces [N]",
    }
    for name, key in parts.items():
        if facts[key]:
            pairs[name] = f"{len(facts[key])}: {', '.join(facts[key])}"
    more = ("locked coordinates", "couplings", "wrap objects", "shapes", "ground shapes")
    pairs |= {name: str(facts[name]) for name in more if facts[name]}
    print_pairs(pairs)
    why = facts["why not simulated"]
    refused = [("problem", f"simulation refuses it: {why}")] if why else []
    print_marked(refused + [("note", note) for note in facts["notes"]])


def _show_recording(file: Path, facts: Mapping[str, Any]) -> None:
    show_title(file)
    pairs = {"format": facts["format"] + (f", {facts['encoding']}" if facts.get("encoding") else "")}
    pairs["length"] = f"{facts['duration [s]']:.6g} s: {_samples(facts)}"
    if facts["subject"]:
        pairs["subject"] = ", ".join(f"{key} {_subject(key, value)}" for key, value in facts["subject"].items())
    for topic in ("units", "up", "forward"):
        if topic in facts:
            pairs[topic] = _decision(facts[topic])
    pairs |= _plate_lines(facts)
    if facts["events"]:
        said = [f"{event['label']} {event['context']} {event['time']:.3f} s" for event in facts["events"]]
        pairs["events"] = f"{len(said)}: {', '.join(said)}"
    pairs |= _marker_lines(facts)
    for key, name in (("coordinate ranges", "coordinates"), ("column ranges", "columns"), ("computed", "computed")):
        if key in facts:
            pairs[name] = f"{len(facts[key])}: {', '.join(facts[key])}"
    if "joint centers" in facts:
        pairs["joint centres"] = f"{len(facts['joint centers'])}: {', '.join(facts['joint centers'])}"
    print_pairs(pairs | _channel_lines(facts))
    shown = {facts[topic]["evidence"] for topic in ("units", "up", "forward") if topic in facts}
    notes = [note for note in facts["notes"] if note["text"] not in shown]
    print_marked([(note["kind"], note["text"] + _action(note["action"])) for note in notes])


def _decision(about: Mapping[str, Any]) -> str:
    """What was taken of units or axes, and why; a guess with what overrides it."""
    if about["basis"] == "asked":
        return f"{about['taken']}, as asked"
    taken = about["taken"]
    if taken[0].isdigit():
        taken = f"{float(taken):.6g} m"
    why = about["evidence"].partition(": ")[2] or about["evidence"]
    return f"{taken}, {about['basis']}" + (f": {why}" if why else "") + _action(about["override"])


def _plate_lines(facts: Mapping[str, Any]) -> dict[str, str]:
    lines = []
    for name, about in facts.get("plate loads", {}).items():
        peak, center = about["peak vertical force [N]"], about["center [m]"]
        where = "" if center is None else f", centre at {', '.join(f'{x:.3f}' for x in center)} m"
        load = "no samples" if peak is None else f"peak {peak:.1f} N, loaded for {about['loaded [s]']:.3f} s"
        lines.append(f"{name}: {load}{where}")
    return {"plates": "\n".join(lines)} if lines else {}


def _marker_lines(facts: Mapping[str, Any]) -> dict[str, str]:
    if not facts["markers"]:
        return {}
    seen = facts["markers seen"]
    known = facts.get("marker set")
    lines = {"marker set": "none that is known"}
    if known:
        have = known["names"] - len(known["missing"])
        missing = f"; without {', '.join(known['missing'])}" if known["missing"] else ""
        others = f"; {len(known['others'])} others" if known["others"] else ""
        lines["marker set"] = f"{known['name']}, {have} of {known['names']} names{missing}{others}"
    whole = [name for name, share in seen.items() if share == 1.0]
    parts = [f"{name} {100.0 * share:.3g}%" for name, share in seen.items() if 0.0 < share < 1.0]
    never = [name for name, share in seen.items() if share == 0.0]
    if len(whole) == len(seen):
        lines["markers"] = f"{len(seen)}, seen in all frames: {', '.join(whole)}"
        return lines
    lines["markers"] = f"{len(seen)}" + (f"; seen in all frames {len(whole)}: {', '.join(whole)}" if whole else "")
    if parts:
        lines["seen in part"] = f"{len(parts)}: {', '.join(parts)}"
    if never:
        lines["never seen"] = f"{len(never)}: {', '.join(never)}"
    return lines


def _channel_lines(facts: Mapping[str, Any]) -> dict[str, str]:
    if not facts["channels"]:
        return {}
    groups: dict[str, list[str]] = {}
    for name, about in facts["channel ranges"].items():
        groups.setdefault(about["kind"], []).append(name)
    titles = {"emg": "EMG", "plate": "of plates", "other": "other channels"}
    return {titles.get(kind, kind): f"{len(names)}: {', '.join(names)}" for kind, names in groups.items()}


def _samples(facts: Mapping[str, Any]) -> str:
    said = [f"{facts['frames']} frames at {facts['rate [Hz]']:.6g} Hz"] if facts["frames"] else []
    if facts["analog samples"]:
        said.append(f"{facts['analog samples']} analog samples at {facts['analog rate [Hz]']:.6g} Hz")
    return ", ".join(said) or "no frames"


def _subject(key: str, value: Any) -> str:
    units = {"mass": " kg", "height": " m"}.get(key, "")
    return f"{value:g}{units}" if isinstance(value, float) else str(value)


def _action(text: str) -> str:
    return f" [{text}]" if text else ""
