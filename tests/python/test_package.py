# SPDX-License-Identifier: Apache-2.0
"""The package as others get it: a wheel in an empty environment, its types, how long it takes to import.

PENSTOCK_WHEEL = a wheel of scripts/wheel; without it what needs one is skipped. `scripts/test python`
makes one and runs this.
"""
from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator

TOP = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = TOP / "bindings/python/penstock"
WHEEL = os.environ.get("PENSTOCK_WHEEL", "")
MAKE_IMAGES = os.environ.get("PENSTOCK_MAKE_IMAGES", "")

# Everything of the quick start, with what an empty environment has: the standard library.
QUICK_START = """
import sys
import penstock

loader = penstock.Loader(sys.argv[1], batch_size=8, seed=1, n_threads=1, last_batch="short", outputs={
    "image": penstock.image("jpg", [penstock.ops.RandomResizedCrop(32), penstock.ops.RandomFlip()]),
    "label": penstock.scalar("cls", dtype="int64")})
rows = []
for batch in loader.epoch(0):
    image = batch["image"]
    assert image.shape == (batch.n_valid, 32, 32, 3), image.shape
    assert any(image.memoryview()), "a black batch"
    rows += list(batch.sample_ids)[:batch.n_valid]
loader.close()
assert sorted(rows) == list(range(20)), rows
"""

WRITE = """
import sys
import penstock

with penstock.Writer(sys.argv[1], {"text": "utf8", "cls": "int64"}) as writer:
    for i in range(10):
        writer.add(text=f"sample {i}", cls=i)
data = penstock.Dataset(sys.argv[1])
assert len(data) == 10
assert data[7]["text"] == "sample 7" and data[7]["cls"] == 7, data[7]
"""


# The kernels in src/device/cuda/kernels.cu.
KERNELS = {f"pstk_pixels_{channels}_{dtype}_{layout}_{exact}_{run}".encode()
           for dtype, exact, runs in (("F32", 0, (1, 4)), ("F16", 0, (1, 8)), ("F16", 1, (1, 8)), ("BF16", 1, (1, 8)))
           for channels, layout in ((1, "NCHW"), (3, "NHWC"), (3, "NCHW"), (4, "NHWC"), (4, "NCHW")) for run in runs}
KERNELS |= {f"pstk_cast_{name}".encode() for name in ("I32_U16", "I64_U8", "I64_U16", "I64_I32", "any")}
KERNELS |= {b"pstk_spin"}
CUDA_12_ABI = (0x33, 7)  # CUDA 13, and 12 for what came after Hopper: (0x41, 8)


def elf_abi(image: bytes) -> tuple[int, int]:
    return image[7], image[8]


def cubins(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the machine codes in a library: ELF files for NVIDIA's GPUs, by their compute capability."""
    starts = [match.start() for match in re.finditer(rb"\x7fELF\x02\x01", data)] + [len(data)]
    for begin, end in zip(starts, starts[1:]):
        image = data[begin:end]
        machine, flags = struct.unpack_from("<18xH28xI", image)
        if machine == 190:  # EM_CUDA
            yield (flags if elf_abi(image)[1] < 8 else flags >> 8) & 0xFF, image


def clean_environment() -> dict[str, str]:
    """Without what would lead to a library or a package of the build."""
    drop = re.compile("^(PENSTOCK_|PYTHON|LD_)")
    return {name: value for name, value in os.environ.items() if not drop.match(name)}


def run(*command: object, cwd: pathlib.Path | None = None, status: int = 0, **variables: str) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={**clean_environment(), **variables},
                          text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=240)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, command))[:300]}: status {done.returncode}\n{done.stdout}")
    return done.stdout


