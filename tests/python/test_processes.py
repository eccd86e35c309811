# SPDX-License-Identifier: Apache-2.0
"""penstock.python: rows of Python functions, in processes that end with their loader."""
import functools
import gc
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
import unittest

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("NumPy is not installed") from None

import own_functions as own
import penstock
from own_case import Case, N, children, is_alive, wait_for
from penstock import python

HERE = pathlib.Path(__file__).resolve().parent


def worker_module():
    sys.path.insert(0, str(pathlib.Path(penstock.__file__).parent))
    try:
        import _worker
    finally:
        del sys.path[0]
    return _worker


class Rows(Case):
    def test_a_function_gets_the_field_and_gives_the_row(self):
        self.assertTrue((self.rows(self.of_arrays(own.same, processes=2)) == self.arrays).all())
        self.assertTrue((self.rows(self.of_arrays(own.doubled, processes=1)) == self.arrays * 2).all())

    def test_partial_functions_and_objects_are_pickled(self):
        output = python(functools.partial(own.stretched, height=2), "a", shape=(2, 3), dtype="float32", processes=1)
        found = self.rows(output)
        self.assertTrue((found[:, 1] == self.arrays.reshape(N, -1, 3).mean(axis=1).astype("float32")).all())
        self.assertTrue((self.rows(self.of_arrays(own.Adds(9), processes=1)) == self.arrays + 9).all())

    def test_methods_and_decorated_functions(self):
        held = own.Holds(7)
        outputs = {str(i): self.of_arrays(function, processes=1) for i, function in enumerate(
            (held.add, own.Holds.keep, own.Holds.double, own.wrapped))}
        held.n = 9  # it was pickled before
        with self.loader(outputs) as loader:
            found = [numpy.concatenate(rows) for rows in zip(*([batch[name].copy() for name in outputs]
                                                               for batch in loader))]
        for rows, expected in zip(found, (self.arrays + 7, self.arrays, self.arrays * 2, self.arrays + 1)):
            self.assertTrue((rows == expected).all())

    def test_fields_of_every_kind(self):
        self.assertEqual(self.rows(python(own.same, "s", shape=(), dtype="float64", processes=1)).tolist(),
                         [i * 0.5 for i in range(N)])
        for field, lengths in (("t", range(N)), ("v", range(N)), ("w", range(N))):
            found = self.rows(python(own.length, field, shape=(), dtype="int64", processes=1))
            self.assertEqual(found.tolist(), list(lengths))
        found = self.rows(python(own.shape_of, "w", shape=(3,), dtype="int64", processes=1))
        self.assertEqual(found.tolist(), [[i, 1 + i % 2, 1] for i in range(N)])

    def test_images_come_decoded_and_after_operations(self):
        found = self.rows(python(own.shape_of, "img", shape=(3,), dtype="int64", processes=1))
        self.assertEqual(found.tolist(), [[4, 6 * (1 + i % 3), 3] for i in range(N)])
        image = penstock.image("img", [penstock.ops.RandomResizedCrop((5, 7)), penstock.ops.RandomFlip()], channels=1)
        both = {"x": python(own.same, image, shape=(5, 7, 1), dtype="uint8", processes=2), "plain": image}
        with self.loader(both, shuffle=True) as loader:
            for batch in loader:
                self.assertTrue((batch["x"] == batch["plain"]).all())

    def test_draws_depend_on_the_sample_and_not_on_processes(self):
        def draws(n, **more):
            return self.rows(python(own.first_draws, "a", shape=(4,), dtype="uint64", processes=n), **more)
        one = draws(1)
        self.assertTrue((one == draws(3)).all() and (one == draws(2, n_threads=1)).all())
        self.assertEqual(len({tuple(row) for row in one.tolist()}), N)
        self.assertFalse((one == draws(1, order=penstock.Order(epoch=1))).any() or (one == draws(1, seed=1)).any())
        with self.loader(python(own.first_draws, "a", shape=(4,), dtype="uint64", processes=1),
                         order=penstock.Order(position=24)) as loader:
            self.assertTrue((next(iter(loader))["x"] == one[24:32]).all())

    def test_the_generator_is_a_fresh_one_of_philox(self):
        _worker = worker_module()
        maker = object.__new__(_worker.Maker)
        maker.rng = numpy.random.Generator(numpy.random.Philox(key=0))
        maker.bits, maker.state = maker.rng.bit_generator, maker.rng.bit_generator.state
        for key in (5, 2**127 + 3):
            maker.rng.integers(0, 9, 3, dtype="uint32")
            maker.seed(key & (2**64 - 1), key >> 64)
            fresh = numpy.random.Generator(numpy.random.Philox(key=key))
            self.assertEqual(maker.rng.integers(0, 2**40, 9).tolist(), fresh.integers(0, 2**40, 9).tolist())


