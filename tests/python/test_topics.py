# SPDX-License-Identifier: Apache-2.0
"""The topics of a loader: small frozen objects, and the refusal of arguments that are members of one."""
import copy
import dataclasses
import inspect
import pickle
import unittest

import penstock
import sets
from penstock import moved

TOPICS = ("Device", "Foreign", "GlobalBatch", "Memory", "Observe", "Order", "Reading")


def refused(function, **keywords):
    try:
        function(sets.scalars(), **keywords)
    except TypeError as error:
        return str(error)
    raise AssertionError("%r was taken" % (keywords,))


class Moved(unittest.TestCase):
    def test_a_member_is_refused_with_what_to_write_and_its_value(self):
        for keywords, says in (
                ({"n_slots": 4}, "n_slots=4 is now in memory: memory=penstock.Memory(n_slots=4)"),
                ({"global_batch_size": 96, "uneven": True}, "global_batch_size=96 and uneven=True are now in batch_size: "
                 "batch_size=penstock.GlobalBatch(96, uneven=True)"),
                ({"rank": "auto"}, "rank='auto' is now in ranks: ranks='auto'"),
                ({"rank": 1, "world": 4}, "rank=1 and world=4 are now in ranks: ranks=penstock.Ranks(1, 4)"),
                ({"rank": "auto", "compare_ranks": False},
                 "rank='auto' and compare_ranks=False are now in ranks: ranks=penstock.Ranks('auto', compare=False)"),
                ({"order": "windowed", "window": 8}, "window=8 is now in order: order=penstock.Order('windowed', window=8)"),
                ({"epoch": 3}, "epoch=3 is now in order: order=penstock.Order(epoch=3)"),
                ({"device": "cuda:1", "n_device_slots": 2},
                 "n_device_slots=2 is now in device: device=penstock.Device('cuda:1', n_slots=2)"),
                ({"copy": True}, "copy=True is now in device: device=penstock.Device('cpu', copy=True)"),
                ({"bad_sample": "replace", "on_bad_sample": print}, "on_bad_sample=print is now in bad_sample: bad_sample=print"),
                ({"on_bad_sample": print}, "on_bad_sample=print is now in bad_sample: bad_sample=print, which replaces bad samples"),
                ({"ranks": "auto", "compare_ranks": False},
                 "compare_ranks=False is now in ranks: ranks=penstock.Ranks('auto', compare=False)"),
                ({"ranks": penstock.Ranks(1, 4), "compare_ranks": False}, "compare_ranks=False is now in ranks: "
                 "ranks=RANKS._replace(compare=False), where RANKS is what is given now"),
                ({"rank": None, "world": None}, "rank=None and world=None are now in ranks: leave them out"),
                ({"global_batch_size": None}, "global_batch_size=None is now in batch_size: leave it out"),
                ({"uneven": False}, "uneven=False is now in batch_size: leave it out"),
                ({"uneven": True}, "uneven=True is now in batch_size: batch_size=penstock.GlobalBatch(ROWS, uneven=True)"),
                ({"batch_size": penstock.GlobalBatch(8), "uneven": True},
                 "uneven=True is now in batch_size: batch_size=penstock.GlobalBatch(8, uneven=True)"),
                ({"order": penstock.Order("windowed", block=8), "epoch": 3},
                 "epoch=3 is now in order: order=penstock.Order('windowed', block=8, epoch=3)"),
                ({"device": penstock.Device("cuda:1", n_slots=3), "copy": True},
                 "copy=True is now in device: device=penstock.Device('cuda:1', n_slots=3, copy=True)"),
                ({"memory": penstock.Memory(n_slots=4), "max_pixels": 5},
                 "max_pixels=5 is now in memory: memory=penstock.Memory(n_slots=4, max_pixels=5)"),
                ({"order": "windowed", "strands": 4, "ways": 4},
                 "strands=4 and ways=4 are now in order: order=penstock.Order('windowed', ways=4)"),
                ({"on_bad_sample": None}, "on_bad_sample=None is now in bad_sample: leave it out"),
                ({"fields": {"cls": "int32"}}, "fields={'cls': 'int32'} is now in foreign: "
                 "foreign=penstock.Foreign(fields={'cls': 'int32'})"),
                ({"stream": lambda: 3}, "stream=... is now in device: device=penstock.Device('cpu', stream=...)")):
            with self.subTest(**keywords):
                self.assertEqual(refused(penstock.Loader, **{"batch_size": 4, **keywords}), f"Loader: {says}")

    def test_several_are_one_message_by_topic(self):
        said = refused(penstock.Loader, batch_size=4, n_slots=4, io="direct", max_memory=1 << 30)
        self.assertEqual(said, "Loader: n_slots=4 and max_memory=1073741824 are now in memory: memory=penstock.Memory(n_slots=4, "
                         "max_memory=1073741824); io='direct' is now in reading: reading=penstock.Reading(io='direct')")

    def test_the_advised_arguments_are_those_that_the_classes_take(self):
        for function, topics in moved._TOPICS.items():
            arguments = inspect.signature(getattr(penstock, function)).parameters
            for argument, topic in topics.items():
                self.assertIn(argument, arguments)
                for name, member in topic.members.items():
                    self.assertNotIn(name, arguments) if (function, name) != ("Dataset", "fields") else None
                    if topic.maker:
                        self.assertIn(member, inspect.signature(getattr(penstock, topic.maker)).parameters)

    def test_every_member_is_in_the_table(self):
        for name in (*TOPICS, "Ranks"):
            topic, = (topic for topic in moved._TOPICS["Loader"].values() if topic.maker == name)
            own = set(inspect.signature(getattr(penstock, name)).parameters) - {"kind", "device"}
            self.assertEqual(set(topic.members.values()), own)

    def test_data_sets_and_packing(self):
        self.assertEqual(refused(penstock.Dataset, split_at="last"),
                         "Dataset: split_at='last' is now in foreign: foreign=penstock.Foreign(split_at='last')")
        self.assertIn("foreign=penstock.Foreign(fields={'i': 'int8'})", refused(penstock.Dataset, fields={"i": "int8"}))
        self.assertEqual(refused(penstock.Dataset, fields=["i"], damaged="accept"),
                         "Dataset: damaged='accept' is now in foreign: foreign=penstock.Foreign(damaged='accept')")
        self.assertEqual(refused(penstock.pack, path="x", by_content=True),
                         "pack: by_content=True is now in foreign: foreign=penstock.Foreign(by_content=True)")
        with self.assertRaisesRegex(penstock.SettingsError, "foreign: value has damaged='accept'; must have .* .give penstock.pack"):
            penstock.pack([{"x": 1}], "x", foreign=penstock.Foreign(damaged="accept"))


