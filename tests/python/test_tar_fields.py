# SPDX-License-Identifier: Apache-2.0
"""Fields of tar archives that are one of several members, and members that are arrays. Python's tarfile writes the
archives; NumPy is the oracle of arrays."""
import io
import os
import random
import subprocess
import sys
import tarfile
import unittest

import penstock
from data_fixture import Case, np


def archive(samples):
    """Return the bytes of an archive of [(key, {suffix: bytes})], or of [(name, bytes)] in any order."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for key, given in samples:
            for name, data in ([(f"{key}.{suffix}", data) for suffix, data in given.items()]
                               if isinstance(given, dict) else [(key, given)]):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def picture(number, kind):
    """Return the bytes of a small image file, of another size for each number."""
    from PIL import Image
    buffer = io.BytesIO()
    Image.new("RGB", (8 + number % 7, 9), (number % 256, 1, 2)).save(buffer, {"png": "PNG"}.get(kind, "JPEG"))
    return buffer.getvalue()


def npy(array, **more):
    buffer = io.BytesIO()
    np.save(buffer, array, **more)
    return buffer.getvalue()


class Members(Case):
    def put(self, *archives, name="data"):
        folder = self.path(name)
        os.makedirs(folder, exist_ok=True)
        for number, samples in enumerate(archives):
            with open(os.path.join(folder, f"{number:03d}.tar"), "wb") as out:
                out.write(archive(samples))
        return folder

    def refused(self, path, *words, kind=penstock.CorruptRecordError, foreign=None):
        with self.assertRaises(kind) as caught:
            penstock.Dataset(path, foreign=foreign)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def check(self, path, wanted, fields=None):
        """Every sample has these values, in one process and as a loader gives them."""
        with penstock.Dataset(path, foreign=penstock.Foreign(fields=fields)) as data:
            self.assertEqual([data[i] for i in range(len(data))], wanted)


class Images(Members):
    def test_images_of_either_type_are_one_field(self):
        kinds = [("jpg", "png", "jpeg")[n % 3] for n in range(40)]
        samples = [(f"{n:04d}", {kinds[n]: picture(n, kinds[n]), "cls": str(n).encode()}) for n in range(40)]
        wanted = [{"cls": n, "jpg": picture(n, kinds[n])} for n in range(40)]
        self.check(self.put(samples), wanted)
        self.check(self.put(samples[:20], samples[20:], name="two"), wanted)
        with penstock.Loader(self.path("two"), batch_size=8, framework="numpy", outputs={
                "image": penstock.image("jpg", [penstock.ops.Resize((9, 8))]), "cls": penstock.scalar("cls")}) as loader:
            for batch in loader.epoch(0):
                for row, label in zip(batch["image"], batch["cls"]):
                    self.assertLess(abs(int(row[4, 4, 0]) - int(label)), 8)

    def test_the_name_does_not_depend_on_what_comes_first(self):
        for kinds in (("png", "jpg"), ("jpeg", "png"), ("png", "jpeg", "jpg")):
            samples = [(f"{n}", {kinds[n % len(kinds)]: picture(n, kinds[n % len(kinds)])}) for n in range(12)]
            with penstock.Dataset(self.put(samples, name="".join(kinds))) as data:
                self.assertEqual(list(data.fields), ["jpg" if "jpg" in kinds else "jpeg"])

    def test_data_with_one_type_keeps_its_name(self):
        for kind in ("jpg", "jpeg", "png"):
            samples = [(f"{n}", {kind: picture(n, kind)}) for n in range(3)]
            self.check(self.put(samples, name=kind), [{kind: picture(n, kind)} for n in range(3)])

    def test_images_that_a_sample_has_both_are_two_fields(self):
        samples = [(f"{n}", {"jpg": picture(n, "jpg"), "png": picture(n, "png")}) for n in range(5)]
        self.check(self.put(samples), [{"jpg": picture(n, "jpg"), "png": picture(n, "png")} for n in range(5)])
        # also where their members lie apart, and where only one sample has both
        apart = [(f"{n}.jpg", picture(n, "jpg")) for n in range(5)] + [(f"{n}.png", picture(n, "png")) for n in range(5)]
        self.check(self.put(apart, name="apart"), [{"jpg": picture(n, "jpg"), "png": picture(n, "png")} for n in range(5)])
        one = [(f"{n}", {"jpg": picture(n, "jpg"), **({"png": picture(n, "png")} if n == 4 else {})}) for n in range(5)]
        with penstock.Dataset(self.put(one, name="one")) as data:
            self.assertEqual(list(data.fields), ["jpg", "png"])
            self.assertEqual(data[4], {"jpg": picture(4, "jpg"), "png": picture(4, "png")})

    def test_a_prefix_keeps_images_apart(self):
        samples = [(f"{n}", {"jpg": picture(n, "jpg"), ("seg.png", "seg.jpg")[n % 2]: picture(n + 1, ("png", "jpg")[n % 2])})
                   for n in range(6)]
        self.check(self.put(samples), [{"jpg": picture(n, "jpg"), "seg.jpg": picture(n + 1, ("png", "jpg")[n % 2])}
                                       for n in range(6)])

    def test_a_type_that_comes_after_the_first_samples_joins(self):
        small = picture(1, "jpg")
        samples = [(f"{n:05d}", {"jpg" if n < 1100 else "png": small if n < 1100 else picture(n, "png")}) for n in range(1110)]
        with penstock.Dataset(self.put(samples)) as data:
            self.assertEqual(data[1105], {"jpg": picture(1105, "png")})
        # and a second image is an error that says where, and what to do, which then works
        samples[1050] = ("01050", {"jpg": small, "png": picture(7, "png")})
        path = self.put(samples, name="both")
        with tarfile.open(os.path.join(path, "000.tar")) as tar:
            begin = {info.name: info.offset for info in tar}
        self.refused(path, "000.tar", f"byte {begin['01050.png']}", "suffix 'png'", f"at byte {begin['01050.jpg']}",
                     "name this suffix in fields")
        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"png": "image"})) as data:
            self.assertEqual(data[1050], {"jpg": small, "png": picture(7, "png")})

    def test_the_same_suffix_twice_is_damage(self):
        twice = [("0.jpg", picture(0, "jpg")), ("0.jpg", picture(1, "jpg"))]
        self.refused(self.put(twice), "suffix 'jpg' of this sample twice")
        late = [(f"{n}", {("png", "jpg")[n % 2]: picture(n, ("png", "jpg")[n % 2])}) for n in range(4)]
        self.refused(self.put([*late, ("3.jpg", picture(9, "jpg"))], name="late"), "second image")

    def test_naming_a_type_keeps_it_apart(self):
        samples = [(f"{n}", {("jpg", "png")[n % 2]: picture(n, ("jpg", "png")[n % 2])}) for n in range(4)]
        path = self.put(samples)
        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"png": "bytes"})) as data:
            self.assertEqual(list(data.fields), ["jpg", "png"])
        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"jpg": "bytes"})) as data:
            self.assertEqual(str(data.fields["jpg"].field.kind), "bytes")
            self.assertEqual(data[1], {"jpg": picture(1, "png")})


class Addresses(Members):
    PROGRAM = """
