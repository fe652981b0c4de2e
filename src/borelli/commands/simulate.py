"""The subcommand `simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from borelli.commands.console import (
    compile_once,
    note_lines,
    out,
    print_json,
    print_marked,
    print_values,
    progress_bar,
)
from borelli.commands.options import Force, Json, check_target, option
from borelli.errors import SettingsError, unknown_name

if TYPE_CHECKING:
    from xarray import Dataset

    from borelli.scenes.scene import Scene


def simulate(
    scene: Annotated[
        str | None, typer.Argument(metavar="SCENE", help="Scene file, or a name from --list.", show_default=False)
    ] = None,
    show_list: Annotated[bool, option("List the scenes of the gallery and exit.", None, "--list")] = False,
    step: Annotated[float | None, option("Step length [s]. Default: that of the scene.", "S")] = None,
    duration: Annotated[float | None, option("Simulated time [s]. Default: that of the scene.", "S")] = None,
    result: Annotated[Path | None, option("Write the result as netCDF (.nc).", "FILE", "--out")] = None,
    save: Annotated[Path | None, option("Write the scene itself as an editable file (.toml).", "FILE")] = None,
    video: Annotated[Path | None, option("Write a video (.gif, .webp) or the last frame (.png).", "FILE")] = None,
    frames: Annotated[Path | None, option("Write numbered PNG frames into this folder.", "FOLDER")] = None,
    view: Annotated[bool, option("Show the result in the browser.", None, "--view")] = False,
    port: Annotated[int, option("Port of --view. Default: 8080.", "PORT")] = 8080,
    force: Force = False,
    json: Json = False,
    quiet: Annotated[bool, option("Print neither progress nor tables.", None, "--quiet", "-q")] = False,
) -> None:
    """Simulate a scene file or a scene of the gallery."""
    if show_list:
        _print_gallery()
        return
    if scene is None:
        raise SettingsError(
            "SCENE: No scene is given. Pass a scene file or a name of the gallery (borelli simulate --list)."
        )
    _check_suffixes(result, video)
    _check_outputs((result, save, video), frames, scene, force)
    from borelli.control.apply_perturbations import late_notes
    from borelli.files.netcdf_writer import write_netcdf
    from borelli.model.validate import validate
    from borelli.scenes.scene_files import read_scene, with_changes, write_scene
    from borelli.scenes.summary import summary

    changed = with_changes(read_scene(scene), step=step, duration=duration)
    validate(changed.model)  # a massless body can be read, but not simulated: refuse it before compiling kernels
    _check_outputs((result, save, video), frames, scene, force)  # again: now the files of the model are known
    if save is not None:
        write_scene(changed, save, overwrite=force)
    dataset, seconds = _run(changed, quiet)
    if result is not None:
        write_netcdf(result, {"/": dataset}, overwrite=force)
    _draw(dataset, video, frames, quiet, force)
    values = {**summary(dataset), "times real time": changed.duration / seconds}
    late = late_notes(changed.perturbations, changed.duration)
    if json:
        print_json(values | ({"notes": [note.text for note in late]} if late else {}))
    elif not quiet:
        print_values(changed.name, values)
        print_marked(note_lines(late))
    if view:
        from borelli.view.browser_viewer import show

        show(dataset, port=port)


def _check_suffixes(result: Path | None, video: Path | None) -> None:
    """Raise SettingsError for an unknown output format, before the time of a simulation is spent."""
    if result is not None and result.suffix != ".nc":
        raise SettingsError(f"{result}: Results are written as netCDF. Use a name that ends in .nc.")
    if video is not None and video.suffix.lower() not in (known := (".gif", ".webp", ".png")):
        what = unknown_name("file extension of a video", video.suffix, known)
        raise SettingsError(f"{video}: {what}; .png is the last frame")


def _check_outputs(paths: Sequence[Path | None], frames: Path | None, scene: str, force: bool) -> None:
    """Raise SettingsError if an output must not be written."""
    files = [path for path in paths if path is not None]
    for path in files:
        check_target(path, [Path(scene)], force=force)
    if len({path.absolute() for path in files}) < len(files):
        raise SettingsError(f"{files[0]}: Two outputs have the same name. Give each its own.")
    if frames is not None:
        from borelli.view.video import check_frames

        check_frames(frames, overwrite=force)


def _run(scene: Scene, quiet: bool) -> tuple[Dataset, float]:
    """Return the result and its run time [s] without the loading of kernels."""
    from borelli.scenes.scene import run_scene
    from borelli.scenes.scene_files import with_changes

    compile_once(control=scene.stepping == "impulse", muscles=scene.excitations is not None)
    run_scene(with_changes(scene, duration=scene.step))
    with progress_bar(f"simulating {scene.name}", hidden=quiet) as update:
        start = perf_counter()
        dataset = run_scene(scene, update)
        return dataset, perf_counter() - start


def _draw(dataset: Dataset, video: Path | None, frames: Path | None, quiet: bool, force: bool) -> None:
    if video is None and frames is None:
        return
    from borelli.view.video import video as write_video
    from borelli.view.video import write_frames

    with progress_bar("drawing", hidden=quiet) as update:
        if video is not None:
            write_video(dataset, video, progress=update, overwrite=force)
        if frames is not None:
            write_frames(dataset, frames, progress=update, overwrite=force)


def _print_gallery() -> None:
    from borelli.scenes.gallery import GALLERY, gallery_scene

    table = Table("name", "bodies", escape("time [s]"), "content")
    for name in GALLERY:
        scene = gallery_scene(name)
        table.add_row(name, str(len(scene.model.bodies)), f"{scene.duration:g}", scene.description)
    out.print(table)
