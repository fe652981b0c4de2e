"""Writing of single files: permission, inputs, interrupted writes, full disks."""

import errno
import os
import threading

import numpy as np
import pytest

from borelli.errors import FileFormatError, SettingsError
from borelli.files import atomic, netcdf_writer
from borelli.files.atomic import atomic_path, check_output, remove_stale_temporaries, write_atomic
from borelli.files.inputs import protect_inputs
from borelli.files.netcdf_writer import write_netcdf
from borelli.files.text import read_bytes

from .full_disk import full_disk


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def forbid_links(monkeypatch):
    def link(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)


def test_existing_file_needs_permission(tmp_path):
    path = tmp_path / "x.txt"
    write_atomic("one", path)
    with pytest.raises(SettingsError, match=r"x.txt: The file exists\. .*--force.*overwrite=True"):
        write_atomic("two", path)
    assert content(tmp_path) == {"x.txt": b"one"}
    write_atomic("two", path, overwrite=True)
    assert content(tmp_path) == {"x.txt": b"two"}


@pytest.mark.parametrize("links", [True, False])
def test_file_that_appears_while_writing_is_kept(tmp_path, monkeypatch, links):
    if not links:
        forbid_links(monkeypatch)
    path = tmp_path / "x.txt"
    with pytest.raises(SettingsError, match="The file exists"), atomic_path(path) as temporary:
        temporary.write_text("late")
        path.write_text("mine")
    monkeypatch.setattr(atomic, "check_output", lambda *_, **__: None)  # appears after the last check
    with pytest.raises(SettingsError, match="The file exists"):
        write_atomic("late", path)
    assert content(tmp_path) == {"x.txt": b"mine"}


