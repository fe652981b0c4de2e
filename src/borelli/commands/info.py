"""The subcommand `info`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from borelli.commands import options
from borelli.commands.console import (
    err,
    error_line,
    print_error,
    print_json,
    print_marked,
    print_pairs,
    print_values,
    show_title,
)
from borelli.commands.options import check_target, option
from borelli.errors import BorelliError, SettingsError, unknown_name

IMAGE_SUFFIXES = (".png", ".pdf", ".svg")
DECISIONS = ("units", "up", "forward")


def info(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Recordings, models, scenes or results.")],
    json: options.Json = False,
    plot: Annotated[Path | None, option("Plot the recording: .png, .pdf or .svg.", "FILE")] = None,
    units: options.Units = None,
    up: options.Up = None,
    forward: options.Forward = None,
    skeleton: options.Skeleton = None,
    markers: options.Markers = None,
    marker_set: options.MarkerSet = None,
    force: options.Force = False,
) -> None:
    """Summarize recordings, models, scenes and results."""
    if plot is not None:
        _check_plot(plot, files, force)
    reading = {
        "units": units, "up": up, "forward": forward, "skeleton": skeleton, "markers": markers,
        "marker_set": marker_set,
    }  # fmt: skip
    summaries: dict[str, Any] = {}
    failed = False
    for number, file in enumerate(files):
        with err.status(escape(f"{number + 1} of {len(files)}: {file}")):
            try:
                summaries[str(file)] = _summarize(file, reading, plot, force)
            except (BorelliError, OSError) as error:
                if len(files) == 1:
                    raise
                failed = True
                summaries[str(file)] = {"error": error_line(error)}
        if not json:
            _show(file, summaries[str(file)])
    if json:
        print_json(summaries[str(files[0])] if len(files) == 1 else summaries)
    if failed:
        raise typer.Exit(1)


def _summarize(file: Path, reading: Mapping[str, Any], plot: Path | None, force: bool) -> dict[str, Any]:
    from borelli.commands.detect_file import open_file
    from borelli.commands.file_summary import summarize_file

    content = open_file(file, **reading)
    if plot is not None:
        if content.kind != "recording":
            raise SettingsError(f"{file}: The file contains a {content.kind}; --plot applies to recordings only.")
        from borelli.view.plots import plot as draw_plot

        draw_plot(content.value, plot, overwrite=force)
    return summarize_file(content)


def _check_plot(plot: Path, files: Sequence[Path], force: bool) -> None:
    if len(files) > 1:
        raise SettingsError(f"--plot: {len(files)} files are given. Plot one recording at a time.")
    if plot.suffix.lower() not in IMAGE_SUFFIXES:
        raise SettingsError(f"{plot}: {unknown_name('file extension of an image', plot.suffix, IMAGE_SUFFIXES)}")
    check_target(plot, files, force=force)


def _show(file: Path, summary: Mapping[str, Any]) -> None:
    if "error" in summary:
        print_error(SettingsError(summary["error"]))
    elif summary["kind"] == "recording":
        _show_recording(file, summary)
    elif summary["kind"] == "model":
        _show_model(file, summary)
    else:
        # lists of elements, such as those of a scene's model, are in the JSON only
        print_values(str(file), {key: value for key, value in summary.items() if not isinstance(value, dict | list)})
        print_marked([("note", note) for note in summary.get("model notes", ())])


def _show_model(file: Path, summary: Mapping[str, Any]) -> None:
    show_title(file)
    pairs = {
        "model": summary["name"],
        "mass": f"{summary['mass [kg]']:.6g} kg",
        "gravity": f"{', '.join(f'{g:g}' for g in summary['gravity [m/s^2]'])} m/s^2",
    }
    elements = {
        "bodies": "body masses [kg]",
        "joints": "joint kinds",
        "coordinates": "coordinate ranges [rad or m]",
        "markers": "marker bodies",
        "muscles": "muscle maximum isometric forces [N]",
    }
    pairs |= {name: _names_line(summary[key]) for name, key in elements.items() if summary[key]}
    counts = ("locked coordinates", "couplings", "ligaments", "wrap objects", "shapes", "ground shapes")
    pairs |= {name: str(summary[name]) for name in counts if summary[name]}
    print_pairs(pairs)
    problem = summary["simulation problem"]
    lines = [("problem", f"The model cannot be simulated: {problem}")] if problem else []
    print_marked(lines + [("note", note) for note in summary["notes"]])


def _show_recording(file: Path, summary: Mapping[str, Any]) -> None:
    show_title(file)
    pairs = {"format": summary["format"] + (f", {summary['encoding']}" if summary.get("encoding") else "")}
    pairs["length"] = f"{summary['duration [s]']:.6g} s: {_samples(summary)}"
    if summary["subject"]:
        pairs["subject"] = ", ".join(f"{key} {_subject(key, value)}" for key, value in summary["subject"].items())
    pairs |= {topic: _decision(summary[topic]) for topic in DECISIONS if topic in summary}
    pairs |= _plate_lines(summary)
    if summary["events"]:
        events = [f"{event['label']} {event['context']} {event['time']:.3f} s" for event in summary["events"]]
        pairs["events"] = _names_line(events)
    pairs |= _marker_lines(summary)
    parts = {
        "coordinates": "coordinate ranges",
        "columns": "column ranges",
        "model outputs": "model output kinds",
        "joint centers": "joint centers",
    }
    pairs |= {name: _names_line(summary[key]) for name, key in parts.items() if key in summary}
    print_pairs(pairs | _channel_lines(summary))
    shown = {summary[topic]["evidence"] for topic in DECISIONS if topic in summary}
    notes = [note for note in summary["notes"] if note["text"] not in shown]
    print_marked([(note["kind"], note["text"] + _action(note["action"])) for note in notes])


def _names_line(names: Any) -> str:
    return f"{len(names)}: {', '.join(names)}"


def _decision(decision: Mapping[str, Any]) -> str:
    text = decision["evidence"] or f"{decision['value']}, {decision['basis']}"
    return text + ("" if decision["basis"] == "specified" else _action(decision["override"]))


def _plate_lines(summary: Mapping[str, Any]) -> dict[str, str]:
    lines = []
    for name, load in summary.get("plate loads", {}).items():
        peak, center = load["peak vertical force [N]"], load["center [m]"]
        where = "" if center is None else f", center at {', '.join(f'{x:.3f}' for x in center)} m"
        text = "no samples" if peak is None else f"peak {peak:.1f} N, loaded for {load['loaded [s]']:.3f} s"
        lines.append(f"{name}: {text}{where}")
    return {"plates": "\n".join(lines)} if lines else {}


def _marker_lines(summary: Mapping[str, Any]) -> dict[str, str]:
    if not summary["markers"]:
        return {}
    visible = summary["marker visibility"]
    known = summary.get("marker set")
    lines = {"marker set": "unknown"}
    if known:
        count = known["names"] - len(known["missing"])
        missing = f"; missing: {', '.join(known['missing'])}" if known["missing"] else ""
        others = f"; {len(known['others'])} others" if known["others"] else ""
        lines["marker set"] = f"{known['name']}, {count} of {known['names']} names{missing}{others}"
    labels = summary["labels"]
    lines["labels"] = f"{labels['read']} of {len(visible)} are read, {labels['sure']} of them with certainty"
    if labels["unknown"]:
        lines["labels"] += f"; unknown: {', '.join(labels['unknown'])}"
    lines["labels"] += _action("borelli markers")
    always = [name for name, fraction in visible.items() if fraction == 1.0]
    partly = [f"{name} {100.0 * fraction:.3g}%" for name, fraction in visible.items() if 0.0 < fraction < 1.0]
    never = [name for name, fraction in visible.items() if fraction == 0.0]
    if len(always) == len(visible):
        lines["markers"] = f"{len(visible)}, visible in all frames: {', '.join(always)}"
        return lines
    lines["markers"] = f"{len(visible)}" + (f"; visible in all frames {_names_line(always)}" if always else "")
    if partly:
        lines["partly visible"] = _names_line(partly)
    if never:
        lines["never visible"] = _names_line(never)
    return lines


def _channel_lines(summary: Mapping[str, Any]) -> dict[str, str]:
    if not summary["channels"]:
        return {}
    groups: dict[str, list[str]] = {}
    for name, channel in summary["channel ranges"].items():
        groups.setdefault(channel["kind"], []).append(name)
    titles = {"emg": "EMG", "plate": "plate channels", "other": "other channels"}
    return {titles.get(kind, kind): _names_line(names) for kind, names in groups.items()}


def _samples(summary: Mapping[str, Any]) -> str:
    parts = [f"{summary['frames']} frames at {summary['rate [Hz]']:.6g} Hz"] if summary["frames"] else []
    if summary["analog samples"]:
        parts.append(f"{summary['analog samples']} analog samples at {summary['analog rate [Hz]']:.6g} Hz")
    return ", ".join(parts) or "no frames"


def _subject(key: str, value: Any) -> str:
    units = {"mass": " kg", "height": " m"}.get(key, "")
    return f"{value:g}{units}" if isinstance(value, float) else str(value)


def _action(text: str) -> str:
    return f" [{text}]" if text else ""
