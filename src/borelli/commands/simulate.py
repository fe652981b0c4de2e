"""The verb `simulate`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from borelli.commands.console import bar, err, out, print_figures, print_json
from borelli.commands.options import Json
from borelli.errors import SettingsError

if TYPE_CHECKING:
    from xarray import Dataset

    from borelli.scenes.scene import Scene


def simulate(
    scene: Annotated[str | None, typer.Argument(help="A scene file, or a name from --list.")] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the gallery and exit.")] = False,
    step: Annotated[float | None, typer.Option(help="Length of a step \\[s].")] = None,
    duration: Annotated[float | None, typer.Option(help="How long to simulate \\[s].")] = None,
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
    from borelli.model.validate import validate
    from borelli.scenes.scene_files import read_scene, with_changes, write_scene
    from borelli.scenes.summary import summary

    todo = with_changes(read_scene(scene), step=step, duration=duration)
    validate(todo.model)  # before kernels are compiled: a body without mass can be read, but not simulated
    if save is not None:
        write_scene(todo, save)
    dataset, seconds = _simulated(todo, quiet)
    if result is not None:
        dataset.to_netcdf(result, engine="h5netcdf")
    _draw(dataset, movie, frames, quiet)
    figures = {**summary(dataset), "times real time": todo.duration / seconds}
    if json:
        print_json(figures)
    elif not quiet:
        print_figures(todo.name, figures)
    if view:
        from borelli.view.browser_viewer import show

        err.print("showing in the browser; stop with Ctrl-C", highlight=False)
        show(dataset, port=port)


def _check_suffixes(result: Path | None, movie: Path | None) -> None:
    """Refuse a name that could not be written before an hour is spent on simulating."""
    if result is not None and result.suffix != ".nc":
        raise SettingsError(f"{result}: results are written as netCDF; end the name with .nc")
    if movie is not None and movie.suffix.lower() not in (".gif", ".webp", ".png"):
        raise SettingsError(f"{movie}: videos are written as .gif or .webp, a picture as .png; end the name with one")


def _simulated(scene: Scene, quiet: bool) -> tuple[Dataset, float]:
    """The result and the seconds it took, loading of kernels left out."""
    from borelli.commands.compile_notice import compile_once
    from borelli.scenes.scene import run_scene
    from borelli.scenes.scene_files import with_changes

    compile_once(control=scene.stepping == "impulse")
    run_scene(with_changes(scene, duration=scene.step))
    with bar(f"simulating {scene.name}", hidden=quiet) as move:
        start = perf_counter()
        dataset = run_scene(scene, move)
        return dataset, perf_counter() - start


def _draw(dataset: Dataset, movie: Path | None, frames: Path | None, quiet: bool) -> None:
    if movie is None and frames is None:
        return
    from borelli.view.video import video, write_frames

    with bar("drawing", hidden=quiet) as move:
        if movie is not None:
            video(dataset, movie, progress=move)
        if frames is not None:
            write_frames(dataset, frames, progress=move)


def _print_gallery() -> None:
    from borelli.scenes.gallery import GALLERY, gallery_scene

    table = Table("name", "bodies", escape("time [s]"), "what happens")
    for name in GALLERY:
        scene = gallery_scene(name)
        table.add_row(name, str(len(scene.model.bodies)), f"{scene.duration:g}", scene.description)
    out.print(table)
