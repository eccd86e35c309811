# SPDX-License-Identifier: Apache-2.0
"""Batches by a budget of tokens or pixels, beside a naive walk over the order."""
import functools
import itertools
import json
import os
import random
import array
import unittest

import sets
import penstock

sets.need_numpy()
import numpy  # noqa: E402

N = 131
LENGTHS = [random.Random(i).randrange(1, 60) for i in range(N)]


@functools.lru_cache(maxsize=None)
def texts():
    """N samples: i (i64), tokens (i32, LENGTHS[i] times i), side columns tokens.length, wide (u16), half (f32), low (i8)."""
    path = os.path.join(sets.ROOT, "texts")
    with penstock.Writer(path, {"i": "int64", "tokens": ("int32", (None,))}) as writer:
        for i, length in enumerate(LENGTHS):
            writer.add(i=i, tokens=[i] * length)
    penstock.add_column(path, "wide", numpy.array(LENGTHS, "u2"))
    penstock.add_column(path, "half", numpy.arange(N, dtype="f4") / 2)
    penstock.add_column(path, "low", numpy.arange(N, dtype="i8") - 1)
    return path


def opened(budget, **keywords):
    settings = dict(framework="numpy", last_batch="short", seed=4, n_threads=2, outputs=["i", penstock.ragged("tokens")])
    return penstock.Loader(texts(), batch_size=budget, **{**settings, **keywords})


