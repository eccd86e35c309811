# SPDX-License-Identifier: Apache-2.0
"""The library's errors become exceptions, with the message unchanged and the position in attributes."""
import contextlib
import copy
import gc
import inspect
import io
import itertools
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest
import warnings
from unittest import mock

import sets
import penstock
from penstock import Loader, PenstockError, _c, errors, hints, launchers, outputs as descriptions, paths, ranks, settings
from penstock.elsewhere import LOADER_KEYWORDS


def damaged(name, n=4, step=311):
    """Return a copy of the scalars whose bytes are flipped in the records of some samples; their ids."""
    path = os.path.join(sets.ROOT, name)
    shutil.copytree(sets.scalars(), path)
    shard = next(os.path.join(path, file) for file in sorted(os.listdir(path)) if file.endswith(".pstk"))
    with open(shard, "r+b") as file:
        content = bytearray(file.read())
        ids = [7 + step * k for k in range(n)]
        for i in ids:
            at = content.find(i.to_bytes(8, "little") + bytearray(_float(i / 2)))
            assert at > 0, "no such record"
            content[at] ^= 0xff
        file.seek(0)
        file.write(content)
    return path, ids


def data_stats(path, outputs):
    with penstock.Loader(path, batch_size=10, outputs=outputs, framework="dlpack") as data, \
            warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in data:
            pass
        return data.stats()


def _float(value):
    import struct
    return struct.pack("<f", value)


