# SPDX-License-Identifier: Apache-2.0
"""A folder of images as a data set, read in place. A naive walk is the oracle, and torchvision's ImageFolder."""
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import tarfile
import time
import warnings

import penstock
import sets
from data_fixture import Case, image_file, np, optional
from test_megatron import idx
from tfrecords import example, frame

SMALL = penstock.image("image", [penstock.ops.Resize((16, 16))])
ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def below(folder):
    """Return the images below a folder in the order of torchvision: bytes, below it."""
    found = []
    for root, _, names in sorted(os.walk(os.fsencode(folder), followlinks=True)):
        if any(part.startswith(b".") for part in os.path.relpath(root, os.fsencode(folder)).split(b"/") if part != b"."):
            continue
        found += [os.path.join(root, name) for name in sorted(names)
                  if os.fsdecode(name).lower().endswith(ENDINGS) and not name.startswith(b".")]
    return [os.path.relpath(path, os.fsencode(folder)) for path in found]


def classes_of(folder):
    return sorted((entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith(".")),
                  key=os.fsencode)


def walk(folder):
    """Return [(path as bytes, class number)] of a folder with class folders."""
    return [(os.path.join(os.fsencode(name), path), label) for label, name in enumerate(classes_of(folder))
            for path in below(os.path.join(folder, name))]


def read(folder, path):
    with open(os.path.join(os.fsencode(folder), path), "rb") as file:
        return file.read()


class Folders(Case):
    def put(self, files, name="train"):
        """Write {name: bytes}; returns the folder."""
        folder = os.fsencode(self.path(name))
        os.makedirs(folder, exist_ok=True)
        for file, data in files.items():
            path = os.path.join(folder, os.fsencode(file))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(data)
        return os.fsdecode(folder)

    def tree(self, n_classes=3, n_each=5):
        return self.put({f"class{c}/{'deep/' if i % 2 else ''}{i:03}.{'jpg' if i % 3 else 'PNG'}":
                         image_file(10 * c + i, "JPEG" if i % 3 else "PNG", height=20 + i)
                         for c in range(n_classes) for i in range(n_each)})

    def check(self, folder, wanted):
        """Dataset and Loader give exactly these samples: [(path, label or None)]."""
        with penstock.Dataset(folder) as data:
            self.assertEqual(len(data), len(wanted))
            for sample, (path, label) in zip(data, wanted):
                self.assertEqual(os.fsencode(sample["path"]), path)
                self.assertEqual(sample["image"], read(folder, path))
                self.assertEqual(sample.get("label"), label)
        outputs = {"image": penstock.ragged("image"), "path": penstock.ragged("path")}
        if wanted[0][1] is not None:
            outputs["label"] = "label"
        seen = []
        with penstock.Loader(folder, outputs=outputs, batch_size=4, framework="numpy", last_batch="short",
                             device="cpu") as loader:
            for batch in loader.epoch(0):
                images, paths = batch["image"], batch["path"]
                for row, sample_id in enumerate(np.asarray(batch.sample_ids).tolist()):
                    path, label = wanted[sample_id]
                    seen.append(sample_id)
                    self.assertEqual(bytes(paths.data[paths.offsets[row]:paths.offsets[row + 1]]), path)
                    self.assertEqual(bytes(images.data[images.offsets[row]:images.offsets[row + 1]]),
                                     read(folder, path))
                    if label is not None:
                        self.assertEqual(int(batch["label"][row]), label)
        self.assertEqual(sorted(seen), list(range(len(wanted))))

    def command(self, *arguments, status=0):
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], *arguments], capture_output=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return (done.stderr if status else done.stdout).decode()

    def refuse(self, folder, *words):
        self.assert_says(words, penstock.Dataset, folder)

    def indexes(self):
        """Return {path: inode} of all index files."""
        return {path: os.stat(path).st_ino for root, _, names in os.walk(self.folder)
                for path in (os.path.join(root, name) for name in names) if path.endswith(".index")}


