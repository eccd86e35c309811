# SPDX-License-Identifier: Apache-2.0
"""A loader's decisions and warnings when it opens and at its first batch: the kind of its tensors, samples that never come."""
import unittest
import warnings

import penstock
import sets

sets.need_numpy()

OPEN = """
import sys, penstock
loader = penstock.Loader(sys.argv[1], batch_size=10)
assert " auto on cpu" in repr(loader), repr(loader)
"""
TAKE = """
for epoch in range(2):
    for batch in loader:
        print(type(batch["i"]).__module__)
        break
"""


class Framework(unittest.TestCase):
    def run_it(self, code):
        done = sets.python(code, sets.scalars())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split(), done.stderr

    def test_it_is_torch_if_torch_is_imported_after_the_loader_is_open(self):
        sets.torch_or_skip()
        self.assertEqual(self.run_it(OPEN + "import torch" + TAKE), (["torch", "torch"], ""))

    def test_it_is_numpy_with_one_warning_if_torch_is_only_installed(self):
        sets.torch_or_skip()
        modules, said = self.run_it(OPEN + TAKE)
        self.assertEqual((modules, said.count("UserWarning")), (["numpy", "numpy"], 1))
        self.assertIn("framework: value is 'auto', and PyTorch is installed", said)
        self.assertIn('(give framework="torch" or framework="numpy")', said)

    def test_the_warning_comes_once_a_process(self):
        sets.torch_or_skip()
        code = ("import sys, warnings, penstock\nwarnings.simplefilter('always')\n"
                "for _ in range(3):\n    for x in penstock.Loader(sys.argv[1], batch_size=10): break\n    print(1)")
        said = self.run_it(code)
        self.assertEqual((said[0], said[1].count("UserWarning")), (["1"] * 3, 1))

    def test_it_is_numpy_without_a_word_if_torch_is_not_installed(self):
        hidden = "import importlib.util as u; f = u.find_spec; u.find_spec = lambda n, *a: None if n == 'torch' else f(n, *a)\n"
        self.assertEqual(self.run_it(hidden + OPEN + TAKE), (["numpy", "numpy"], ""))

    def test_a_framework_that_was_given_warns_of_nothing(self):
        given = OPEN.replace("batch_size=10", "batch_size=10, framework='numpy'").replace(" auto on", " numpy on")
        self.assertEqual(self.run_it(given + TAKE), (["numpy", "numpy"], ""))

    def test_parts_of_the_first_batch_are_decided_alike(self):
        sets.torch_or_skip()
        code = OPEN + "import torch\nfor parts in loader.micro_batches(2): print(type(parts[1]['i']).__module__); break"
        self.assertEqual(self.run_it(code), (["torch"], ""))


class Dropped(unittest.TestCase):
    def said(self, **settings):
        """Return the warnings of a loader of 103 samples as it opens."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            penstock.Loader(sets.scalars(103), **{"batch_size": 10, "framework": "dlpack", **settings}).close()
        self.assertTrue(all(one.filename == __file__ for one in told))
        return [str(one.message) for one in told]

    def test_samples_that_never_come_are_counted(self):
        wanted = ("last_batch: value is 'drop', and samples come in sequential order: the last 3 samples of 103 never come "
                  '(give last_batch="short")')
        self.assertEqual(self.said(shuffle=False), [wanted])
        self.assertEqual(self.said(order="sequential", last_batch="drop"), [wanted])
        self.assertEqual(self.said(shuffle=False, ranks=penstock.Ranks(0, 2)), [wanted])
        self.assertIn("the last sample of 103", self.said(shuffle=False, batch_size=2)[0])
        self.assertIn("the last 23 samples of 103",
                      self.said(shuffle=False, batch_size=penstock.GlobalBatch(40), ranks=penstock.Ranks(0, 2))[0])
        self.assertIn("the last sample of 51",
                      self.said(shuffle=False, subset=penstock.Range(0, 51))[0])

    def test_a_new_batch_size_says_it_too(self):
        def changed(n, change, n_taken=0):
            """Return the warnings of a change of a loader's size, of 20 rows and at most 30."""
            with warnings.catch_warnings(record=True) as told, \
                    penstock.Loader(sets.scalars(n), batch_size=20, memory=penstock.Memory(max_batch_size=30), shuffle=False,
                                    framework="dlpack") as data:
                warnings.simplefilter("always")
                batches = iter(data)
                for _ in range(n_taken):
                    next(batches)
                told.clear()
                change(data)
            self.assertTrue(all(one.filename == __file__ for one in told), told)
            return [str(one.message) for one in told]

        def resumed(data):
            with penstock.Loader(sets.scalars(40), batch_size=16, memory=penstock.Memory(max_batch_size=30), shuffle=False,
                                 framework="dlpack") as other:
                state = other.state_dict()
            data.load_state_dict(state)

        wanted = ("last_batch: value is 'drop', and samples come in sequential order: the last 8 samples of 40 never come "
                  '(give last_batch="short")')
        self.assertEqual(changed(40, lambda data: data.set_batch_size(16)), [wanted])
        self.assertEqual(changed(40, lambda data: setattr(data, "batch_size", 16)), [wanted])
        self.assertEqual(changed(40, resumed), [wanted] * 2)  # the other one opens
        self.assertIn("the last 4 samples of epoch 0 do not come", changed(48, lambda data: data.set_batch_size(24), 1)[0])
        self.assertEqual(changed(40, lambda data: data.set_batch_size(10)), [])

    def test_no_warning_is_given_if_all_samples_come(self):
        for settings in ({"last_batch": "short", "shuffle": False}, {"last_batch": "pad", "shuffle": False}, {"shuffle": True}, {},
                         {"order": "windowed"}, {"shuffle": False, "subset": penstock.Range(0, 100)},
                         {"shuffle": False, "ranks": penstock.Ranks(1, 2)}):
            with self.subTest(settings):
                self.assertEqual(self.said(**settings), [])


if __name__ == "__main__":
    unittest.main()