class Objects(unittest.TestCase):
    def test_a_repr_has_what_was_given_and_makes_an_equal_one(self):
        for topic in (penstock.Memory(n_slots=4), penstock.Order("windowed", window=8), penstock.GlobalBatch(96),
                      penstock.Device("cuda:1", copy=True), penstock.Reading(), penstock.Observe(nvtx=True),
                      penstock.Foreign(fields={"cls": "int32"})):
            self.assertEqual(eval("penstock." + repr(topic)), topic)
            self.assertEqual(copy.copy(topic), topic)
            self.assertEqual(pickle.loads(pickle.dumps(topic)), topic)
        self.assertEqual(repr(penstock.Memory(n_slots=4, max_pixels=0)), "Memory(n_slots=4)")
        self.assertEqual(dataclasses.replace(penstock.Memory(n_slots=4), max_memory=5), penstock.Memory(n_slots=4, max_memory=5))

    def test_members_are_given_by_name(self):
        with self.assertRaisesRegex(TypeError, "penstock.Memory takes nothing by position, .* by name: n_slots=..."):
            penstock.Memory(4)
        with self.assertRaisesRegex(TypeError, "penstock.Memory has no argument 'nslots'; did you mean 'n_slots'"):
            penstock.Memory(nslots=4)
        with self.assertRaisesRegex(TypeError, "penstock.Order takes kind by position, the others by name: epoch=..."):
            penstock.Order("full", 3)

    def test_they_cannot_be_changed(self):
        memory = penstock.Memory(n_slots=4)
        with self.assertRaisesRegex(AttributeError, "penstock.Memory .make another one with n_slots=..."):
            memory.n_slots = 5
        self.assertEqual(memory.n_slots, 4)

    def test_a_dict_that_was_given_may_change_afterwards(self):
        fields, rows = {"cls": "int32"}, {0: 4096}
        foreign, batch = penstock.Foreign(fields=fields), penstock.GlobalBatch(rows)
        fields["cls"], rows[0] = "nonsense", 3
        self.assertEqual((foreign.fields, batch.rows), ({"cls": "int32"}, {0: 4096}))

    def test_a_value_that_is_no_topic_is_refused_with_the_class(self):
        for name, kind in (("memory", "Memory"), ("reading", "Reading"), ("observe", "Observe"), ("foreign", "Foreign")):
            for wrong in (4, {}, penstock.Order()):
                with self.assertRaisesRegex(TypeError, f"{name}: value is .*; must be a penstock.{kind} .give {name}=penstock.{kind}."):
                    penstock.Loader(sets.scalars(), batch_size=4, **{name: wrong})
        with self.assertRaisesRegex(TypeError, "ranks: value is 3; must be 'auto', a penstock.Ranks"):
            penstock.Loader(sets.scalars(), batch_size=4, ranks=3)

    def test_ranks_are_complete_when_they_are_made(self):
        ranks = penstock.Ranks(2, 8, compare=False)
        self.assertEqual((ranks.rank, ranks.world, ranks.source, ranks.compare), (2, 8, "given", False))
        self.assertEqual(pickle.loads(pickle.dumps(ranks)), ranks)
        self.assertEqual(ranks._replace(compare=True, rank=3)[:2], (3, 8))
        for name, value in (("rank", "3"), ("world", 1.5), ("local_rank", -1), ("local_world", None), ("compare", "no")):
            with self.assertRaisesRegex((TypeError, penstock.SettingsError), f"{name}: value is "):
                ranks._replace(**{name: value})
        self.assertEqual(copy.deepcopy(ranks), ranks)
        self.assertEqual(penstock.Ranks()[:5], (0, 1, 0, 1, "alone"))

    def test_a_loader_has_what_they_say(self):
        with penstock.Loader(sets.scalars(), batch_size=penstock.GlobalBatch(20), framework="dlpack",
                             order=penstock.Order("sequential", epoch=2, position=40), ranks=penstock.Ranks(1, 2),
                             memory=penstock.Memory(n_slots=3), reading=penstock.Reading(reader="threads"),
                             observe=penstock.Observe(monitor_path=False), last_batch="short") as loader:
            self.assertEqual((loader.cursor, loader.global_batch_size, loader.ranks.rank), ((2, 40), 20, 1))
            self.assertEqual(loader.stats().n_slots, 3)
            self.assertEqual(next(iter(loader)).sample_ids, list(range(41, 60, 2)))


if __name__ == "__main__":
    unittest.main()