def test_drives_without_hard_links(tmp_path, monkeypatch):
    forbid_links(monkeypatch)
    write_atomic("one", tmp_path / "x.txt")
    assert content(tmp_path) == {"x.txt": b"one"}

    def replace(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(type(tmp_path), "replace", replace)
    with pytest.raises(FileFormatError, match=r"y.txt: .*Input/output error"):
        write_atomic("two", tmp_path / "y.txt")
    assert content(tmp_path) == {"x.txt": b"one"}


def alias(kind, path):
    """Return another name of a file."""
    other = path.with_name(f"{kind}.txt")
    if kind == "symbolic":
        other.symlink_to(path)
    elif kind == "hard":
        os.link(path, other)
    elif kind == "spelling":
        (path.parent / "sub").mkdir()
        return path.parent / "sub" / ".." / path.name
    return other if kind != "same" else path


@pytest.mark.parametrize("kind", ["same", "symbolic", "hard", "spelling"])
def test_input_is_never_replaced(tmp_path, monkeypatch, kind):
    path = tmp_path / "x.txt"
    path.write_text("measured")
    target = alias(kind, path)
    with pytest.raises(SettingsError, match="is an input file"):
        write_atomic("computed", target, overwrite=True, inputs=[None, path])
    monkeypatch.chdir(tmp_path)
    with protect_inputs("x.txt"), pytest.raises(SettingsError, match="is an input file"):
        write_atomic("computed", target, overwrite=True)
    with protect_inputs():
        read_bytes(path)
        with pytest.raises(SettingsError, match="is an input file"):
            write_atomic("computed", target, overwrite=True)
    assert path.read_text() == "measured"
    write_atomic("computed", target, overwrite=True)  # the protection has ended
    assert target.read_text() == "computed"


def test_only_regular_files_are_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(SettingsError, match="The output is a folder"):
        check_output(tmp_path / "folder", overwrite=True)
    with pytest.raises(SettingsError, match="not a regular file"):
        check_output(tmp_path / "pipe", overwrite=True)
    with pytest.raises(SettingsError, match="The file exists"):
        check_output(tmp_path / "dangling")
    with pytest.raises(SettingsError, match="does not exist"):
        check_output(tmp_path / "nowhere" / "x.txt")


def test_file_is_refused_before_it_is_computed(tmp_path):
    (tmp_path / "x.txt").write_text("mine")
    with pytest.raises(SettingsError, match="The file exists"), atomic_path(tmp_path / "x.txt"):
        pytest.fail("the block runs")


def test_input_that_gets_the_name_of_the_output_is_kept(tmp_path):
    source, target = tmp_path / "source.txt", tmp_path / "x.txt"
    source.write_text("measured")
    with pytest.raises(SettingsError, match="input file"), atomic_path(target, overwrite=True, inputs=[source]) as path:
        path.write_text("computed")
        source.rename(target)
        source.symlink_to(target)
    assert target.read_text() == "measured"


def test_interrupted_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_path(path, overwrite=True) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert content(tmp_path) == {"x.txt": b"old"}


def test_temporaries_of_killed_processes_are_removed(tmp_path):
    dead = [tmp_path / ".borelli-999999999-0-a.nc", tmp_path / f".borelli-{os.getpid()}-0-b.nc"]
    others = [tmp_path / ".borelli-1-0-a.nc", tmp_path / ".notes.999999999.tmp", tmp_path / ".borelli-9-notes"]
    for path in (*dead, *others):
        path.write_text("half")
    with atomic_path(tmp_path / "x.txt") as temporary:
        temporary.write_text("whole")
        remove_stale_temporaries(tmp_path)
        assert temporary.exists()
    assert set(tmp_path.iterdir()) == {tmp_path / "x.txt", *others}


def test_threads_write_the_same_file(tmp_path):
    def write(number):
        for _ in range(20):
            write_atomic(str(number) * 10_000, tmp_path / "x.txt", overwrite=True)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((name, text),) = content(tmp_path).items()
    assert name == "x.txt" and len(text) == 10_000 and len(set(text)) == 1


def write_text(path):
    write_atomic("x" * 100_000, path)


def write_image(path):
    from PIL import Image

    from borelli.view.picture import save_image

    save_image(Image.effect_noise((400, 400), 50.0), path)


def write_plot(path):
    from matplotlib.figure import Figure

    from borelli.view.plot_style import save_figure

    save_figure(Figure(figsize=(20.0, 20.0)), path)


def write_dataset(path):
    import xarray

    names = [f"name {k}" for k in range(50)]
    values = {
        "value": ("time", np.random.default_rng(0).random(200_000)),
        **{f"v{k}": ("name", names) for k in range(9)},
    }
    data = xarray.Dataset(values, {"name": names}, {"text": "x" * 60_000})
    write_netcdf(path, {"/": data, "again": data})


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (write_text, "x.txt"), (write_image, "x.png"), (write_image, "x.gif"), (write_plot, "x.svg"),
        (write_plot, "x.png"), (write_dataset, "x.nc"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [0, 100, 900])
def test_full_disk_is_one_sentence_and_no_file(tmp_path, write, name, size):
    with full_disk(size), pytest.raises(FileFormatError, match=rf"^{tmp_path / name}: .*File too large"):
        write(tmp_path / name)
    assert content(tmp_path) == {}
    write(tmp_path / name)
    assert list(content(tmp_path)) == [name]


@pytest.mark.parametrize("size", [10_000, 70_000, 100_000, 500_000, 1_700_000, 2_000_000, 3_000_000])
def test_netcdf_on_a_full_disk(tmp_path, monkeypatch, size):
    """HDF5 reads again what it has written; were that lost, it would crash or report a damaged file."""
    errors, original = [], netcdf_writer._DelayedErrors.__exit__

    def leave(file, *error):
        errors.append(error[0])
        original(file, *error)

    monkeypatch.setattr(netcdf_writer._DelayedErrors, "__exit__", leave)
    with full_disk(size), pytest.raises(FileFormatError, match=r"x.nc: .*File too large"):
        write_dataset(tmp_path / "x.nc")
    assert content(tmp_path) == {} and errors == [None]