class SourceTest(unittest.TestCase):
    """Tests of the package as it lies here."""

    def test_one_version(self) -> None:
        """meson.build and the package say the same."""
        wanted = re.search(r"version: '([^']+)'", (TOP / "meson.build").read_text())
        said = re.search(r'__version__ = "([^"]+)"', (PACKAGE / "_version.py").read_text())
        assert wanted and said
        self.assertEqual(said[1], wanted[1])

    def test_a_folder_of_its_name_hides_no_package(self) -> None:
        """A folder penstock in the current one, such as a clone, is a package only where there is no other."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "penstock").mkdir()
            code = "import penstock; print(penstock.__file__, hasattr(penstock, 'Loader'))"
            command = sys.executable, "-S", "-c", code  # -S: without what is installed in this Python
            here = {name: value for name, value in os.environ.items() if name == "PENSTOCK_LIBRARY"}
            self.assertEqual(run(*command, cwd=pathlib.Path(folder)), "None False\n")
            self.assertEqual(run(*command, cwd=pathlib.Path(folder), PYTHONPATH=str(PACKAGE.parent), **here),
                             f"{PACKAGE / '__init__.py'} True\n")

    def test_types(self) -> None:
        """mypy --strict has nothing to say."""
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("missing: mypy")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", str(TOP / "pyproject.toml"),
                                   "--cache-dir", folder, str(PACKAGE)], cwd=TOP, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_types_of_a_program(self) -> None:
        """mypy --strict knows each public name, and finds a name that is not there."""
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("missing: mypy")
        import penstock
        names = [*(f"penstock.{name}" for name in penstock.__all__), *(f"penstock.ops.{name}" for name in penstock.ops.__all__)]
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program.py"
            program.write_text("\n".join(["import penstock", *names, "penstock.RandomFlip()", "penstock.ops.MixUp(0.2)", ""]))
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--cache-dir", folder,
                                   str(program)], env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, text=True, stdout=subprocess.PIPE)
        found = [line.partition("error: ")[2] for line in done.stdout.splitlines() if "error: " in line]
        self.assertEqual(found, ['Module has no attribute "RandomFlip"  [attr-defined]', 'Module has no attribute "MixUp"  [attr-defined]'])

    def test_import_is_quick_and_takes_no_framework_in(self) -> None:
        """Few calls of functions, which no other program slows down: some 51,000."""
        code = ("import sys; n = [0]\n"
                "def count(_frame, event, _argument): n[0] += event in ('call', 'c_call')\n"
                "sys.setprofile(count); import penstock; sys.setprofile(None); print(n[0])\n"
                "print([name for name in ('numpy', 'torch', 'jax', 'cupy', 'PIL') if name in sys.modules])")
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "PYTHONPYCACHEPREFIX": folder}
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            for _ in range(2):  # the first one compiles
                out = subprocess.run([sys.executable, "-c", code], text=True, check=True, env=env,
                                     stdout=subprocess.PIPE).stdout.split("\n")
                self.assertEqual(out[1], "[]")
        self.assertLess(int(out[0]), 52000)

    def test_headers_and_library_of_the_sources(self) -> None:
        """Without a wheel, the headers are those of the sources, and the library is the one that was loaded."""
        import penstock
        self.assertEqual(penstock.get_include(), str(TOP / "include"))
        self.assertEqual(os.path.realpath(penstock.get_library()), os.path.realpath(os.environ["PENSTOCK_LIBRARY"]))


@unittest.skipUnless(WHEEL, "PENSTOCK_WHEEL names no wheel; scripts/test python makes one")
class WheelTest(unittest.TestCase):
    """A wheel in an environment that has nothing else."""

    folder: tempfile.TemporaryDirectory[str]
    top: pathlib.Path
    data: pathlib.Path
    before: set[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.top = pathlib.Path(cls.folder.name)
        run(sys.executable, "-m", "venv", cls.top / "venv")
        cls.before = cls.installed()
        run(cls.program("pip"), "install", "--no-index", WHEEL)
        run(MAKE_IMAGES, 20, cls.top / "images", "--classes", 2)
        cls.data = cls.top / "data"
        run(cls.program("penstock"), "pack", cls.top / "images", cls.data)

    @classmethod
    def program(cls, name: str) -> pathlib.Path:
        return cls.top / "venv/bin" / name

    @classmethod
    def python(cls, code: str, *arguments: object, **variables: str) -> str:
        return run(cls.program("python"), "-c", code, *arguments, cwd=cls.top, **variables)

    @classmethod
    def installed(cls) -> set[str]:
        """Return every file and folder of the environment, but pip's own compiled ones."""
        found = (str(path.relative_to(cls.top / "venv")) for path in (cls.top / "venv").rglob("*"))
        own = re.compile("/(pip|setuptools|pkg_resources|_distutils_hack)(/|$)")
        return {path for path in found if not own.search(path)}

    def test_name(self) -> None:
        """One wheel for every Python 3, for Linux machines with a glibc that its name tells."""
        self.assertRegex(pathlib.Path(WHEEL).name, r"^penstock-[0-9.]+-py3-none-manylinux_2_\d+_\w+\.whl$")

    def test_command(self) -> None:
        """The command is there as a script and as a module, and what it packed is whole."""
        self.assertIn("penstock", run(self.program("penstock"), "--version"))
        run(self.program("python"), "-m", "penstock", "verify", self.data)
        run(self.program("penstock"), "no-such-command", status=2)

    def test_quick_start(self) -> None:
        self.python(QUICK_START, self.data)

    def test_write(self) -> None:
        self.python(WRITE, self.top / "written")

    def test_libraries_are_the_bundled_ones(self) -> None:
        """The library and what it links come from the wheel, and hwloc finds no plugins of the machine's.
        The dynamic linker tells each file that it loads, also those that are gone at the end."""
        telling = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(self.top / "linker")}
        self.python(QUICK_START, self.data, **telling)
        run(self.program("penstock"), "doctor", **telling)
        told = "".join(path.read_text() for path in self.top.glob("linker.*"))
        loaded = set(re.findall(r"calling init: (\S+)", told))
        site = str(self.top / "venv")
        for name in ("libpenstock", "libhwloc", "libjansson", "libjpeg", "libpng16", "liburing", "libzstd"):
            found = [path for path in loaded if os.path.basename(path).startswith(name)]
            self.assertTrue(found, f"{name} was not loaded: {loaded}")
            self.assertTrue(all(path.startswith(site) for path in found), found)
        self.assertFalse([path for path in loaded if "hwloc" in path and not path.startswith(site)], loaded)

    def test_it_needs_glibc_zlib_and_libgcc_s_alone(self) -> None:
        """The command works in a root that has nothing else."""
        chroot, ldd = shutil.which("chroot"), shutil.which("ldd")
        if os.geteuid() or not chroot or not ldd:
            self.skipTest("missing: root, chroot and ldd")
        (package,) = (self.top / "venv").glob("lib/python*/site-packages/penstock")
        site, root = package.parent, self.top / "root"
        for name in ("penstock/bin", "penstock/lib", "penstock.libs"):
            shutil.copytree(site / name, root / name)
        systems = re.compile(r"(?:=> )?(/\S*/(?:lib(?:c|m|dl|rt|pthread|z|gcc_s)\.so\.\d+|ld-linux\S+)) \(")
        for path in systems.findall(run(ldd, root / "penstock/bin/penstock")):
            (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path.lstrip("/"))
        shutil.copytree(self.data, root / "data")
        places = "/penstock/lib:/penstock.libs"  # without /proc the linker does not know the command's place
        said = run(chroot, root, "/penstock/bin/penstock", "verify", "data", LD_LIBRARY_PATH=places)
        self.assertIn("data: no damage found", said)

    def test_kernels_run_from_driver_525_on(self) -> None:
        """Every kernel in machine code for each GPU from Turing to Blackwell, and in PTX for later ones. Up to
        Hopper the machine code is of the ABI of CUDA 12.0; newer GPUs have drivers that know theirs."""
        (library,) = (self.top / "venv").rglob("libpenstock*.so*")
        data = library.read_bytes()
        images = dict(cubins(data))
        self.assertEqual(sorted(images), [75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121])
        for arch, image in images.items():
            self.assertEqual(len(KERNELS & set(re.findall(rb"(?<=\0)pstk_\w+(?=\0)", image))), len(KERNELS), arch)
            if arch <= 90:
                self.assertEqual(elf_abi(image), CUDA_12_ABI, arch)
        (ptx,) = re.findall(rb"\.version [^\0]*", data)
        self.assertIn(b".target sm_90\n", ptx)
        self.assertEqual(set(re.findall(rb"\.visible \.entry (\w+)", ptx)), KERNELS)

    def test_licences(self) -> None:
        """Each bundled library's licence is in it, and ours."""
        (licences,) = (self.top / "venv").glob("lib/python*/site-packages/penstock-*.dist-info/licenses")
        bundled = list((self.top / "venv").glob("lib/python*/site-packages/penstock.libs/*"))
        self.assertTrue((licences / "LICENSE").exists())
        (chart,) = licences.rglob("chart-licence.txt")
        self.assertIn("Chart.js Contributors", chart.read_text())
        listed = [line.split("\t") for line in (licences / "bundled.tsv").read_text().splitlines()]
        self.assertEqual(sorted(line[0] for line in listed if not line[0].endswith(".a")),
                         sorted(re.sub("-[0-9a-f]{8}(?=[.]so)", "", path.name) for path in bundled))
        page = (TOP / "docs/install.md").read_text()
        self.assertEqual({line[2] for line in listed}, {path.name for path in licences.glob("lib*.txt")})
        self.assertLessEqual({"libexpat.a", "libsnappy.a", "libstdc++.a"}, {line[0] for line in listed})
        for name, licence, _, source in listed:
            self.assertRegex(page, rf"(?m)^\| {re.escape(re.match('[a-z+]+', name)[0])}[0-9]*(?![a-z+]).* \| {re.escape(licence)} \|$")
            self.assertRegex(licence, r"^[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*$", name)
            self.assertRegex(source, r"^Debian source package: \S+ \S+$", name)

    def test_pages(self) -> None:
        """The files for `share` are in the folder where man(1) looks, next to the folder of the command."""
        page = self.top / "venv/share/man/man1/penstock.1"
        version = run(self.program("penstock"), "--version").strip()
        self.assertRegex(page.read_text(), rf'(?m)^.TH PENSTOCK 1 .*"{re.escape(version)}"')

    def test_headers(self) -> None:
        """A C program is compiled with the wheel's headers and linked with its library, and runs."""
        if not shutil.which("cc"):
            self.skipTest("missing: cc")
        places = self.python("import penstock; print(penstock.get_include()); print(penstock.get_library())")
        include, library = places.split()
        for path in (include, library):
            self.assertTrue(path.startswith(str(self.top / "venv")), path)
        self.assertEqual(sorted(os.listdir(include + "/penstock")), sorted(os.listdir(TOP / "include/penstock")))
        program = self.top / "count"
        run("cc", TOP / "examples/project/count.c", "-I", include, library, f"-Wl,-rpath,{os.path.dirname(library)}",
            "-o", program)
        self.assertEqual(run(program, self.data), "20 samples\n")

    def test_z_uninstall_leaves_nothing(self) -> None:
        """Last, by its name. Of `share` pip leaves folders, without a file in them."""
        run(self.program("pip"), "uninstall", "--yes", "penstock")
        left = self.installed() - self.before
        self.assertEqual([path for path in left if path.split("/")[0] != "share"], [])
        self.assertEqual([path for path in left if not (self.top / "venv" / path).is_dir()], [])


if __name__ == "__main__":
    unittest.main()
