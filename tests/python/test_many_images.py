# SPDX-License-Identifier: Apache-2.0
"""A folder of 100 000 images: an open that has an index looks at folders, not at files."""
import os
import resource
import time

import penstock
from data_fixture import Case, image_file

N_CLASSES, N_EACH = 500, 200


class Many(Case):
    def test_an_indexed_folder_of_100_000_files_opens_in_less_than_100_ms(self):
        folder = self.path("train")
        image = image_file(height=16, width=16)
        for c in range(N_CLASSES):
            os.makedirs(f"{folder}/c{c:03}")
            with open(f"{folder}/c{c:03}/000.jpg", "wb") as file:
                file.write(image)
            for i in range(1, N_EACH):  # links: made faster than files
                os.link(f"{folder}/c{c:03}/000.jpg", f"{folder}/c{c:03}/{i:03}.jpg")
        start = time.monotonic()
        with penstock.Dataset(folder) as data:
            self.assertEqual(len(data), N_CLASSES * N_EACH)
        built = time.monotonic() - start
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        opened = []
        for _ in range(5):
            start = time.monotonic()
            data = penstock.Dataset(folder)
            opened.append(time.monotonic() - start)
            for sample_id in (0, 12345, 99999):
                sample = data[sample_id]
                self.assertEqual(sample["path"], f"c{sample_id // N_EACH:03}/{sample_id % N_EACH:03}.jpg")
                self.assertEqual((sample["label"], sample["image"]), (sample_id // N_EACH, image))
            data.close()
        print(f"# indexed in {built:.2f} s, opened in {min(opened) * 1e3:.1f} ms")
        self.assertLess(min(opened), 0.1)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 4096)  # KiB; names would take 6 MB
        with penstock.Loader(folder, outputs={"x": penstock.ragged("image"), "y": "label"}, batch_size=1000,
                             framework="numpy", device="cpu") as loader:
            seen = {int(i): int(y) for batch in loader.epoch(0) for i, y in zip(batch.sample_ids, batch["y"])}
        self.assertEqual(seen, {i: i // N_EACH for i in range(N_CLASSES * N_EACH)})
