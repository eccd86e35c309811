# SPDX-License-Identifier: Apache-2.0
"""The parts that the tests of writing and packing share: a folder of their own, and small pictures."""

import importlib
import importlib.util
import io
import os
import shutil
import tempfile
import unittest


def optional(name):
    """Return a module, or a skip that names it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise unittest.SkipTest(f"missing: {name}") from None


def needs(name):
    """Skip where a module is missing that other processes import."""
    if importlib.util.find_spec(name) is None:
        raise unittest.SkipTest(f"missing: {name}")


np = optional("numpy")


def picture(i=0, height=40, width=56):
    """Return pixels, smooth enough for a JPEG to be small; different for each i."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([(x * 3 + 7 * i) % 256, (y * 4 + i) % 256, (x + y + 31 * i) % 256], 2).astype(np.uint8)


def image_file(i=0, kind="JPEG", **size):
    out = io.BytesIO()
    optional("PIL.Image").fromarray(picture(i, **size)).save(out, kind)
    return out.getvalue()


class Case(unittest.TestCase):
    """Has a folder that is gone afterwards."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="penstock-test-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def path(self, name="data"):
        return os.path.join(self.folder, name)

    def left(self):
        """Return all that is in the folder."""
        return sorted(os.listdir(self.folder))

    def assert_says(self, words, function, *arguments, **keywords):
        """Check that the call raises, and that the text has all the words. Return the exception."""
        with self.assertRaises(Exception) as caught:
            function(*arguments, **keywords)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, str(caught.exception))
        return caught.exception