class Right(Folders):
    def test_every_sample_of_class_folders_is_that_of_a_walk(self):
        folder = self.tree()
        wanted = walk(folder)
        self.assertEqual(len(wanted), 15)
        self.check(folder, wanted)
        with penstock.Dataset(folder + "/") as data:
            self.assertEqual(data.names, ("class0", "class1", "class2"))
            self.assertEqual(data.info.format, "folder")

    def test_the_order_is_that_of_sorted_paths_with_their_slashes(self):
        image = image_file()
        folder = self.put({f"{path}.jpg": image for path in
                           ("b/x/1", "b/x-y/1", "b/x/z/1", "b/x.y/1", "b/1", "b/x0/1", "B/2", "a/é/1", "a/e/1", "a/z/1")})
        self.check(folder, walk(folder))

    def test_the_order_is_that_of_imagefolder(self):
        datasets = optional("torchvision.datasets")
        image = image_file()
        folder = self.put({f"{path}": image for path in
                           ("b/x/1.jpg", "b/x-y/1.JPG", "b/x/z/1.png", "b/x.y/1.jpeg", "b/10.jpg", "b/9.webp", "B/2.bmp",
                            "a/é/1.tiff", "a/e/1.ppm", "a/notes.txt", "top.jpg")})
        theirs = datasets.ImageFolder(folder)
        with penstock.Dataset(folder) as data:
            ours = [(os.path.join(folder, sample["path"]), sample["label"]) for sample in data]
            self.assertEqual(ours, theirs.samples)
            self.assertEqual(list(data.names), theirs.classes)
        theirs = datasets.ImageFolder(folder)  # the index is no class of its own
        self.assertEqual(ours, theirs.samples)

    def test_names_may_say_nothing_where_content_decides(self):
        files = {"a/1.jfif": image_file(1), "a/2": image_file(2), "a/3.jpg": image_file(3), "a/notes.txt": b"text", "a/empty": b"",
                 "b/5.JFIF": image_file(4), "b/deep/6": image_file(5), "b/gif": b"GIF89a" + bytes(99)}
        samples = [("a/1.jfif", 0), ("a/2", 0), ("a/3.jpg", 0), ("b/5.JFIF", 1), ("b/deep/6", 1)]
        folder = self.put(files)
        self.assert_says("the class folder", penstock.Dataset, folder)  # b, by names alone
        for _ in "ab":  # builds the index, then finds it
            with penstock.Dataset(folder, foreign=penstock.Foreign(by_content=True)) as data:
                self.assertEqual([(sample["path"], sample["label"], sample["image"]) for sample in data],
                                 [(path, label, files[path]) for path, label in samples])
                again = pickle.loads(pickle.dumps(data))
                self.assertEqual((len(again), again[1]["path"]), (5, "a/2"))
        with penstock.Loader(folder, foreign=penstock.Foreign(by_content=True), batch_size=5, framework="numpy", device="cpu",
                             outputs=["label"]) as loader:
            self.assertEqual(sorted(next(iter(loader))["label"].tolist()), [0, 0, 0, 1, 1])
            self.assertEqual(len(loader.dataset), 5)
        self.assertEqual(json.loads(self.command("info", "--json", "--by-content", folder))["n_samples"], 5)
        self.assertEqual(self.command("get", "--by-content", folder, "1", "path"), "a/2")
        self.assertEqual(json.loads(self.command("bench", "--json", "--by-content", "--seconds=0.1", folder))["batch_size"], 5)
        for n in (5, 5):  # made, then compared
            self.assertIn(f"{n} samples", self.command("verify", "--checksums", "--by-content", folder))

    def test_content_decides_where_no_name_is_an_images(self):
        folder = self.put({"a/a.txt": b"text", "a/x/2": image_file(1), "b/1.jfif": image_file(2)})
        os.symlink("nowhere", os.path.join(folder, "a", "b"))
        self.assertIn("every sample can be read", self.command("verify", "--by-content", folder))
        self.assertEqual([sample["path"] for sample in penstock.Dataset(folder, foreign=penstock.Foreign(by_content=True))],
                         ["a/x/2", "b/1.jfif"])

    def test_content_decides_in_flat_folders_beside_an_index_of_names(self):
        folder = self.put({"1.jfif": image_file(1), "2.jpg": image_file(2), "3": image_file(3)})
        for by_content, n in ((False, 1), (True, 3), (False, 1), (True, 3)):
            self.assertEqual(len(penstock.Dataset(folder, foreign=penstock.Foreign(by_content=by_content))), n)
        os.remove(os.path.join(folder, "2.jpg"))
        self.assert_says("is not a data set", penstock.Dataset, folder)
        self.assertEqual([sample["path"] for sample in penstock.Dataset(folder, foreign=penstock.Foreign(by_content=True))],
                         ["1.jfif", "3"])
        for name in ("1.jfif", "3"):
            os.remove(os.path.join(folder, name))
        self.assert_says("holds no images", penstock.Dataset, folder, foreign=penstock.Foreign(by_content=True))
        tar = os.path.join(folder, "x.tar")
        with tarfile.open(tar, "w") as archive:
            archive.addfile(tarfile.TarInfo("1.cls"))
        self.assert_says(["by_content: value is ", "of the format tar"], penstock.Dataset, tar,
                         foreign=penstock.Foreign(by_content=True))
        self.assertIn("--by-content: value is 1; must not be given", self.command("info", tar, "--by-content", status=2))

    def test_a_flat_folder_has_no_labels(self):
        folder = self.put({f"{i}.jpg": image_file(i) for i in range(9)} | {"notes/a.txt": b"x", "b.txt": b"y"})
        self.check(folder, [(path, None) for path in below(folder)])
        with penstock.Dataset(folder) as data:
            self.assertEqual(list(data.fields), ["image", "path"])
            self.assertEqual(len(data.names), 0)

    def test_images_next_to_class_folders_are_left_out_counted_and_reported(self):
        folder, ignored = self.tree(), {"notes.txt": b"x"}
        wanted = walk(folder)
        for number, (files, by_content, words) in enumerate((
                (ignored, False, None),
                ({"0.jpg": image_file()}, False, "1 image next to the class folders of {} is left out, as ImageFolder does"),
                ({"1.PNG": image_file(), "2.tif": b"x"}, False,
                 "3 images next to the class folders of {} are left out, as ImageFolder does"),
                ({"plain": image_file(kind="PNG")}, True,
                 "4 images next to the class folders of {} are left out, as ImageFolder does"),
                ({}, False, "3 images next to the class folders of {} are left out, as ImageFolder does"))):
            self.put(files)  # next to those of before, and an index of before
            option = ("--by-content",) if by_content else ()
            says = words and words.format(folder)
            n = int(words.split()[0]) if words else 0
            with self.subTest(n=n, by_content=by_content):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    with penstock.Dataset(folder, foreign=penstock.Foreign(by_content=by_content)) as data:
                        self.assertEqual((len(data), data.info.n_left_out), (len(wanted), n))
                    with penstock.Loader(folder, outputs=SMALL, batch_size=4, foreign=penstock.Foreign(by_content=by_content),
                                         framework="numpy") as loader:
                        self.assertEqual(loader.dataset.info.n_left_out, n)
                found = [str(warning.message) for warning in caught if "class folders" in str(warning.message)]
                self.assertEqual(found, [says] * (3 if words else 0))  # the third: loader.dataset
                self.assertTrue(all(warning.filename == __file__ for warning in caught))
                self.assertEqual(json.loads(self.command("info", "--json", folder, *option))["n_left_out"], n)
                short = f"  left out  {says.replace(f' of {folder}', '')}\n" if words else "left out"
                self.assertEqual(short in self.command("info", folder, *option), bool(words))
                for line in (("bench", folder, *option, "--seconds", "0.1", "--batch-size", "4"), ("order", folder, *option, "--batches", "1"),
                             ("pack", *option, folder, self.path(f"packed{number}"))):
                    done = subprocess.run([os.environ["PENSTOCK_COMMAND"], *line], capture_output=True, check=True, text=True)
                    self.assertEqual(done.stderr.count(f"penstock: {says}\n" if words else "next to the class folders"), bool(words),
                                     (line, done.stderr))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.check(folder, wanted)

    def test_a_mixture_names_the_images_that_each_data_set_leaves_out(self):
        folder = self.tree()
        self.put({"0.jpg": image_file(), "1.jpg": image_file()})
        other = self.put({"a/a.jpg": image_file(), "b.jpg": image_file()}, "other")
        both = penstock.Mixture({folder: 0.5, other: 0.5})
        wanted = (f"2 images next to the class folders of {folder} are left out, as ImageFolder does; "
                  f"1 image next to the class folders of {other} is left out, as ImageFolder does")
        with self.assertWarnsRegex(UserWarning, f"^{re.escape(wanted)}$"):
            penstock.Loader(both, outputs=SMALL, batch_size=1, framework="numpy").close()

    def test_names_that_are_not_utf8_are_kept_and_shown_escaped(self):
        image = image_file()
        folder = self.put({b"a/\xff\xfe\n'\".jpg": image, b"a/plain.jpg": image, b"b/\xc3\xa4.jpg": image})
        wanted = walk(folder)
        with penstock.Dataset(folder) as data:
            self.assertEqual(data.fields["path"].field.kind, "bytes")
            self.assertEqual([sample["path"] for sample in data], [path for path, _ in wanted])
        os.remove(os.path.join(os.fsencode(folder), b"a/\xff\xfe\n'\".jpg"))
        shutil.copy(os.path.join(folder, "a/plain.jpg"), os.path.join(os.fsencode(folder), b"a/\n\\.jpg"))
        self.check(folder, walk(folder))
        with open(os.path.join(os.fsencode(folder), b"a/\n\\.jpg"), "wb") as file:
            file.write(b"x" * len(image))
        with penstock.Dataset(folder) as data:
            self.assert_says("a/\\x0a\\\\.jpg", data.get, 0, "image")

    def test_links_are_followed_and_dot_entries_are_not(self):
        folder = self.tree()
        os.symlink(os.path.join(folder, "class0"), os.path.join(folder, "class3"))
        os.symlink(os.path.join(folder, "class0", "000.PNG"), os.path.join(folder, "class1", "zz.png"))
        self.put({"class0/.hidden.jpg": b"x", "class0/.folder/a.jpg": b"x", ".penstock/a.jpg": b"x"})
        wanted = walk(folder)
        self.assertEqual(len(wanted), 15 + 5 + 1)
        self.check(folder, wanted)

    def test_the_command_knows_it(self):
        folder = self.tree()
        info = json.loads(self.command("info", folder, "--json"))
        self.assertEqual([field["name"] for field in info["fields"]], ["image", "label", "path"])
        self.assertEqual(info["n_samples"], 15)
        self.assertIn("  files     15\n", self.command("info", folder))
        self.assertIn("folders        7, the first image of each readable\n", self.command("doctor", folder))
        self.command("verify", folder)
        self.command("order", folder)
        bench = json.loads(self.command("bench", folder, "--json", "--epochs", "1", "--batch-size", "4"))
        self.assertEqual(bench["samples"], 12)

    def test_export_gives_the_folder_back(self):
        folder, out = self.tree(), self.path("back")
        self.command("export", folder, out, "--to", "folder")
        self.assertEqual(walk(out), walk(folder))
        for path, _ in walk(folder):
            self.assertEqual(read(out, path), read(folder, path))

    def test_pack_takes_the_folder_as_before(self):
        folder = self.tree()
        with penstock.Dataset(folder) as data:
            wanted = [(sample["image"], sample["label"]) for sample in data]
        for name, source in (("tree", folder), ("flat", self.put({"a.jpg": image_file(1)}, "one"))):
            penstock.Dataset(source).close()
            self.command("pack", "--jpeg", "keep", source, self.path(name))
        with penstock.Dataset(self.path("tree")) as data:
            self.assertEqual([(sample["jpg"], sample["cls"]) for sample in data], wanted)
        with penstock.Dataset(self.path("flat")) as data:
            self.assertEqual(len(data), 1)
        flat = self.put({"a/a.jpg": image_file(1)}, "one")  # the folder has an index inside
        self.command("pack", "--jpeg", "keep", flat, self.path("classes"))
        with penstock.Dataset(self.path("classes")) as data:
            self.assertEqual(data.names, ("a",))

    def test_images_are_decoded_as_those_of_a_packed_data_set(self):
        folder = self.put({f"c{i % 2}/{i}.jpg": image_file(i) for i in range(8)})
        self.command("pack", "--jpeg", "keep", folder, self.path("packed"))
        seen = []
        for path, field in ((folder, "image"), (self.path("packed"), "jpg")):
            with penstock.Loader(path, outputs={"x": penstock.image(field, [penstock.ops.Resize((32, 32))])}, batch_size=8,
                                 framework="numpy", device="cpu", seed=5) as loader:
                batch = next(iter(loader.epoch(0)))
                seen.append(np.array(batch["x"])[np.argsort(np.asarray(batch.sample_ids))])
        self.assertTrue((seen[0] == seen[1]).all())

    def test_other_orders_and_mixtures_read_the_same_bytes(self):
        folder = self.tree(n_each=30)
        flat = self.put({f"{i}.jpg": image_file(200 + i) for i in range(20)}, "flat")
        wanted = [[read(folder, path) for path, _ in walk(folder)], [read(flat, path) for path in below(flat)]]
        both = penstock.Mixture({folder: 0.5, flat: 0.5})
        for path, keywords in ((folder, {"order": "windowed"}), (folder, {"shuffle": False}), (both, {}),
                               (folder, {"reading": penstock.Reading(reader="threads")})):
            seen = []
            with penstock.Loader(path, outputs={"image": penstock.ragged("image"), "path": penstock.ragged("path")},
                                 batch_size=8, framework="numpy", device="cpu", last_batch="short", **keywords) as loader:
                for batch in loader.epoch(0):
                    images = batch["image"]
                    sets = np.asarray(batch.data_sets).tolist() if path is both else [0] * len(batch.sample_ids)
                    for row, (which, sample_id) in enumerate(zip(sets, np.asarray(batch.sample_ids).tolist())):
                        seen.append((which, sample_id))
                        self.assertEqual(bytes(images.data[images.offsets[row]:images.offsets[row + 1]]),
                                         wanted[which][sample_id])
            if path is both:
                self.assertEqual({which for which, _ in seen}, {0, 1})
            else:
                self.assertEqual(sorted(seen), [(0, i) for i in range(90)])

    def test_a_copy_has_the_same_identity(self):
        folder = self.tree()
        shutil.copytree(folder, self.path("copy"))
        identities = [penstock.Dataset(path).info.identity for path in (folder, self.path("copy"))]
        self.assertEqual(*identities)


