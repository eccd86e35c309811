# SPDX-License-Identifier: Apache-2.0
"""penstock.pack of a folder of images: what the command `penstock pack` makes of it, byte for byte, and what both
print of what is left out."""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import unittest.mock
import warnings

import penstock
import sets
import tfrecords
from data_fixture import Case, image_file

COMMAND, MAKE_IMAGES = os.environ.get("PENSTOCK_COMMAND"), os.environ.get("PENSTOCK_MAKE_IMAGES")
if not COMMAND or not MAKE_IMAGES:
    raise unittest.SkipTest("PENSTOCK_COMMAND and PENSTOCK_MAKE_IMAGES name no programs")

WEBP, GIF = b"RIFF\x24\0\0\0WEBPVP8 " + bytes(20), b"GIF89a" + bytes(20)


def files_of(path):
    """Return {name: digest of its bytes} of all files of a data set."""
    made = {}
    for name in sorted(os.listdir(path)):
        with open(os.path.join(path, name), "rb") as file:
            made[name] = hashlib.sha256(file.read()).hexdigest()
    return made


class FolderTest(Case):
    def make(self, name, files):
        """Make a folder of these files. Return its path."""
        for file, data in files.items():
            path = os.path.join(self.path(name), file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(data)
        return self.path(name)

    def pack(self, folder, path, **settings):
        """Return the data set, and what was printed."""
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            data = penstock.pack(folder, path, **settings)
        return data, said.getvalue()

    def command(self, *arguments, status=0, **more):
        """Return the output of the command on stderr."""
        done = subprocess.run([COMMAND, "pack", *arguments], text=True, check=False, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def assert_same(self, folder, *options, **settings):
        """Both make the same of a folder, and print the same. Returns the data set and what was printed."""
        data, said = self.pack(folder, self.path("by-package"), overwrite=True, **settings)
        wanted = self.command(*options, "--overwrite", "--", folder, self.path("by-command"))
        self.assertEqual(files_of(self.path("by-package")), files_of(self.path("by-command")))
        self.assertEqual(said, wanted)
        return data, said

    def test_class_folders_and_a_flat_folder_become_what_the_command_makes(self):
        for name, more in (("classes", ["--classes", "3"]), ("flat", [])):
            subprocess.run([MAKE_IMAGES, "24", self.path(name), *more], check=True, stdout=subprocess.DEVNULL)
            data, said = self.assert_same(self.path(name))
            self.assertEqual((len(data), said), (24, ""))
            self.assertEqual(list(data.schema), ["jpg", "cls", "key"] if more else ["jpg", "key"])
        self.assertEqual(data.names, ())
        data, _ = self.assert_same(self.path("classes"))
        self.assertEqual(data.names, tuple(sorted(os.listdir(self.path("classes")))))
        for sample in data:
            self.assertTrue(sample["key"].startswith(data.names[sample["cls"]] + "/"))

    def test_settings_are_options_of_the_command(self):
        subprocess.run([MAKE_IMAGES, "60", self.path("flat")], check=True, stdout=subprocess.DEVNULL)
        data, _ = self.assert_same(self.path("flat"), "--shard-size=65536", shard_size=1 << 16)
        self.assertGreater(data.info.n_shards, 3)
        one = files_of(self.path("by-package"))
        for workers in (0, 1, 3):
            out = self.path(f"workers-{workers}")  # a path of its own: a data set that is replaced has other file names
            self.pack(self.path("flat"), out, num_workers=workers, shard_size=1 << 16)
            self.assertEqual(files_of(out), one)
        for name, value in (("shard_size", 65535), ("shard_size", (1 << 43) + 1), ("num_workers", 1025),
                            ("num_workers", -1), ("num_workers", "two")):
            error = self.assert_says([name, repr(value)], penstock.pack, self.path("flat"), self.path("no"),
                                     **{name: value})
            self.assertIsInstance(error, penstock.SettingsError)

    def test_files_left_out_are_printed_as_the_command_prints_them(self):
        folder = self.make("two words", {"a/1.jpg": image_file(0), "a/2.gif": GIF, "b/3.png": image_file(1, "PNG"),
                                         "b/notes.txt": b"none", "top.jpg": image_file(2)})
        data, said = self.assert_same(folder)
        self.assertEqual([sample["key"] for sample in data], ["a/1.jpg", "b/3.png"])
        for words in ("1 image next to the class folders", "1 GIF", "1 file in "):
            self.assertIn(words, said)
        here = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, here)
        self.make("-dash", {"1.jpg": image_file(0)})
        self.assertEqual(len(self.pack("-dash", "-packed")[0]), 1)

    def test_bad_images_are_named_or_skipped(self):
        folder = self.make("bad", {"a/1.jpg": image_file(0), "a/2.jpg": image_file(1)[:-400], "a/3.jpg": b"",
                                   "b/4.jpg": image_file(2), "b/5.jpg": WEBP})
        error = self.assert_says(["a/2.jpg", "a/3.jpg: an empty file", "b/5.jpg", "1 WebP", "JPEG or PNG", "skip_bad=True"],
                                 self.pack, folder, self.path("out"))
        self.assertIsInstance(error, penstock.PackError)
        self.assertIsNone(error.sample)
        self.assertNotIn("--skip-bad", str(error))
        self.assertEqual(self.left(), ["bad"])
        data, said = self.assert_same(folder, "--skip-bad", skip_bad=True)
        self.assertEqual([sample["key"] for sample in data], ["a/1.jpg", "b/4.jpg"])
        self.assertIn("  a/3.jpg: an empty file\n", said)

    def test_damaged_jpegs_are_refused_or_kept_as_pillow_shows_them(self):
        folder = self.make("damaged", {"1.jpg": image_file(0), "2.jpg": sets.damaged_jpeg(image_file(1))})
        error = self.assert_says(["2.jpg", "Pillow loads it", "damaged='accept'"], self.pack, folder, self.path("out"))
        self.assertNotIn("--damaged", str(error))
        data, _ = self.assert_same(folder, "--damaged=accept", damaged="accept")
        self.assertEqual(data.fields["jpg"].n_damaged, 1)
        self.assertEqual(data[1]["jpg"], sets.damaged_jpeg(image_file(1)))
        self.assert_says(["damaged: value is 'keep'", "'accept'"], penstock.pack, folder, self.path("no"),
                         damaged="keep")

    def test_palettes_are_warned_of(self):
        folder = self.make("masks", {"1.png": sets.png(3)})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _, said = self.pack(folder, self.path("out"))
        self.assertEqual([warning.filename for warning in caught], [__file__])
        self.assertIn("1 PNG file has a palette", str(caught[0].message))
        self.assertIn("in a field of kind mask, with their image", str(caught[0].message))
        self.assertEqual(said, "")

    def test_a_folder_whose_labels_cannot_be_determined_is_refused(self):
        image = image_file(0)
        tables = {"metadata.csv": b"file_name,label\na/1.jpg,x\nb/1.jpg,y\n",
                  "metadata.jsonl": b'{"file_name": "a/1.jpg", "label": "z"}\n'}
        folder = self.make("two", {"a/1.jpg": image, "b/1.jpg": image, **tables})

        def check(words, kind):
            self.assertIn(words, self.command(folder, self.path("out"), status=2))
            self.assertIsInstance(self.assert_says(words, penstock.pack, folder, self.path("out")), kind)
            self.assertFalse(os.path.exists(self.path("out")))
        check("has a metadata.csv and a metadata.jsonl", penstock.SettingsError)
        coco = self.make("coco", {"all.json": json.dumps({
            "images": [{"id": 1, "file_name": "a/1.jpg"}], "annotations": [], "categories": []}).encode()})
        self.command(f"--coco={coco}/all.json", folder, self.path("out"))  # says which labels
        shutil.rmtree(self.path("out"))
        shutil.rmtree(coco)
        if os.geteuid():
            os.remove(os.path.join(folder, "metadata.jsonl"))
            os.chmod(os.path.join(folder, "metadata.csv"), 0)
            check(f"cannot read {folder}/metadata.csv: Permission denied", penstock.PenstockError)
        for name in os.listdir(folder):
            if name.startswith("metadata"):
                os.remove(os.path.join(folder, name))
        self.assertEqual(self.pack(folder, self.path("out"))[0].names, ("a", "b"))

    def test_images_of_any_name_are_packed_by_their_first_bytes_where_that_is_asked_for(self):
        folder = self.make("any", {"a.jpg": image_file(0), "b.jfif": image_file(1), "c": image_file(2), "d.txt": b"no image",
                                   "empty": b""})
        told = self.command(folder, self.path("named"))
        self.assertIn("4 files", told)
        self.assertIn("--by-content takes JPEG and PNG files whatever their names", told)
        self.assertIn("2 files", self.command("--by-content", folder, self.path("all")))
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            packed = penstock.pack(folder, self.path("python"), foreign=penstock.Foreign(by_content=True))
        for data in (packed, penstock.Dataset(self.path("all"))):
            self.assertEqual([(record["key"], record["jpg"]) for record in data],
                             [(name, image_file(i)) for i, name in enumerate(("a.jpg", "b.jfif", "c"))])
        nameless = self.make("nameless", {"c": image_file(2)})
        self.assertIn("(--by-content finds images by their first bytes)", self.command(nameless, self.path("x"), status=2))
        self.assert_says("(foreign=penstock.Foreign(by_content=True) finds images", penstock.pack, nameless, self.path("x"))
        self.assertEqual(len(penstock.pack(nameless, self.path("x"), foreign=penstock.Foreign(by_content=True))), 1)
        tar = self.path("x.tar")
        with tarfile.open(tar, "w") as archive:
            archive.add(os.path.join(nameless, "c"), "c.jpg")
        self.assert_says("by_content: value is True", penstock.pack, [1, 2], self.path("no"),
                         foreign=penstock.Foreign(by_content=True))
        self.assertIn("--by-content: must be left out", self.command("--by-content", tar, self.path("no"), status=2))

    def test_wrong_settings_and_folders_without_images_are_refused(self):
        good = self.make("good", {"a/1.jpg": image_file(0)})
        for name, value in (("schema", {"jpg": "image"}), ("note", "mine"), ("names", ["x"]), ("dictionary_size", 1),
                            ("check_images", False), ("classes", "key")):
            error = self.assert_says(f"{name}: value is {value!r}; must be left out", penstock.pack, good,
                                     self.path("no"), **{name: value})
            self.assertIsInstance(error, penstock.SettingsError)
        self.assertIsInstance(
            self.assert_says("skip_bad", penstock.pack, [1, 2], self.path("no"), skip_bad=True), penstock.SettingsError)
        os.mkdir(os.path.join(good, "empty"))
        error = self.assert_says("the class folder empty holds no images", penstock.pack, good, self.path("no"))
        self.assertIsInstance(error, penstock.SettingsError)
        os.rmdir(os.path.join(good, "empty"))
        os.mkdir(self.path("none"))
        error = self.assert_says("holds no images", penstock.pack, self.path("none"), self.path("no"))
        self.assertIsInstance(error, penstock.SettingsError)
        os.rmdir(self.path("none"))
        self.assertEqual(self.left(), ["good"])
        self.pack(good, self.path("out"))
        self.assertIsInstance(self.assert_says("overwrite=True", penstock.pack, good, self.path("out")),
                              penstock.DataSetExistsError)
        with penstock.Writer(self.path("busy"), {"x": "int64"}) as writer:
            writer.add(x=1)
            with self.assertRaises(penstock.DataSetBusyError):
                penstock.pack(good, self.path("busy"))

    def test_the_command_is_looked_for(self):
        good = self.make("good", {"1.jpg": image_file(0)})
        path = os.path.dirname(COMMAND)
        with unittest.mock.patch.dict(os.environ, {"PATH": self.folder}):
            del os.environ["PENSTOCK_COMMAND"]
            error = self.assert_says("set PENSTOCK_COMMAND", penstock.pack, good, self.path("no"))
            self.assertIsInstance(error, FileNotFoundError)
            os.environ["PATH"] = path
            self.assertEqual(len(self.pack(good, self.path("out"))[0]), 1)
        script = self.make("bin", {"penstock": b"#!/bin/sh\nkill -9 $$\n"})
        os.chmod(os.path.join(script, "penstock"), 0o755)
        with unittest.mock.patch.dict(os.environ, {"PENSTOCK_COMMAND": os.path.join(script, "penstock")}):
            self.assert_says("SIGKILL", penstock.pack, good, self.path("killed"))

    def test_progress_is_printed_or_not(self):
        line = "penstock: packing: 5 images, 1/s"
        script = self.make("bin", {"penstock": f"#!/bin/sh\necho '{line}' >&2\nexec {COMMAND} \"$@\"\n".encode()})
        os.chmod(os.path.join(script, "penstock"), 0o755)
        good = self.make("good", {"1.jpg": image_file(0)})
        with unittest.mock.patch.dict(os.environ, {"PENSTOCK_COMMAND": os.path.join(script, "penstock")}):
            self.assertEqual(self.pack(good, self.path("a"))[1], line + "\n")
            self.assertEqual(self.pack(good, self.path("b"), progress=False)[1], "")

    def test_ctrl_c_leaves_nothing(self):
        """Nothing of the data set is left, nor of the command, which would else pack on."""
        image = image_file(0, height=2000, width=3000)
        folder = self.make("many", {f"{i}.jpg": image for i in range(40)})
        code = "import sys, penstock; penstock.pack(sys.argv[1], sys.argv[2], num_workers=1)"
        with subprocess.Popen([sys.executable, "-c", code, folder, self.path("out")], stderr=subprocess.PIPE, text=True,
                              # a job in the background of a shell ignores SIGINT, and so would this process
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
            until = time.monotonic() + 60
            children = f"/proc/{process.pid}/task/{process.pid}/children"
            command = None
            while command is None and time.monotonic() < until:
                with open(children, encoding="ascii") as file:
                    started = file.read().split()
                if started and os.path.exists(self.path("out")):
                    command = started[0]
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
        self.assertIn("KeyboardInterrupt", said)
        self.assertIsNotNone(command)
        self.assertFalse(os.path.exists(f"/proc/{command}"))
        self.assertEqual(self.left(), ["many"])


class LeftOut(Case):
    """Files of the format of a folder that it does not read are counted and named, by the package and the command."""

    NESTED = "{n} file{s} in the folders below {path} {are} left out, {the}{first}: only files directly in the folder are read (move them there, or {do} its subfolder {folder} alone)"
    CASED = "1 file in {path} is left out, {first}: readers expect its suffix in lower case (rename it)"
    OTHER = "1 file in {path} is left out, {first}: the other files in it form the data set (open this one by its own name or by a pattern)"

    make, pack = FolderTest.make, FolderTest.pack

    @staticmethod
    def tar(text):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            member = tarfile.TarInfo("0.cls")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
        return out.getvalue()

    @staticmethod
    def npy(*values):
        import numpy
        out = io.BytesIO()
        numpy.save(out, numpy.array(values))
        return out.getvalue()

    def cases(self):
        """Yield (folder, count, what is said; None: nothing)"""
        one, record = self.tar(b"1"), tfrecords.frame(tfrecords.example({"x": 1}))
        noise = {"notes.txt": b"x", ".hidden/h.tar": one, "deep/er/d.tar": one}
        path = self.make("tars", {"0.tar": one, **noise})
        yield path, 0, None
        path = self.make("nested", {"0.tar": one, "b/2.tar": one, "a/1.tar": one, "a/3.tar": one, **noise})
        yield path, 3, self.NESTED.format(n=3, s="s", path=path, are="are", the="the first ", first="a/1.tar", do="open", folder="a")
        path = self.make("cased", {"0.tar": one, "1.TAR": one, "c.TAR/x": b"", **noise})
        yield path, 1, self.CASED.format(path=path, first="1.TAR")
        path = self.make("both", {"0.tar": one, "1.Tar": one, "s/1.tar": one})
        yield path, 2, (self.CASED.format(path=path, first="1.Tar") + "; "
                        + self.NESTED.format(n=1, s="", path="it", are="is", the="", first="s/1.tar", do="open", folder="s"))
        path = self.make("records", {"a.tfrecord": record, "model.data-00000-of-00001": b"no record", "ckpt/model.data-00000-of-00001": b"none"})
        yield path, 0, None
        path = self.make("records2", {"a.tfrecord": record, "train-00000-of-00001": record, "s/train-00000-of-00001": record})
        yield path, 2, (self.OTHER.format(path=path, first="train-00000-of-00001") + "; "
                        + self.NESTED.format(n=1, s="", path="it", are="is", the="", first="s/train-00000-of-00001", do="open", folder="s"))
        path = self.make("odd_names", {"0.tar": one, "2.TAR": one})
        os.symlink("nothing", os.path.join(path, "1.TAR"))  # a link to nothing does not hide the other file
        yield path, 1, self.CASED.format(path=path, first="2.TAR")
        path = self.make("odd_others", {"a.tfrecord": record, "part-r-00000": record, "eval-10-of-20": b"no record"})
        yield path, 1, self.OTHER.format(path=path, first="part-r-00000")
        path = self.make("arrays", {"x.npy": self.npy(1, 2), "more/y.npy": self.npy(3)})
        yield path, 1, self.NESTED.format(n=1, s="", path=path, are="is", the="", first="more/y.npy", do="open", folder="more")

    def test_files_below_and_of_other_names_are_counted_and_named_wherever_a_folder_is_opened(self):
        for number, (path, n, says) in enumerate(self.cases()):
            with self.subTest(path=os.path.basename(path)):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    with penstock.Dataset(path) as data:
                        self.assertEqual((data.info.n_left_out, data.info.left_out or None), (n, says))
                    penstock.Loader(path, batch_size=1, framework="numpy").close()
                self.assertEqual([str(warning.message) for warning in caught if "left out" in str(warning.message)], 2 * [says] if n else [])
                self.assertTrue(all(warning.filename == __file__ for warning in caught))
                info = json.loads(self.run_command("info", "--json", path).stdout)
                self.assertEqual((info["n_left_out"], info["left_out"]), (n, says))
                self.assertEqual(f"  left out  {says}\n" in self.run_command("info", path).stdout, bool(n))
                for line in (("verify", path), ("pack", path, self.path(f"packed{number}")), ("bench", path, "--seconds", "0.1", "--batch-size", "1")):
                    said = self.run_command(*line).stderr
                    self.assertEqual(said.count(f"penstock: {says}\n" if n else "left out"), bool(n), (line, said))

    def run_command(self, *arguments):
        return subprocess.run([COMMAND, *arguments], capture_output=True, check=True, text=True)

    def test_what_the_sentence_says_to_open_opens(self):
        for path, n, says in self.cases():
            for word, folder in re.findall(r"(open) its folder (\S+) alone", says or ""):
                with penstock.Dataset(os.path.join(path, folder)) as data:
                    self.assertGreaterEqual(len(data), 1)
            for name in re.findall(r"left out, (\S+): the other files in it form", says or ""):
                for way in (name, re.sub("[0-9]+", "*", name)):
                    with penstock.Dataset(os.path.join(path, way)) as data:
                        self.assertEqual(len(data), 1)

    def test_a_folder_that_two_links_lead_to_counts_once_and_the_data_set_itself_not_at_all(self):
        path = self.make("linked", {"0.tar": self.tar(b"1"), "run/1.tar": self.tar(b"1")})
        for name, to in (("latest", "."), ("newest", "run"), ("again", "../linked")):
            os.symlink(to, os.path.join(path, name))
        with self.assertWarnsRegex(UserWarning, "^1 file in the folders below .* is left out, (run|newest)/1.tar: "), penstock.Dataset(path) as data:
            self.assertEqual((data.info.n_left_out, len(data)), (1, 1))

    def test_a_mixture_says_it_of_each(self):
        both = [self.make(name, {"0.tar": self.tar(name.encode()), "s/1.tar": b""}) for name in ("1", "22")]
        with self.assertWarnsRegex(UserWarning, f"below {both[0]} is left out.*; 1 file in the folders below {both[1]} is left out"):
            penstock.Loader(penstock.Mixture(dict.fromkeys(both, 0.5)), batch_size=1, framework="numpy").close()

    def test_of_a_pattern_none_is_said(self):
        path = self.make("pattern", {"0.tar": self.tar(b"1"), "1.TAR": b"", "s/1.tar": self.tar(b"1")})
        with penstock.Dataset(os.path.join(path, "*.tar")) as data:
            self.assertEqual((data.info.n_left_out, data.info.left_out), (0, ""))

    def test_a_mixture_says_it_of_images_next_to_class_folders_too(self):
        tars = self.make("tars_of", {"0.tar": self.tar(b"1"), "s/1.tar": self.tar(b"1")})
        images = self.make("images_of", {"a/0.jpg": image_file(0), "1.jpg": image_file(1)})
        from penstock import catalog, mixture
        joined = mixture._joined([catalog.read(path, None) for path in (tars, images)], [tars, images])
        self.assertEqual(joined.info.n_left_out, 2)
        self.assertRegex(joined.info.left_out, f"^1 file in the folders below {tars} is left out, .*; 1 image next to the class folders of "
                         f"{images} is left out, as ImageFolder does$")

    def test_many_folders_and_names_are_looked_at_up_to_a_bound(self):
        path = self.make("many", {"0.tar": self.tar(b"1"), **{f"s{i:03}/1.tar": b"" for i in range(70)}})
        with self.assertWarnsRegex(UserWarning, "^at least 64 files in the folders below"), penstock.Dataset(path) as data:
            self.assertEqual(data.info.n_left_out, 64)

    def test_parquet_files_of_a_folder_too(self):
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            self.skipTest("pyarrow is not installed")
        path = self.make("tables", {"readme.md": b"", "s/.x.parquet": b""})
        parquet.write_table(pyarrow.table({"x": [1]}), os.path.join(path, "a.parquet"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.pack(path, self.path("out"))
        for name in ("s/b.parquet", "t/b.parquet", "B.PARQUET"):
            self.make("tables", {name: b""})
        parquet.write_table(pyarrow.table({"x": [1]}), os.path.join(path, "s/b.parquet"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            data, _ = self.pack(path, self.path("out"), overwrite=True)
        self.assertEqual(len(data), 1)
        self.assertEqual([str(warning.message) for warning in caught],
                         [self.CASED.format(path=path, first="B.PARQUET"),
                          self.NESTED.format(n=2, s="s", path=path, are="are", the="the first ", first="s/b.parquet", do="pack", folder="s")])
        self.assertEqual({warning.filename for warning in caught}, {__file__})
        self.assertEqual(len(self.pack(os.path.join(path, "s"), self.path("sub"))[0]), 1)


if __name__ == "__main__":
    unittest.main()