class Failures(Case):
    def message(self, output, **more):
        with self.assertRaises(penstock.FunctionError) as caught:
            self.rows(output, **more)
        self.assertEqual(children(), [])
        return caught.exception

    def test_an_exception_of_a_function_names_the_sample(self):
        error = self.message(self.of_arrays(own.raises, processes=2))
        self.assertIn("KeyError: 'number five' (own_functions.py, line ", str(error))
        self.assertIn("in raises: raise KeyError", str(error))
        self.assertEqual((error.sample_id, error.record), (5, 5))

    def test_another_shape_or_dtype_is_an_error_with_both(self):
        for function, words in ((own.other_shape, "of shape (3, 1, 6) and dtype uint8; must be of shape (3, 4, 6)"),
                                (own.other_dtype, "and dtype float64; must be of shape (3, 4, 6) and dtype uint8"),
                                (own.no_array, "a value of class list; must be an ndarray of shape (3, 4, 6)")):
            error = self.message(self.of_arrays(function, processes=1))
            self.assertIn(words, str(error))
            self.assertEqual(error.sample_id, 5)

    def test_an_array_that_masks_values_is_refused(self):
        error = self.message(self.of_arrays(own.masks_one, processes=1))
        self.assertIn("masks 1 of 72 values; must have none masked (return array.filled(VALUE))", str(error))
        self.assertEqual(error.sample_id, 5)

    def test_a_process_that_dies_is_reported_with_its_signal(self):
        for function, words in ((own.dies, "was killed by signal 11 (SIGSEGV)"), (own.ends, "ended with exit status 3"),
                                (own.writes_past, "was killed by signal 11"),
                                (own.writes_before_row, "was killed by signal 11")):
            error = self.message(self.of_arrays(function, processes=1))
            self.assertIn(words, str(error))
            self.assertEqual(error.sample_id, 5)

    def test_a_sample_that_takes_too_long_is_bad(self):
        self.assertIn("longer than the timeout of 0.5 s", str(self.message(self.of_arrays(own.hangs, processes=1,
                                                                                          timeout=0.5))))

    def test_bad_samples_are_replaced(self):
        for function in (own.raises, own.dies, own.ends, own.other_shape):
            bad = []
            found = self.rows(self.of_arrays(function, processes=2),
                              bad_sample=lambda error, other: bad.append((error.sample_id, other)))
            self.assertEqual(len(bad), 1)
            self.assertEqual(bad[0][0], 5)
            expected = self.arrays.copy()
            expected[5] = self.arrays[bad[0][1]]
            self.assertTrue((found == expected).all())

    def test_a_process_that_cannot_start_is_an_error_of_the_loader(self):
        for function, words in ((own.FailsInChild(), "cannot work: ValueError: invalid literal"),
                                (own.EndsInChild(), "ended with exit status 7 before it was ready")):
            with self.loader(self.of_arrays(function, processes=2), bad_sample="replace") as loader:
                for _ in range(2):
                    with self.assertRaisesRegex(penstock.FunctionError, words):
                        next(iter(loader))
                    loader.seek(0)

    def test_imports_that_never_end(self):
        for function, seconds, words in ((own.Hangs(), 0.5, "cannot work: importing takes longer than the start_timeout of 0.5 s "
                                                            r"\(.*line \d+, in hang: time.sleep\(1000\)"),
                                         (own.Hangs(in_c=True), 0.1, "not ready 5.1 s after its start, the limit")):
            begin = time.monotonic()
            with self.loader(self.of_arrays(function, processes=2, start_timeout=seconds)) as loader, \
                    self.assertRaisesRegex(penstock.FunctionError, words):
                next(iter(loader))
            self.assertLess(time.monotonic() - begin, 30)

    def test_the_limit_of_the_start_is_over_once_it_has_started(self):
        output = self.of_arrays(functools.partial(own.slow, seconds=0.05), processes=1, start_timeout=1.5)
        self.assertTrue((self.rows(output) == self.arrays).all())  # takes 2 s

    def test_functions_that_cannot_be_imported_are_refused(self):
        def local(array, rng):
            return array
        for function, words in ((lambda array, rng: array, "a lambda"), (local, "made inside of"),
                                (functools.partial(local, 1), "made inside of"),
                                (functools.partial(lambda array, rng: array), "a lambda"),
                                (own.hidden, "by its name: .* not the same object .*functools.wraps"),
                                (own.Unpicklable(), "cannot be pickled: RuntimeError: not me")):
            with self.assertRaisesRegex(penstock.SettingsError, words):
                self.of_arrays(function)
        with self.assertRaises(TypeError):
            self.of_arrays(3)

    def test_wrong_arguments_are_refused(self):
        for more, words in (({"shape": (0,)}, "at least 1"), ({"shape": (1,) * 9}, "at most 8"),
                            ({"processes": 0}, "at least 1"), ({"timeout": 0}, "0.001"),
                            ({"dtype": "int"}, "python.dtype"), ({"field": penstock.scalar("s")}, "penstock.image"),
                            ({"field": penstock.image("img", [penstock.ops.Normalize()])}, "dtype 'uint8'")):
            settings = {"field": "a", "shape": (1,), "dtype": "uint8", **more}
            with self.assertRaisesRegex(penstock.SettingsError, words):
                python(own.same, settings.pop("field"), **settings)
        with self.assertRaisesRegex(penstock.SettingsError, "no field|must be a field"):
            self.rows(python(own.same, "nothing", shape=(1,), dtype="uint8"))
        with self.assertRaisesRegex(penstock.SettingsError, "needs a field of kind image"):
            self.rows(python(own.same, penstock.image("a", []), shape=(1,), dtype="uint8"))


