"""Folders of results: one writer at a time, and only files that borelli wrote there are replaced.

A file of the manifest that was not edited since may be replaced or removed by the command that wrote it; all other
files are the user's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from borelli.errors import SettingsError, list_names
from borelli.files.atomic import check_replaceable, move, open_results, remove_stale_temporaries
from borelli.files.folder_lock import lock_folder
from borelli.files.inputs import is_input
from borelli.files.manifest import MANIFEST, Manifest, Record, hash_file, is_regular

MAX_LISTED = 20
"""File names in a message."""


class ResultsFolders:
    """Folders of results of one run: see `results_folders`."""

    def __init__(
        self, outputs: Mapping[Path, Sequence[str]], by: str, *, overwrite: bool, is_damaged: Callable[[Path], bool]
    ) -> None:
        """Raise SettingsError if an output must not be replaced; arguments as of `results_folders`."""
        self._by, self._overwrite, self._cannot_be_read = by, overwrite, is_damaged
        self._folders = {folder.resolve(): folder for folder in outputs}
        self._manifests = {folder: Manifest(folder) for folder in outputs}
        self._current: set[Path] = set()
        self._check([folder / name for folder, names in outputs.items() for name in names])

    def keep(self, paths: Iterable[Path]) -> None:
        """Make files of an earlier run, which agree with this one, part of this run."""
        self._current.update(map(self._spelled, paths))

    def contains(self, path: Path) -> bool:
        """Return whether the path is of a file directly in one of the folders."""
        return path.name != MANIFEST and path.parent.resolve() in self._folders

    def check(self, path: Path) -> None:
        """Raise SettingsError unless the file may be written."""
        self._check([self._spelled(path)])

    def accept(self, temporary: Path, path: Path) -> None:
        """Move a complete temporary file to its path, unless the file there has the same content.

        Files of earlier runs that are not part of this one are removed first: even if this run is interrupted, files of
        two runs are never together.
        """
        path = self._spelled(path)
        record = Record(path.name, self._by, temporary.stat().st_size, hash_file(temporary))
        self._current.add(path)
        unchanged = self._is_unchanged(path)
        if unchanged and hash_file(path) == record.sha256:
            return
        if not (unchanged or self._overwrite) and self._is_damaged(path):
            _set_aside(path)
        self._manifests[path.parent].add(record)
        self.remove_outdated()
        move(temporary, path, overwrite=unchanged or self._overwrite)

    def remove_outdated(self) -> None:
        """Remove the files of earlier runs of the same command that are not part of this run."""
        for folder, manifest in self._manifests.items():
            for path in (folder / name for name in manifest.names):
                if path not in self._current and not is_input(path) and self._is_unchanged(path):
                    path.unlink()

    def _spelled(self, path: Path) -> Path:
        """Return the path with its folder as the run names it."""
        return self._folders[path.parent.resolve()] / path.name

    def _is_unchanged(self, path: Path) -> bool:
        """Return whether a file has content that the command wrote."""
        return self._manifests[path.parent].lists(path, self._by)

    def _is_damaged(self, path: Path) -> bool:
        """Return whether the command wrote a file of this name, and it cannot be read now."""
        size = self._manifests[path.parent].max_size(path.name, self._by)
        return is_regular(path) and path.stat().st_size <= size and self._cannot_be_read(path)

    def _check(self, paths: Sequence[Path]) -> None:
        """Raise SettingsError if files must not be replaced; the message lists them all."""
        first = next(iter(self._manifests))
        if inputs := [path for path in paths if is_input(path)]:
            names = _relative(inputs, first)
            raise SettingsError(
                f"{first}: Results would replace input files ({names}). Choose another folder with --out."
            )
        for path in paths:
            check_replaceable(path)
        if self._overwrite:
            return
        others = [manifest.path for manifest in self._manifests.values() if manifest.damaged]
        others += [
            path
            for path in paths
            if os.path.lexists(path) and not self._is_unchanged(path) and not self._is_damaged(path)
        ]
        if others:
            raise SettingsError(
                f"{first}: Files have names of results, but `{self._by}` did not write them, or they were edited "
                f"({_relative(others, first)}). Choose another folder with --out, or replace them with --force (in "
                "Python: overwrite=True)."
            )


@contextmanager
def results_folders(
    outputs: Mapping[Path, Sequence[str]],
    by: str,
    *,
    overwrite: bool = False,
    is_damaged: Callable[[Path], bool] = lambda path: False,
) -> Iterator[ResultsFolders]:
    """Open folders of results for one run: files written into them in the block follow the rules of the folders.

    Args:
        outputs: Names of the files that the run writes, by folder; folders are created, and removed if they stay empty.
        by: Command that writes the results.
        overwrite: Replace other and edited files too; inputs are never replaced.
        is_damaged: Test of a file of the manifest whose content has changed. A damaged file gets another name, because
            the damage may be an edit of the user, and is replaced.

    Raises:
        SettingsError: Another run writes into a folder, or a file must not be replaced.
    """
    with ExitStack() as stack:
        for folder in outputs:
            check_folder(folder)
            stack.callback(_remove_empty, [path for path in (folder, *folder.parents) if not path.exists()])
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock_folder(folder))
            remove_stale_temporaries(folder)
        results = ResultsFolders(outputs, by, overwrite=overwrite, is_damaged=is_damaged)
        token = open_results.set((*open_results.get(), results))
        try:
            yield results
        finally:
            open_results.reset(token)
        results.remove_outdated()


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders that are empty, the innermost first."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:  # it has files, or is away
            return


def check_results(outputs: Mapping[Path, Sequence[str]], by: str, *, overwrite: bool = False) -> None:
    """Raise SettingsError if `results_folders` would refuse to write; arguments as there."""
    for folder in outputs:
        check_folder(folder)
    if existing := {folder: names for folder, names in outputs.items() if folder.is_dir()}:
        ResultsFolders(existing, by, overwrite=overwrite, is_damaged=lambda path: False)


def _set_aside(path: Path) -> None:
    """Rename a damaged file, which may contain an edit of the user."""
    names = (f"{path.stem}.damaged{number or ''}{path.suffix}" for number in count())
    path.rename(next(path.with_name(name) for name in names if not os.path.lexists(path.with_name(name))))


def check_folder(folder: Path) -> None:
    """Raise SettingsError if the path for a folder of results is a file."""
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder}: The path for results is a file. Choose a folder with --out.")


def _relative(paths: Iterable[Path], folder: Path) -> str:
    return list_names([os.path.relpath(path, folder) for path in paths], MAX_LISTED)