import resource, sys, penstock
if int(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]) << 20,) * 2)
settings = {"memory": penstock.Memory(max_pixels=int(sys.argv[3]))} if int(sys.argv[3]) else {}
with penstock.Loader(sys.argv[1], batch_size=2, n_threads=4, framework="numpy", order="sequential",
                     outputs={"i": penstock.image("jpg", [penstock.ops.Resize((8, 8))])}, **settings) as loader:
    print(sum(batch["i"].shape[0] for batch in loader.epoch(0)))
    print(next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith("VmData")))
"""

    def run_in(self, mebibytes, max_pixels=0):
        path = self.put([(f"{n}", {"jpg": picture(n, "jpg")}) for n in range(8)])
        return subprocess.run([sys.executable, "-c", self.PROGRAM, path, str(mebibytes), str(max_pixels)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)

    def test_images_of_unknown_size_reserve_addresses_that_cannot_be_written(self):
        # The kernel counts what may be written against vm.overcommit_memory=2; a worker reserves 1.5 GB.
        rows, megabytes = self.run_in(0).stdout.split()
        self.assertEqual(rows, "8")
        self.assertLess(int(megabytes), 1000)

    def test_a_limit_of_addresses_is_named_with_what_to_do(self):
        refused = self.run_in(3000)
        self.assertIn("raise the limit of this process (ulimit -v), or lower n_threads or max_pixels", refused.stderr)
        self.assertEqual(self.run_in(3000, 4 << 20).stdout.split()[:1], ["8"])


class FirstOf(Members):
    def samples(self, n=60):
        """Return samples that have some of three members, at least one of them, in any order; and what the field is."""
        chance, samples, wanted = random.Random(5), [], []
        for number in range(n):
            has = [kind for kind in ("jpg", "png", "jpeg") if chance.random() < 0.5] or ["png"]
            chance.shuffle(has)
            found = {kind: picture(chance.randrange(100), kind) for kind in has}
            samples.append((f"{number:03d}", {**found, "cls": str(number).encode()}))
            wanted.append(found)
        return samples, wanted

    def first(self, wanted, *kinds):
        return [{"cls": n, "image": next(has[kind] for kind in kinds if kind in has)} for n, has in enumerate(wanted)]

    def test_the_first_that_a_sample_has_is_the_field(self):
        samples, wanted = self.samples()
        path = self.put(samples[:25], samples[25:])
        for kinds in (("jpg", "png", "jpeg"), ("png", "jpeg", "jpg"), ("jpeg", "jpg", "png")):
            self.check(path, self.first(wanted, *kinds), {"image": ";".join(kinds)})
            # with all members of a sample in one read
            red = []
            with penstock.Loader(path, batch_size=60, order="sequential", framework="numpy",
                                 foreign=penstock.Foreign(fields={"image": ";".join(kinds)}),
                                 outputs={"i": penstock.image("image", [penstock.ops.Resize((8, 8))]), "c": "cls"}) as loader:
                for batch in loader.epoch(0):
                    red += [int(row[4, 4, 0]) for row in batch["i"]]
            for found, one in zip(red, self.first(wanted, *kinds), strict=True):
                from PIL import Image
                self.assertLess(abs(found - Image.open(io.BytesIO(one["image"])).getpixel((4, 4))[0]), 4)

    def test_members_that_lie_apart(self):
        samples, wanted = self.samples()
        apart = [(f"{key}.{suffix}", data) for kind in ("png", "cls", "jpeg", "jpg") for key, has in samples
                 for suffix, data in has.items() if suffix == kind]
        # a member that lies far from its sample makes each one an extent of its own
        apart.insert(len(apart) // 2, ("~.bin", bytes(200000)))
        path = self.put([*apart, ("~.cls", b"60"), ("~.jpg", picture(0, "jpg"))])
        # samples count in the order of their first members
        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"image": "jpg;png;jpeg"})) as data:
            found = sorted(({name: data.get(i, name) for name in ("cls", "image")} for i in range(len(data))),
                           key=lambda one: one["cls"])
        self.assertEqual(found[:60], self.first(wanted, "jpg", "png", "jpeg"))

    def test_members_that_are_not_chosen_need_not_be_valid(self):
        samples = [(f"{n}", {"png": b"no image" * 1000, "jpg": picture(n, "jpg")}) for n in range(4)]
        path = self.put(samples)
        self.check(path, [{"image": picture(n, "jpg")} for n in range(4)], {"image": "jpg;png"})
        with penstock.Dataset(path,
                              foreign=penstock.Foreign(fields={"image": "png;jpg"})) as data, self.assertRaises(penstock.CorruptRecordError):
            data[0]

    def test_sizes_count_what_is_chosen(self):
        samples, wanted = self.samples()
        with penstock.Dataset(self.put(samples), foreign=penstock.Foreign(fields={"image": "png;jpg;jpeg"})) as data:
            sizes = [len(one["image"]) for one in self.first(wanted, "png", "jpg", "jpeg")]
            self.assertEqual(data.fields["image"].stored_bytes, sum(sizes))

    def test_a_name_of_its_own_and_types(self):
        samples = [(f"{n}", {("cls", "id")[n % 2]: str(n).encode()}) for n in range(4)]
        path = self.put(samples)
        self.check(path, [{"label": n} for n in range(4)], {"label": "cls;id"})
        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"label": ("cls;id", "uint8")})) as data:
            self.assertEqual((data[3], data.fields["label"].field.kind), ({"label": 3}, "uint8"))
        self.check(path, [{"cls": n} for n in range(4)], {"cls": "cls;id"})

    def test_a_sample_with_none_is_bad(self):
        path = self.put([("0", {"jpg": picture(0, "jpg"), "cls": b"0"}), ("1", {"cls": b"1"})])
        with penstock.Dataset(path, foreign=penstock.Foreign(fields={"image": "jpg;png"})) as data:
            self.assertEqual(data[0], {"image": picture(0, "jpg"), "cls": 0})
            with self.assertRaises(penstock.CorruptRecordError) as caught:
                data[1]
            self.assertIn("image", str(caught.exception))

    def test_lists_that_cannot_be_are_refused(self):
        path = self.put([(f"{n}", {"jpg": picture(n, "jpg"), "cls": b"1", "x.npy": npy(np.zeros(3))}) for n in range(2)])
        error = penstock.SettingsError
        self.refused(path, "'jpg;'", "2 to 8 suffixes", kind=error, foreign=penstock.Foreign(fields={"image": "jpg;"}))
        self.refused(path, "each suffix once", kind=error, foreign=penstock.Foreign(fields={"image": "jpg;jpg"}))
        self.refused(path, "each suffix once", kind=error,
                     foreign=penstock.Foreign(fields={"image": "jpg;png", "other": "png;gif"}))
        self.refused(path, "a field of its own", kind=error,
                     foreign=penstock.Foreign(fields={"image": "jpg;png", "png": "image"}))
        self.refused(path, "lower case", kind=error, foreign=penstock.Foreign(fields={"image": "jpg;PNG"}))
        self.refused(path, "2 to 8 suffixes", kind=error, foreign=penstock.Foreign(fields={"image": ";".join("abcdefghi")}))
        self.refused(path, "different types", kind=error, foreign=penstock.Foreign(fields={"image": "jpg;cls"}))
        self.refused(path, "different types", kind=error, foreign=penstock.Foreign(fields={"image": ("x.npy;jpg", "bytes")}))
        self.refused(path, "name that fields gives", kind=error, foreign=penstock.Foreign(fields={"cls": "jpg;png"}))
        self.refused(path, "no sample of", kind=error, foreign=penstock.Foreign(fields={"image": "gif;bmp"}))
        self.refused(path, "names of 1 to 63", kind=error, foreign=penstock.Foreign(fields={"é": "jpg;png"}))
        np.save(self.path("arrays.npy"), np.arange(3))
        self.refused(self.path("arrays.npy"), "only tar archives", kind=penstock.PenstockError,
                     foreign=penstock.Foreign(fields={"image": "jpg;png"}))

    def test_the_command_names_them_too(self):
        samples, wanted = self.samples(4)
        path = self.put(samples)
        command = os.environ["PENSTOCK_COMMAND"]
        got = subprocess.run([command, "get", path, "2", "image", "--field", "image=png;jpeg;jpg"], check=True,
                             stdout=subprocess.PIPE).stdout
        self.assertEqual(got, self.first(wanted, "png", "jpeg", "jpg")[2]["image"])
        bad = subprocess.run([command, "info", path, "--field", "imag=gif;bmp"], stderr=subprocess.PIPE, text=True)
        self.assertEqual(bad.returncode, 2)
        self.assertIn("--field: value has 'imag', which no sample of", bad.stderr)


class Arrays(Members):
    def check_arrays(self, path, name, wanted, dtype, shape, fields=None):
        with penstock.Dataset(path, foreign=penstock.Foreign(fields=fields)) as data:
            field = data.fields[name].field
            self.assertEqual((field.kind, field.shape), (dtype, shape))
            for i, array in enumerate(wanted):
                got = data[i][name]
                np.testing.assert_array_equal(got, array)
                self.assertEqual((got.dtype, got.shape), (np.dtype(dtype), array.shape))

    def test_arrays_of_one_shape(self):
        chance = np.random.default_rng(1)
        for dtype in ("uint8", "int16", "float32", "float64", "float16", "int64", "uint32"):
            arrays = [(chance.random((2, 3)) * 100).astype(dtype) for _ in range(10)]
            path = self.put([(f"{n}", {"emb.npy": npy(a)}) for n, a in enumerate(arrays)], name=dtype)
            self.check_arrays(path, "emb.npy", arrays, dtype, (2, 3))
            with penstock.Loader(path, batch_size=5, order="sequential", framework="numpy",
                                 outputs={"e": penstock.tensor("emb.npy")}) as loader:
                got = [row.copy() for batch in loader.epoch(0) for row in batch["e"]]
            np.testing.assert_array_equal(got, arrays)

    def test_arrays_whose_first_dimension_differs(self):
        arrays = [np.arange(n % 4 * 5, dtype=np.int32).reshape(n % 4, 5) + n for n in range(12)]
        path = self.put([(f"{n:02d}", {"npy": npy(a)}) for n, a in enumerate(arrays)])
        self.check_arrays(path, "npy", arrays, "int32", (None, 5))
        with penstock.Loader(path, batch_size=4, order="sequential", framework="numpy",
                             outputs={"r": penstock.ragged("npy")}) as loader:
            first = next(iter(loader.epoch(0)))["r"]
            for row, array in zip(first, arrays):
                np.testing.assert_array_equal(row, array)

    def test_arrays_without_dimensions_are_scalars(self):
        path = self.put([(f"{n}", {"x.npy": npy(np.float64(n / 3))}) for n in range(4)])
        with penstock.Dataset(path) as data:
            self.assertEqual(data.fields["x.npy"].field.kind, "float64")
            self.assertEqual([data[n]["x.npy"] for n in range(4)], [n / 3 for n in range(4)])
        with penstock.Loader(path, batch_size=4, order="sequential", framework="numpy", outputs=["x.npy"]) as loader:
            np.testing.assert_array_equal(next(iter(loader.epoch(0)))["x.npy"], np.arange(4) / 3)

    def test_heads_of_every_version_and_length(self):
        array = np.arange(6, dtype=np.uint16).reshape(2, 3)
        for version in ((1, 0), (2, 0), (3, 0)):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, version)
            self.check_arrays(self.put([("0", {"npy": buffer.getvalue()})], name=f"v{version[0]}"), "npy", [array], "uint16", (2, 3))
        head = b"{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }" + b" " * 3000 + b"\n"
        long = b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + array.tobytes()
        self.check_arrays(self.put([("0", {"npy": long})], name="long"), "npy", [array], "uint16", (2, 3))

    def test_npy_members_not_readable_in_place_are_bytes_and_never_loaded(self):
        odd = {"object": npy(np.array([{}, 1], object), allow_pickle=True), "text": npy(np.array(["a", "bc"])),
               "record": npy(np.zeros(2, [("a", "i4")])), "fortran": npy(np.asfortranarray(np.ones((2, 3)))),
               "big": npy(np.arange(3, dtype=">i4")), "junk": b"junk", "short": npy(np.zeros(3))[:50], "empty": b""}
        for name, data in odd.items():
            path = self.put([(f"{n}", {"npy": data, "txt": b"t"}) for n in range(2)], name=name)
            self.check(path, [{"npy": data, "txt": "t"}] * 2)
            with penstock.Dataset(path, foreign=penstock.Foreign(fields={"npy": ("float64", (None,))})) as data, \
                    self.assertRaises(penstock.CorruptRecordError, msg=name) as caught:
                data[1]
            self.assertIn("000.tar: record 1: field npy (bytes ", str(caught.exception))
        differing = [(f"{n}", {"npy": npy(np.zeros((n + 1, n + 2)))}) for n in range(3)]
        path = self.put(differing, name="differing")
        self.check(path, [{"npy": has["npy"]} for _, has in differing])
        self.refused(path, "more than one dimension", kind=penstock.PenstockError,
                     foreign=penstock.Foreign(fields={"npy": ("float64", (None, None))}))

    def test_a_sample_that_departs_is_an_error_of_its_own(self):
        good = np.zeros((2, 3), np.float32)
        for name, data, word in (
                ("dtype", npy(np.zeros((2, 3), np.float64)), "is an array of f64 with 2 dimensions; must be of f32 with 2"),
                ("dims", npy(np.zeros(6, np.float32)), "is an array of f32 with 1 dimensions"),
                ("shape", npy(np.zeros((2, 4), np.float32)), "dimension 1 is 4; must be 3"),
                ("short", npy(good)[:-1], "has 23 bytes of elements, but its shape needs 24"),
                ("long", npy(good) + b"x", "has 25 bytes of elements, but its shape needs 24"),
                ("pickle", npy(np.array([None] * 6, object), allow_pickle=True), "never loads"),
                ("junk", b"junk", "not a .npy file")):
            samples = [(f"{n:05d}", {"npy": npy(good)}) for n in range(1001 + 8)]
            samples[1005] = ("01005", {"npy": data})
            path = self.put(samples, name=name)
            with tarfile.open(os.path.join(path, "000.tar")) as tar:
                begin = tar.getmember("01005.npy").offset_data
            with penstock.Dataset(path) as opened:
                np.testing.assert_array_equal(opened[1004]["npy"], good)
                with self.assertRaises(penstock.CorruptRecordError) as caught:
                    opened[1005]
            text = str(caught.exception)
            self.assertIn(word, text)
            self.assertIn(f"000.tar: record 1005: field npy (bytes {begin + (128 if 'array' in word or 'dim' in word or 'elements' in word else 0)} ",
                          text, name)

    def test_bytes_may_be_asked_for_instead(self):
        data = npy(np.zeros(3))
        self.check(self.put([("0", {"npy": data})]), [{"npy": data}], {"npy": "bytes"})

    def test_pack_and_export_keep_arrays(self):
        arrays = [np.arange(n % 3 * 2, dtype=np.float32).reshape(-1, 2) + n for n in range(9)]
        path, packed = self.put([(f"{n}", {"a.npy": npy(a), "cls": str(n).encode()}) for n, a in enumerate(arrays)]), self.path("packed")
        subprocess.run([os.environ["PENSTOCK_COMMAND"], "pack", path, packed], check=True, stdout=subprocess.DEVNULL)
        self.check_arrays(packed, "a.npy", arrays, "float32", (None, 2))
        subprocess.run([os.environ["PENSTOCK_COMMAND"], "export", packed, self.path("back"), "--to", "webdataset"], check=True,
                       stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    unittest.main()
