# SPDX-License-Identifier: Apache-2.0
"""Loader(mix=...): batches are what torchvision and timm make of the plain ones, with the draws that draw_mix gives."""
import hashlib
import unittest

import penstock
from penstock import CutMix, MixUp, MixUpCutMix, OneHot
from penstock.ops import Normalize, RandomCrop

from data_fixture import Case, np, optional

N, B, CLASSES, SEED = 44, 8, 10, 11
HEIGHT, WIDTH = 24, 30
# SHA-1 of images and targets of two epochs, mixed by timm 1.0.31 (Mixup, label_smoothing=0.1) with the lambdas and boxes
# that draw_mix gives, by dtype and mode.
TIMM = {("float32", "batch"): "c630592332f36805ebd6f0e4cea1fb3168bce739",
        ("float32", "elem"): "141cd6d09ffb32404bf81cea232b1cd6d2fff1da",
        ("float32", "pair"): "f109cd3ebb34d78ef504df92ed4d1dd60b71cbe6",
        ("float16", "batch"): "20ae81734ee513036e6076445fa478a32d229717"}


class Mixing(Case):
    def setUp(self):
        super().setUp()
        pixels = np.random.default_rng(1).integers(0, 256, (N, 28, 36, 3), "u1")
        with penstock.Writer(self.path(), {"x": "image", "y": "int32"}) as writer:
            for i, one in enumerate(pixels):
                writer.add(x=one, y=i * 7 % CLASSES)

    def loader(self, mix=None, dtype="float32", layout="nchw", outputs=None, **keywords):
        outputs = outputs or {"x": penstock.image("x", [RandomCrop((HEIGHT, WIDTH)), Normalize()], dtype=dtype,
                                                  layout=layout), "y": "y"}
        keywords = {"batch_size": B, "seed": SEED, "framework": "numpy", "device": penstock.Device(copy=True),
                    "last_batch": "short", **keywords}
        return penstock.Loader(self.path(), outputs=outputs, mix=mix, **keywords)

    def batches(self, mix=None, n_epochs=1, **keywords):
        with self.loader(mix, **keywords) as loader:
            return [batch for epoch in range(n_epochs) for batch in loader.epoch(epoch)]

    @staticmethod
    def rows(mix, batch, rank=0):
        return penstock.draw_mix(mix, batch.n_valid, HEIGHT, WIDTH, seed=SEED, epoch=batch.epoch,
                                 position=batch.position, rank=rank)

    # ---- references ----------------------------------------------------------------------------------------

    def test_batches_are_those_of_torchvision(self):
        torch, v2 = optional("torch"), optional("torchvision.transforms.v2")

        class Given(v2.Transform):
            """torchvision's transform with parameters that are given."""

            def make_params(self, flat_inputs):
                return self.params

        class TheirMixUp(Given, v2.MixUp):
            pass

        class TheirCutMix(Given, v2.CutMix):
            pass

        theirs = {"mixup": TheirMixUp(num_classes=CLASSES), "cutmix": TheirCutMix(num_classes=CLASSES)}
        seen = set()
        for mix in (MixUp(0.2, num_classes=CLASSES), CutMix(num_classes=CLASSES),
                    MixUpCutMix(0.8, 1.0, num_classes=CLASSES)):
            for dtype in ("float32", "float16"):
                plain = self.batches(dtype=dtype, n_epochs=3, framework="torch")
                mixed = self.batches(mix, dtype=dtype, n_epochs=3, framework="torch")
                self.assertEqual(len(mixed), 18)
                for before, after in zip(plain, mixed):
                    row = self.rows(mix, before)[0]
                    if row.box:
                        top, left, height, width = row.box
                        params = {"box": (left, top, left + width, top + height), "lam_adjusted": row.lam}
                    else:
                        params = {"lam": row.lam}
                    theirs[row.kind].params = params
                    n = before.n_valid
                    x, y = theirs[row.kind](before["x"][:n], before["y"][:n].long())
                    self.assertTrue(torch.equal(after["x"][:n], x))
                    self.assertEqual(after["y"].dtype, torch.float32)
                    self.assertTrue(torch.equal(after["y"][:n], y))
                    seen.add(row.kind)
        self.assertEqual(seen, {"mixup", "cutmix"})

    def test_bfloat16_is_that_of_torch(self):
        torch = optional("torch")
        mix = MixUp(0.8, num_classes=CLASSES)
        for before, after in zip(self.batches(dtype="bfloat16", framework="torch"),
                                 self.batches(mix, dtype="bfloat16", framework="torch")):
            n, lam = before.n_valid, self.rows(mix, before)[0].lam
            x = before["x"][:n]
            self.assertTrue(torch.equal(after["x"][:n], x.roll(1, 0).mul_(1 - lam).add_(x.mul(lam))))

    def test_batches_are_those_of_timm(self):
        for (dtype, mode), wanted in TIMM.items():
            digest = hashlib.sha1()
            mix = MixUpCutMix(0.8, 1.0, num_classes=CLASSES, label_smoothing=0.1, mode=mode, pairing="flip")
            for batch in self.batches(mix, dtype=dtype, n_epochs=2, last_batch="pad"):
                digest.update(batch["x"].tobytes() + batch["y"].tobytes())
            self.assertEqual(digest.hexdigest(), wanted, (dtype, mode))

    # ---- a naive loop --------------------------------------------------------------------------------------

    def test_rows_and_targets_are_as_drawn(self):
        for layout in ("nchw", "nhwc"):
            for pairing, mode in (("roll", "elem"), ("flip", "elem"), ("flip", "pair")):
                mix, kinds = MixUpCutMix(num_classes=CLASSES, mode=mode, pairing=pairing, p=0.8), set()
                for before, after in zip(self.batches(layout=layout), self.batches(mix, layout=layout)):
                    rows = self.rows(mix, before)
                    x, y, n = before["x"], np.eye(CLASSES, dtype="f4")[before["y"]], before.n_valid
                    for i, row in enumerate(rows):
                        self.assertEqual(row.partner, (i - 1) % n if pairing == "roll" else n - 1 - i)
                        lam, rest = np.float32(row.lam), np.float32(1 - row.lam)
                        wanted = x[i] * lam + x[row.partner] * rest if row.kind == "mixup" else x[i].copy()
                        if row.box:
                            top, left, height, width = row.box
                            box = (slice(top, top + height), slice(left, left + width))
                            box = box if layout == "nhwc" else (slice(None), *box)
                            wanted[box] = x[row.partner][box]
                        np.testing.assert_array_equal(after["x"][i], wanted)
                        np.testing.assert_array_equal(after["y"][i], y[i] * lam + y[row.partner] * rest)
                        kinds.add(row.kind)
                    if mode == "pair":
                        self.assertEqual([row[2:] for row in rows], [row[2:] for row in rows[::-1]])
                self.assertEqual(kinds, {"mixup", "cutmix", "none"})

    def test_pairs_keep_the_labels(self):
        mix = CutMix(num_classes=CLASSES, targets="pairs")
        for before, after in zip(self.batches(), self.batches(mix)):
            n = before.n_valid
            rows = self.rows(mix, before)
            self.assertEqual(list(after.keys()), ["x", "y", "y_partner", "y_lambda"])
            self.assertEqual((after["y_partner"].dtype, after["y_lambda"].dtype), ("int32", "float32"))
            np.testing.assert_array_equal(after["y"], before["y"])
            np.testing.assert_array_equal(after["y_partner"][:n], np.roll(before["y"][:n], 1))
            np.testing.assert_array_equal(after["y_lambda"][:n], np.float32([row.lam for row in rows]))
        for form in ("tuple", "dataclass"):
            self.assertEqual(len(next(iter(self.loader(mix, form=form)))._parts()), 4)

    def test_labels_alone_become_vectors(self):
        for smoothing in (0, 0.1):
            mix = OneHot(CLASSES, smoothing)
            for before, after in zip(self.batches(dtype="uint8", outputs={"y": "y", "x": penstock.image(
                    "x", [RandomCrop(8)])}), self.batches(mix, outputs={"y": "y", "x": penstock.image(
                        "x", [RandomCrop(8)])})):
                off = smoothing / CLASSES
                wanted = np.full((before.n_valid, CLASSES), off, "f4")
                wanted[range(before.n_valid), before["y"]] = np.float32(1 - smoothing + off)
                np.testing.assert_array_equal(after["y"][:before.n_valid], wanted)
                np.testing.assert_array_equal(after["x"], before["x"])

    # ---- what it depends on --------------------------------------------------------------------------------

    def test_batches_are_the_same_for_any_number_of_threads_and_kernels_and_after_a_resume(self):
        mix = MixUpCutMix(num_classes=CLASSES)
        wanted = self.batches(mix, n_epochs=2)
        for keywords in ({"n_threads": 1}, {"n_threads": 5, "memory": penstock.Memory(n_slots=7)},
                         {"reading": penstock.Reading(kernels="c")}):
            for one, other in zip(wanted, self.batches(mix, n_epochs=2, **keywords)):
                np.testing.assert_array_equal(one["x"], other["x"])
                np.testing.assert_array_equal(one["y"], other["y"])
        with self.loader(mix) as loader, self.loader(mix) as other:
            batches = iter(loader)
            next(batches)
            second = next(batches)
            other.load_state_dict(loader.state_dict())
            third = next(iter(other))
        np.testing.assert_array_equal(second["x"], wanted[1]["x"])
        np.testing.assert_array_equal(third["x"], wanted[2]["x"])

    def test_ranks_mix_their_own_rows(self):
        mix = MixUp(num_classes=CLASSES)
        lams = []
        for rank in (0, 1):
            before, after = (self.batches(given, ranks=penstock.Ranks(rank, 2))[0] for given in (None, mix))
            row = self.rows(mix, before, rank)[0]
            lam, rest = np.float32(row.lam), np.float32(1 - row.lam)
            np.testing.assert_array_equal(after["x"], np.roll(before["x"], 1, 0) * rest + before["x"] * lam)
            lams.append(row.lam)
        self.assertNotEqual(*lams)

    # ---- errors --------------------------------------------------------------------------------------------

    def test_wrong_arguments_are_refused(self):
        for says, kind, arguments in (
                ("MixUp.alpha: value is 0; must be above 0", MixUp, {"alpha": 0}),
                ("CutMix.alpha: value is nan; must be a number", CutMix, {"alpha": float("nan")}),
                ("MixUpCutMix.switch_prob: value is 2; must be", MixUpCutMix, {"switch_prob": 2}),
                ("MixUp.p: value is -1; must be", MixUp, {"p": -1}),
                ("MixUp.mode: value is 'pairs'; must be one of 'batch', 'elem', 'pair'; did you mean 'pair'?", MixUp,
                 {"mode": "pairs"}),
                ("MixUp.pairing: value is 'roll'; must be 'flip' with mode='pair'", MixUp, {"mode": "pair"}),
                ("MixUp.pairing: value is 'rol'; must be one of 'roll', 'flip'; did you", MixUp, {"pairing": "rol"}),
                ("MixUp.targets: value is 3; must be one of 'dense', 'pairs'", MixUp, {"targets": 3}),
                ("OneHot.label_smoothing: value is 1; must be below 1", OneHot, {"label_smoothing": 1}),
                ("MixUp.label_smoothing: value is 0.1; must be 0 with targets='pairs'", MixUp,
                 {"label_smoothing": 0.1, "targets": "pairs"}),
                ("MixUp.num_classes: value is 0; must be a whole number from 1", MixUp, {"num_classes": 0}),
                ("MixUp.image: value is 3; must be the name", MixUp, {"image": 3}),
                ("no argument 'prob': it is p", MixUp, {"prob": 0.5})):
            self.assert_says(says, lambda k=kind, a=arguments: k(**{"num_classes": CLASSES, **a}))
        self.assert_says("mix: value is", self.loader, [MixUp(num_classes=2)])
        self.assert_says("mosaics cannot be mixed further", self.loader, [penstock.Mosaic(), MixUp(num_classes=2)])
        self.assert_says("write it with brackets", self.loader, MixUp)

    def test_a_mix_that_the_outputs_do_not_allow_is_refused(self):
        mix = MixUp(num_classes=CLASSES)
        self.assert_says("mix.image: output 'x' has dtype uint8; must have float16, bfloat16 or float32", self.loader, mix,
                         outputs={"x": penstock.image("x", [RandomCrop(8)]), "y": "y"})
        self.assert_says("value is penstock.MixUp, but no output is a scalar; must have one label for each image", self.loader,
                         mix, outputs={"x": penstock.image("x", [RandomCrop(8), Normalize()])})
        self.assert_says("mix.image: value is None, but no output is an image; must be", self.loader, mix,
                         outputs={"y": "y"})
        self.assert_says("mix.label: value is None, but the outputs 'y', 'z' are scalars; must be", self.loader, mix,
                         outputs={"x": penstock.image("x", [RandomCrop(8), Normalize()]), "y": "y",
                                  "z": penstock.scalar("y")})
        self.assert_says("mix.label: value is 'no'; must be the name of a scalar output: 'y'", self.loader,
                         MixUp(num_classes=CLASSES, label="no"))
        self.assert_says("adds the tensor 'y_lambda'", self.loader, MixUp(num_classes=CLASSES, label="y", targets="pairs"),
                         outputs={"x": penstock.image("x", [RandomCrop(8), Normalize()]), "y": "y",
                                  "y_lambda": penstock.scalar("y")})

    def test_a_label_that_is_no_class_names_its_sample(self):
        with self.assertRaisesRegex(Exception, "label of sample 3: value is 1; must be from 0 to 0"):
            self.batches(OneHot(1), shuffle=False, outputs={"y": "y"}, order=penstock.Order(position=3))
        with self.loader(OneHot(7), outputs={"y": "y"}, bad_sample="replace") as loader:
            self.assertTrue(any(batch.replacements for batch in loader))

    def test_they_say_what_they_are(self):
        self.assertEqual(repr(MixUp(0.2, num_classes=10)),
                         "MixUp(alpha=0.2, num_classes=10, label=None, label_smoothing=0.0, image=None, p=1.0, "
                         "mode='batch', pairing='roll', targets='dense')")
        self.assertEqual(MixUp(0.2, num_classes=10), MixUp(0.2, num_classes=10))
        self.assertNotEqual(MixUp(0.2, num_classes=10), CutMix(0.2, num_classes=10))
        self.assertEqual(len({MixUp(num_classes=9), MixUp(num_classes=9), OneHot(9)}), 2)
        with self.loader(OneHot(CLASSES)) as loader:
            self.assertIn("OneHot(num_classes=10", repr(loader))


if __name__ == "__main__":
    unittest.main()
