# SPDX-License-Identifier: Apache-2.0
"""penstock.Mixture: several data sets in given shares, beside a naive model of the order."""
import fractions
import functools
import json
import math
import os
import pickle
import unittest
import warnings

import sets
import penstock
from penstock import Mixture, SettingsError

sets.need_numpy()
numpy = sets.numpy


@functools.lru_cache(maxsize=None)
def packed(name, n, base, more=None):
    """n samples: i (i64 = base + number), x (f32 [3] of it), and one more field where it is given."""
    path = os.path.join(sets.ROOT, "mixture-" + name)
    schema = {**({"more": more} if more else {}), "i": "int64", "x": ("float32", (3,))}
    with penstock.Writer(path, schema) as writer:
        for i in range(n):
            writer.add(i=base + i, x=numpy.arange(3, dtype="f4") + i, **({"more": i} if more else {}))
    return path


@functools.lru_cache(maxsize=None)
def arrays(n=60, base=20000):
    """Write the same data set as .npy files."""
    path = os.path.join(sets.ROOT, "mixture-arrays-%d" % n)
    os.mkdir(path)
    numpy.save(path + "/i.npy", numpy.arange(base, base + n))
    numpy.save(path + "/a.npy", numpy.zeros(n))
    numpy.save(path + "/x.npy", (numpy.arange(3)[None] + numpy.arange(n)[:, None]).astype("f4"))
    return path


def three():
    return packed("a", 100, 0), packed("b", 37, 10000, "int32"), arrays()


BASES = (0, 10000, 20000)
SIZES = (100, 37, 60)


def mixture(weights=(5, 2, 3), **keywords):
    return Mixture(dict(zip(three(), weights)), **keywords)


def loader(given=None, **keywords):
    keywords = {"batch_size": 8, "last_batch": "short", "framework": "numpy", "n_threads": 2, "outputs": ["i", "x"],
                **keywords}
    return penstock.Loader(mixture() if given is None else given, **keywords)


def rows(batch):
    """Return (data set, id) of each row; checks the tensors."""
    found = list(zip(batch.data_sets, batch.sample_ids))
    assert [BASES[d] + i for d, i in found] == batch["i"][:batch.n_valid].tolist()
    assert all((x == numpy.arange(3) + i).all() for (_, i), x in zip(found, batch["x"]))
    return found


def run(n_epochs=1, given=None, **keywords):
    with loader(given, **keywords) as data:
        return [row for epoch in range(n_epochs) for batch in data.epoch(epoch) for row in rows(batch)]


