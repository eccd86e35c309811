# SPDX-License-Identifier: Apache-2.0
"""The directory of the parts of a pack: `.NAME.parts-XXXXXXXX` next to the data set NAME, on its file system, for hard
links. A file in it marks it as a pack's. The next pack of that data set removes the parts of a killed one."""
from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil

from .. import errors

__all__ = ["MARKER", "make", "remove", "remove_leftovers"]

MARKER = ".penstock-parts"  # file in a directory of parts; only a pack writes it
_TEXT = "Parts that penstock makes; those of a killed pack go with the next.\n"
_TRIES = 10  # tries to remove files while a task writes; each can only fail for a file made meanwhile


def _new_path(parent: str, name: str) -> str:
    return os.path.join(parent, f".{name}.parts-{secrets.token_hex(4)}")


def make(path: str, text: str = "", advice: str = "", mode: int = 0o700) -> str:
    """Make the directory next to the data set `path`, whose place the caller's writer holds. Directories of killed
    packs of it are removed first. Returns the path. Raises PenstockError.

    text: text of the marker.
    advice: end of the error's message.
    mode: permissions of the directory.
    """
    parent, name = os.path.split(path)
    remove_leftovers(parent, name)
    directory = _new_path(parent, name)
    try:
        os.mkdir(directory, mode)
        try:
            with open(os.path.join(directory, MARKER), "x", encoding="utf-8") as file:
                file.write(_TEXT + text)
        except OSError:
            shutil.rmtree(directory, ignore_errors=True)
            raise
    except OSError as error:
        raise errors.PenstockError(f"{path}: parts need a directory next to it, which cannot be made: {error}"
                                   + advice) from error
    return directory


def _remove_any(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)  # a file, or a link to a directory
    shutil.rmtree(path, ignore_errors=True)


def remove(directory: str) -> None:
    """Remove a directory of parts, also while a task writes there. It is renamed first, so that no task begins in it,
    and a task at work fails when its own directory is gone. The marker is removed last, so that until then the next
    pack can remove the rest."""
    parent, own = os.path.split(directory)
    renamed = _new_path(parent, own[1:].rpartition(".parts-")[0])
    try:
        os.rename(directory, renamed)
    except OSError:
        renamed = directory
    for _ in range(_TRIES):
        try:
            rest = [entry.path for entry in os.scandir(renamed) if entry.name != MARKER]
        except OSError:
            return
        if not rest:
            break
        for path in rest:
            _remove_any(path)
    else:
        return
    shutil.rmtree(renamed, ignore_errors=True)


def remove_leftovers(parent: str, name: str) -> None:
    """Remove the parts of killed packs. The caller holds the data set, so no other pack of it is at work."""
    ours = re.compile(re.escape(f".{name}.parts-") + "[a-z0-9_]{8}")
    with contextlib.suppress(OSError):  # a folder that cannot be listed: the parts stay
        for entry in list(os.scandir(parent)):
            if ours.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False) \
                    and os.path.isfile(os.path.join(entry.path, MARKER)):
                remove(entry.path)
