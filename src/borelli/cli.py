"""The command `borelli`: parses, calls, prints. Results go to stdout, progress and errors to stderr.

Heavy modules load inside the commands that need them, so that `borelli --help` is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from borelli import __version__
from borelli.errors import BorelliError, SettingsError

if TYPE_CHECKING:
    from xarray import Dataset

    from borelli.scenes.scene import Scene

app = typer.Typer(
    help="Human movement as physics: simulate bodies, joints, contacts and drives.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()
err = Console(stderr=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


def main() -> None:
    """Run the command; what goes wrong is told in one sentence, with exit code 1."""
    try:
        app()
    except (BorelliError, OSError) as error:
        if "--debug" in sys.argv:
            raise
        err.print(f"borelli: {_sentence(error)}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if version:
        out.print(__version__, highlight=False)
        raise typer.Exit


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Where to put pictures and results.")] = Path("demo"),
) -> None:
    """Drop a human, spin a top, turn a crank: a picture, and a table of what theory expects."""
    _compile_once()
    from borelli.demo import run_demo

    with err.status("starting") as status:
        findings, files = run_demo(folder, status.update)
    table = Table("scene", "", "simulated", "expected", title="simulated against expected", title_justify="left")
    last = None
    for finding in findings:
        if last not in (None, finding.scene):
            table.add_section()
        table.add_row(finding.scene if finding.scene != last else "", finding.what, finding.got, finding.expected)
        last = finding.scene
    out.print(table)
    for path in files:
        out.print(str(path), markup=False, highlight=False, soft_wrap=True)
    out.print(f"\nLook at [bold]{escape(str(files[0]))}[/]; then try: borelli simulate --list", soft_wrap=True)


@app.command()
def simulate(
    scene: Annotated[str | None, typer.Argument(help="A scene file, or a name from --list.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the gallery and exit.")] = False,
    step: Annotated[float | None, typer.Option(help="Length of a step [s].")] = None,
    duration: Annotated[float | None, typer.Option(help="How long to simulate [s].")] = None,
    result: Annotated[Path | None, typer.Option("--out", help="Write the result as netCDF (.nc).")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the scene itself as an editable file (.toml).")] = None,
    movie: Annotated[Path | None, typer.Option("--video", help="Write .gif or .webp, or the end as .png.")] = None,
    frames: Annotated[Path | None, typer.Option(help="Write numbered PNG frames into this folder.")] = None,
    view: Annotated[bool, typer.Option("--view", help="Open the result in the browser.")] = False,
    port: Annotated[int, typer.Option(help="Port of --view.")] = 8080,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table.")] = False,
) -> None:
    """Simulate a scene file or a scene of the gallery."""
    if show_list:
        _print_gallery()
        return
    if scene is None:
        raise SettingsError("no scene given: name a scene file or one of the gallery (borelli simulate --list)")
    for path in (result, save, movie, frames):
        if path is not None and not path.absolute().parent.is_dir():
            raise SettingsError(f"{path}: the folder {path.parent} does not exist; make it first")
    _check_suffixes(result, movie)
    from borelli.scenes.files import read_scene, with_changes, write_scene
    from borelli.scenes.summary import summary

    todo = with_changes(read_scene(scene), step=step, duration=duration)
    if save is not None:
        write_scene(todo, save)
    dataset, seconds = _simulated(todo, quiet)
    if result is not None:
        dataset.to_netcdf(result, engine="h5netcdf")
    _draw(dataset, movie, frames, quiet)
    figures = {**summary(dataset), "times real time": todo.duration / seconds}
    if json:
        _print_json(figures)
    elif not quiet:
        _print_figures(todo.name, figures)
    if view:
        from borelli.view.workbench import show

        err.print("showing in the browser; stop with Ctrl-C", highlight=False)
        show(dataset, port=port)


@app.command()
def info(
    file: Annotated[Path, typer.Argument(help="A model or scene (.toml) or a result (.nc).")],
    json: Json = False,
) -> None:
    """Say what is in a file."""
    figures = _facts(file)
    if json:
        _print_json(figures)
    else:
        _print_figures(str(file), figures)


@app.command()
def bench(
    json: Json = False,
    peers: Annotated[bool, typer.Option("--peers", help="Also ODE, MuJoCo, Pinocchio, where installed.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Little of everything: to see that it runs.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print tables for docs/performance.md.")] = False,
) -> None:
    """Measure speed and accuracy, alone or beside other engines."""
    from borelli.bench.main import print_report, run

    with err.status("starting") as status:
        figures = run(peers=peers, quick=quick, progress=status.update)
    if json:
        _print_json(figures)
    elif markdown:
        from borelli.bench.page import markdown as tables

        print(tables(figures))
    else:
        print_report(figures, out)


@app.command()
def doctor(json: Json = False) -> None:
    """Check the installation, compile and cache the kernels, and say how long that took."""
    from borelli.doctor import examine

    with err.status("looking") as status:
        findings = examine(status.update)
    if json:
        _print_json({finding.what: {"ok": finding.ok, "found": finding.found} for finding in findings})
    else:
        table = Table("", "", "found", title=f"borelli {__version__}", title_justify="left")
        for finding in findings:
            mark = "[green]ok[/]" if finding.ok else "[red]no[/]" if finding.needed else "[yellow]--[/]"
            table.add_row(mark, finding.what, escape(finding.found))
        out.print(table)
    if any(finding.needed and not finding.ok for finding in findings):
        raise typer.Exit(1)


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror[0].lower()}{error.strerror[1:]}"
    return " ".join(str(error).split())


def _compile_once() -> None:
    """Compile the kernels, saying so, if an earlier run has not left them in the cache."""
    from borelli.compiling import compile_kernels, kernels_ready

    if kernels_ready():
        return
    note = "compiling the kernels (first use only, about a minute)"
    if not err.is_terminal:
        err.print(note, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(note, total=None)
        seconds = compile_kernels(lambda what, _: progress.update(task, description=f"{note}: {what}"))
    err.print(f"compiled the kernels in {seconds:.0f} s; from now on they come from the cache", highlight=False)


@contextmanager
def _bar(what: str, *, hidden: bool = False) -> Iterator[Any]:
    """A progress bar on stderr that goes away when done; yields what moves it to a share."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=hidden or not err.is_terminal) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda share: progress.update(task, completed=share)