class Index(Folders):
    def test_it_is_kept_and_is_not_a_class(self):
        folder = self.tree()
        penstock.Dataset(folder).close()
        before = self.indexes()
        self.assertEqual(len(before), 1)
        self.assertNotIn(folder + "/", next(iter(before)))
        penstock.Dataset(folder).close()
        self.assertEqual(self.indexes(), before)

    def test_a_new_file_a_new_class_and_a_removed_file_are_found_at_the_next_open(self):
        folder = self.tree()
        for change in (lambda: self.put({"class1/deep/new.jpg": image_file(77)}),
                       lambda: self.put({"class9/new.jpg": image_file(78)}),
                       lambda: os.remove(os.path.join(folder, "class0", "000.PNG")),
                       lambda: os.rename(os.path.join(folder, "class1"), os.path.join(folder, "zebra"))):
            self.check(folder, walk(folder))
            change()
        self.check(folder, walk(folder))

    def test_files_made_at_the_very_moment_of_indexing_are_found(self):
        folder = self.put({f"a/{i}.jpg": image_file(i) for i in range(2)})
        for i in range(2, 12):
            penstock.Dataset(folder).close()
            self.put({f"a/{i}.jpg": b"x"})
            with penstock.Dataset(folder) as data:
                self.assertEqual(len(data), i + 1)

    def test_a_damaged_index_is_built_again(self):
        folder = self.tree()
        penstock.Dataset(folder).close()
        path = next(iter(self.indexes()))
        with open(path, "r+b") as file:
            file.seek(-3, 2)
            file.write(b"\x55")
        self.check(folder, walk(folder))

    def test_damage_in_a_row_or_in_values_is_reported(self):
        folder = self.tree()
        penstock.Dataset(folder).close()
        path = next(iter(self.indexes()))
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            data = file.read()
        for at in range(4096, size, 1021):
            damaged = bytearray(data)
            damaged[at] ^= 0x10
            with open(path, "wb") as file:
                file.write(damaged)
            try:
                with penstock.Dataset(folder) as samples:
                    for sample, (name, label) in zip(samples, walk(folder)):
                        self.assertEqual((os.fsencode(sample["path"]), sample["label"], sample["image"]),
                                         (name, label, read(folder, name)))
            except penstock.CorruptRecordError as error:
                self.assertRegex(str(error), f"the index {re.escape(path)} .* remove (it|the index), and it is built again")