def edges_of(costs):
    """Return the default buckets."""
    edges, edge = [], max(1, min(costs))
    while edge <= max(costs):
        edges.append(edge)
        edge += max(1, edge // 4)
    return edges


def naive(ids, cost, total, buckets=None, max_rows=None, padded=False, too_long="error"):
    """Return the batches of ids in the order of an epoch."""
    fitting = [cost[i] for i in ids if cost[i] <= total]
    edges = edges_of(fitting) if buckets is None else buckets
    done, waiting = [], {}
    for at, i in enumerate(ids):
        if cost[i] > total:
            if too_long == "alone":
                done.append([i])
            continue
        bucket = sum(edge <= cost[i] for edge in edges)
        first, batch = waiting.get(bucket, (at, []))
        costs = [cost[k] for k in batch] + [cost[i]]
        if batch and (len(batch) == max_rows or (max(costs) * len(costs) if padded else sum(costs)) > total):
            done.append(batch)
            first, batch = at, []
        waiting[bucket] = first, [*batch, i]
    return done + [batch for _, batch in sorted(waiting.values())]


@functools.lru_cache(maxsize=None)
def order_of(epoch, **keywords):
    """Return the ids of an epoch without a budget."""
    with opened(1, memory=penstock.Memory(n_slots=16), **{"outputs": ["i"], **keywords}) as loader:
        return [i for batch in loader.epoch(epoch) for i in batch.sample_ids]


def steps_of(batches, world, last):
    """Return the batches that each rank gets in each step."""
    steps = [batches[at:at + world] for at in range(0, len(batches), world)]
    if last == "drop" and len(steps[-1]) < world and len(steps) > 1:
        steps.pop()
    filled = itertools.cycle(batches) if last == "pad" else itertools.repeat([])
    return [[*step, *itertools.islice(filled, world - len(step))] for step in steps]


BUDGETS = [dict(total=90, column="tokens.length"), dict(total=200, column="tokens.length", padded=True),
           dict(total=120, column="wide", buckets=[10, 30], max_rows=7), dict(total=75, column=LENGTHS, buckets=[]),
           dict(total=40, column="tokens.length", too_long="drop"), dict(total=40, column="wide", too_long="alone"),
           dict(total=4000, column=lambda columns: columns["wide"] * columns["wide"], padded=True)]


def wanted(epoch, budget, **keywords):
    said = {**budget, "column": LENGTHS}
    if callable(budget["column"]):
        said["column"] = [length * length for length in LENGTHS]
    costs = said.pop("column")
    return naive(order_of(epoch, **keywords), costs, **said)


class Batches(unittest.TestCase):
    def test_they_are_those_of_a_naive_walk(self):
        for budget, keywords in itertools.product(BUDGETS, (dict(), dict(shuffle=False), dict(subset=penstock.Range(20, 100)))):
            with opened(penstock.Budget(**budget), **keywords) as loader:
                for epoch in range(2):
                    batches = wanted(epoch, budget, **keywords)
                    found = []
                    for batch in loader.epoch(epoch):
                        found.append(batch.sample_ids)
                        self.assertEqual(batch["i"].tolist(), batch.sample_ids)
                        self.assertEqual([row.tolist() for row in batch["tokens"]],
                                         [[i] * LENGTHS[i] for i in batch.sample_ids])
                        self.assertEqual(batch.n_valid, len(batch.sample_ids))
                        self.assertLessEqual(batch.n_valid, loader.batch_size)
                        self.assertEqual(len(loader), len(batches))
                    self.assertEqual(found, batches)
                    self.assertEqual(loader.n_samples, sum(map(len, batches)))

    def test_ranks_share_steps_and_have_equal_counts(self):
        for world, last in itertools.product((1, 2, 3, 5), ("short", "pad", "drop")):
            budget = BUDGETS[world % 3]
            steps = steps_of(wanted(1, budget), world, last)
            for rank in range(world):
                with opened(penstock.Budget(**budget), ranks=penstock.Ranks(rank, world), last_batch=last,
                            order=penstock.Order(epoch=1)) as loader:
                    self.assertEqual((len(loader), loader.n_batches_left), (len(steps), len(steps)))
                    found = [(batch.index, batch.sample_ids) for batch in loader]
                self.assertEqual(found, list(enumerate(step[rank] for step in steps)))

    def test_with_weights_each_draw_comes_once(self):
        weights, budget = penstock.Weighted([float(i % 3) for i in range(N)]), dict(total=90, column="wide")
        for epoch in range(2):
            keywords = dict(weights=weights, order=penstock.Order(samples_per_epoch=200))
            with opened(penstock.Budget(**budget), **keywords) as loader:
                found = [batch.sample_ids for batch in loader.epoch(epoch)]
            self.assertEqual(sorted(sum(found, [])), sorted(order_of(epoch, **keywords)))
            self.assertTrue(all(sum(LENGTHS[i] for i in ids) <= 90 for ids in found))

    def test_micro_batches_are_the_rows_of_a_batch(self):
        with opened(penstock.Budget(90, "wide")) as loader:
            found = [sum((part["i"].tolist() for part in parts), []) for parts in loader.micro_batches(2)]
        self.assertEqual(found, wanted(0, dict(total=90, column="wide")))

    def test_slots_of_what_is_counted_hold_the_budget(self):
        with opened(penstock.Budget(90, "tokens.length"), outputs=[penstock.ragged("tokens")]) as loader:
            self.assertTrue(all(batch["tokens"].data.nbytes <= 90 * 4 for batch in loader))


class Places(unittest.TestCase):
    BUDGET = dict(total=100, column="tokens.length")

    def test_a_run_goes_on_with_any_number_of_ranks(self):
        batches, generator = wanted(0, self.BUDGET), random.Random(3)
        for _ in range(3):
            done, state, at = [], None, 0
            while at < len(batches):
                world, n_steps = generator.randrange(1, 6), generator.randrange(1, 5)
                found = []
                for rank in range(world):
                    with opened(penstock.Budget(**self.BUDGET), ranks=penstock.Ranks(rank, world)) as loader:
                        if state is not None:
                            loader.load_state_dict(json.loads(json.dumps(state)))
                        found.append([batch.sample_ids for batch in itertools.islice(loader, n_steps)])
                        after = loader.state_dict()
                done += [ids for step in zip(*found) for ids in step if ids]
                state, at = after, at + n_steps * world
            self.assertEqual(done, batches)

    def test_a_seek_to_each_batch_goes_on_there(self):
        batches = wanted(2, self.BUDGET)
        with opened(penstock.Budget(**self.BUDGET)) as loader:
            for k in range(len(batches)):
                loader.seek(2, sum(map(len, batches[:k])))
                self.assertEqual(loader.n_batches_left, len(batches) - k)
                self.assertEqual([batch.sample_ids for batch in loader], batches[k:])
            inside = next(k for k, ids in enumerate(batches) if len(ids) > 2)
            loader.seek(2, sum(map(len, batches[:inside])) + 1)
            self.assertEqual([batch.sample_ids for batch in loader], [batches[inside][1:], *batches[inside + 1:]])
            self.assertEqual(loader.current_epoch, 3)

    def test_a_state_of_another_budget_is_refused(self):
        with opened(penstock.Budget(100, "wide")) as loader:
            state = loader.state_dict()
            loader.load_state_dict(state)
        self.assertEqual(len(state["budget"]), 32)
        for budget in (penstock.Budget(101, "wide"), penstock.Budget(100, "wide", padded=True), penstock.Budget(100, [60] * N), 4):
            with opened(budget) as loader, self.assertRaisesRegex(penstock.SettingsError, "state: budget is '"):
                loader.load_state_dict(state)
        with opened(penstock.Budget(100, "tokens.length")) as loader:
            loader.load_state_dict(state)  # the same costs


class BadInput(unittest.TestCase):
    def refused(self, words, *arguments, kind=penstock.SettingsError, loader=(), **keywords):
        with self.assertRaisesRegex(kind, words):
            opened(penstock.Budget(*arguments, **keywords), **dict(loader)).close()

    def test_two_are_equal_if_they_say_the_same(self):
        def cost(columns):
            return columns["t.length"]
        for column, other in (("t.length", "cls"), (cost, len), ([1, 2], [1, 3]), (array.array("q", [1, 2]), (1, 3))):
            budget = penstock.Budget(100, column, buckets=[5, 9])
            self.assertEqual(budget, penstock.Budget(100, column, buckets=(5, 9)))
            self.assertEqual(hash(budget), hash(penstock.Budget(100, column, buckets=(5, 9))))
            for differs in (penstock.Budget(100, other, buckets=[5, 9]), penstock.Budget(101, column, buckets=[5, 9]), penstock.Budget(100, column),
                            penstock.Budget(100, column, buckets=[5, 9], padded=True), 100):
                self.assertNotEqual(budget, differs)
        self.assertEqual(penstock.Budget(100, array.array("q", [1, 2])), penstock.Budget(100, [1, 2]))

    def test_budgets(self):
        self.refused("Budget.total: value is 0; must be from 1", 0, "wide")
        self.refused("Budget.total: value is nan; must be a whole number", float("nan"), "wide", kind=TypeError)
        self.refused("Budget.max_rows: value is 0", 9, "wide", max_rows=0)
        self.refused("Budget.buckets: value has 3 after 3; must be in rising order", 9, "wide", buckets=[3, 3])
        self.refused(r"Budget.buckets\[0\]: value is 0", 9, "wide", buckets=[0])
        self.refused("Budget.buckets: value is 3", 9, "wide", buckets=3, kind=TypeError)
        self.refused("Budget.padded: value is 2", 9, "wide", padded=2, kind=TypeError)
        self.refused("did you mean 'alone'", 9, "wide", too_long="alne")
        self.refused("Budget.column: value is 3", 9, 3, kind=TypeError)

    def test_columns(self):
        self.refused("must be a side column of .*; did you mean 'wide'", 99, "wid")
        self.refused("has 2 costs; must have 131", 99, [1, 2])
        self.refused("sample 1 costs 0.5; must be a whole number", 99, "half")
        self.refused("sample 0 costs -1", 99, "low")
        self.refused("sample 0 costs 4294967296", 99, [2**32] * N)
        self.refused("sample 0 costs 'a'", 99, ["a"] * N)
        self.refused("sample 0 costs nan", 99, numpy.full(N, numpy.nan))
        self.refused("all 131 are 0, so batches have no end", 99, [0] * N)
        n, first = sum(length > 50 for length in LENGTHS), next(i for i, length in enumerate(LENGTHS) if length > 50)
        self.refused(f"{n} of 131 samples cost more, the first of them sample {first}, which costs {LENGTHS[first]}", 50, "wide")
        self.refused("all 131 cost more, so too_long=drop leaves none", 5, [6] * N, too_long="drop")
        with opened(penstock.Budget(9, [0] * N, max_rows=50)) as loader:
            self.assertEqual([batch.n_valid for batch in loader], [50, 50, 31])

    def test_loaders(self):
        for words, keywords in (("order='windowed'", dict(order="windowed")),
                                ("max_batch_size", dict(memory=penstock.Memory(max_batch_size=9))),
                                ("last_batch=drop leaves no batch", dict(last_batch="drop", ranks=penstock.Ranks(0, 999)))):
            self.refused(words, 99, "wide", loader=keywords)
        with self.assertRaisesRegex(penstock.SettingsError, "give the budget as batch_size="):
            opened(penstock.GlobalBatch(penstock.Budget(99, "wide"))).close()
        with opened(penstock.Budget(99, "wide")) as loader:
            with self.assertRaisesRegex(penstock.SettingsError, "opened with Budget"):
                loader.batch_size = 5
            self.assertIn("batches of Budget(99, 'wide')", repr(loader))
            self.assertEqual(loader.global_batch_size, loader.batch_size)


if __name__ == "__main__":
    unittest.main()
