# SPDX-License-Identifier: Apache-2.0
"""The installed library as other projects use it: examples/project, built by pkg-config, CMake and meson.

`meson install` with a DESTDIR puts penstock below a temporary folder: so the prefix is also one that was moved.
PENSTOCK_BUILD names the build that is installed, PENSTOCK_MAKE_IMAGES the program that makes images.
"""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
PROJECT = TOP / "examples/project"
BUILD = os.environ["PENSTOCK_BUILD"]
MAKE_IMAGES = os.environ["PENSTOCK_MAKE_IMAGES"]
N_IMAGES = 12


def run(*command: object, status: int | None = 0, cwd: pathlib.Path | None = None, **variables: str) -> str:
    """Return what `command` printed. status: what it must end with; None: anything except 0."""
    clean = {name: value for name, value in os.environ.items()
             if not re.match("PENSTOCK_|PYTHON|LD_|PKG_CONFIG|CMAKE|MESON|DESTDIR|CFLAGS", name)}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={**clean, **variables}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500)
    if done.returncode == 0 if status is None else done.returncode != status:
        last = "\n".join(line[:300] for line in done.stdout.split("\n")[-30:])
        raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n{last}")
    return done.stdout


def require(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            raise unittest.SkipTest(f"missing: {program}")


def needed(program: pathlib.Path) -> list[str]:
    """Return the shared libraries that `program` names."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", program))


class PrefixTest(unittest.TestCase):
    """Every test has a folder of its own, and all have the prefix and the data set."""

    root: pathlib.Path  # the DESTDIR
    prefix: pathlib.Path
    libdir: pathlib.Path
    data: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        require("meson", "pkg-config", "readelf")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name) / "root"
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.root)
        (config,) = cls.root.rglob("penstock.pc")
        cls.libdir = config.parents[1]
        variable = re.search("^prefix=/(.*)", config.read_text(), re.M)
        assert variable
        cls.prefix = cls.root / variable[1]
        cls.data = pathlib.Path(folder.name) / "data"
        run(MAKE_IMAGES, N_IMAGES, cls.data.parent / "images")
        run(cls.prefix / "bin/penstock", "pack", cls.data.parent / "images", cls.data)

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def static_prefix(self) -> tuple[pathlib.Path, pathlib.Path]:
        """Another root, whose library is only the static one. Returns its prefix and its folder of libraries."""
        root = self.folder / "static"
        shutil.copytree(self.root, root, symlinks=True)
        libdir = root / self.libdir.relative_to(self.root)
        for library in libdir.glob("libpenstock.so*"):
            library.unlink()
        return root / self.prefix.relative_to(self.root), libdir

    def pkg_config(self) -> dict[str, str]:
        """Variables for the environment, with which pkg-config knows penstock and nothing else."""
        return {"PKG_CONFIG_LIBDIR": str(self.libdir / "pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(self.root)}

    def check(self, program: pathlib.Path, library: pathlib.Path | None) -> None:
        """`program` counts the data set's samples. library: the folder of the shared library that it needs to; None: it
        needs none, being linked with the static one."""
        found = [name for name in needed(program) if name.startswith("libpenstock")]
        self.assertEqual(found, ["libpenstock.so.0"] if library else [])
        variables = {"LD_LIBRARY_PATH": str(library)} if library else {}
        self.assertEqual(run(program, self.data, **variables), f"{N_IMAGES} samples\n")

    def cmake(self, prefix: pathlib.Path, source: pathlib.Path = PROJECT, status: int | None = 0) -> str:
        require("cmake")
        return run("cmake", "-S", source, "-B", self.folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
                   "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", status=status)

    def test_command(self) -> None:
        """The command finds its library and has its manual page where man(1) looks for it."""
        self.assertIn("libpenstock.so.0", needed(self.prefix / "bin/penstock"))
        self.assertRegex(run(self.prefix / "bin/penstock", "info", self.data), rf"samples +{N_IMAGES}\n")
        self.assertTrue((self.prefix / "share/man/man1/penstock.1").exists())

    def test_headers(self) -> None:
        """Each public header of the sources is installed, and compiles alone."""
        wanted = sorted(path.name for path in (TOP / "include/penstock").iterdir())
        self.assertEqual(sorted(path.name for path in (self.prefix / "include/penstock").iterdir()), wanted)
        for name in wanted:
            language = "c++" if name.endswith("hpp") else "c"
            run("cc", "-fsyntax-only", "-Werror", "-x", language, "-I", self.prefix / "include", "-include",
                f"penstock/{name}", "/dev/null")

    def test_pkg_config(self) -> None:
        """The shared library needs no other library's .pc file."""
        require("make")
        shutil.copytree(PROJECT, self.folder, dirs_exist_ok=True)
        run("make", "-C", self.folder, **self.pkg_config())
        self.check(self.folder / "count", self.libdir)

    def test_pkg_config_static(self) -> None:
        """--static names all that the static library needs. Not by a sysroot, in which no CUDA toolkit is."""
        prefix, libdir = self.static_prefix()
        flags = run("pkg-config", f"--define-variable=prefix={prefix}", "--static", "--cflags", "--libs", "penstock",
                    PKG_CONFIG_LIBDIR=str(libdir / "pkgconfig")).split()
        run("cc", PROJECT / "count.c", "-o", self.folder / "count", *flags)
        self.check(self.folder / "count", None)

    def test_pkg_config_version(self) -> None:
        """It is the version of the library."""
        said = run("pkg-config", "--modversion", "penstock", **self.pkg_config()).strip()
        self.assertEqual(run(self.prefix / "bin/penstock", "--version").split()[1], said)

    def test_cmake(self) -> None:
        self.cmake(self.prefix)
        run("cmake", "--build", self.folder / "build")
        self.check(self.folder / "build/count", self.libdir)

    def test_cmake_static(self) -> None:
        """If only the static library is installed, the same target names it."""
        prefix, _ = self.static_prefix()
        self.cmake(prefix)
        run("cmake", "--build", self.folder / "build")
        self.check(self.folder / "build/count", None)

    def test_cmake_versions(self) -> None:
        """Asked for an older patch version it serves; for another minor version, a newer or an exact one, not."""
        version = run(self.prefix / "bin/penstock", "--version").split()[1]
        major, minor, patch = (int(part) for part in version.split("."))
        good = ["", f"{major}.{minor}", f"{version} EXACT", f"{major}.{minor}...{major}.{minor + 1}"]
        bad = [f"{major}.{minor + 1}", f"{major + 1}", f"{major}.{minor}.{patch + 1}", f"{major}.{minor}.99 EXACT",
               f"{major}.{minor}.{patch + 1}...{major}.{minor + 1}", f"{version} COMPONENTS cuda"]
        if minor > 0 == major:
            bad += [f"{major}.{minor - 1}", f"{major}.{minor - 1}...<{version}"]
        tests = [f"find_package(penstock {words} QUIET)\nmessage(STATUS \"{i}: ${{penstock_FOUND}}\")\n"
                 for i, words in enumerate(good + bad)]
        (self.folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.19)\nproject(versions C)\n"
                                                    + "".join(tests))
        found = dict(re.findall(r"-- (\d+): ([01TRUEFALS]+)", self.cmake(self.prefix, self.folder)))
        for i, words in enumerate(good + bad):
            self.assertEqual(found[str(i)] in ("1", "TRUE"), words in good, words)

    def test_cmake_without_library(self) -> None:
        """A prefix without a library is refused, with the files that are missing."""
        prefix, libdir = self.static_prefix()
        (libdir / "libpenstock.a").unlink()
        self.assertRegex(self.cmake(prefix, status=None), r"neither\s+\S+libpenstock\.so\.\S+\s+nor")

    def test_documentation(self) -> None:
        """The build files of examples/project are those that docs/install.md shows."""
        shown = re.findall("^```text\n(.*?)^```", (TOP / "docs/install.md").read_text(), re.M | re.S)
        cmake, pkg_config, meson = shown
        self.assertTrue((PROJECT / "CMakeLists.txt").read_text().endswith("\n" + cmake))
        self.assertTrue((PROJECT / "meson.build").read_text().endswith("\n" + meson))
        for words in re.findall(r"\$\(pkg-config (.*)\)", pkg_config):
            for word in words.split():
                self.assertIn(word, (PROJECT / "Makefile").read_text())

    def test_documented_pkg_config(self) -> None:
        """The line of docs/install.md, by a shell."""
        _, line, _ = re.findall("^```text\n(.*?)^```", (TOP / "docs/install.md").read_text(), re.M | re.S)
        shutil.copy(PROJECT / "count.c", self.folder)
        run("sh", "-c", line, cwd=self.folder, **self.pkg_config())
        self.check(self.folder / "count", self.libdir)

    def test_tags(self) -> None:
        """meson install --tags: the pieces that docs/install.md names are all there is, and none is in two."""
        installed = set()
        for tag in ("runtime", "devel", "man", "python-runtime"):
            root = self.folder / tag
            run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", tag, "--destdir", root)
            files = {path.relative_to(root) for path in root.rglob("*") if not path.is_dir()}
            self.assertTrue(files, tag)
            self.assertFalse(files & installed, tag)
            installed |= files
        self.assertEqual(installed, {path.relative_to(self.root) for path in self.root.rglob("*") if not path.is_dir()})

    def test_meson(self) -> None:
        """The installed library."""
        run("meson", "setup", self.folder / "build", PROJECT, "--wrap-mode=nofallback", **self.pkg_config())
        run("ninja", "-C", self.folder / "build")
        self.check(self.folder / "build/count", self.libdir)

    def test_meson_subproject(self) -> None:
        """The sources as a subproject, by packaging/penstock.wrap. Nothing of the host project's prefix but what is
        its own and the library's: no Python package."""
        shutil.copytree(PROJECT, self.folder / "count")
        (self.folder / "count/subprojects").mkdir()
        shutil.copy(TOP / "packaging/penstock.wrap", self.folder / "count/subprojects")
        (self.folder / "count/subprojects/penstock").symlink_to(TOP)
        build = self.folder / "build"
        run("meson", "setup", build, self.folder / "count", "--wrap-mode=forcefallback", "-Doptimization=0",
            "-Dpenstock:cuda=disabled", "-Dpenstock:default_library=shared")
        run("ninja", "-C", build)
        self.check(build / "count", build / "subprojects/penstock/src")
        installed = run("meson", "introspect", "--installed", build)
        self.assertIn("include/penstock/penstock.h", installed)
        self.assertNotRegex(installed, "(site|dist)-packages")


if __name__ == "__main__":
    unittest.main()
