# SPDX-License-Identifier: Apache-2.0
"""penstock reads tar archives as the webdataset library does."""
import unittest

import penstock
import test_tar_fields
from data_fixture import np, optional
from test_tar_fields import npy, picture


class WebDataset(test_tar_fields.Members):
    def theirs(self, path, *names, decoded=False):
        webdataset = optional("webdataset")
        pipeline = webdataset.WebDataset(f"{path}/000.tar", shardshuffle=False, empty_check=False)
        return list((pipeline.decode() if decoded else pipeline).to_tuple(*names))

    def test_the_first_of_several_members(self):
        samples, _ = test_tar_fields.FirstOf.samples(self)
        path = self.put(samples)
        for kinds in ("jpg;png;jpeg", "png;jpg;jpeg", "jpeg;png;jpg"):
            with penstock.Dataset(path, foreign=penstock.Foreign(fields={"image": kinds})) as data:
                self.assertEqual([(data[i]["image"],) for i in range(len(data))], self.theirs(path, kinds))

    def test_images_of_either_type(self):
        kinds = [("jpg", "png", "jpeg")[n * n % 3] for n in range(30)]
        path = self.put([(f"{n:03d}", {kinds[n]: picture(n, kinds[n])}) for n in range(30)])
        with penstock.Dataset(path) as data:
            self.assertEqual([tuple(data[i].values()) for i in range(len(data))], self.theirs(path, "jpg;jpeg;png"))

    def test_arrays(self):
        chance = np.random.default_rng(2)
        for name, shape in (("fixed", lambda n: (2, 3)), ("ragged", lambda n: (n % 5, 3)), ("scalar", lambda n: ())):
            path = self.put([(f"{n:03d}", {"npy": npy(np.asarray(chance.random(shape(n)), np.float32))}) for n in range(20)], name=name)
            with penstock.Dataset(path) as data:
                for i, (wanted,) in enumerate(self.theirs(path, "npy", decoded=True)):
                    got = data[i]["npy"]
                    np.testing.assert_array_equal(got, wanted)


if __name__ == "__main__":
    unittest.main()
