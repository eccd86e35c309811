# SPDX-License-Identifier: Apache-2.0
"""Every block of code in README.md, CONTRIBUTING.md and the pages below docs/ does what it says: it is run.

A page's blocks run in their order, Python's with the names of those before, in a folder that has images
(imagenet/train, imagenet/val), the data sets packed of them (train, val; unless the page packs them itself)
and the examples. Blocks of C are compiled. What a page may say, on the line before a block:

    <!-- needs: torch -->      a module without which the block is skipped; those it imports are seen anyway
    <!-- not run: why -->      it cannot be run here; listed as skipped, with its reason

So that this takes seconds and needs no GPU, some values are others here: REPLACED.
"""
import ast
import contextlib
import functools
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

import demo_set
import penstock
import sets

sets.need_numpy()

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs/site"))
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY")),
         *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = ("python", "sh", "c", "", "text")  # the last two are no code
N_IMAGES = 43  # as many as no page may take for granted; and of val half as many
N_CLASSES = 7  # as many as no page may take for granted
REPLACED = {'device="cuda"': 'device="cpu"', "batch_size=256": "batch_size=8", "range(90)": "range(2)",
            "bench train   ": "bench train --seconds 0.5 --no-ceilings   "}


class Block:
    """Code of a page: its language, its text, the number of its first line, and what is said about it."""

    def __init__(self, page, line, language, code, said):
        self.page, self.line, self.language, self.code = page, line, language, code
        self.not_run = said.get("not run")
        self.needs = said.get("needs", "").replace(",", " ").split()

    @property
    def name(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def missing(self):
        """Return a module that it needs and that is not here, or None."""
        wanted = list(self.needs)
        if self.language == "python":
            for node in ast.walk(ast.parse(self.code)):
                if isinstance(node, ast.Import):
                    wanted += [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    wanted.append(node.module)
        return next((name for name in wanted if not is_installed(name)), None)


def is_installed(module):
    importlib.invalidate_caches()  # a page may write modules
    return importlib.util.find_spec(module.partition(".")[0]) is not None


def blocks_of(page):
    found, said, fence, code = [], {}, None, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        opening = re.match(r"\s*```(.*)$", line)
        comment = re.match(r"<!-- (needs|not run): (.*) -->$", line)
        if fence is not None and opening:
            found.append(Block(page, fence[0], fence[1], "\n".join(code) + "\n", said))
            fence, code, said = None, [], {}
        elif fence is not None:
            code.append(line)
        elif opening:
            fence = (number + 1, opening[1].strip())
        elif comment:
            said[comment[1]] = comment[2]
        elif line.strip():
            said = {}
    if fence is not None:
        raise ValueError(f"{page.relative_to(ROOT)}:{fence[0]}: the block does not end")
    return found


def replaced(code):
    for there, here in REPLACED.items():
        code = code.replace(there, here)
    return code


@functools.lru_cache(maxsize=None)
def first_folder():
    """Return the images and the data sets, of which each page gets a copy."""
    folder = pathlib.Path(sets.ROOT, "docs")
    (folder / "imagenet").mkdir(parents=True)
    for name, n in (("train", N_IMAGES), ("val", N_IMAGES // 2)):
        demo_set.make(n, folder / "imagenet" / name, N_CLASSES)
        demo_set.pack(folder / "imagenet" / name, folder / name)
    return folder


def write_program(path, text):
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


class Page(unittest.TestCase):
    """The blocks of one page; made below, a class for each."""

    blocks = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-docs-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        cls.names = types.ModuleType("__main__")
        run = [block.code for block in cls.blocks if block.not_run is None]
        packs = any(re.search(r"^penstock pack \S+ train\b", code, re.M) for code in run)
        for name in ("imagenet", *(() if packs else ("train", "val"))):
            shutil.copytree(first_folder() / name, cls.folder / name)
        (cls.folder / "examples").symlink_to(ROOT / "examples")
        cls.programs()

    @classmethod
    def programs(cls):
        """Make the programs that pages call `python` and `penstock`, on the PATH of their shell."""
        folder = cls.folder / "bin"
        folder.mkdir()
        for name, module in (("python", ""), ("python3", ""), ("torchrun", "-m torch.distributed.run")):
            write_program(folder / name, f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (folder / "penstock").symlink_to(os.environ["PENSTOCK_COMMAND"])
        cls.environment = dict(
            os.environ, PATH=f"{folder}{os.pathsep}{os.environ['PATH']}",
            PYTHONPATH=os.pathsep.join(sys.path), OMP_NUM_THREADS="1",
            PENSTOCK_CACHE=str(cls.folder / "cache"))  # not the developer's: a page empties it

    @classmethod
    def tearDownClass(cls):
        vars(cls.names).clear()

    def run_block(self, block):
        if block.not_run is not None:
            self.skipTest(f"{block.name} is not run: {block.not_run}")
        missing = block.missing()
        if missing is not None:
            self.skipTest(f"missing: {missing}")
        getattr(self, "run_" + block.language)(block)

    def run_python(self, block):
        code = replaced(block.code)
        # Errors tell the line of the page.
        program = compile("\n" * (block.line - 1) + code, str(block.page), "exec")
        before, out = os.getcwd(), io.StringIO()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out):
                exec(program, vars(self.names))
        except BaseException:
            for line in out.getvalue().splitlines():
                print("#  ", line)
            raise
        finally:
            os.chdir(before)
        if "except " in code:
            self.assertTrue(out.getvalue().strip(), f"{block.name}: the error that it shows was not raised")

    def run_sh(self, block):
        done = subprocess.run(["sh", "-euc", replaced(block.code)], cwd=self.folder, env=self.environment,
                              timeout=240, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True)
        self.assertEqual(done.returncode, 0, f"{block.name}:\n{done.stdout}")

    def run_c(self, block):
        if shutil.which("cc") is None:
            self.skipTest("missing: cc")
        compiler = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        done = subprocess.run([*compiler, f"-I{ROOT / 'include'}", "-xc", "-"], input=block.code,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        self.assertEqual(done.returncode, 0, f"{block.name}:\n{done.stdout}")


def documented_in(name, pattern):
    """Return the names in a page of the reference of Python: of directives, and of tables whose rows have pages of
    their own."""
    page = (ROOT / f"docs/reference/{name}.rst").read_text(encoding="utf-8")
    return {*re.findall(rf"(?m)^\.\. (?:auto\w+|py:data):: penstock\.{pattern}$", page),
            *re.findall(rf"(?m)^   {pattern}$", page)}


class Written(unittest.TestCase):
    def test_blocks_have_languages_that_are_known(self):
        for page in PAGES:
            for block in blocks_of(page):
                self.assertIn(block.language, LANGUAGES, block.name)

    def test_code_is_at_most_90_columns_wide(self):
        wide = [f"{block.name}: {line}" for page in PAGES for block in blocks_of(page) if block.language in ("python", "sh", "c")
                for line in block.code.splitlines() if len(line) > 90]
        self.assertEqual(wide, [])

    def test_links_lead_somewhere(self):
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
                self.assertTrue((page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}")
            headings = {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-")
                        for h in re.findall(r"^#+ (.*)$", text, re.M)}
            for anchor in re.findall(r"\]\(#([^)]*)\)", text):
                self.assertIn(anchor, headings, page.relative_to(ROOT))

    def test_no_line_of_the_readme_is_longer_than_100_columns(self):
        lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        self.assertEqual([line for line in lines if len(line) > 100], [])

    def test_every_public_function_is_in_the_reference_of_c(self):
        pages = importlib.import_module("headers")  # docs/site/headers.py
        headers = pages.c_headers(ROOT / "include/penstock")
        rst = "\n".join(line for header in headers for line in pages.rst_of(header, headers))
        for header in headers:
            for name in re.findall(r"^PSTK_API [^;(]*?(\w+)\(", header.text, re.M):
                self.assertRegex(rst, rf"(?m)^\.\. c:function:: .*\b{name}\(", header.name)

    def test_every_public_header_has_a_sentence_in_the_reference_of_c(self):
        page = (ROOT / "docs/reference/c.rst").read_text(encoding="utf-8")
        listed = re.findall(r"(?m)^   \* - :doc:`(\w+)\.h </include/penstock/\1>`\n     - \w.* \w", page)
        headers = {path.stem for path in (ROOT / "include/penstock").glob("*.h")}
        self.assertEqual((set(listed), len(listed)), (headers, len(headers)))

    def test_every_public_name_is_in_the_reference_of_python(self):
        documented = documented_in("python", r"(\w+)")
        self.assertEqual(documented - {"budget", "mix", "mosaic", "subset", "topics"},
                         {*penstock.__all__} - {"__version__", "ops"})
        self.assertEqual(documented_in("ops", r"ops\.(\w+)") - {"crop", "geometry", "colour", "warp", "policy",
                         "timm", "random", "values"}, set(penstock.ops.__all__))

    def test_a_name_in_a_module_is_there_for_who_imports_penstock_alone(self):
        """penstock.monitor.lightning_callback, say, before anything else has imported penstock.monitor."""
        names = {}
        for page in [*PAGES, *(ROOT / "docs").rglob("*.rst")]:
            for module, name in re.findall(r"(?m)(?:\bpenstock\.|^   )([a-z_]+)\.(\w+)", page.read_text(encoding="utf-8")):
                if importlib.util.find_spec(f"penstock.{module}") is not None:
                    names.setdefault(module, set()).add(name)
        self.assertIn("lightning_callback", names["monitor"])
        for module, of_it in names.items():
            code = f"import penstock\nfor name in {sorted(of_it)}: getattr(penstock.{module}, name)"
            with self.subTest(module):
                done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      env={**os.environ, "PYTHONPATH": str(ROOT / "bindings/python")})
                self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_the_picture_is_what_its_program_draws(self):
        drawn = subprocess.run([sys.executable, str(ROOT / "docs/site/path-svg")], stdout=subprocess.PIPE, check=True)
        self.assertEqual(drawn.stdout.decode(), (ROOT / "docs/path.svg").read_text(encoding="utf-8"))


def page_class(page):
    """Return a class whose tests are the blocks of a page: test_line_0012_python."""
    blocks = [block for block in blocks_of(page) if block.language in ("python", "sh", "c")]
    name = page.relative_to(ROOT).with_suffix("")
    members = {"blocks": blocks, "__doc__": f"{name}.md"}
    for block in blocks:
        def run(self, block=block):
            self.run_block(block)
        members[f"test_line_{block.line:04}_{block.language}"] = run
    return type("Page_" + re.sub(r"\W", "_", str(name)), (Page,), members)


globals().update((made.__name__, made) for made in map(page_class, PAGES) if made.blocks)


if __name__ == "__main__":
    unittest.main()