class Wrong(Folders):
    def test_a_path_that_is_no_folder_of_images_is_refused(self):
        array = io.BytesIO()
        np.save(array, np.zeros(3))
        array = array.getvalue()
        for name, files, found in (("text", {"a.txt": b"x"}, "it has only a.txt"), ("deep", {"a/b.txt": b"x", "c": b""}, "the first a;"),
                                   ("webp", {"a/b.webp": b"x"}, "1 of its images is WebP (a/b.webp)"),
                                   ("gif", {"a.GIF": b"x", "b.gif": b"", "c.txt": b""}, "2 of its images are GIF (a.GIF)"),
                                   ("shard", {"0.pstk": b"x"}, "it has 0.pstk, but no manifest.json"),
                                   ("table", {"a.txt": b"", "t.csv": b"file_name\na.jpg\n"}, "it contains t.csv, a data set of the format table: open that one"),
                                   ("deeper", {"n/t.npy": array, "x/y.txt": b"", "z.txt": b""}, "it contains n, a data set of the format arrays: open that one")):
            self.refuse(self.put(files, name), "is not a data set: ", found, "open that" if "open that" in found else "images, in class folders or flat")
        os.makedirs(self.path("empty"))
        self.refuse(self.path("empty"), "is not a data set: it is empty;")
        folder = self.put({"a.txt": b"x", "n/t.npy": array, "n/index.json": b"", "i/a.jpg": image_file(1, "JPEG")}, "part")
        self.refuse(folder + "/n/index.json", "is a file; must be a directory with")  # an index.json is MDS's, not one of arrays
        self.refuse(folder + "/i/a.jpg", "is one file of a data set of the format folder; open its directory, " + folder + "/i")
        self.refuse(self.path("missing"), "no such file")

    def test_a_pattern_of_folders_or_images_is_answered_by_what_to_open(self):
        image, array = image_file(1, "JPEG"), io.BytesIO()
        np.save(array, np.zeros(3))
        self.put({**{f"{split}/{c}/{i}.jpg": image for split in ("train", "val") for c in "ab" for i in range(2)}}, "in")
        self.put({"a.npy": array.getvalue()}, "arrays")
        for pattern, opened in (("in/*", "in/train"), ("in/train/*", "in/train"), ("in/{train,val}", "in/train"),
                                ("in/train/*/*.jpg", "in/train"), ("in/train/a/*.jpg", "in/train/a"), ("in/tr*", "in/train"),
                                ("arrays/*", "arrays"), ("arr*", "arrays")):
            for use in (penstock.Dataset, lambda path: penstock.Loader(path, batch_size=1),
                        lambda path: penstock.pack(path, self.path("packed"))):
                with self.assertRaisesRegex(penstock.PenstockError, "; must ") as caught:
                    use(self.path(pattern))
                found = re.search(r"\(open (.*), of the format (.*)\)$", str(caught.exception))
                self.assertEqual(found[1], self.path(opened), pattern)
                with penstock.Dataset(found[1]) as data:  # the advice, as it is printed
                    self.assertIn(data.info.format, {"folder": ["folder"], "arrays": ["npy"]}[found[2]])
        for pattern, kind in (("in/train/a/*.jpg", "folder"), ("arrays/*.npy", "arrays")):  # it ends as the files do
            self.refuse(self.path(pattern), "must be their folder, because no pattern opens this format", f"of the format {kind}")
        self.refuse(self.path("i?/tr*/*.jpg"), "no such file", "* and ? are wildcards only in the last part")
        self.refuse(self.path("in/{train,val}/*.tar"), "no such file", "and not with braces")
        for missing in ("none/*", "none/*.tar", "in/none/img-?.jpg"):
            with self.assertRaisesRegex(penstock.DataSetNotFoundError, "cannot open the folder of .*: No such file") as caught:
                penstock.Dataset(self.path(missing))
            self.assertNotIn("wildcard", str(caught.exception))
        for missing in ("none/shard-{0..9}", "in/train/a/{0..9}.jpg", "none/{a,b}.zip"):  # a retry waits for what is not there
            with self.assertRaisesRegex(penstock.DataSetNotFoundError, "cannot open .*: No such file"):
                penstock.Dataset(self.path(missing))
        self.put({"x.txt": b""}, "text/deep")
        self.refuse(self.path("text/*"), "matches 1 folder, the first deep; must match files of one format")
        self.refuse(self.path("text/deep/*.txt"), "matches 1 file that no reader recognises, the first ")

    def test_a_folder_of_two_formats_is_refused_with_what_to_open(self):
        """One stray file would be the data set, in place of all others."""
        def saved(save, *arrays, **named):
            out = io.BytesIO()
            save(out, *arrays, **named)
            return out.getvalue()

        image, npy, packed = image_file(1, "JPEG"), saved(np.save, np.zeros(3)), io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            member = tarfile.TarInfo("0.jpg")
            member.size = len(image)
            tar.addfile(member, io.BytesIO(image))
        tar = packed.getvalue()
        classes = {f"{c}/{i}.jpg": image for c in "ab" for i in range(2)}
        flat = {f"{i}.jpg": image for i in range(4)}
        table = {"metadata.csv": b"file_name\na/0.jpg\n"}
        for number, (files, stray, n_stray, n_rest) in enumerate((
                (classes, {"mean.npy": npy}, 3, 4), (classes, {"mean.npz": saved(np.savez, mean=np.zeros(5))}, 5, 4),
                (classes, {"backup.tar": tar}, 1, 4), (classes, {"0.tar": tar, "1.tar": tar}, 2, 4), (flat, {"mean.npy": npy}, 3, 4),
                ({"0.tar": tar, "1.tar": tar}, {"mean.npy": npy}, 3, 2), ({**classes, **table}, {"backup.tar": tar}, 1, 1))):
            folder = self.put({**files, **stray}, f"two-{number}")
            said = str(self.assert_says(["path: value is ", ", which has ", "; must be of one format (open "], penstock.Dataset, folder))
            for use in (lambda path: penstock.Loader(path, batch_size=1), lambda path: penstock.pack(path, self.path("packed"))):
                self.assert_says([said], use, folder)
            for words in (["pack", folder, self.path("packed")], ["info", folder], ["bench", folder, "--seconds", "0.1"]):
                self.assertIn(said, self.command(*words, status=2))
            found = re.search(r"\(open (.*?)(?:, or move (?:it|them) elsewhere to open the rest| or (.*))\)$", said)
            for advice, n in ((found[1], n_stray), (found[2], n_rest)):  # as it is printed
                if advice:
                    with penstock.Dataset(advice) as data:
                        self.assertEqual(len(data), n)
            self.assertEqual(found[2] is not None, "0.tar" in files)
            for name in stray:
                os.remove(os.path.join(folder, name))
            with penstock.Dataset(folder) as data:
                self.assertEqual(len(data), n_rest)
        arrays = {"x.npy": npy, "y.npy": npy}
        for number, (files, n) in enumerate((({**arrays, "plot.png": image}, 3), ({"0.tar": tar, "1.tar": tar, "first.jpg": image}, 2),
                                             ({**classes, **table}, 1), ({**arrays, "code/a.py": b"x", "code/b.py": b"x"}, 3))):
            with penstock.Dataset(self.put(files, f"one-{number}")) as data:
                self.assertEqual(len(data), n)

    def test_advice_for_two_formats_never_names_a_part_of_a_data_set(self):
        """A user who opens the first of ten archives trains on a tenth."""
        def packed():
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode="w:gz") as tar:
                tar.addfile(tarfile.TarInfo("0.txt"), io.BytesIO())
            return out.getvalue()

        array = io.BytesIO()
        np.save(array, np.zeros(3))
        npy, shard = array.getvalue(), frame(example({"n": 1}))
        classes = {f"{c}/0.jpg": image_file(1, "JPEG") for c in "ab"}
        shards = {f"x.tfrecord-0000{i}-of-00002": shard for i in range(2)}
        pairs = {f"{name}.{end}": data for name in "pq" for end, data in (("bin", bytes(4)), ("idx", idx("uint16", [2], [0, 1])))}
        move = "(move the others elsewhere)"
        for number, (files, advice, opened) in enumerate((
                ({"0.tar.gz": packed(), "1.tar.gz": packed(), "mean.npy": npy}, "(open {0}/mean.npy or {0}/*.tar.gz)", {"mean.npy": 3, "*.tar.gz": 2}),
                ({**shards, "mean.npy": npy}, "(open {0}/mean.npy, or move it elsewhere to open the rest)", {"mean.npy": 3}),
                ({**shards, **classes}, move, {}), ({"x.npy": npy, "y.npy": npy, "0.tar.gz": packed()}, move, {}),
                ({**pairs, **classes}, "(open {0}/*.idx, or move them elsewhere to open the rest)", {"*.idx": 2}))):
            folder = self.put(files, f"{number}" + 180 * "n")
            self.refuse(folder, "must be of one format " + advice.format(folder))
            for name, n in opened.items():
                with penstock.Dataset(os.path.join(folder, name)) as data:
                    self.assertEqual(len(data), n)

    def test_a_manifest_of_another_program_is_left_to_other_formats(self):
        classes = {f"{c}/{i}.jpg": image_file(1, "JPEG") for c in "ab" for i in range(2)}
        for number, manifest in enumerate((b"", b'{"name": "x"}', b"[" + 40000 * b"1," + b"1]", b'{"format":"other","version":2}\n')):
            folder = self.put({**classes, "manifest.json": manifest}, f"web-{number}")
            with penstock.Dataset(folder) as data:
                self.assertEqual((data.info.format, len(data), data.names), ("folder", 4, ("a", "b")))
            for use in (lambda out: penstock.pack(folder, out, progress=False, overwrite=True),
                        lambda out: self.command("pack", folder, out, "--overwrite")):
                use(self.path("packed"))
                with penstock.Dataset(self.path("packed")) as data:
                    self.assertEqual(len(data), 4)
            self.refuse(self.put({"manifest.json": manifest}, f"bare-{number}"),
                        "is not a data set: another program wrote its manifest.json")
        for manifest, says in ((b"", "0 bytes, too few"), (b"{}", "2 bytes, too few"), (300 * b"x", "does not end with its checksum")):
            self.put({"manifest.json": manifest}, "packed")  # beside shards it is ours, and damaged
            self.refuse(self.path("packed"), says)

    def test_a_folder_of_anything_with_a_picture_in_it_is_none(self):
        """To index a home, or the whole disk, would read it."""
        home = self.put({**{f"{name}/notes.txt": b"" for name in ("Desktop", "Documents", "Music")},
                         "Pictures/1.jpg": image_file(1, "JPEG")}, "home")
        with self.assertRaises(penstock.DataSetNotFoundError):
            penstock.Dataset(home)
        self.assertFalse(os.path.exists(home + "/.penstock"))
        self.assertEqual(len(penstock.Dataset(home + "/Pictures")), 1)

    def test_an_empty_class_folder_is_refused_as_imagefolder_does(self):
        folder = self.tree()
        os.makedirs(os.path.join(folder, "none", "deep"))
        self.refuse(folder, "none holds no images", "remove it")

    def test_a_class_name_that_is_not_utf8_is_refused(self):
        self.refuse(self.put({b"\xff/a.jpg": image_file(), b"a/a.jpg": image_file()}), "\\xff has a name that is not UTF-8")

    def test_a_loop_of_links_is_refused(self):
        folder = self.tree()
        os.symlink("..", os.path.join(folder, "class1", "deep", "up"))
        self.refuse(folder, "class1/deep/up is a link to a folder that it lies in")
        os.remove(os.path.join(folder, "class1", "deep", "up"))
        os.symlink(folder, os.path.join(folder, "class1", "top"))
        self.refuse(folder, "class1/top is a link to a folder that it lies in")

    def test_an_unreadable_class_folder_is_named(self):
        if os.geteuid() == 0:
            self.skipTest("root reads every folder")
        folder = self.tree()
        os.chmod(os.path.join(folder, "class1"), 0)
        self.addCleanup(os.chmod, os.path.join(folder, "class1"), 0o700)
        self.refuse(folder, "cannot read the folder", "class1")

    def test_a_file_that_is_no_image_is_a_named_bad_sample(self):
        folder = self.tree()
        self.put({"class1/odd.jpg": b"no image at all", "class2/empty.png": b"", "class2/gif.jpg": b"GIF89a" + bytes(30)})
        os.symlink("nowhere", os.path.join(folder, "class2", "link.jpg"))
        report = self.command("verify", folder, status=1)
        for name in ("class1/odd.jpg", "class2/empty.png", "class2/gif.jpg", "class2/link.jpg"):
            self.assertIn(name, report)
        self.assertNotIn("000.PNG", report)
        with penstock.Loader(folder, outputs={"x": SMALL}, batch_size=19, framework="numpy",
                             device="cpu", bad_sample="replace") as loader:
            self.assertEqual(len(list(loader.epoch(0))), 1)
            self.assertEqual(loader.stats().n_replacements, 4)
        with penstock.Loader(folder, outputs={"x": SMALL}, batch_size=19, framework="numpy",
                             device="cpu") as loader:
            with self.assertRaises(penstock.CorruptRecordError):
                list(loader.epoch(0))

    def test_an_image_that_does_not_decode_is_named_with_its_file_and_the_way_out(self):
        folder = self.put({"a/0.jpg": image_file(0), "a/1.jpg": sets.damaged_jpeg(image_file(1)), "b/2.jpg": image_file(2)[:700]})
        table = os.path.join(self.folder, "table.csv")
        with open(table, "w", encoding="utf-8") as file:
            file.write("file_name,n\n" + "".join("%s/%s,1\n" % (folder, name) for name in ("a/0.jpg", "a/1.jpg", "b/2.jpg")))
        way = "foreign=penstock.Foreign(damaged='accept') takes it as Pillow shows it"
        for path in (folder, table):
            for fields in (None, ["image"]):
                with penstock.Dataset(path, fields=fields, decode=True) as data:
                    error = self.assert_says(["sample 1, ", "a/1.jpg", "field image: JPEG: ", way], data.__getitem__, 1)
                    self.assertEqual(error.sample_id, 1)
                    error = self.assert_says(["sample 2, ", "b/2.jpg", "field image: "], data.__getitem__, 2)
                    self.assertNotIn("accept", str(error))  # Pillow does not load it either
            with penstock.Dataset(path, foreign=penstock.Foreign(damaged="accept"), decode=True) as data:
                self.assertEqual(data[1]["image"].shape[2], 3)
                self.assert_says(["sample 2, ", "b/2.jpg", "field image: "], data.__getitem__, 2)
        packed = os.path.join(self.folder, "unmarked")
        with penstock.Writer(packed, {"path": "utf8", "image": "image"}, check_images=False) as writer:
            writer.add(path="x", image=sets.damaged_jpeg(image_file(1)))
        error = self.assert_says(["sample 0, field image: JPEG: "], penstock.Dataset(packed, decode=True).__getitem__, 0)
        self.assertNotIn("accept", str(error))

    def lose(self, change, words):
        """A file changes after the data set was opened: both ways to read report it."""
        folder = self.tree(n_each=40)
        path = os.path.join(folder, "class2", "002.jpg")
        sample_id = [name for name, _ in walk(folder)].index(b"class2/002.jpg")

        def run(loader):
            for _ in loader.epoch(0):
                pass
        # The loader has not read ahead as far as that file.
        with penstock.Dataset(folder) as data, \
                penstock.Loader(folder, outputs={"x": SMALL}, batch_size=1, framework="numpy",
                                device="cpu", shuffle=False, memory=penstock.Memory(n_slots=2)) as loader:
            change(path)
            self.assert_says(["class2/002.jpg", *words], data.get, sample_id, "image")
            self.assertEqual(data.get(sample_id, "label"), 2)
            self.assert_says(["class2/002.jpg", *words], run, loader)

    def test_a_file_that_shrinks_is_reported(self):
        self.lose(lambda path: os.truncate(path, 100), ["was changed since its folder was indexed", "its size"])

    def test_a_file_of_another_time_is_reported(self):
        self.lose(lambda path: os.utime(path, (1, 1)), ["was changed since", "its time of change", "remove the index"])

    def test_a_file_that_was_replaced_is_reported(self):
        def replace(path):
            with open(path + ".new", "wb") as file:
                file.write(image_file(99))
            os.replace(path + ".new", path)
        self.lose(replace, ["was changed since"])

    def test_a_file_that_was_removed_is_reported(self):
        self.lose(os.remove, ["No such file"])

    def test_verify_names_every_file_that_was_removed_or_changed(self):
        folder = self.tree()
        penstock.Dataset(folder).close()
        times = os.stat(os.path.join(folder, "class1")).st_mtime_ns
        os.remove(os.path.join(folder, "class1/002.jpg"))
        os.truncate(os.path.join(folder, "class1/004.jpg"), 9)
        os.utime(os.path.join(folder, "class1"), ns=(times, times))
        report = self.command("verify", folder, status=1)
        for name in ("class1/002.jpg", "class1/004.jpg"):
            self.assertIn(name, report)

    def test_a_file_cut_after_it_was_opened_is_reported_or_read_whole(self):
        folder = self.put({f"a/{i:02}.jpg": image_file(i) for i in range(20)})
        with penstock.Dataset(folder) as data:
            for i in range(16):
                data.get(i, "image")  # its file stays open
            os.truncate(os.path.join(folder, "a/15.jpg"), 50)
            self.assert_says(["a/15.jpg", "ends at byte 50"], data.get, 15, "image")


class Open(Folders):
    def test_many_directories_open_fast(self):
        image = image_file(height=16, width=16)
        folder = self.put({f"c{c:03}/{i}.jpg": image for c in range(200) for i in range(5)})
        penstock.Dataset(folder).close()
        times = []
        for _ in range(5):
            start = time.monotonic()
            penstock.Dataset(folder).close()
            times.append(time.monotonic() - start)
        self.assertLess(min(times), 0.1)
