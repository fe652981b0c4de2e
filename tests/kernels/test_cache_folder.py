"""Folder of machine code: which one it is, who may write to it, and what is removed from it."""

import os
import stat
import time

import pytest

from borelli.errors import BorelliError
from borelli.kernels import cache_folder
from borelli.kernels.cache_folder import MAX_UNUSED_DAYS, cache_root, code_folder, private_folder, remove_unused
from borelli.kernels.machine_code import read_code, write_code

POSIX = pytest.mark.skipif(not cache_folder.PERMISSIONS_CHECKED, reason="permissions are not checked on Windows")
ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change owners")
SOMEBODY = 4321
"""Number of another user."""


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setattr(cache_folder, "_ANNOUNCED", set())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("cache", ["", "relative", "./x", "../x"])
@pytest.mark.parametrize("xdg", [None, "", "relative", "."])
def test_empty_and_relative_paths_are_ignored(monkeypatch, tmp_path, cache, xdg):
    monkeypatch.setenv("BORELLI_CACHE", cache)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if xdg is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    assert cache_root() == tmp_path / ".cache" / "borelli"


def test_absolute_paths_are_used(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("BORELLI_CACHE", raising=False)
    assert cache_root() == tmp_path / "xdg" / "borelli"
    monkeypatch.setenv("BORELLI_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"


def test_relative_cache_is_announced_once(monkeypatch, capsys):
    monkeypatch.setenv("BORELLI_CACHE", "relative")
    cache_root()
    cache_root()
    assert (
        capsys.readouterr().err == "borelli: BORELLI_CACHE: 'relative' is relative and ignored. Set an absolute path.\n"
    )


def test_without_a_home_the_folder_is_temporary_and_private(monkeypatch):
    for name in ("BORELLI_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "relative")
    folder = code_folder()
    assert folder.is_absolute() and stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_without_any_folder_nothing_is_saved(monkeypatch, capsys):
    def no_space(prefix):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache_folder.tempfile, "mkdtemp", no_space)
    path = cache_folder._temporary_folder.__wrapped__() / "module" / "kernel.code"
    assert "temporary folder: It cannot be created (No space left on device)" in capsys.readouterr().err
    assert read_code(path, b"key") is None
    with pytest.raises(OSError, match="Not a directory"):
        write_code(path, b"key", b"content")


@POSIX
def test_created_folders_are_private(tmp_path):
    previous = os.umask(0)
    try:
        folder = private_folder(tmp_path / "a" / "b")
    finally:
        os.umask(previous)
    assert folder == tmp_path / "a" / "b"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)] == [0o700, 0o700]


def is_refused(folder, reason):
    with pytest.raises(BorelliError, match=reason) as error:
        private_folder(folder)
    assert str(error.value).startswith(f"{folder}: ") and "BORELLI_CACHE" in str(error.value)


@POSIX
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777, 0o720])
def test_folder_that_others_can_write_to_is_refused(tmp_path, mode):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    is_refused(folder, f"is writable by others \\(mode {mode:04o}\\)")


@POSIX
def test_parent_that_others_can_write_to_is_refused_unless_sticky(tmp_path):
    parent = tmp_path / "parent"
    (parent / "cache").mkdir(0o700, parents=True)
    parent.chmod(0o777)
    is_refused(parent / "cache", f"{parent} is writable by others")
    parent.chmod(0o1777)
    assert private_folder(parent / "cache") == parent / "cache"
    parent.chmod(0o755)
    assert private_folder(parent / "cache") == parent / "cache"


@POSIX
def test_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir(0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    is_refused(folder, f"belongs to user {owner}, not to user {SOMEBODY}")


@ROOT
def test_parent_and_link_of_another_user_are_refused(tmp_path):
    parent, target, link = tmp_path / "parent", tmp_path / "target", tmp_path / "link"
    (parent / "cache").mkdir(0o700, parents=True)
    target.mkdir(0o700)
    os.chown(parent, SOMEBODY, SOMEBODY)
    is_refused(parent / "cache", f"{parent} belongs to user {SOMEBODY}")
    link.symlink_to(target)
    assert private_folder(link) == target
    os.chown(link, SOMEBODY, SOMEBODY, follow_symlinks=False)
    is_refused(link, f"the link {link} belongs to user {SOMEBODY}")


@POSIX
def test_link_to_a_folder_that_others_can_write_to_is_refused(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.mkdir()
    target.chmod(0o777)
    link.symlink_to(target)
    is_refused(link, "is writable by others")


def test_folder_that_cannot_be_created_is_refused(tmp_path):
    (tmp_path / "file").touch()
    is_refused(tmp_path / "file", "cannot be used")
    is_refused(tmp_path / "file" / "cache", "cannot be used")
    (tmp_path / "cycle").symlink_to(tmp_path / "cycle")
    is_refused(tmp_path / "cycle", "cannot be used")


@POSIX
def test_refused_folder_is_announced_once_and_replaced_by_a_temporary_one(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("BORELLI_CACHE", str(folder))
    used = code_folder()
    assert code_folder() == used != folder and stat.S_IMODE(used.stat().st_mode) == 0o700
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"borelli: {folder}: The folder of compiled kernels is not private")
    assert list(folder.iterdir()) == []


def test_entries_of_the_cache_are_removed_when_they_are_not_used(tmp_path):
    names = [
        "physics.step-0123456789abcdef",
        "complete-0123456789abcdef",
        "thesis",
        "data-2024",
        "used-0123456789abcdef",
    ]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        age = 1 if name.startswith("used") else MAX_UNUSED_DAYS + 1
        os.utime(tmp_path / name, (time.time() - age * 86400,) * 2)
    remove_unused(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data-2024", "thesis", "used-0123456789abcdef"]
