# SPDX-License-Identifier: Apache-2.0
"""cache_size: bytes that what is unpacked into the cache may have, given or from the environment."""
import gzip
import io
import os
import pickle
import subprocess
import tarfile
import unittest
from unittest import mock

import penstock
from data_fixture import Case, image_file
from penstock.foreign import Opening

SMALL = penstock.image("image", [penstock.ops.Resize((8, 8))])


def size_of(foreign):
    return Opening(foreign).to_c().cache_size


class CacheSize(Case):
    def images(self):
        folder = self.path("images/class")
        os.makedirs(folder)
        for i in range(3):
            with open(f"{folder}/{i}.png", "wb") as file:
                file.write(image_file(i, "PNG"))
        return os.path.dirname(folder)

    def test_the_argument_is_before_the_environment(self):
        for text, wanted in (("", 0), ("0", 0), ("1M", 1 << 20), ("3g", 3 << 30), ("2T", 2 << 40), ("1048577", (1 << 20) + 1)):
            with mock.patch.dict(os.environ, {"PENSTOCK_CACHE_SIZE": text}):
                self.assertEqual(size_of(penstock.Foreign()), wanted, text)
                self.assertEqual(size_of(penstock.Foreign(cache_size=5 << 20)), 5 << 20)
        with mock.patch.dict(os.environ):
            os.environ.pop("PENSTOCK_CACHE_SIZE", None)
            self.assertEqual(size_of(penstock.Foreign()), 0)

    def test_an_invalid_cache_size_is_refused(self):
        folder = self.images()
        for wrong in ("12", "1.5G", "M", "-1M", "1MB", "٣M", "9" * 30, "99999999T"):
            with mock.patch.dict(os.environ, {"PENSTOCK_CACHE_SIZE": wrong}):
                with self.assertRaisesRegex(penstock.SettingsError, "PENSTOCK_CACHE_SIZE"):
                    penstock.Dataset(folder)
        with self.assertRaisesRegex(penstock.SettingsError, "cache_size"):
            penstock.Dataset(folder, foreign=penstock.Foreign(cache_size=-1))
        with self.assertRaisesRegex(penstock.SettingsError, "cache_size: value is 8; must be 0, for auto, or at least 1048576"):
            penstock.Dataset(folder, foreign=penstock.Foreign(cache_size=8))
        with self.assertRaisesRegex(TypeError, "cache_size"):
            penstock.Dataset(folder, foreign=penstock.Foreign(cache_size="1G"))

    def test_loader_and_dataset_take_it(self):
        folder = self.images()
        dataset = penstock.Dataset(folder, foreign=penstock.Foreign(cache_size=1 << 30))
        self.assertEqual(len(pickle.loads(pickle.dumps(dataset))), 3)
        with penstock.Loader(folder, batch_size=3, outputs=[SMALL], foreign=penstock.Foreign(cache_size=1 << 30)) as loader:
            self.assertEqual(len(list(loader)), 1)
            self.assertEqual(len(loader.dataset), 3)

    def test_open_data_sets_go_on_when_the_cache_is_cleared(self):
        """The index of data whose folder cannot be written to lies in the cache."""
        folder, cache = self.path("shards"), self.path("cache")
        os.makedirs(folder)
        with open(f"{folder}/.penstock", "w", encoding="ascii"):
            pass  # no folder for an index can be made here
        for k in range(3):
            with tarfile.open(f"{folder}/{k}.tar", "w") as shard:
                for i in range(8):
                    info = tarfile.TarInfo(f"{k}-{i}.bin")
                    info.size = 700
                    shard.addfile(info, io.BytesIO(bytes([k * 8 + i]) * 700))
        dataset = penstock.Dataset(folder, foreign=penstock.Foreign(cache_path=cache))
        with penstock.Loader(folder, batch_size=4, framework="numpy", seed=1,
                             foreign=penstock.Foreign(cache_path=cache)) as loader:
            self.assertEqual(len([name for name in os.listdir(cache + "/index") if name.endswith(".index")]), 1)
            subprocess.run([os.environ["PENSTOCK_COMMAND"], "cache", cache, "--clear"], check=True, stdout=subprocess.DEVNULL)
            self.assertFalse([name for name in os.listdir(cache + "/index") if name.endswith(".index")])
            self.assertEqual([bytes(dataset.get(i, "bin"))[0] for i in range(24)], list(range(24)))
            for epoch in range(2):
                self.assertEqual(len(list(loader.epoch(epoch))), 6)
        again = pickle.loads(pickle.dumps(dataset))  # builds the index anew
        self.assertEqual(bytes(again.get(23, "bin"))[0], 23)
        packed = self.path("packed")
        os.makedirs(packed)
        with open(f"{packed}/.penstock", "w", encoding="ascii"):
            pass
        with open(f"{folder}/2.tar", "rb") as plain, gzip.open(f"{packed}/2.tar.gz", "wb") as file:
            file.write(plain.read())
        self.assertEqual(len(penstock.Dataset(packed, foreign=penstock.Foreign(cache_path=cache))), 8)
        self.assertTrue([name for name in os.listdir(cache + "/index") if name.endswith(".points")])
        subprocess.run([os.environ["PENSTOCK_COMMAND"], "cache", cache, "--clear"], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual([name for name in os.listdir(cache + "/index") if not name.endswith(".lock")], [])


    def test_open_folders_of_images_go_on_when_the_cache_is_cleared(self):
        folder, cache = self.images(), self.path("cache")
        for place in (folder, os.path.dirname(folder)):
            with open(f"{place}/.penstock", "w", encoding="ascii"):
                pass  # no folder for an index can be made here
        dataset = penstock.Dataset(folder, foreign=penstock.Foreign(cache_path=cache))
        with penstock.Loader(folder, batch_size=1, outputs=[SMALL], foreign=penstock.Foreign(cache_path=cache)) as loader:
            self.assertTrue(os.listdir(cache + "/index"))
            subprocess.run([os.environ["PENSTOCK_COMMAND"], "cache", cache, "--clear"], check=True, stdout=subprocess.DEVNULL)
            self.assertFalse([name for name in os.listdir(cache + "/index") if name.endswith(".index")])
            self.assertEqual(bytes(dataset.get(2, "image")), image_file(2, "PNG"))
            self.assertEqual(len(list(loader)), 3)


if __name__ == "__main__":
    unittest.main()
