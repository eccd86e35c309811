# SPDX-License-Identifier: Apache-2.0
"""output: what a command that writes is to make, the folder that it works in, and the state in which it left it."""
import os
import pathlib
import shutil

import material
import process


class Case:
    """One command line, and what it makes."""

    def __init__(self, name, words, sources=(), old=None, replaces=True):
        """words: {out} is where the output goes. sources: paths that must not change. old: what stands at the
        output before, or None. replaces: 0: a second run refuses an output that is whole."""
        self.name, self.words, self.sources = name, words, [str(path) for path in sources]
        self.old, self.replaces = old, replaces


class Work:
    """The folder of one attempt: the output alone in `out`, and a current folder that must stay empty."""

    def __init__(self, root, case):
        self.top = pathlib.Path(root) / "work"
        shutil.rmtree(self.top, ignore_errors=True)
        self.folder, self.cwd = self.top / "out", self.top / "cwd"
        self.folder.mkdir(parents=True)
        self.cwd.mkdir()
        self.out = self.folder / "made"
        if case.old and os.path.isdir(case.old):
            shutil.copytree(case.old, self.out)
        elif case.old:
            shutil.copyfile(case.old, self.out)
        self.words = [str(word).format(out=self.out) for word in case.words]
        self.env = {**os.environ, "TMPDIR": str(self.cwd), "HOME": str(self.cwd)}

    def start(self, prepare=None):
        return process.Running(self.words, cwd=self.cwd, env=self.env, prepare=prepare)


class DataSet:
    """The state of an output that is a data set."""

    def __init__(self, args):
        self.build = args.build

    def state(self, path):
        return material.identity(self.build, path)

    def leftovers(self, folder):
        found = material.entries(folder)
        return [name for name in found if name != "made" and name.removeprefix("made/") not in
                material.listed(pathlib.Path(folder) / "made")]


class Columns(DataSet):
    """The state of a data set whose columns change: their values count, not their files' names."""

    def state(self, path):
        state = [super().state(path)]
        for name, files in sorted(material.columns(path).items()):
            state += [name, *(material.content(path / file) for file in files)]
        return " ".join(state)


class Picture:
    """The state of an output that is one file."""

    def state(self, path):
        return material.content(path)

    def leftovers(self, folder):
        return [name for name in material.entries(folder) if name != "made"]