class Ends(Case):
    """No process outlives what needs it."""

    def test_closing_does_not_wait_for_a_function(self):
        loader = self.loader(self.of_arrays(own.always_hangs, processes=2))
        wait_for(lambda: len(children()) == 2)
        begin = time.monotonic()
        loader.close()
        self.assertLess(time.monotonic() - begin, 5)

    def test_a_loader_that_is_forgotten_leaves_none(self):
        loader = self.loader(self.of_arrays(own.same, processes=2))
        next(iter(loader))
        loader._cycle = loader
        del loader
        gc.collect()
        self.assertEqual(children(), [])

    def test_two_loaders_and_one_that_fails_to_open(self):
        with self.loader(self.of_arrays(own.same, processes=1)) as one, \
                self.loader(self.of_arrays(own.same, processes=2)) as two:
            self.assertTrue((next(iter(one))["x"] == next(iter(two))["x"]).all())
            self.assertEqual(len(children()), 3)
        with self.assertRaises(penstock.OutOfMemoryError):
            self.loader(self.of_arrays(own.same), memory=penstock.Memory(max_memory=1))

    def test_an_idle_process_that_is_killed_costs_no_sample(self):
        with self.loader(self.of_arrays(own.same, processes=1), memory=penstock.Memory(n_slots=2)) as loader:
            batches = iter(loader)
            held = [next(batches), next(batches)]
            wait_for(lambda: len(children()) == 1)
            time.sleep(0.2)  # the slots are full: it is idle
            process = children()[0]
            os.kill(process, signal.SIGKILL)
            wait_for(lambda: not is_alive(process))
            del held
            self.assertEqual(sum(len(batch["x"]) for batch in batches), N - 16)

    def run_program(self, text, *, stop=None, more=None):
        """Run a script. Returns its exit status, its output, and whether all of its processes ended."""
        script = pathlib.Path(self.folder.name) / "script.py"
        script.write_text("import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # may be ignored here
                          f"import sys\nsys.path.insert(0, {str(HERE)!r})\nimport own_functions as own, penstock\n"
                          f"PATH = {self.path!r}\n" + textwrap.dedent(text))
        with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as running:
            found = []
            if stop is not None:
                wait_for(lambda: len(children(running.pid)) == 2 or running.poll() is not None)
                found = children(running.pid)
                time.sleep(0.5)
                if stop == "group":
                    os.killpg(running.pid, signal.SIGINT)
                else:
                    running.send_signal(stop)
            try:
                out, err = running.communicate(timeout=120)
            finally:
                running.kill()
        wait_for(lambda: not any(is_alive(pid) for pid in found), 20)
        return running.returncode, out, err

    LOOP = """
        if __name__ == "__main__":
            output = penstock.python(own.{}, "a", shape=(3, 4, 6), dtype="uint8", processes=2)
            loader = penstock.Loader(PATH, batch_size=8, outputs={{"x": output}}, framework="numpy")
            for batch in loader:
                pass
    """

    def test_ctrl_c_ends_the_program_and_its_processes(self):
        status, _, err = self.run_program(self.LOOP.format("always_hangs"), stop="group")
        self.assertIn("KeyboardInterrupt", err)
        self.assertEqual(err.count("Traceback"), 1)
        self.assertNotEqual(status, 0)

    def test_processes_end_with_a_program_that_is_killed(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            status, _, _ = self.run_program(self.LOOP.format("always_hangs"), stop=number)
            self.assertEqual(status, -number)

    def test_a_program_may_end_without_closing_and_its_processes_print(self):
        status, out, err = self.run_program(self.LOOP.format("prints"))
        self.assertEqual((status, err), (0, ""))
        self.assertGreaterEqual(out.count("made by a process"), N)  # the loader reads ahead

    def test_functions_of_a_script_and_forked_programs(self):
        status, out, err = self.run_program("""
            import os
            def twice(array, rng):
                return array * 2
            if __name__ == "__main__":
                output = penstock.python(twice, "a", shape=(3, 4, 6), dtype="uint8", processes=2)
                with penstock.Loader(PATH, batch_size=8, outputs={"x": output, "a": "a"}, framework="numpy") as loader:
                    batches = iter(loader)
                    next(batches)
                    child = os.fork()
                    if child == 0:
                        del loader, batches
                        os._exit(0)
                    assert os.waitpid(child, 0)[1] == 0
                    print(sum(int((batch["x"] == batch["a"] * 2).all()) for batch in batches))
        """)
        self.assertEqual((status, out), (0, "4\n"), err)

    def test_a_script_may_import_what_imports_multiprocessing(self):
        status, out, err = self.run_program("""
            import importlib.util, multiprocessing
            if importlib.util.find_spec("torch"):
                import torch
            def twice(array, rng):
                return array * 2
            output = penstock.python(twice, "a", shape=(3, 4, 6), dtype="uint8", processes=1)
            if __name__ == "__main__":
                with penstock.Loader(PATH, batch_size=8, outputs={"x": output, "a": "a"}, framework="numpy") as loader:
                    print(sum(int((batch["x"] == batch["a"] * 2).all()) for batch in loader))
        """)
        self.assertEqual((status, out), (0, "5\n"), err)

    def test_a_function_below_the_guard_is_to_be_moved(self):
        status, _, err = self.run_program("""
            if __name__ == "__main__":
                def inner(array, rng):
                    return array
                output = penstock.python(inner, "a", shape=(3, 4, 6), dtype="uint8", processes=2)
                with penstock.Loader(PATH, batch_size=8, outputs={"x": output}, framework="numpy") as loader:
                    next(iter(loader))
        """)
        self.assertEqual(status, 1)
        self.assertIn("cannot work: 'inner' is not in the script where a process imports it (move it above `if __name__ "
                      '== "__main__":`, or into a module)', err)
        self.assertEqual(err.count("Traceback"), 1)  # the program's own

    def test_an_exception_of_a_script_is_reported_with_its_advice(self):
        _, _, err = self.run_program("""
            def twice(array, rng):
                return array * 2
            def wrong():
                return penstock.python(lambda array, rng: array, "a", shape=(3, 4, 6), dtype="uint8")
            if __name__ == "__main__":
                output = penstock.python(twice, "a", shape=(3, 4, 6), dtype="uint8", processes=1)
                with penstock.Loader(PATH, batch_size=8, outputs={"x": output}, framework="numpy") as loader:
                    next(iter(loader))
            else:
                wrong()
        """)
        line = err.strip().splitlines()[-1]
        self.assertIn("(write it with def, in a module) (script.py, line ", line)

    def test_long_texts_end_at_a_word(self):
        worker = worker_module()
        self.assertEqual(worker.shortened("one two three", 13), "one two three")
        self.assertEqual(worker.shortened("one two three", 12), "one two ...")
        self.assertEqual(worker.shortened("o" * 13, 12), "oooooooo ...")

    def test_a_script_that_does_not_guard_its_loop_gets_advice(self):
        status, _, err = self.run_program("""
            import multiprocessing
            def twice(array, rng):
                return array * 2
            output = penstock.python(twice, "a", shape=(3, 4, 6), dtype="uint8", processes=3)
            with penstock.Loader(PATH, batch_size=8, outputs={"x": output}, framework="numpy") as loader:
                next(iter(loader))
        """)
        self.assertEqual(status, 1)
        self.assertIn('script.py opens its loader also where a process imports it for its functions; must not (put '
                      'what the script does under `if __name__ == "__main__":`, or', err)
        self.assertEqual(err.count("Traceback"), 1)  # the program's own

    def test_functions_of_an_interactive_session_are_refused(self):
        text = textwrap.dedent(f"""
            import sys; sys.path.insert(0, {str(HERE)!r}); import penstock
            def f(array, rng): return array
            penstock.python(f, "a", shape=(), dtype="uint8")
        """)
        found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
        self.assertIn("an interactive session or a notebook", found.stderr)


if __name__ == "__main__":
    unittest.main()