class Errors(unittest.TestCase):
    def test_one_is_made_while_another_thread_opens_a_loader(self):
        said = {f"/cache/{n}": "given" for n in range(20000)}
        stop = threading.Event()

        def open_others():
            n = 0
            while not stop.is_set():
                said[f"/other/{n % 1000}"] = "given"
                said.pop(f"/other/{(n + 500) % 1000}", None)
                n += 1
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-5)
        with mock.patch.object(errors, "_said", said):
            thread = threading.Thread(target=open_others)
            thread.start()
            try:
                for _ in range(30):
                    errors.of(errors.new(), _c.EINVAL)
            finally:
                stop.set()
                thread.join()

    def test_every_result_of_the_library_is_an_exception(self):
        for name, code in vars(_c).items():
            if not (name.startswith("E") and name.isupper() and isinstance(code, int)) or code >= 0:
                continue
            error = errors.new()
            error.code, error.message = code, b"what happened"
            made = errors.of(error)
            self.assertIsInstance(made, penstock.PenstockError)
            advice = ": loader.stats() shows which stage is slow" if code == _c.ETIMEDOUT else ""
            self.assertEqual((str(made), made.code), ("what happened" + advice, "PSTK_" + name))
        self.assertIsInstance(errors.of(errors.new(), _c.EINVAL), ValueError)
        self.assertIsInstance(errors.of(errors.new(), _c.ENOMEM), MemoryError)
        self.assertIsInstance(errors.of(errors.new(), _c.ENOENT), FileNotFoundError)
        self.assertIsInstance(errors.of(errors.new(), _c.ETIMEDOUT), TimeoutError)
        self.assertEqual(errors.of(errors.new(), _c.EBADMSG).code, "PSTK_EBADMSG")
        self.assertEqual(errors.of(errors.new(), -9999).args, (_c.lib.pstk_strerror(-9999).decode(),))

    def test_limits_are_settings_errors_except_those_of_the_system(self):
        for code, native, is_setting, advice in (
                (_c.EFBIG, 0, True, ""), (_c.EFBIG, 24, False, ": raise the limit of open files"),
                (_c.ENODATA, 0, True, ""), (_c.ENOSPC, 28, False, ": free some space there")):
            error = errors.new()
            error.code, error.native, error.message = code, native, b"x"
            made = errors.of(error)
            self.assertEqual(isinstance(made, penstock.SettingsError), is_setting)
            self.assertTrue(str(made).startswith("x" + advice), made)

    def test_data_over_a_limit_is_a_settings_error(self):
        sets.need_numpy()
        empty = os.path.join(sets.ROOT, "empty")
        penstock.Writer(empty, {"i": "int64"}, part=1, n_parts=2).commit()
        images = {"x": penstock.image("jpg", [penstock.ops.Resize((8, 8))])}
        for path, keywords, part in (
                (sets.scalars(), {"memory": penstock.Memory(max_record_size=4)}, "more than max_record_size"),
                (empty, {}, "is empty"),
                (sets.photos(), {"memory": penstock.Memory(max_pixels=16), "outputs": images}, "raise max_pixels"),
                (sets.small(), {"outputs": {"t": penstock.ragged("text", 40)}}, "raise bytes_per_batch")):
            with self.subTest(part), self.assertRaisesRegex(penstock.SettingsError, part):
                with penstock.Loader(path, **{"batch_size": 10, "framework": "dlpack", **keywords}) as data:
                    next(iter(data))

    def test_a_damaged_record_names_its_place_and_comes_in_its_turn(self):
        path, ids = damaged("damaged-error")
        with penstock.Loader(path, batch_size=10, shuffle=False, framework="dlpack", order=penstock.Order(epoch=3)) as data:
            batches = iter(data)
            for _ in range(2):
                with self.assertRaises(penstock.CorruptRecordError) as raised:
                    next(batches)
            error = raised.exception
            self.assertEqual((error.sample_id, error.epoch, error.code), (7, 3, "PSTK_EBADMSG"))
            self.assertTrue(error.shard.endswith(".pstk"))
            self.assertGreater(error.offset, 0)
            self.assertIn(error.shard, str(error))
            self.assertEqual(data.state_dict()["position"], 0)
            data.seek(3, 10)  # past the bad one
            self.assertEqual(next(iter(data)).sample_ids, list(range(10, 20)))

    def test_a_bad_sample_is_replaced_counted_and_reported(self):
        path, ids = damaged("damaged-replace")
        told = []

        def on_bad_sample(error, other):
            told.append((error.sample_id, other, type(error), threading.get_ident()))

        with penstock.Loader(path, batch_size=10, framework="dlpack", bad_sample=on_bad_sample) as data:
            found = {}
            for batch in data:
                self.assertEqual([t[:2] for t in told[len(found):]], list(batch.replacements.items()))
                found.update(batch.replacements)
                self.assertEqual(data.stats().n_replacements, len(found))
                if batch.replacements:
                    values = batch["i"].memoryview().cast("q").tolist()
                    for row, i in enumerate(batch.sample_ids):
                        self.assertEqual(values[row], found.get(i, i))
        self.assertEqual(sorted(found), ids)
        self.assertEqual([t[2:] for t in told],
                         [(penstock.CorruptRecordError, threading.get_ident())] * len(ids))

    def test_bad_samples_read_ahead_are_neither_counted_nor_reported(self):
        path, ids = damaged("damaged-ahead")
        told = []
        with penstock.Loader(path, batch_size=100, framework="dlpack", shuffle=False, memory=penstock.Memory(n_slots=8),
                             bad_sample=lambda *bad: told.append(bad)) as data:
            end = time.monotonic() + 100
            while data.stats().stage_workers.n_items < 800 and time.monotonic() < end:
                time.sleep(0.001)
            self.assertEqual((told, data.stats().n_replacements), ([], 0))
            next(iter(data))
            self.assertEqual((len(told), data.stats().n_replacements), (1, 1))  # sample 7; 318 and 629 wait
            self.assertEqual(told[0][0].sample_id, ids[0])
            data.seek(0)
            next(iter(data))  # delivered again, it counts again
            self.assertEqual((len(told), data.stats().n_replacements), (2, 2))

    def test_of_a_batch_some_are_described_and_the_others_counted(self):
        path, ids = damaged("damaged-many", 12, 11)
        told = []
        with penstock.Loader(path, batch_size=1000, framework="dlpack", shuffle=False, n_threads=4,
                             memory=penstock.Memory(n_slots=2),
                             bad_sample=lambda *bad: told.append(bad)) as data:
            batch = next(iter(data))
            self.assertEqual(list(batch.replacements), ids)
            self.assertEqual(data.stats().n_replacements, 12)
            self.assertIn("12 bad samples were replaced", str(data.stats()))
        self.assertEqual([error.sample_id for error, _ in told], [*ids[:8], None])
        self.assertEqual([other for _, other in told], [*list(batch.replacements.values())[:8], None])
        self.assertIn("4 more bad samples", str(told[-1][0]))

    def test_a_callbacks_exception_leaves_the_loop_and_the_batch_comes_again(self):
        path, ids = damaged("damaged-raises")
        calls = []

        def on_bad_sample(error, other):
            calls.append(error.sample_id)
            if len(calls) <= 6:  # more often than there are slots
                raise RuntimeError("of mine")

        with penstock.Loader(path, batch_size=10, framework="dlpack", shuffle=False, memory=penstock.Memory(n_slots=2),
                             bad_sample=on_bad_sample) as data:
            batches, seen = iter(data), []
            for _ in range(6):
                with self.assertRaisesRegex(RuntimeError, "of mine"):
                    next(batches)
                self.assertEqual(data.state_dict()["position"], 0)
            for batch in batches:
                seen += batch.sample_ids
        self.assertEqual(seen, list(range(2000)))
        self.assertEqual(calls, [ids[0]] * 6 + ids)

    def test_a_kept_exception_of_the_callback_holds_no_slot(self):
        path, ids = damaged("damaged-kept")
        kept = []

        def on_bad_sample(error, other):
            raise RuntimeError(error.sample_id)

        with penstock.Loader(path, batch_size=10, framework="dlpack", shuffle=False, memory=penstock.Memory(n_slots=2),
                             bad_sample=on_bad_sample) as data:
            batches = iter(data)
            for _ in range(4):
                try:
                    next(batches)
                except RuntimeError as error:
                    kept.append(error)
        self.assertEqual([error.args for error in kept], [(ids[0],)] * 4)

    def test_a_callback_that_raises_stop_iteration_does_not_end_the_epoch_in_silence(self):
        path, _ = damaged("damaged-stops")
        with penstock.Loader(path, batch_size=10, framework="dlpack", shuffle=False,
                             bad_sample=lambda error, other: next(iter(()))) as data:
            with self.assertRaisesRegex(RuntimeError, "StopIteration"):
                for _ in data:
                    self.fail("a batch was handed out")
            self.assertEqual(data.cursor, (0, 0))

    def test_exceptions_at_any_step_of_a_report_lose_no_batch_and_no_slot(self):
        class Refused(PenstockError):  # as what a handler gets that iterates
            def __init__(self):
                super().__init__("refused")

        path, ids = damaged("damaged-struck")
        for kind in (KeyboardInterrupt, Refused):
            for step in itertools.count(1):
                told = []
                with penstock.Loader(path, batch_size=10, framework="dlpack", shuffle=False, memory=penstock.Memory(n_slots=2),
                                     bad_sample=lambda error, other: told.append(error.sample_id)) as data:
                    batches = iter(data)
                    struck = sets.strike(step, lambda: next(batches), kind)
                    at = data.cursor[1]
                    self.assertEqual([next(batches).position for _ in range(4)], [at, at + 10, at + 20, at + 30])
                    self.assertLessEqual(len(told), 2)
                    self.assertEqual(set(told), {ids[0]})
                if not struck:
                    break
            self.assertGreater(step, 50)

    def test_ctrl_c_in_the_callback_ends_the_loop(self):
        path, _ = damaged("damaged-ctrl-c")
        done = sets.python("""
import os, signal, sys, penstock
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
def on_bad_sample(error, other):
    os.kill(os.getpid(), signal.SIGINT)
with penstock.Loader(sys.argv[1], batch_size=10, framework="dlpack", shuffle=False, bad_sample=on_bad_sample) as data:
    try:
        for batch in data:
            print("a batch was handed out")
    except KeyboardInterrupt:
        print("interrupted at", data.cursor)
""", path)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "interrupted at (0, 0)\n", ""))

    def test_a_callback_may_look_interrupt_and_close_but_not_move(self):
        path, _ = damaged("damaged-closes")
        told = []

        def on_bad_sample(error, other):
            told.append(data.stats().n_replacements)
            for forbidden in (lambda: data.seek(0), lambda: iter(data), lambda: next(batches)):
                with self.assertRaisesRegex(PenstockError, "already in a call"):
                    forbidden()
            data.interrupt()
            if len(told) == 2:
                data.close()

        with penstock.Loader(path, batch_size=10, framework="dlpack", shuffle=False, bad_sample=on_bad_sample) as data:
            batches, n = iter(data), 0
            with self.assertRaises(penstock.InterruptedLoaderError):
                while True:
                    try:
                        n += next(batches).n_valid
                    except penstock.InterruptedLoaderError:  # a wait that interrupt() ended
                        if data.closed:
                            raise
            self.assertTrue(data.closed)
        self.assertEqual((told, n), ([1, 2], 310))

    def test_a_loader_in_a_cycle_with_its_callback_is_closed_when_it_is_collected(self):
        path, _ = damaged("damaged-cycle")

        class Owner:
            def __init__(self):
                self.data = penstock.Loader(path, batch_size=10, framework="dlpack", shuffle=False,
                                            bad_sample=self.bad)

            def bad(self, error, other):
                gc.collect()

        before = len(sets.thread_names())
        owner = Owner()
        next(iter(owner.data))
        self.assertGreater(len(sets.thread_names()), before)
        del owner
        gc.collect()
        self.assertEqual(len(sets.thread_names()), before)

    @unittest.skipUnless("PENSTOCK_COMMAND" in os.environ, "PENSTOCK_COMMAND names no program")
    def test_doctor_has_room_for_what_it_finds_in_64_fields_of_palette_images(self):
        path = os.path.join(sets.ROOT, "many-palettes")
        names = [f"mask{i}" for i in range(64)]
        with penstock.Writer(path, dict.fromkeys(names, "image")) as writer:
            writer.add(**dict.fromkeys(names, sets.png(3)))
        done = subprocess.run([os.environ["PENSTOCK_COMMAND"], "doctor", path, "--json"], check=True,
                              stdout=subprocess.PIPE)
        found = [finding["what"] for finding in json.loads(done.stdout)["data_set"]]
        self.assertEqual(found.count("images"), 2 * len(names))
        self.assertEqual(found[-1], "loader")

    def test_images_with_a_palette_are_counted_and_warned_of_once(self):
        path = os.path.join(sets.ROOT, "palettes")
        with penstock.Writer(path, {"png": "image"}) as writer:
            for i in range(60):  # batch 0 has none
                writer.add(png=sets.png(3 if i >= 10 and i % 2 else 0))
        outputs = {"x": penstock.image("png", [penstock.ops.Resize((4, 4))])}
        with penstock.Loader(path, batch_size=10, outputs=outputs, framework="dlpack", shuffle=False) as data:
            counts = []
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for batch in data:
                    counts.append((data.stats().n_palette_images, len(caught)))
        self.assertEqual(counts, [(0, 0), (5, 1), (10, 1), (15, 1), (20, 1), (25, 1)])
        self.assertIn("PNG files with a palette", str(caught[0].message))
        self.assertEqual(caught[0].filename, __file__)
        self.assertIn("25 samples have an image from a PNG file with a palette", str(data_stats(path, outputs)))

    def test_a_library_that_is_not_there(self):
        done = sets.python("import penstock", PENSTOCK_LIBRARY="/nowhere/libpenstock.so")
        self.assertNotEqual(done.returncode, 0)
        for part in ("MissingLibraryError", "PENSTOCK_LIBRARY", "meson install"):
            self.assertIn(part, done.stderr)

    def test_a_library_that_is_none_of_ours(self):
        done = sets.python("""
import ctypes.util, os
os.environ["PENSTOCK_LIBRARY"] = ctypes.util.find_library("c")
try:
    import penstock
except ImportError as error:
    print(error)
""")
        self.assertIn("not a penstock of this version", done.stdout, done.stderr)

    def test_an_unknown_name_is_no_attribute_of_the_package(self):
        with self.assertRaisesRegex(AttributeError, "no attribute 'nonsense'$"):
            penstock.nonsense
        self.assertFalse(hasattr(penstock, "ToTensor"))
        self.assertIn("Loader", dir(penstock))
        for module in (penstock, penstock.ops):
            self.assertEqual([name for name in module.__all__ if not hasattr(module, name)], [])
            self.assertEqual(sorted(set(module._LATER) - set(module.__all__)), [])


