"""Folders of results: which files may be replaced, what the manifest may not do, one writer at a time."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from borelli.errors import SettingsError
from borelli.files import results_folder
from borelli.files.atomic import write_atomic
from borelli.files.folder_lock import LOCK, lock_folder
from borelli.files.inputs import protect_inputs
from borelli.files.manifest import MANIFEST, MAX_VERSIONS, Manifest, Record, hash_file
from borelli.files.results_folder import check_results, results_folders

NAMES = ("a.txt", "b.txt", "c.txt")


def run(folder, text, names=NAMES, **options):
    """Write files as one run does."""
    with results_folders({folder: NAMES}, options.pop("by", "test"), **options) as results:
        for name in names:
            write_atomic(text, folder / name)
        return results


def texts(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != MANIFEST}


def test_results_may_be_replaced_by_the_same_command(tmp_path):
    run(tmp_path / "deep" / "out", "one")
    run(tmp_path / "deep" / "out", "two")
    assert texts(tmp_path / "deep" / "out") == dict.fromkeys(NAMES, "two")
    with pytest.raises(SettingsError, match=r"`other` did not write them.*\(a.txt, b.txt, c.txt\)"):
        run(tmp_path / "deep" / "out", "three", by="other")
    assert texts(tmp_path / "deep" / "out") == dict.fromkeys(NAMES, "two")


def test_other_and_edited_files_need_permission(tmp_path):
    (tmp_path / "b.txt").write_text("mine")
    with pytest.raises(SettingsError, match=r"\(b.txt\).*--force"):
        run(tmp_path, "one")
    assert texts(tmp_path) == {"b.txt": "mine"}
    run(tmp_path, "one", overwrite=True)
    (tmp_path / "c.txt").write_text("eno")  # of the same size
    for check in (check_results, lambda outputs, by: run(tmp_path, "two")):
        with pytest.raises(SettingsError, match=r"edited \(c.txt\)"):
            check({tmp_path: NAMES}, "test")
    run(tmp_path, "two", overwrite=True)
    assert texts(tmp_path) == dict.fromkeys(NAMES, "two")


def test_file_edited_during_the_run_is_kept(tmp_path):
    run(tmp_path, "one")
    with pytest.raises(SettingsError, match=r"edited \(b.txt\)"), results_folders({tmp_path: NAMES}, "test"):
        write_atomic("two", tmp_path / "a.txt")
        (tmp_path / "b.txt").write_text("mine")
        write_atomic("two", tmp_path / "b.txt")
    assert texts(tmp_path)["b.txt"] == "mine"


def test_file_that_appears_after_the_last_check_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(results_folder.ResultsFolders, "check", lambda *_: None)
    (tmp_path / "d.txt").write_text("mine")
    with pytest.raises(SettingsError, match="The file exists"), results_folders({tmp_path: NAMES}, "test"):
        write_atomic("one", tmp_path / "d.txt")
    assert texts(tmp_path) == {"d.txt": "mine"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_inputs_are_never_replaced_nor_removed(tmp_path, overwrite):
    run(tmp_path, "one")
    with protect_inputs(tmp_path / "c.txt"):
        with pytest.raises(SettingsError, match=r"input files \(c.txt\)"):
            run(tmp_path, "two", overwrite=overwrite)
        with results_folders({tmp_path: NAMES[:2]}, "test", overwrite=overwrite):
            write_atomic("two", tmp_path / "a.txt")
    assert texts(tmp_path) == {"a.txt": "two", "c.txt": "one"}


def test_files_of_two_runs_are_never_together(tmp_path):
    run(tmp_path, "one")
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(KeyboardInterrupt), results_folders({tmp_path: NAMES}, "test") as results:
        results.keep([tmp_path / "a.txt"])
        write_atomic("two", tmp_path / "b.txt")
        raise KeyboardInterrupt
    assert texts(tmp_path) == {"a.txt": "one", "b.txt": "two", "mine.txt": "mine"}
    run(tmp_path, "one", names=["a.txt"])  # equal content, but b.txt does not belong to this run
    assert texts(tmp_path) == {"a.txt": "one", "mine.txt": "mine"}


def test_several_folders_are_one_run(tmp_path):
    inner = tmp_path / "trial"
    outputs = {tmp_path: ("a.txt",), inner: ("b.txt",)}
    with results_folders(outputs, "test"):
        write_atomic("one", tmp_path / "a.txt")
        write_atomic("one", inner / "b.txt")
    with pytest.raises(KeyboardInterrupt), results_folders(outputs, "test"):
        write_atomic("two", tmp_path / "a.txt")
        raise KeyboardInterrupt
    assert (tmp_path / "a.txt").read_text() == "two" and not (inner / "b.txt").exists()
    (inner / "b.txt").write_text("mine")
    (tmp_path / "a.txt").write_text("mine")
    with pytest.raises(SettingsError, match=r"\(a.txt, trial/b.txt\)"), results_folders(outputs, "test"):
        pass


def test_equal_content_is_not_written(tmp_path):
    run(tmp_path, "one")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    run(tmp_path, "one")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kills", [1, MAX_VERSIONS - 1])
def test_run_killed_before_a_file_gets_its_name(tmp_path, monkeypatch, kills):
    run(tmp_path, "one")
    for number in range(kills):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(results_folder, "move", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            run(tmp_path, f"killed {number}")
    run(tmp_path, "two")
    assert texts(tmp_path) == dict.fromkeys(NAMES, "two")


def test_manifest_does_not_grow(tmp_path):
    for number in range(3 * MAX_VERSIONS):
        run(tmp_path, f"run {number}")
    lines = (tmp_path / MANIFEST).read_text().splitlines()
    assert len(lines) <= 2 + len(NAMES) * (MAX_VERSIONS + 1)


def test_cut_record_is_repaired(tmp_path):
    run(tmp_path, "one")
    manifest = tmp_path / MANIFEST
    manifest.write_text(manifest.read_text()[:-20])
    with pytest.raises(SettingsError, match=r"\(c.txt\)"):
        run(tmp_path, "two")
    run(tmp_path, "two", overwrite=True)
    run(tmp_path, "three")
    assert texts(tmp_path) == dict.fromkeys(NAMES, "three")


@pytest.mark.parametrize(
    "content", [b"", b"mine", b'{"format": "borelli-results", "version": 2}', b"[" * 100_000, b"\xff\xfe\0", None]
)
def test_damaged_manifest_is_refused(tmp_path, content):
    manifest = tmp_path / MANIFEST
    if content is None:
        (tmp_path / "elsewhere").write_text('{"format": "borelli-results", "version": 1}\n')
        manifest.symlink_to(tmp_path / "elsewhere")
    else:
        manifest.write_bytes(content)
    with pytest.raises(SettingsError, match=MANIFEST):
        run(tmp_path, "one")
    assert (content is None and manifest.is_symlink()) or manifest.read_bytes() == content
    run(tmp_path, "one", overwrite=True)
    run(tmp_path, "two")
    assert texts(tmp_path).items() >= dict.fromkeys(NAMES, "two").items()


def test_huge_manifest_is_not_read(tmp_path, monkeypatch):
    run(tmp_path, "one")
    monkeypatch.setattr("borelli.files.manifest.MAX_BYTES", 100)
    assert Manifest(tmp_path).damaged and Manifest(tmp_path).names == ()


@pytest.mark.parametrize(
    "name", ["../mine.txt", "/{folder}/mine.txt", "..", ".", "sub/mine.txt", "link.txt", "a\0b", ""]
)
def test_hostile_manifest_removes_nothing(tmp_path, name):
    folder = tmp_path / "out"
    (folder / "sub").mkdir(parents=True)
    for path in (tmp_path / "mine.txt", folder / "sub" / "mine.txt"):
        path.write_text("mine")
    (folder / "link.txt").symlink_to(tmp_path / "mine.txt")
    run(folder, "one")
    record = Record(name.format(folder=tmp_path), "test", 4, hash_file(tmp_path / "mine.txt"))
    others = [{"name": "a.txt"}, [], 5, {**record._asdict(), "name": 5}, {**record._asdict(), "size": True}]
    with (folder / MANIFEST).open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in (record._asdict(), *others))
    run(folder, "two")
    assert (tmp_path / "mine.txt").read_text() == (folder / "sub" / "mine.txt").read_text() == "mine"
    assert (folder / "link.txt").is_symlink()


def test_second_thread_is_refused(tmp_path):
    errors = []

    def second():
        with pytest.raises(SettingsError) as caught:
            run(tmp_path, "two")
        errors.append(str(caught.value))

    with results_folders({tmp_path: NAMES}, "test"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        write_atomic("one", tmp_path / "a.txt")
    assert errors[0].startswith(f"{tmp_path}: Another run is writing into the folder (process {os.getpid()})")
    assert texts(tmp_path) == {"a.txt": "one"}
    run(tmp_path, "two")


def test_lock_ends_with_its_process(tmp_path):
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom borelli.files.folder_lock import lock_folder\n"
        "with lock_folder(Path(sys.argv[1])):\n    print('locked', flush=True)\n    time.sleep(100)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(SettingsError, match=rf"process {process.pid}"):
            run(tmp_path, "one")
        process.send_signal(signal.SIGKILL)
    run(tmp_path, "one")
    assert texts(tmp_path) == dict.fromkeys(NAMES, "one")


def test_lock_is_removed_but_not_a_file_of_that_name(tmp_path):
    with lock_folder(tmp_path):
        assert (tmp_path / LOCK).read_text() == str(os.getpid())
    assert not (tmp_path / LOCK).exists()
    (tmp_path / LOCK).write_text("my notes")
    with pytest.raises(SettingsError, match="not a lock of borelli"):
        run(tmp_path, "one")
    assert texts(tmp_path) == {LOCK: "my notes"}


def test_a_run_without_results_leaves_no_folder(tmp_path):
    """Folders that it made are removed; those of the user stay, and so do those that another run has locked since."""
    (tmp_path / "mine").mkdir()
    for folder in ("mine", "mine/deep/out", "new/out"):
        with pytest.raises(SettingsError, match="no"), results_folders({tmp_path / folder: NAMES}, "test"):
            raise SettingsError("no")
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]
    with pytest.raises(SettingsError, match="no"), results_folders({tmp_path / "out": NAMES}, "test"):
        write_atomic("one", tmp_path / "out" / "a.txt")
        raise SettingsError("no")
    assert texts(tmp_path / "out") == {"a.txt": "one"}
    with lock_folder(tmp_path / "away"):  # removed by a run that failed before this one could lock it
        assert (tmp_path / "away").is_dir()


def test_path_of_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "out").write_text("mine")
    for call in (check_results, lambda outputs, by: run(tmp_path / "out", "one")):
        with pytest.raises(SettingsError, match="The path for results is a file"):
            call({tmp_path / "out": NAMES}, "test")


def test_damaged_file_is_kept_under_another_name(tmp_path):
    outputs = {tmp_path: ("a.nc",)}
    with results_folders(outputs, "analyze"):
        write_atomic("first", tmp_path / "a.nc")
    (tmp_path / "a.nc").write_text("flips")
    with results_folders(outputs, "analyze", is_damaged=lambda path: True):
        write_atomic("again", tmp_path / "a.nc")
    assert (tmp_path / "a.nc").read_text() == "again"
    assert (tmp_path / "a.damaged.nc").read_text() == "flips"