def pattern(weights):
    """Return a period, filled earliest deadline first, in fractions."""
    total = sum(map(fractions.Fraction, weights))
    shares = [fractions.Fraction(weight) / total for weight in weights]
    period = math.lcm(*(share.denominator for share in shares)) if hasattr(math, "lcm") else \
        functools.reduce(lambda a, b: a * b // math.gcd(a, b), (share.denominator for share in shares))
    given, found = [0] * len(shares), []
    for t in range(period):
        ready = [(math.ceil((given[d] + 1) / share), d) for d, share in enumerate(shares)
                 if share and math.floor(given[d] / share) <= t]
        found.append(min(ready)[1])
        given[found[-1]] += 1
    assert given == [share * period for share in shares]
    return found


def naive(n, segments, sizes, drops=False):
    """Return the data sets of n positions, one by one, with those that are used up left out where they drop."""
    given, found, key, begin = [0] * len(sizes), [], None, 0
    for p in range(n):
        weights = [segment for at, segment in segments if at <= p][-1]
        live = tuple(0 if drops and given[d] >= sizes[d] else weight for d, weight in enumerate(weights))
        now = (weights, live)
        if now != key and (key is None or weights != key[0] or drops):
            slots = pattern(live)
            # A data set that is used up leaves where it is asked for.
            if key is None or weights != key[0] or not drops:
                key, period, begin = now, slots, p
        d = period[(p - begin) % len(period)]
        if drops and given[d] >= sizes[d]:
            key, period, begin = now, slots, p
            d = period[0]
        found.append(d)
        given[d] += 1
    return found


class Order(unittest.TestCase):
    def test_stop_ends_the_epoch_before_a_sample_is_missing(self):
        found = run()
        n = next(p for p in range(300) if max(
            naive(p + 1, [(0, (5, 2, 3))], SIZES).count(d) - SIZES[d] for d in range(3)) > 0)
        self.assertEqual([d for d, _ in found], naive(n, [(0, (5, 2, 3))], SIZES))
        self.assertEqual(len(set(found)), len(found))
        with loader() as data:
            self.assertEqual(data.n_samples, n)
            self.assertEqual(len(data), -(-n // 8))
        again = run(2)
        self.assertEqual(again[:n], found)
        self.assertNotEqual(again[n:], found)
        self.assertEqual([d for d, _ in again[n:]], [d for d, _ in found])

    def test_drop_gives_each_sample_once(self):
        found = run(given=mixture(exhaustion="drop"))
        self.assertEqual(sorted(found), [(d, i) for d in range(3) for i in range(SIZES[d])])
        self.assertEqual([d for d, _ in found], naive(197, [(0, (5, 2, 3))], SIZES, drops=True))

    def test_repeat_goes_on_through_epochs(self):
        found = run(4, mixture(exhaustion="repeat", samples_per_epoch=150))
        self.assertEqual([d for d, _ in found], naive(600, [(0, (5, 2, 3))], SIZES))
        for d in range(3):
            ids = [i for other, i in found if other == d]
            for begin in range(0, len(ids), SIZES[d]):
                whole = ids[begin:begin + SIZES[d]]
                self.assertEqual(len(set(whole)), len(whole))
        with loader(mixture(exhaustion="repeat")) as data:
            self.assertEqual(data.n_samples, sum(SIZES))

    def test_segments_lose_and_repeat_nothing(self):
        a, b, c = three()
        given = Mixture([(0, {a: 7, b: 3}), (101, {b: 1, c: 2}), (211, {a: 1, b: 1, c: 1})], exhaustion="repeat",
                        samples_per_epoch=90)
        found = run(4, given)
        segments = [(0, (7, 3, 0)), (101, (0, 1, 2)), (211, (1, 1, 1))]
        self.assertEqual([d for d, _ in found], naive(360, segments, SIZES))
        for d in range(3):
            ids = [i for other, i in found if other == d]
            for begin in range(0, len(ids), SIZES[d]):
                whole = ids[begin:begin + SIZES[d]]
                self.assertEqual(len(set(whole)), len(whole))

    def test_the_first_data_set_has_its_own_order(self):
        with penstock.Loader(three()[0], batch_size=8, last_batch="short", framework="numpy", outputs=["i"]) as data:
            alone = [i for batch in data for i in batch.sample_ids]
        found = [i for d, i in run(given=mixture(exhaustion="drop")) if d == 0]
        self.assertEqual(found, alone)

    def test_sequential(self):
        found = run(given=mixture(exhaustion="drop"), shuffle=False)
        for d in range(3):
            self.assertEqual([i for other, i in found if other == d], list(range(SIZES[d])))

    def test_threads_and_readers_change_nothing(self):
        wanted = run(2, mixture(exhaustion="repeat"))
        for keywords in ({"n_threads": 1}, {"reading": penstock.Reading(reader="threads")},
                         {"n_threads": 5, "memory": penstock.Memory(n_slots=2)}, {"reading": penstock.Reading(io="direct")}):
            try:
                self.assertEqual(run(2, mixture(exhaustion="repeat"), **keywords), wanted)
            except SettingsError as error:
                self.assertIn("O_DIRECT", str(error))


class Resume(unittest.TestCase):
    def test_a_state_in_the_middle_of_a_segment_goes_on_exactly(self):
        a, b, c = three()
        given = Mixture([(0, {a: 7, b: 3}), (40, {b: 1, c: 2})], exhaustion="repeat", samples_per_epoch=96)
        whole = run(3, given)
        for n_batches in (1, 4, 7, 11, 12, 17, 30):
            with loader(given) as data:
                left = n_batches
                while left:
                    for batch in data:
                        left -= 1
                        if not left:
                            state = json.loads(json.dumps(data.state_dict(batch)))
                            break
            with loader(given) as data:
                data.load_state_dict(state)
                rest = [row for _ in range(3) for batch in data for row in rows(batch)]
            at = 8 * n_batches
            self.assertEqual(rest[:len(whole) - at], whole[at:])

    def test_global_batches_are_the_same_for_any_number_of_processes(self):
        def epoch_of(world, state=None, n_batches=None):
            found, after = [], None
            for rank in range(world):
                with loader(mixture(exhaustion="drop"), batch_size=penstock.GlobalBatch(12),
                            ranks=penstock.Ranks(rank, world)) as data:
                    if state is not None:
                        data.load_state_dict(state)
                    for i, batch in enumerate(data):
                        if i == n_batches:
                            break
                        if rank == 0:
                            found.append([])
                        found[i] += rows(batch)
                        after = data.state_dict(batch)
            return [sorted(batch) for batch in found], after

        wanted, _ = epoch_of(1)
        for world in (2, 3):
            self.assertEqual(epoch_of(world)[0], wanted)
        first, state = epoch_of(3, n_batches=5)
        self.assertEqual(first + epoch_of(2, state)[0], wanted)

    def test_a_state_of_another_mixture_is_refused(self):
        with loader() as data:
            state = data.state_dict()
        self.assertLess(len(json.dumps(state)), 512)
        a, b, c = three()
        for given, words in ((mixture((5, 2, 4)), ["mixture is", "[5.0, 2.0, 3.0]", "[5.0, 2.0, 4.0]", "open the loader with"]),
                             (mixture(exhaustion="drop"), ["mixture is", "'stop'", "'drop'"]),
                             (Mixture({a: 5, c: 3, b: 2}), ["data_set is"]),
                             (a, ["data_set is"])):
            with loader(given) as data:
                with self.assertRaises(SettingsError) as caught:
                    data.load_state_dict(state)
                for word in words:
                    self.assertIn(word, str(caught.exception))


class Subsets(unittest.TestCase):
    def alone(self, path, **keywords):
        """Return the ids of a data set that is opened by itself."""
        with penstock.Loader(path, batch_size=8, last_batch="short", framework="numpy", outputs=["i"], **keywords) as data:
            return [i for batch in data for i in batch.sample_ids]

    def test_each_data_set_has_its_subset(self):
        a, b, c = three()
        subset = {a: penstock.Fraction(0, 0.5, seed=1), c: [penstock.Range(10, 50), penstock.Ids([40, 12, 7, 30])]}
        found = run(given=mixture(exhaustion="drop", subset=subset))
        self.assertEqual(sorted(i for d, i in found if d == 2), [12, 30, 40])
        self.assertEqual(sorted(i for d, i in found if d == 1), list(range(37)))
        # The first data set has the order that it has alone.
        self.assertEqual([i for d, i in found if d == 0], self.alone(a, subset=subset[a]))
        self.assertEqual([d for d, _ in found], naive(90, [(0, (5, 2, 3))], (50, 37, 3), drops=True))

    def test_one_fraction_of_all_parts_each_data_set(self):
        parts = [run(given=mixture(exhaustion="drop", subset=penstock.Fraction(*bounds, seed=3)))
                 for bounds in ((0, 0.7), (0.7, 1))]
        self.assertEqual(sorted(parts[0] + parts[1]), [(d, i) for d in range(3) for i in range(SIZES[d])])
        self.assertEqual([sum(d == k for d, _ in parts[0]) for k in range(3)], [70, 25, 42])

    def test_repeat_counts_epochs_of_subsets(self):
        found = run(3, mixture(exhaustion="repeat", subset=penstock.Range(5, 14), samples_per_epoch=50))
        self.assertEqual([d for d, _ in found], naive(150, [(0, (5, 2, 3))], SIZES))
        for d in range(3):
            ids = [i for other, i in found if other == d]
            self.assertGreater(len(ids), 18)
            for begin in range(0, len(ids) - 8, 9):
                self.assertEqual(sorted(ids[begin:begin + 9]), list(range(5, 14)))
            self.assertNotEqual(ids[:9], ids[9:18])
        with loader(mixture(subset=penstock.Range(5, 14))) as data:
            self.assertEqual([one.n_samples for one in data.stats().data_sets], [9] * 3)

    def test_sequential_subsets(self):
        found = run(given=mixture(exhaustion="drop", subset=penstock.Range(3, 30)), shuffle=False)
        for d in range(3):
            self.assertEqual([i for other, i in found if other == d], list(range(3, 30)))

    def test_weights_draw_samples_of_a_data_set(self):
        a, b, c = three()
        numbers = [float(i % 3 == 0) for i in range(100)]
        given = mixture(exhaustion="drop", subset={a: penstock.Range(0, 30)}, sample_weights={a: penstock.Weighted(numbers)})
        found = run(given=given)
        drawn = [i for d, i in found if d == 0]
        self.assertEqual(drawn, self.alone(a, subset=penstock.Range(0, 30), weights=penstock.Weighted(numbers)))
        self.assertEqual(len(drawn), 30)
        self.assertTrue(all(i % 3 == 0 and i < 30 for i in drawn))
        self.assertEqual(sorted(i for d, i in found if d == 1), list(range(37)))
        with self.assertRaisesRegex(SettingsError, "order: value is sequential; must be full with weights"):
            loader(given, shuffle=False)

    def test_a_state_has_the_subsets(self):
        a, b, c = three()
        subset = {a: penstock.Fraction(0, 0.5, seed=1), b: penstock.Range(0, 20)}
        given = mixture(exhaustion="repeat", subset=subset)
        whole = run(2, given)
        with loader(given) as data:
            for k, batch in enumerate(data):
                if k == 4:
                    state = json.loads(json.dumps(data.state_dict(batch)))
                    break
        with loader(mixture(exhaustion="repeat", subset=dict(reversed(list(subset.items()))))) as data:
            data.load_state_dict(state)
            self.assertEqual([row for batch in data for row in rows(batch)], whole[40:len(whole) // 2])
        for other in (None, {a: subset[a]}, {**subset, b: penstock.Range(1, 21)}):
            with loader(mixture(exhaustion="repeat", subset=other)) as data:
                with self.assertRaisesRegex(SettingsError, "mixture is .*subsets.*exhaustion and subsets of the saved one"):
                    data.load_state_dict(state)

    def test_wrong_subsets(self):
        a, b, c = three()
        for given, words in (({"subset": {a + "x": penstock.Range(0, 1)}}, "which has no weight.*did you mean"),
                             ({"subset": {a: penstock.Range(0, 1), a + "/": penstock.Range(0, 1)}}, "twice"),
                             ({"subset": {a: penstock.Balanced("i")}}, "selects no part of the samples; give weights="),
                             ({"sample_weights": {c + "x": penstock.Balanced("i")}}, "which has no weight")):
            with self.assertRaisesRegex(SettingsError, words):
                mixture(**given)
        for given in ({"subset": 3}, {"subset": {a: 3}}, {"sample_weights": penstock.Balanced("i")},
                      {"sample_weights": {a: penstock.Range(0, 1)}}):
            self.assertRaises(TypeError, mixture, **given)
        with self.assertRaisesRegex(SettingsError, f"data set {b}: subset: step 0"):
            loader(mixture(subset=penstock.Range(0, 40)))
        with self.assertRaisesRegex(SettingsError, r"subset: value is Range\(0, 4\); must be None with a mixture \(give subset= to"):
            loader(mixture(), subset=penstock.Range(0, 4))
        shown = repr(mixture(subset=penstock.Range(0, 4), sample_weights={a: penstock.Balanced("i")}))
        self.assertIn("Range(0, 4)", shown)
        self.assertIn("Balanced('i')", shown)


class Shares(unittest.TestCase):
    def test_a_state_of_the_same_shares_goes_on(self):
        for exhaustion in ("stop", "drop", "repeat"):
            whole = run(given=mixture((0.5, 0.2, 0.3), exhaustion=exhaustion))
            with loader(mixture((0.5, 0.2, 0.3), exhaustion=exhaustion)) as data:
                state = data.state_dict(next(iter(data)))
            for weights in ((5, 2, 3), (50, 20, 30), (0.25, 0.1, 0.15)):
                with loader(mixture(weights, exhaustion=exhaustion)) as data:
                    data.load_state_dict(state)
                    self.assertEqual([row for batch in data for row in rows(batch)], whole[8:])
            for weights in ((5, 2, 3.001), (5, 3, 2)):
                with loader(mixture(weights, exhaustion=exhaustion)) as data:
                    with self.assertRaisesRegex(SettingsError, "mixture is"):
                        data.load_state_dict(state)

    def test_shares_without_a_period(self):
        odd = (0.5, 0.2, math.pi / 10)
        with loader(mixture(odd)) as data:
            state = data.state_dict()
        with loader(mixture([2 * weight for weight in odd])) as data:
            data.load_state_dict(state)
        with loader(mixture((0.5, 0.2, math.pi / 10 + 1e-7))) as data:
            with self.assertRaisesRegex(SettingsError, "mixture is"):
                data.load_state_dict(state)


class Reports(unittest.TestCase):
    def test_statistics_have_what_was_delivered(self):
        with loader() as data:
            found = [row for batch in data for row in rows(batch)]
            stats = data.stats()
            self.assertEqual([one.path for one in stats.data_sets], list(three()))
            self.assertEqual([one.n_samples for one in stats.data_sets], list(SIZES))
            self.assertEqual([one.n_delivered for one in stats.data_sets], [sum(d == k for d, _ in found) for k in range(3)])
            self.assertAlmostEqual(sum(one.share for one in stats.data_sets), 1)
            self.assertIn(three()[1], str(stats))
            self.assertEqual(stats.to_dict()["data_sets"][0]["n_samples"], 100)
            self.assertIn("Mixture(", repr(data.mixture))
        with loader(three()[0]) as data:
            self.assertEqual(next(iter(data)).data_sets, [0] * 8)
            self.assertEqual(data.stats().data_sets, ())

    def test_batches_keep_their_data_sets(self):
        with loader() as data:
            batch = next(iter(data))
            self.assertEqual(pickle.loads(pickle.dumps(batch)).data_sets, batch.data_sets)
            self.assertGreater(len(set(batch.data_sets)), 1)
        with loader() as data:
            parts = next(data.micro_batches(3))
            self.assertEqual([part.data_sets for part in parts if part.n_valid != len(part.data_sets)], [])
            self.assertEqual(sum((part.data_sets for part in parts), []), batch.data_sets)

    def test_all_fields_that_are_alike_are_the_default(self):
        with loader(outputs=None) as data:
            self.assertEqual(list(data.outputs), ["i", "x"])
            self.assertIn("the mixture of 3 data sets", repr(data))
            with self.assertRaisesRegex(SettingsError, "dataset: the loader has the mixture of 3"):
                data.dataset

    def test_random_draws_depend_on_the_data_set(self):
        pictures = {}
        for k in range(2):
            path = os.path.join(sets.ROOT, "mixture-pictures-%d" % k)
            with penstock.Writer(path, {"image": "image", "k": "int64"}) as writer:
                for i in range(20):
                    noise = numpy.random.default_rng(i).integers(0, 256, (40, 40, 3)).astype("u1")
                    writer.add(image=noise, k=k)
            pictures[path] = 1
        found = {}
        for epoch in range(2):
            with penstock.Loader(Mixture(pictures, exhaustion="drop"), batch_size=4, framework="numpy",
                                 order=penstock.Order(epoch=epoch),
                                 outputs=[penstock.image("image", [penstock.ops.RandomResizedCrop(8)])]) as data:
                for batch in data.epoch(epoch):
                    for d, i, pixels in zip(batch.data_sets, batch.sample_ids, batch["image"]):
                        found[epoch, d, i] = pixels.tobytes()
        self.assertEqual(len(set(found.values())), 80)
        with penstock.Loader(next(iter(pictures)), batch_size=4, framework="numpy",
                             outputs=[penstock.image("image", [penstock.ops.RandomResizedCrop(8)])]) as data:
            for batch in data.epoch(0):
                for i, pixels in zip(batch.sample_ids, batch["image"]):
                    self.assertEqual(found[0, 0, i], pixels.tobytes())


class Bad(unittest.TestCase):
    def setUp(self):
        self.paths = []
        for k, damaged in enumerate(([3, 4], [7])):
            path = os.path.join(sets.ROOT, f"mixture-bad-{k}-{self._testMethodName}")
            with penstock.Writer(path, {"image": "image", "k": "int64"}) as writer:
                for i in range(12):
                    writer.add(image=sets.pixels(i), k=k)
            shard = next(name for name in sorted(os.listdir(path)) if name.endswith(".pstk"))
            with open(os.path.join(path, shard), "rb") as file:
                content = bytearray(file.read())
            for i in damaged:
                at = content.index(sets.pixels(i).tobytes()[:300])
                content[at + 100] ^= 1
            with open(os.path.join(path, shard), "wb") as file:
                file.write(content)
            self.paths.append(path)

    def test_bad_samples_are_replaced_from_their_own_data_set(self):
        told = []
        with penstock.Loader(Mixture(dict.fromkeys(self.paths, 1), exhaustion="drop"), batch_size=6, framework="numpy",
                             outputs=[penstock.image("image", [penstock.ops.Resize((8, 8))]), "k"],
                             bad_sample=lambda error, other: told.append((error, other))) as data:
            n = 0
            for batch in data:
                self.assertEqual(batch["k"].tolist(), batch.data_sets)
                for d, i in zip(batch.data_sets, batch.sample_ids):
                    n += i in ([3, 4], [7])[d]
        self.assertEqual(n, 3)
        self.assertEqual(sorted(error.sample_id for error, _ in told), [3, 4, 7])
        for error, other in told:
            self.assertIn(f"data set {self.paths[error.sample_id == 7]}: ", str(error))
            self.assertLess(other, 12)

    def test_bad_samples_are_replaced_from_their_own_subset(self):
        told = []
        subset = {self.paths[0]: penstock.Ids([3, 4, 8, 9]), self.paths[1]: penstock.Range(5, 8)}
        with penstock.Loader(Mixture(dict.fromkeys(self.paths, 1), exhaustion="drop", subset=subset), batch_size=7,
                             framework="numpy", outputs=[penstock.image("image", [penstock.ops.Resize((8, 8))]), "k"],
                             bad_sample=lambda error, other: told.append((error.sample_id, other))
                             ) as data:
            batch = next(iter(data))
            self.assertEqual(batch["k"].tolist(), batch.data_sets)
            for d, i, pixels in zip(batch.data_sets, batch.sample_ids, batch["image"]):
                other = batch.replacements.get((d, i), i)
                self.assertIn(other, ([8, 9], [5, 6])[d])
        self.assertEqual(sorted(bad for bad, _ in told), [3, 4, 7])
        # As the data set is replaced from when it is opened alone: from the subset and the id.
        with penstock.Loader(self.paths[1], subset=subset[self.paths[1]], batch_size=3, framework="numpy",
                             outputs=[penstock.image("image", [penstock.ops.Resize((8, 8))])], bad_sample="replace") as data:
            self.assertEqual(next(iter(data)).replacements, {7: dict(told)[7]})

    def test_the_error_names_the_data_set(self):
        with penstock.Loader(Mixture(dict.fromkeys(self.paths, 1), exhaustion="drop"), batch_size=6, framework="numpy",
                             outputs=[penstock.image("image", [penstock.ops.Resize((8, 8))])]) as data:
            with self.assertRaisesRegex(penstock.CorruptRecordError, "data set .*mixture-bad-"):
                for _ in data:
                    pass


class Refused(unittest.TestCase):
    def test_two_are_equal_if_they_say_the_same(self):
        def make(b=0.5, subset=penstock.Range(0, 9), **more):
            return penstock.Mixture({"a": 0.5, "b": b}, subset=subset, **more)
        self.assertEqual((make(), hash(make())), (make(), hash(make())))
        for differs in (make(0.6), make(subset=None), make(subset=penstock.Range(0, 8)), make(exhaustion="drop"),
                        make(sample_weights={"a": penstock.Balanced("i")}), "a"):
            self.assertNotEqual(make(), differs)

    def test_wrong_arguments(self):
        a, b, c = three()
        for make, words in (
                (lambda: Mixture({}), "must have a weight above 0"),
                (lambda: Mixture([]), "must be from 0"),
                (lambda: Mixture({a: 0, b: 0}), "must have a weight above 0"),
                (lambda: Mixture({a: -1, b: 2}), "value is -1 for"),
                (lambda: Mixture({a: math.nan, b: 2}), "value is nan for"),
                (lambda: Mixture({a: math.inf, b: 2}), "value is inf for"),
                (lambda: Mixture({a: 1, a + "/": 2}), "twice"),
                (lambda: Mixture({a: 1}, exhaustion="stopp"), "did you mean 'stop'"),
                (lambda: Mixture({a: 1}, samples_per_epoch=5), "must be None with exhaustion='stop'"),
                (lambda: Mixture({a: 1}, exhaustion="repeat", samples_per_epoch=0), "must be at least 1"),
                (lambda: Mixture([(1, {a: 1})]), "must be from 0"),
                (lambda: Mixture([(0, {a: 1}), (0, {a: 2})]), "must be above it"),
                (lambda: Mixture({str(k): 1 for k in range(65)}), "must have 1 to 64"),
                (lambda: Mixture([(k, {a: 1}) for k in range(65)]), "must have at most 64")):
            with self.assertRaises(SettingsError) as caught:
                make()
            self.assertIn(words, str(caught.exception))
        for make in (lambda: Mixture(a), lambda: Mixture([a, b]), lambda: Mixture({a: "much"}), lambda: Mixture([(0, a)]),
                     lambda: Mixture({a: 1}, samples_per_epoch=2.5, exhaustion="repeat")):
            self.assertRaises(TypeError, make)
        for given, words in (({a: 1}, "or a penstock.Mixture"), ([a, b], "a penstock.Mixture takes several data sets")):
            with self.assertRaisesRegex(TypeError, words):
                penstock.Loader(given, batch_size=1)

    def test_invalid_weights_sources_and_orders_are_refused_by_the_library(self):
        a, b, c = three()
        twice = os.path.join(sets.ROOT, "mixture-link")
        if not os.path.islink(twice):
            os.symlink(a, twice)
        for given, words in (
                (Mixture({a: 1, b: 1e-6}), "less than 1/65536 of their sum; must be 0 or at least that"),
                (Mixture({a: 1, b: 0}), "has the weight 0 in all segments"),
                (Mixture({a: 1, twice: 1}), "have the same content; must differ"),
                (Mixture([(0, {a: 1, b: 1}), (1000, {a: 1, b: 2})]), "must be below 75, where an epoch ends")):
            with self.assertRaises(SettingsError) as caught:
                loader(given)
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(penstock.DataSetNotFoundError):
            loader(Mixture({a: 1, a + "/none": 1}))
        with self.assertRaisesRegex(penstock.UnsupportedError, "order: value is windowed; must be full or sequential"):
            loader(order="windowed")

    def test_fields_that_differ(self):
        other = packed("other", 9, 5)
        a, b, c = three()
        with self.assertRaisesRegex(SettingsError, f"field 'more'.*in the data set {b}, but not in {a}; must be in all"):
            loader(outputs=["i", "more"])
        path = os.path.join(sets.ROOT, "mixture-shape")
        if not os.path.isdir(path):
            with penstock.Writer(path, {"i": "int32", "x": ("float32", (4,))}) as writer:
                writer.add(i=1, x=[1, 2, 3, 4])
        for name, what in (("i", "kind 'int64' in the data set .*, and 'int32'"), ("x", r"shape \(3,\) in .*, and \(4,\)")):
            with self.assertRaisesRegex(SettingsError, f"field '{name}', which an output reads, has {what}"):
                loader(Mixture({other: 1, path: 1}), outputs=[name])

    def test_class_names_that_contradict_are_reported(self):
        def named(names, i):
            path = os.path.join(sets.ROOT, "mixture-names-" + "-".join(names) + str(i))
            if not os.path.isdir(path):
                with penstock.Writer(path, {"x": "float32", "label": "int64"}, names=names) as writer:
                    writer.add(x=i, label=0)
            return path

        ab = named(["a", "b"], 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            floats = [sets.ROOT + "/mixture-floats-" + name for name in "ab"]
            for i, path in enumerate(floats):
                with penstock.Writer(path, {"x": "float32"}, names=["a", "b"][::1 - 2 * i]) as writer:
                    writer.add(x=i)
            loader(Mixture(dict.fromkeys(floats, 1)), outputs=None).close()  # no integer is read
        for names, outputs, says in ((["b", "a"], None, "class 0 is 'a' in .*-a-b0 and 'b' in .*-b-a1: .*batch.data_sets"),
                                     (["a", "c", "b"], ["label"], "class 1 is 'b' in .*-a-b0 and 'c' in "),
                                     (["b", "a"], ["x"], None), (["a", "b"], None, None), (["a", "b", "c"], None, None),
                                     ([], None, None)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                loader(Mixture({ab: 1, named(names, 1): 1}), outputs=outputs).close()
            found = [str(one.message) for one in caught if "class" in str(one.message)]
            self.assertEqual(len(found), says is not None, (names, found))
            if says:
                self.assertRegex(found[0], says)
                self.assertEqual([one.filename for one in caught if "class" in str(one.message)], [__file__])


if __name__ == "__main__":
    unittest.main()
