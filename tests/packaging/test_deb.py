# SPDX-License-Identifier: Apache-2.0
"""The Debian package that scripts/deb makes of a build.

PENSTOCK_BUILD names the build. Installing a package needs root, so it is unpacked here, and what dpkg would run is
read.
"""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["PENSTOCK_BUILD"]
TOOLS = ["meson", "dpkg", "dpkg-deb", "dpkg-shlibdeps", "readelf"]


def run(*command: object) -> str:
    """Return what `command` printed."""
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def owner(library: pathlib.Path, name: str) -> str:
    """Return the Debian package of the shared library `name` that `library` loads."""
    (path,) = re.findall(rf"(?m)^\s+(?:{re.escape(name)} => )?(/\S*{re.escape(name)}) ", run("ldd", library))
    # With the folder of the architecture: packages for others have files of the same name.
    tail = pathlib.Path(os.path.realpath(path)).parts[-3:]
    return run("dpkg-query", "-S", "*/" + "/".join(tail)).split(":")[0]


class DebTest(unittest.TestCase):
    """One package, unpacked once."""

    package: pathlib.Path
    root: pathlib.Path  # the files
    control: pathlib.Path  # files that dpkg reads
    made: list[str]  # lines that scripts/deb printed

    @classmethod
    def setUpClass(cls) -> None:
        missing = [tool for tool in TOOLS if not shutil.which(tool)]
        if missing:
            raise unittest.SkipTest(f"missing: {missing[0]}")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        top = pathlib.Path(folder.name)
        cls.root, cls.control = top / "files", top / "control"
        umask = os.umask(0o077)  # the strictest there is: what is packed is for all
        try:
            cls.made = run(TOP / "scripts/deb", top / "out", BUILD).strip().split("\n")
        finally:
            os.umask(umask)
        cls.package = pathlib.Path(cls.made[-1])
        run("dpkg-deb", "--extract", cls.package, cls.root)
        run("dpkg-deb", "--control", cls.package, cls.control)

    def field(self, name: str) -> str:
        return run("dpkg-deb", "--field", self.package, name).strip()

    def test_name(self) -> None:
        """It has name, version and architecture; so has its file."""
        version = json.loads(run("meson", "introspect", "--projectinfo", BUILD))["version"]
        architecture = run("dpkg", "--print-architecture").strip()
        self.assertEqual(self.package.name, f"penstock_{version}_{architecture}.deb")
        self.assertEqual((self.field("Package"), self.field("Version"), self.field("Architecture")),
                         ("penstock", version, architecture))
        self.assertNotIn("@", re.sub("<.*>", "", (self.control / "control").read_text()))

    def test_files(self) -> None:
        """All that `meson install` installs is in it, manual pages compressed."""
        installed = json.loads(run("meson", "introspect", "--installed", BUILD)).values()
        self.assertTrue([path for path in installed if path.endswith("bin/penstock")], installed)
        for path in installed:
            path = re.sub(r"(/man/.*\.[1-9])$", r"\1.gz", path)
            self.assertTrue((self.root / path.lstrip("/")).exists(), path)
        for name in ("penstock.1.gz", "penstock.h", "penstock.pc", "penstock-config.cmake", "libpenstock.a",
                     "libpenstock.so.0", "__init__.py"):
            self.assertTrue(list(self.root.rglob(name)), name)
        licences = (self.root / "usr/share/doc/penstock/copyright").read_text()
        (command,) = self.root.rglob("bin/penstock")
        self.assertEqual("Chart.js Contributors" in licences, b"Chart.js v" in command.read_bytes())

    def test_owner_and_modes(self) -> None:
        """Everything belongs to root; all may read it, and root alone may write it."""
        for line in run("dpkg-deb", "--contents", self.package).strip().split("\n"):
            mode, who = line.split()[:2]
            self.assertEqual(who, "root/root", line)
            is_program = "/bin/" in line and mode[0] == "-"
            wanted = "drwxr-xr-x" if mode[0] == "d" else "-rwxr-xr-x" if is_program else "-rw-r--r--"
            self.assertIn(mode, (wanted, "lrwxrwxrwx"), line)

    def test_depends(self) -> None:
        """The packages of all libraries that library and command name, each with a version, and no others."""
        (library,) = (path for path in self.root.rglob("libpenstock.so.*") if not path.is_symlink())
        (command,) = self.root.rglob("bin/penstock")
        wanted = set()
        for path in (library, command):
            names = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path))
            wanted |= {owner(path, name) for name in names if not name.startswith("libpenstock")}
        depends = self.field("Depends").split(", ")
        self.assertTrue({"libc6", "liburing2"} <= wanted, wanted)
        self.assertEqual({word.split()[0] for word in depends}, wanted)
        without = {word for word in depends if " (>= " not in word}
        self.assertLessEqual(without, {"libbz2-1.0"}, depends)  # Debian's shlibs of it names no version

    def test_is_said(self) -> None:
        """scripts/deb prints the package's size and its dependencies."""
        self.assertIn(f"{self.package.stat().st_size / 1e6:.1f} MB", self.made[0])
        self.assertEqual(self.made[1].split("needs")[1].strip(), self.field("Depends"))

    def test_sums(self) -> None:
        """The sum of each file, which dpkg --verify takes."""
        lines = (self.control / "md5sums").read_text().strip().split("\n")
        files = [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]
        self.assertEqual(len(lines), len(files))
        for line in lines:
            digest, name = line.split("  ")
            self.assertEqual(hashlib.md5((self.root / name).read_bytes()).hexdigest(), digest, name)

    def test_other_packages_find_the_library(self) -> None:
        """shlibs has the library's name and major version, and ldconfig runs."""
        (library,) = (path for path in self.root.rglob("libpenstock.so.*") if not path.is_symlink())
        (soname,) = re.findall(r"\(SONAME\).*\[(.*)\]", run("readelf", "-d", library))
        name, major, package = (self.control / "shlibs").read_text().split()[:3]
        self.assertEqual((f"{name}.so.{major}", package), (soname, "penstock"))
        self.assertIn("ldconfig", (self.control / "triggers").read_text())

    def test_scripts(self) -> None:
        """dpkg can run them."""
        for name in ("postinst", "prerm"):
            self.assertTrue(os.access(self.control / name, os.X_OK), name)
            run("sh", "-n", self.control / name)

    def test_command(self) -> None:
        """The command runs where it was unpacked, with the library of the package, and both are stripped."""
        (command,) = self.root.rglob("bin/penstock")
        self.assertEqual(run("env", f"LD_LIBRARY_PATH={self.libraries()}", command, "--version").split()[0], "penstock")
        self.assertNotIn(".symtab", run("readelf", "-S", "--wide", command))

    def libraries(self) -> pathlib.Path:
        (link,) = self.root.rglob("libpenstock.so.0")
        return link.parent


if __name__ == "__main__":
    unittest.main()
