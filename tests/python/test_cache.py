# SPDX-License-Identifier: Apache-2.0
"""cache_size: bytes that what is unpacked into the cache may have, given or from the environment."""
import ctypes
import os
import pickle
import unittest
from unittest import mock

import penstock
from data_fixture import Case, image_file
from penstock import _c
from penstock.foreign import Foreign

SMALL = penstock.image("image", [penstock.Resize((8, 8))])


def size_of(foreign):
    return foreign.to_c().cache_size


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
                self.assertEqual(size_of(Foreign()), wanted, text)
                self.assertEqual(size_of(Foreign(cache_size=5 << 20)), 5 << 20)
        with mock.patch.dict(os.environ):
            os.environ.pop("PENSTOCK_CACHE_SIZE", None)
            self.assertEqual(size_of(Foreign()), 0)

    def test_what_is_wrong_is_refused(self):
        folder = self.images()
        for wrong in ("12", "1.5G", "M", "-1M", "1MB", "٣M", "9" * 30, "99999999T"):
            with mock.patch.dict(os.environ, {"PENSTOCK_CACHE_SIZE": wrong}):
                with self.assertRaisesRegex(penstock.SettingsError, "PENSTOCK_CACHE_SIZE"):
                    penstock.Dataset(folder)
        with self.assertRaisesRegex(penstock.SettingsError, "cache_size"):
            penstock.Dataset(folder, cache_size=-1)
        with self.assertRaisesRegex(penstock.SettingsError, "cache_size: value is 8; must be 0, for auto, or at least 1048576"):
            penstock.Dataset(folder, cache_size=8)
        with self.assertRaisesRegex(TypeError, "cache_size"):
            penstock.Dataset(folder, cache_size="1G")

    def test_loader_and_dataset_take_it(self):
        folder = self.images()
        dataset = penstock.Dataset(folder, cache_size=1 << 30)
        self.assertEqual(len(pickle.loads(pickle.dumps(dataset))), 3)
        with penstock.Loader(folder, batch_size=3, outputs=[SMALL], cache_size=1 << 30) as loader:
            self.assertEqual(len(list(loader)), 1)
            self.assertEqual(len(loader.dataset), 3)

    def test_callers_of_before_have_none(self):
        """A struct without cache_size is as large as this library had it before."""
        folder = self.images()
        for size, is_right in ((ctypes.sizeof(_c.Foreign), False), (_c.Foreign.cache_size.offset, True),
                               (_c.Foreign.cache_size.offset - 8, False), (ctypes.sizeof(_c.Foreign) + 8, False)):
            made, handle = Foreign().to_c(), ctypes.c_void_p()
            made.size, made.cache_size = size, 7  # a size that is refused, if it is read
            code = _c.lib.pstk_dataset_open_foreign(ctypes.byref(handle), os.fsencode(folder), ctypes.byref(made), None)
            self.assertEqual(code == 0, is_right, size)
            if code == 0:
                _c.lib.pstk_dataset_close(ctypes.byref(handle))


if __name__ == "__main__":
    unittest.main()