class Words(unittest.TestCase):
    """Each mistake is a sentence that says what to write, before anything is started."""

    def refused(self, kind, parts, function, *arguments, **keywords):
        before = len(sets.thread_names())
        with self.assertRaises(kind) as raised:
            function(*arguments, **keywords)
        for part in parts:
            self.assertIn(part, str(raised.exception))
        self.assertEqual(len(sets.thread_names()), before)

    def open(self, **keywords):
        return penstock.Loader(sets.scalars(), **{"batch_size": 10, "framework": "dlpack", **keywords})

    def test_names_of_other_libraries_are_explained(self):
        for name, part in (("ToTensor", "Normalize divides by 255"), ("Compose", "takes the list"),
                           ("ElasticTransform", "torch.stack([t(image) for image in images])"),
                           ("DataLoader", "penstock.Loader"), ("MDSWriter", "penstock.Writer"),
                           ("Randomflip", "did you mean 'penstock.ops.RandomFlip'"), ("loader_", "no attribute")):
            self.refused(AttributeError, [name, part], getattr, penstock, name)
        with self.assertRaisesRegex(ImportError, "penstock' has no attribute 'ToTensor'.*Normalize"):
            from penstock import Loader, ToTensor  # noqa: F401
        with self.assertRaisesRegex(ImportError, "penstock.ops' has no attribute 'ToTensor'.*Normalize"):
            from penstock.ops import Normalize, ToTensor  # noqa: F401
        from penstock import packing  # noqa: F401  # a module is no such name

    def test_operations_are_in_a_module_of_their_own(self):
        for name in penstock.ops.__all__:
            self.refused(AttributeError, [f"penstock.{name}: operations are in penstock.ops: penstock.ops.{name}"], getattr, penstock, name)
        self.refused(AttributeError, ["penstock.ops.MixUp: it is no operation: penstock.MixUp"], getattr, penstock.ops, "MixUp")
        self.refused(AttributeError, ["module 'penstock.ops' has no attribute 'RandomFlop'; did you mean 'RandomFlip'?"],
                     getattr, penstock.ops, "RandomFlop")
        self.refused(AttributeError, ["module 'penstock.ops' has no attribute 'Loaders'; did you mean 'penstock.Loader'?"],
                     getattr, penstock.ops, "Loaders")
        with self.assertRaisesRegex(ImportError, "^penstock.Resize: operations are in penstock.ops: penstock.ops.Resize$"):
            from penstock import Loader, Resize  # noqa: F401
        with self.assertRaisesRegex(ImportError, "^penstock.ops.Mosaic: it is no operation: penstock.Mosaic$"):
            from penstock.ops import Mosaic  # noqa: F401
        from penstock.ops import crop  # noqa: F401  # a module is no such name

    def test_operations_are_there_for_who_imports_penstock_alone(self):
        done = sets.python("import penstock; print(penstock.ops.Resize(8), penstock.ops.five_crop.__name__)\n"
                           "from penstock.ops import *; print(sorted(penstock.ops.__all__) == dir(penstock.ops), Normalize.__name__)")
        self.assertEqual(done.stdout, "Resize(size=8, interpolation='bilinear', max_size=None) five_crop\nTrue Normalize\n", done.stderr)

    def test_a_name_that_is_not_alike_is_not_suggested(self):
        with self.open(outputs=["i"]) as data, penstock.Dataset(sets.scalars()) as dataset:
            for of, name, part in ((data, "batch", "`next(iter(loader))` is a batch"), (data, "tokens", "docs/how-to/tokens.md"), (data, "chunks", ""),
                                   (dataset, "samples", "`dataset[0]` is a record"), (dataset, "rows", "")):
                with self.assertRaisesRegex(AttributeError, f"has no attribute '{name}'" + (f": .*{re.escape(part)}" if part else "$")) as caught:
                    getattr(of, name)
                self.assertEqual(caught.exception.name, "")  # or Python adds a suggestion of its own
            self.refused(TypeError, ["no argument 'tokens': ", "docs/how-to/tokens.md"], self.open, tokens=1)
        for wrong, right in (("batch", "path"), ("samples", "names"), ("tokens", "kernels")):
            self.assertEqual(hints.near(wrong, [right]), "")
        for wrong, right in (("dorp", "drop"), ("sead", "seed"), ("clss", "cls"), ("num_samples", "n_samples"), ("lables", "label")):
            self.assertIn(repr(right), hints.near(wrong, ["path", right]))

    def test_types_have_their_article(self):
        for value, text in ((3, "an int"), ("", "a str"), (None, "a NoneType"), (object(), "an object"), (True, "a bool"), ({}, "a dict")):
            self.assertEqual(hints.kind_of(value), text)
        self.refused(TypeError, ["path: value is an int; "], penstock.Dataset, 3)

    def test_names_that_are_there_have_no_advice(self):
        self.assertEqual({*penstock.__all__, *penstock.ops.__all__} & set(penstock.elsewhere.ADVICE), set())

    def test_keywords_of_operations(self):
        for op, keyword, part in ((penstock.ops.Resize, "resample", "it is interpolation"),
                                  (penstock.ops.RandomResizedCrop, "scales", "did you mean 'scale'?"),
                                  (penstock.ops.Normalize, "inplace", "leave it out"),
                                  (penstock.ops.RandomFlip, "zzz", "it has: p")):
            arguments = [8] if "size" in inspect.signature(op).parameters else []
            parts = ["penstock.ops." + op.__name__, keyword, part]
            self.refused(TypeError, parts, op, *arguments, **{keyword: True})
        self.refused(TypeError, ["penstock.image(field, [op"], penstock.image, "jpg", transforms=[])
        self.refused(TypeError, ["did you mean 'dtype'?"], penstock.scalar, "cls", dtyp="int8")

    def test_names_that_are_there_are_listed_up_to_twenty(self):
        names = [f"a{i:02}" for i in range(64)]
        path = os.path.join(sets.ROOT, "wide")
        with penstock.Writer(path, dict.fromkeys(names, "uint8")) as writer:
            self.refused(penstock.FieldError, ["; there are: a00, a01, ", ", a19 and 44 more"], writer.add,
                         {**dict.fromkeys(names, 0), "?": 0})
            writer.add(dict.fromkeys(names, 0))
        with penstock.Dataset(path, names[:20]) as data:
            self.assertRaisesRegex(penstock.SettingsError, "; there are: a00, a01, .*, a19$", data.get, 0, "?")

    def test_keywords_of_other_loaders(self):
        for keyword, part in (("transform", "outputs="), ("cache", "page cache"), ("prefetch", "n_slots="),
                              ("distributed", "ranks='auto'"), ("num_workers", "n_threads="),
                              ("batchsize", "did you mean 'batch_size'?"), ("mask", "; it has: path")):
            self.refused(TypeError, ["penstock.Loader", keyword, part], self.open, **{keyword: 1})

    def test_keywords_for_a_part_of_the_samples_name_what_makes_one(self):
        sets.need_numpy()
        path, ids, n = sets.small(), [5, 3, 50], 0
        data = penstock.Dataset(path)
        for keyword in ("indices", "sample_ids", "ids"):
            self.refused(TypeError, ["penstock.Loader", keyword, "subset=penstock.Ids(ids)"], self.open, **{keyword: ids})
        self.refused(TypeError, ["subset=penstock.Fraction(0, 0.8, seed=1)"], self.open, split="train")
        for keyword, expected in (("filter", [i for i in range(103) if i % 5 == 0]),):
            with self.subTest(keyword), self.assertRaises(TypeError) as raised:
                self.open(**{keyword: ids})
            said = str(raised.exception)
            self.assertIn(f"penstock.Loader has no argument '{keyword}'", said)
            (code,) = re.findall("`([^`]*)`", said)
            n += 1
            made = os.path.join(sets.ROOT, f"part-{n}")
            names = {"penstock": penstock, "data": data, "ids": ids, "path": made,
                     "wanted": lambda sample: sample["i"] % 5 == 0}
            with contextlib.redirect_stderr(io.StringIO()):
                part = eval(code, names)
            self.assertEqual((part.schema, part.names), (data.schema, data.names))
            self.assertEqual([sample["i"] for sample in part], expected)
            self.assertEqual(part[0]["image"].tobytes(), data[expected[0]]["image"].tobytes())

    def test_attributes_of_other_loaders_are_explained(self):
        sets.need_numpy()
        with self.open(outputs=["i"], framework="numpy") as data:
            for name, hint in Loader._hints.items():
                if hasattr(data, name):  # it has become one
                    continue
                said = f"'Loader' object has no attribute '{name}': {hint}"
                self.refused(AttributeError, [said], getattr, data, name)
                for code in re.findall("`([^`]*)`", "" if name in LOADER_KEYWORDS else hint):
                    eval(code, {"loader": data, "penstock": penstock, "state": data.state_dict()})
            for name, part in (("num_workers", "n_threads="), ("sampler", "loader.set_epoch(0)"),
                               ("n_sample", "did you mean 'n_samples'?"),
                               ("classes", "penstock.Dataset(loader.path)")):
                self.refused(AttributeError, [name, part], getattr, data, name)
            self.refused(AttributeError, ["no attribute '_nothing'"], getattr, data, "_nothing")
            self.assertRaisesRegex(AttributeError, "attribute 'nonsense'$", getattr, data, "nonsense")
            self.assertFalse(hasattr(data, "sampler"))

    def test_attributes_of_batches_are_explained(self):
        sets.need_numpy()
        for form in ("dict", "tuple", "dataclass"):
            with self.open(outputs=["i", "half"], framework="numpy", form=form) as data:
                batch = next(iter(data))
                self.refused(AttributeError, ["cuda", "device='cuda'"], getattr, batch, "cuda")
                self.assertRaisesRegex(AttributeError, "did you mean 'sample_ids'", getattr, batch, "sample_id")
                self.assertRaisesRegex(AttributeError, "attribute 'nonsense'$", getattr, batch, "nonsense")
                self.assertEqual(copy.copy(batch).epoch, 0)
                pickle.loads(pickle.dumps(batch))
                if form == "dict":
                    self.refused(AttributeError, ["batch['half']"], getattr, batch, "half")
                    self.assertRaisesRegex(AttributeError, "only batches as they come", getattr, type(batch)(batch),
                                           "sample_ids")

    def test_arguments_without_names(self):
        self.refused(TypeError, ["takes path by position", "batch_size=..."], penstock.Loader, "train", 8)
        self.refused(TypeError, ["field, ops by", "dtype=..."], penstock.image, "jpg", [], "float32")
        self.refused(TypeError, ["penstock.ops.CenterCrop takes size and no more"], penstock.ops.CenterCrop, 8, "bilinear")

    def test_lists_of_operations(self):
        class Compose:
            """As torchvision has it."""

        for ops, part in (("Resize", "write penstock.ops.Resize(...)"), (["Resiz"], "did you mean 'Resize'"),
                          ([penstock.ops.RandomFlip], "write RandomFlip(...)"),
                          (penstock.ops.RandomFlip, "write RandomFlip(...)"), ([Compose()], "takes the list"),
                          (Compose(), "takes the list"), (None, "operation of penstock.ops: AugMix"),
                          ({penstock.ops.RandomFlip()}, "in their order")):
            self.refused(TypeError, ["image", part], penstock.image, "jpg", ops)
        for layout, part in (("nchv", "did you mean 'nchw'"), ("NCHW", "did you mean 'nchw'"),
                             (["nchw"], "layout: value is")):
            self.refused(penstock.SettingsError, [part], penstock.image, "jpg", [], layout=layout)

    def test_a_probability(self):
        for p, kind in (("x", TypeError), (None, TypeError), (2, ValueError), (float("nan"), ValueError)):
            said = f"RandomFlip.p: value is {p!r}; must be a number from 0 to 1"
            self.refused(kind, [said], penstock.ops.RandomFlip, p)

    def test_outputs_that_the_field_does_not_have(self):
        sets.need_numpy()
        path = os.path.join(sets.ROOT, "kinds")
        schema = {"image": "image", "n": "int64", "x": ("float32", (3,)), "t": ("int32", (None,))}
        with penstock.Writer(path, schema) as writer:
            writer.add(image=sets.pixels(0), n=1, x=[1, 2, 3], t=[1, 2])
        resize = [penstock.ops.Resize((8, 8))]
        for output, part in (
                (penstock.tensor("t"), "(None,) (None: variable); must be penstock.ragged('t')"),
                (penstock.tensor("n"), "is one number (int64); must be penstock.scalar('n')"),
                (penstock.scalar("image"), "of kind 'image'; must be penstock.image('image', [...])"),
                (penstock.scalar("x"), "of shape (3,); must be penstock.tensor('x')"),
                (penstock.image("n", resize), "must be penstock.scalar('n')"),
                (penstock.ragged("n"), "must be penstock.scalar('n')"),
                (penstock.scalar("n", "float64"), "fits float64 (side columns only prove that whole numbers fit an "
                                                    "integer dtype); choose one that holds them all, or int64 and")):
            self.refused(penstock.SettingsError, [part], penstock.Loader, path, batch_size=1,
                         outputs=[output])
        penstock.Loader(path, batch_size=1, framework="dlpack", outputs=[
            penstock.ragged("image"), penstock.ragged("x"), penstock.image("image", resize)][1:]).close()

    def test_errors_of_outputs_have_pythons_names(self):
        sets.need_numpy()
        image, resize = penstock.image, penstock.ops.Resize((8, 8))
        for outputs, part in (
                ({"u8": penstock.scalar("i", "float32")},
                 "outputs['u8']: dtype: not every int64 of field 'i' fits float32 (side columns only prove that "
                 "whole numbers fit an integer dtype); choose one that holds them all, or "
                 "int64 and convert the batches"),
                ({"f": penstock.scalar("i"), "a": image("image", [resize, penstock.ops.Normalize()], dtype="uint8")},
                 "outputs['a'], operation 2 (Normalize): its results are fractions, which dtype uint8 cannot hold; use "
                 "float16, bfloat16 or float32"),
                ({"a": image("image", [penstock.ops.Normalize(), resize], dtype="float32")},
                 "outputs['a'], operation 1 (Normalize): it must be the last operation"),
                ({"a": image("image", [penstock.ops.Resize(2**20)])},
                 "outputs['a'], operation 1 (Resize): side (width): value is 1048576"),
                ({"a": image("image", [penstock.ops.RandomFlip()])}, "outputs['a']: ops do not fix the size"),
                ({"a": image("image", [resize], dtype="int64")},
                 "outputs['a']: dtype: value is int64; must be uint8, float16, bfloat16 or float32 for an image"),
                ({"x" * 99: penstock.scalar("i")}, f"outputs['{'x' * 99}']: name must have from 1 to")):
            with self.assertRaises(penstock.SettingsError) as raised:
                penstock.Loader(sets.small(), batch_size=2, framework="dlpack", outputs=outputs)
            self.assertTrue(str(raised.exception).startswith(part), raised.exception)
            self.assertNotIn("(output '", str(raised.exception))
        # A quoted word, or a part of a name, is not replaced.
        said = descriptions.in_python("outputs[0].dtype: 'u8' of /i64/f32.x and my-u8 is u8, i8.", {"é": image})
        self.assertEqual(said, "outputs['é']: dtype: 'u8' of /i64/f32.x and my-u8 is uint8, int8.")
        self.assertEqual(descriptions.in_python("batch_size: u8", {}), "batch_size: u8")

    def test_normalize_without_dtype_gives_float32(self):
        sets.need_numpy()
        resize = penstock.ops.Resize((8, 8))
        plain = penstock.image("image", [resize])
        normal = penstock.image("image", [resize, penstock.ops.Normalize()])
        self.assertEqual((plain.dtype, normal.dtype), (_c.U8, _c.F32))
        self.assertEqual(normal, penstock.image("image", [resize, penstock.ops.Normalize()], dtype="float32"))
        outputs = {"a": plain, "b": normal}
        with penstock.Loader(sets.small(), batch_size=2, framework="numpy", outputs=outputs) as data:
            batch = next(iter(data))
            self.assertEqual((batch["a"].dtype, batch["b"].dtype), ("uint8", "float32"))

    def test_messages_give_memory_in_suitable_units(self):
        sets.need_numpy()
        outputs = [penstock.ragged("text")]
        parts = ["KiB each are over max_memory, 1 byte: raise max_memory"]
        self.refused(penstock.OutOfMemoryError, parts, penstock.Loader, sets.small(), batch_size=64,
                     outputs=outputs, memory=penstock.Memory(max_memory=1))
        self.refused(penstock.OutOfMemoryError, ["slots of ", " bytes each"], self.open, outputs=["half"],
                     memory=penstock.Memory(max_memory=1))

    def test_kinds_of_other_libraries(self):
        for kind, part in (("str", "'utf8'"), ("String", "'utf8'"), ("text", "'utf8'"), ("jpg", "'image'")):
            self.refused(penstock.SettingsError, [repr(kind), f"(write {part})"], penstock.Field, kind)

    def test_paths_that_are_no_data_set(self):
        manifest = os.path.join(sets.scalars(), "manifest.json")
        for path, part in (("s3://bucket/train", "copy the data to a local disk"), ("gs:/bucket", "local disk"),
                           ("file:///data/train", "give '/data/train'"), ("~no_such_user/train", "no_such_user"),
                           (manifest, f"directory (give {sets.scalars()!r})")):
            self.refused(penstock.SettingsError, [part], paths.local, path)
        for path in (sets.scalars(), "train", "/nowhere/train"):
            self.assertEqual(paths.local(path), path)

    def test_a_list_of_paths_is_a_pattern_or_a_mixture(self):
        for given in (["a-000.tar", "a-001.tar"], (pathlib.Path("a"),)):
            for call in (penstock.Dataset, lambda path: penstock.Loader(path, batch_size=1)):
                with self.assertRaisesRegex(TypeError, r"must be the name of a directory \(a pattern names several files.*Mixture"):
                    call(given)

    def test_an_empty_path_is_not_the_current_directory(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(sets.scalars())
        for call in (lambda: Loader("", batch_size=2), lambda: penstock.Dataset(""), lambda: penstock.pack("", "out"),
                     lambda: penstock.Writer("", {"x": "int8"}),
                     lambda: Loader(penstock.Mixture({"": 1}), batch_size=2)):
            self.refused(penstock.SettingsError, ["path: value is empty; must be a path (write '.' "], call)
        self.refused(penstock.SettingsError, ["path: value is empty; must be a path"], penstock.monitor.JSONLines, "")  # '.' is no file
        self.refused(penstock.SettingsError, ["cache_path: value is empty"], penstock.Dataset, ".",
                     foreign=penstock.Foreign(cache_path=""))

    def test_a_data_set_that_is_open_has_a_path(self):
        with penstock.Dataset(sets.scalars()) as dataset, Loader(sets.scalars(), batch_size=2) as loader:
            self.refused(TypeError, ["value is a Dataset; ", "(give dataset.path)"], Loader, dataset, batch_size=2)
            n = len(dataset)
            for ids, subset in ((range(2, 5), penstock.Range(2, 5)), (range(5, 2, -1), penstock.Ids(range(5, 2, -1))),
                                (range(1, n, 2), penstock.Ids(range(1, n, 2))), (range(n - 3, n), penstock.Range(n - 3, n))):
                part = dataset[ids.start:ids.stop:ids.step]
                shown = f"Range({ids.start}, {ids.stop})" if ids.step == 1 else f"Ids({ids})"
                says = f"(give dataset.path, which is the whole data set; a Loader takes this slice as subset=penstock.{shown})"
                self.refused(TypeError, ["value is a Dataset; ", says], Loader, part, batch_size=1)
                self.refused(TypeError, ["value is a Dataset; ", says], penstock.export, part, to="npy", out="no")
                with Loader(part.path, batch_size=len(part), shuffle=False, framework="numpy", subset=subset) as loader:
                    self.assertEqual(list(next(iter(loader)).sample_ids), list(ids))
            self.refused(TypeError, ["(give dataset.path, which is the whole data set; this slice is empty)"], Loader, dataset[2:2],
                         batch_size=1)
            self.refused(TypeError, ["(give dataset.path; a Loader takes the same foreign=, too)"], Loader,
                         penstock.Dataset(sets.scalars(), foreign=penstock.Foreign(split_at="last")), batch_size=2)
            self.refused(TypeError, ["value is a Loader; ", "(give loader.path)"], penstock.Dataset, loader)
            self.assertEqual((dataset.path, loader.path), (sets.scalars(), sets.scalars()))

    def test_a_data_set_of_version_1_is_refused_by_its_version(self):
        def crc(data):
            return _c.lib.pstk_crc32c(0, bytes(data), len(data))

        path = os.path.join(sets.ROOT, "version-1")
        shutil.copytree(sets.scalars(), path)
        shard = next(os.path.join(path, file) for file in sorted(os.listdir(path)) if file.endswith(".pstk"))
        with open(shard, "r+b") as file:
            header = bytearray(file.read(4092))
            header[8] = 1
            file.seek(0)
            file.write(header + crc(header).to_bytes(4, "little"))
        said = "is of version 1; this library reads version 2 (pack again, to another directory)"
        self.refused(penstock.UnsupportedError, [os.path.basename(shard), said], lambda: penstock.Dataset(path)[0])
        loader = penstock.Loader(path, batch_size=10, framework="dlpack")
        with contextlib.closing(loader):
            with self.assertRaisesRegex(penstock.UnsupportedError, re.escape(said)):
                next(iter(loader))
        manifest = os.path.join(path, "manifest.json")
        with open(manifest, "r+b") as file:
            body = file.read()[:-22].replace(b'"version":2', b'"version":1')
            file.seek(0)
            file.write(body + b',"crc32c":"%08x"}\n' % crc(body))
        for use in (penstock.Dataset, lambda path: penstock.Loader(path, batch_size=10, framework="dlpack")):
            self.refused(penstock.UnsupportedError, ["manifest.json " + said], use, path)

    def test_every_path_may_begin_with_a_tilde_and_is_none_of_another_machine(self):
        home = os.path.join(sets.ROOT, "home")
        shutil.copytree(sets.scalars(10), os.path.join(home, "train"))

        def uses(at):
            def write():
                with penstock.Writer(at("written"), {"i": "int64"}) as writer:
                    writer.add(i=1)

            return {
                "Loader": lambda: penstock.Loader(at("train"), batch_size=2, framework="dlpack").close(),
                "Dataset": lambda: penstock.Dataset(at("train")).close(),
                "Writer": write,
                "pack": lambda: penstock.pack([{"i": 1}], at("packed"), progress=False),
                "pack of": lambda: penstock.pack(at("train"), at("copied"), progress=False),
                "merge": lambda: penstock.merge([at("written")], at("merged")),
                "show": lambda: penstock.show(at("train"))}

        with mock.patch.dict(os.environ, HOME=home):
            for name, use in uses(lambda name: "~/" + name).items():
                with self.subTest(name):
                    if name == "show":
                        with self.assertRaisesRegex(penstock.PenstockError, "has no image field|needs"):
                            use()
                    else:
                        use()
            self.assertEqual(sorted(os.listdir(home)), ["copied", "merged", "packed", "train", "written"])
            self.assertEqual(penstock.Loader(b"~/train", batch_size=2, framework="dlpack").path,
                             os.path.join(home, "train"))
        for name, use in uses(lambda name: "s3://bucket/" + name).items():
            if name != "show" or sets.numpy:
                self.refused(penstock.SettingsError, ["'s3://bucket/", "local disk", "mount"], use)

    def test_numbers_of_outputs(self):
        image, ragged, wrong = penstock.image, penstock.ragged, penstock.SettingsError
        self.refused(wrong, ["random_group", "-1"], image, "jpg", [], random_group=-1)
        self.refused(wrong, ["random_group", str(2**32 - 1)], image, "jpg", [], random_group=2**32)
        self.refused(TypeError, ["random_group", "whole number"], image, "jpg", [], random_group=0.5)
        self.refused(TypeError, ["exif_orientation: value is 'no'"], image, "jpg", [], exif_orientation="no")
        self.refused(wrong, ["bytes_per_batch", "-5"], ragged, "text", bytes_per_batch=-5)
        self.refused(TypeError, ["bytes_per_batch", "whole number"], ragged, "text", bytes_per_batch="1M")
        for outputs in (5, {"i", "half"}):
            self.refused(TypeError, ["outputs", "list of outputs"], self.open, outputs=outputs)
        self.refused(wrong, ["did you mean 'half'"], self.open, outputs=["hafl"])

    def test_settings_of_a_loader(self):
        wrong = penstock.SettingsError
        for keywords, kind, part in (
                ({"order": ["full"]}, wrong, "order: value is ['full']; must be one of"),
                ({"order": "ful"}, wrong, "did you mean 'full'"), ({"last_batch": {}}, wrong, "last_batch: value is {}"),
                ({"shuffle": "no"}, TypeError, "must be True or False"),
                ({"shuffle": True, "order": "sequntial"}, wrong, "did you mean 'sequential'"),
                ({"reading": penstock.Reading(timeout=-1)}, wrong, "timeout: value is -1"),
                ({"reading": penstock.Reading(timeout=0)}, wrong, "or None"),
                ({"reading": penstock.Reading(timeout=float("nan"))}, wrong, "timeout: value is nan"),
                ({"reading": penstock.Reading(timeout="5")}, TypeError, "number of seconds"),
                ({"reading": penstock.Reading(timeout=[])}, TypeError, "seconds"),
                ({"framework": "pytorch"}, wrong, "did you mean 'torch'"),
                ({"framework": ["torch"]}, wrong, "framework"), ({"ranks": "Auto"}, TypeError, "must be 'auto'"),
                ({"form": "dataclas"}, wrong, "did you mean 'dataclass'"), ({"form": []}, wrong, "form"),
                ({"bad_sample": "drop"}, wrong, "bad_sample: value is 'drop'; must be one of"),
                ({"bad_sample": 5}, TypeError, "function of (error, id)"),
                ({"ranks": penstock.Ranks(1)}, wrong,
                 "rank: value is 1, and world is 1; must be from 0 to 0 (give penstock.Ranks world=, the"),
                ({"ranks": penstock.Ranks(2, 2)}, wrong, "rank: value is 2, and world is 2; must be from 0 to 1"),
                ({"ranks": penstock.Ranks(local_rank=2, local_world=2)}, wrong,
                 "local_rank: value is 2, and local_world is 2; must be"),
                ({"batch_size": 0}, wrong, "batch_size: value is 0; must be from 1"),
                ({"batch_size": -1}, wrong, "batch_size: value is -1; must be from 1"),
                ({"observe": penstock.Observe(report_crops="yes")}, TypeError,
                 "report_crops: value is 'yes'; must be True or False"),
                ({"observe": penstock.Observe(nvtx=2)}, TypeError, "nvtx: value is 2; must be True or False"),
                ({"device": penstock.Device(measure=[])}, TypeError, "Device.measure: value is []; must be True or False"),
                ({"form": "dataclass", "outputs": {"class": "i"}}, wrong, "outputs={'class_': ...}")):
            with self.subTest(**keywords):
                self.refused(kind, [part], self.open, **keywords)
        self.refused(wrong, ["world: value is 0; must be from 1"], penstock.Ranks, 0, 0)
        self.refused(TypeError, ["rank: value is 'Auto'; must be a whole number, or 'auto'"], penstock.Ranks, "Auto")
        self.refused(TypeError, ["Ranks.compare: value is 2; must be True or False"], penstock.Ranks, 0, 2, compare=2)
        self.open(reading=penstock.Reading(timeout=float("inf")), form="dataclass", outputs={"class_": "i"}).close()

    def test_the_framework_is_chosen_by_device_and_imported_modules(self):
        def chosen(on_device, imported, installed=()):
            modules = dict.fromkeys(("torch", "cupy", "jax", "numpy"))
            modules.update(dict.fromkeys(imported, sets))
            for name in installed:
                del modules[name]
            with mock.patch.dict(settings.sys.modules), \
                    mock.patch.object(settings.importlib.util, "find_spec", lambda name: name):
                for name in installed:
                    settings.sys.modules.pop(name, None)
                settings.sys.modules.update(modules)
                return settings.framework("auto", True) if on_device else settings.host_framework()

        self.assertEqual(settings.framework("auto", False), "auto")
        self.assertEqual(chosen(True, ["torch", "jax", "numpy"]), "torch")
        self.assertEqual(chosen(False, ["torch", "jax", "numpy"]), ("torch", False))
        self.assertEqual(chosen(False, ["jax"], ["numpy", "torch"]), ("numpy", True))
        self.assertEqual(chosen(False, ["jax"], ["numpy"]), ("numpy", False))
        self.assertEqual(chosen(False, []), ("dlpack", False))
        self.assertEqual(chosen(True, ["jax", "numpy"], ["torch"]), "jax")
        self.assertEqual(chosen(True, ["numpy"], ["torch"]), "torch")
        part = "must be 'torch', 'cupy' or 'jax', or 'dlpack'"
        self.refused(penstock.SettingsError, [part], chosen, True, [])
        self.refused(penstock.SettingsError, ["NumPy cannot see"], settings.framework, "numpy", True)


class PassedOver(unittest.TestCase):
    """A loader without rank where several processes run."""

    def warned(self, open_too=False, **env):
        """Return the warnings in this environment, with a loader or without one."""
        with mock.patch.dict(sys.modules, {"torch.distributed": None}), \
                mock.patch.dict(os.environ, env, clear=True):
            if not open_too:
                return ranks.passed_over()
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                with self.assertRaises(penstock.DataSetNotFoundError):
                    penstock.Loader("/nowhere", batch_size=1)  # so it is told before anything is looked at
        return told

    def test_each_launcher_is_warned_of_by_its_variable(self):
        mpi = "OMPI_COMM_WORLD_"
        for name, env in (("WORLD_SIZE", {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}),
                          ("WORLD_SIZE", {"RANK": "1", "WORLD_SIZE": "2"}),  # ranks of machines, perhaps
                          ("WORLD_SIZE", {"WORLD_SIZE": "2"}),
                          ("SLURM_STEP_NUM_TASKS", {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}),
                          (mpi + "SIZE", {mpi + "RANK": "0", mpi + "SIZE": "2"}),
                          ("MV2_COMM_WORLD_SIZE", {"MV2_COMM_WORLD_RANK": "0", "MV2_COMM_WORLD_SIZE": "2"}),
                          ("PMI_SIZE", {"PMI_RANK": "0", "PMI_SIZE": "2"})):
            for part in (name + " reports 2 processes", "ranks='auto'", "ranks=penstock.Ranks(0, 1)"):
                self.assertIn(part, self.warned(**env))

    def test_numbers_of_one_process_do_not_hide_the_tasks_around_it(self):
        env = {"RANK": "0", "WORLD_SIZE": "1", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4"}
        self.assertEqual(self.warned(**env), "penstock: SLURM_STEP_NUM_TASKS reports 4 processes, and this loader gives each of "
                         "them all samples (give ranks='auto' for a part each, or ranks=penstock.Ranks(0, 1) if each should get all)")

    def test_a_batch_script_without_srun_is_warned_of_by_both_variables(self):
        told = self.warned(SLURM_PROCID="0", SLURM_NTASKS="4")
        for part in ("SLURM_PROCID is 0", "SLURM_NTASKS is 4", "srun", "ranks='auto'", "ranks=penstock.Ranks(0, 1)"):
            self.assertIn(part, told)

    def test_one_process_is_not(self):
        for env in ({}, {"RANK": "0", "WORLD_SIZE": "1"}, {"SLURM_PROCID": "0"},
                    {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_NAME": "interactive"},
                    {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "x"},
                    {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "RANK": "0", "WORLD_SIZE": "1"},
                    {"SLURM_NTASKS": "2"},  # salloc sets it on the machine where one logged in
                    {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
                    {"PMI_RANK": "0", "PMI_SIZE": "1"}, {"RANK": "x", "WORLD_SIZE": "y"}):
            self.assertIsNone(self.warned(**env), env)

    def test_a_shell_of_several_tasks_is_not(self):
        env = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_NAME": "bash"}
        for terminal in (_c.TERMINAL_OWN, _c.TERMINAL_NONE):
            with mock.patch.object(launchers, "_TERMINAL", terminal):
                self.assertEqual(self.warned(**env) is None, terminal == _c.TERMINAL_OWN)

    def test_a_loader_warns_once_where_it_is_opened(self):
        env = {"RANK": "1", "WORLD_SIZE": "2"}
        (told,) = self.warned(True, **env)
        self.assertEqual((told.category, told.filename), (UserWarning, __file__))
        self.assertEqual(self.warned(True), [])
        with mock.patch.dict(os.environ, env), warnings.catch_warnings():
            warnings.simplefilter("error")
            penstock.Loader(sets.scalars(), batch_size=10, ranks=penstock.Ranks(0, 1), framework="dlpack").close()


if __name__ == "__main__":
    unittest.main()
