# SPDX-License-Identifier: Apache-2.0
"""Undamaged progressive JPEGs whose last scans are missing: packed as they came, not as damaged, and decoded to the
pixels that Pillow shows, whole and cropped."""
import io
import unittest

import data_fixture
import penstock

np = data_fixture.optional("numpy")
Image = data_fixture.optional("PIL.Image")
features = data_fixture.optional("PIL.features")

RELEASE = tuple(map(int, (features.version("libjpeg_turbo") or "0").split(".")))


def without_last_scans(file, n_scans):
    """Return the file up to the end of its scan of that number, and the marker of the end."""
    at = 2
    while n_scans:
        is_scan = file[at + 1] == 0xda
        at += 2 + int.from_bytes(file[at + 2:at + 4], "big")
        while is_scan and (file[at] != 0xff or file[at + 1] == 0 or 0xd0 <= file[at + 1] <= 0xd7):
            at += 1
        n_scans -= is_scan
    return file[:at] + b"\xff\xd9"


def files():
    """JPEGs of Pillow's ten scans, of which 1 to 9 are left."""
    for subsampling in (0, 1, 2):
        for height, width in ((16, 16), (40, 56), (75, 131)):
            out = io.BytesIO()
            Image.fromarray(data_fixture.picture(subsampling, height, width)).save(
                out, "JPEG", progressive=True, subsampling=subsampling, quality=60)
            for n_scans in (1, 2, 5, 9):
                yield without_last_scans(out.getvalue(), n_scans)


@unittest.skipIf(RELEASE < (3, 0, 1), "Pillow's libjpeg-turbo is older than 3.0.1")
class Pixels(data_fixture.Case):
    def setUp(self):
        super().setUp()
        self.files = list(files())
        with penstock.Writer(self.path(), {"x": "image"}) as writer:
            for file in self.files:
                writer.add(x=file)
        self.wanted = [np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in self.files]

    def test_none_is_called_damaged_and_each_comes_back(self):
        with penstock.Dataset(self.path()) as dataset:
            self.assertEqual(dataset.fields["x"].n_damaged, 0)
            self.assertEqual([sample["x"] for sample in dataset], self.files)

    def test_whole_images_are_pillows(self):
        with penstock.Dataset(self.path(), decode=True) as dataset:
            for i, wanted in enumerate(self.wanted):
                np.testing.assert_array_equal(dataset[i]["x"], wanted, err_msg=str(i))

    def test_crops_are_those_of_pillows_images(self):
        output = penstock.image("x", [penstock.ops.RandomCrop(9)])
        with penstock.Loader(self.path(), outputs={"x": output}, batch_size=4, shuffle=False, form="dict",
                             framework="numpy", observe=penstock.Observe(report_crops=True)) as loader:
            n = 0
            for batch in loader:
                for row, crop in zip(batch["x"], batch.crops["x"]):
                    part = self.wanted[n][crop.top:crop.top + 9, crop.left:crop.left + 9]
                    np.testing.assert_array_equal(row, part, err_msg=str(n))
                    n += 1
            self.assertEqual(n, len(self.files))


if __name__ == "__main__":
    unittest.main()