def _check_suffixes(result: Path | None, movie: Path | None) -> None:
    """Refuse a name that could not be written before an hour is spent on simulating."""
    if result is not None and result.suffix != ".nc":
        raise SettingsError(f"{result}: results are written as netCDF; end the name with .nc")
    if movie is not None and movie.suffix.lower() not in (".gif", ".webp", ".png"):
        raise SettingsError(f"{movie}: videos are written as .gif or .webp, a picture as .png; end the name with one")


def _simulated(scene: Scene, quiet: bool) -> tuple[Dataset, float]:
    """The result and the seconds it took, loading of kernels left out."""
    from borelli.scenes.files import with_changes
    from borelli.scenes.scene import run_scene

    _compile_once()
    run_scene(with_changes(scene, duration=scene.step))
    with _bar(f"simulating {scene.name}", hidden=quiet) as move:
        start = perf_counter()
        dataset = run_scene(scene, move)
        return dataset, perf_counter() - start


def _draw(dataset: Dataset, movie: Path | None, frames: Path | None, quiet: bool) -> None:
    if movie is None and frames is None:
        return
    from borelli.view.video import video, write_frames

    with _bar("drawing", hidden=quiet) as move:
        if movie is not None:
            video(dataset, movie, progress=move)
        if frames is not None:
            write_frames(dataset, frames, progress=move)


def _facts(file: Path) -> dict[str, Any]:
    """What `info` says about a file, by its kind."""
    if file.suffix == ".nc":
        return _result_facts(file)
    from borelli.model.native import model_from_text
    from borelli.model.textfiles import parse_toml, read_text
    from borelli.scenes.files import FORMAT, scene_from_text

    text = read_text(file)
    if parse_toml(text, file).get("format") == FORMAT:
        scene = scene_from_text(text, file)
        return {
            "kind": "scene",
            "name": scene.name,
            "description": scene.description,
            "step [s]": scene.step,
            "duration [s]": scene.duration,
            "drives": len(scene.drives),
            "forces": len(scene.forces),
            **{f"model {key}": value for key, value in _model_facts(scene.model).items()},
        }
    return {"kind": "model", **_model_facts(model_from_text(text, file))}


def _model_facts(model: Any) -> dict[str, Any]:
    return {
        "name": model.name,
        "mass [kg]": model.mass,
        "bodies": len(model.bodies),
        "joints": len(model.joints),
        "coordinates": len(model.coordinates),
        "markers": len(model.markers),
        "muscles": len(model.muscles),
        "shapes": sum(len(body.shapes) for body in model.bodies),
        "ground shapes": len(model.ground),
        "self-collision": model.self_collision,
    }


def _result_facts(file: Path) -> dict[str, Any]:
    import xarray

    from borelli.errors import FileFormatError
    from borelli.scenes.summary import summary

    if not file.exists():
        raise FileFormatError(file, "cannot be read: no such file")
    try:
        with xarray.open_dataset(file, engine="h5netcdf") as dataset:
            dataset.load()
    except (OSError, ValueError) as error:
        raise FileFormatError(file, f"cannot be read as netCDF: {' '.join(str(error).split())}") from None
    if "model" not in dataset.attrs:
        raise FileFormatError(file, "holds no result of borelli: the attribute 'model' is missing")
    return {"kind": "result", "made by": f"borelli {dataset.attrs.get('version', '?')}", **summary(dataset)}


def _print_json(figures: dict[str, Any]) -> None:
    import json

    print(json.dumps(_finite(figures), allow_nan=False))


def _finite(value: Any) -> Any:
    """The value with null for what JSON cannot say."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value


def _print_figures(title: str, figures: dict[str, Any]) -> None:
    # units stand in square brackets, which rich would take for styles
    table = Table(title=escape(title), title_justify="left", show_header=False)
    for name, value in figures.items():
        table.add_row(escape(name), f"{value:.6g}" if isinstance(value, float) else escape(str(value)))
    out.print(table)


def _print_gallery() -> None:
    from borelli.scenes.gallery import GALLERY, gallery_scene

    table = Table("name", "bodies", escape("time [s]"), "what happens")
    for name in GALLERY:
        scene = gallery_scene(name)
        table.add_row(name, str(len(scene.model.bodies)), f"{scene.duration:g}", scene.description)
    out.print(table)
