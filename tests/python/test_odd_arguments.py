# SPDX-License-Identifier: Apache-2.0
"""Each parameter of the package's public functions and classes gets values that nobody means. What it refuses, it refuses
by TypeError, ValueError or an error of penstock's, whose text names the parameter and what it must be."""
import contextlib
import inspect
import io
import os
import pathlib
import re
import tarfile
import unittest
import warnings

import penstock
import sets

sets.need_numpy()
import numpy as np  # noqa: E402

from data_fixture import Case, optional  # noqa: E402
from penstock import functional, monitor, ops  # noqa: E402
from penstock.monitor import alerts  # noqa: E402
from penstock.packing.cluster import WriterSettings, check  # noqa: E402

ODD = [None, True, "x", "a\0b", "", b"x", float("nan"), float("inf"), -float("inf"), -1, 0, 2**64, 10**400, 0.5, 1j, [], {}, (), (1,), [None],
       ["x", "y"], [[1]], [1, 2, 3, 4, 5], {"x": 1}, object(), object, len, np.zeros(3), np.zeros((0, 2)), np.array(["x"]),
       np.float32(0.5), np.array(1), range(3), {1, 2}, [float("nan"), 1], [2**64, 2**64], [True, True]]
FORM = re.compile(r".+\b(must|takes|has no argument)\b", re.DOTALL)
IMAGE = np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3)

# Values of the required parameters while another parameter is odd.
GIVEN = {
    "img": IMAGE, "size": 8, "top": 1, "left": 1, "height": 4, "width": 4, "padding": 1, "angle": 3, "translate": (1, 1), "scale": 1.0, "shear": 1.0,
    "startpoints": ((0, 0), (15, 0), (15, 15), (0, 15)), "endpoints": ((1, 1), (15, 0), (15, 15), (0, 15)),
    "matrix": (1, 0, 0, 0, 1, 0), "kernel_size": 3, "radius": 1.0, "quality": 50, "brightness_factor": 1.5, "contrast_factor": 1.5,
    "saturation_factor": 1.5, "hue_factor": 0.1, "gamma": 1.5, "sharpness_factor": 1.5, "bits": 4, "threshold": 100, "addition": 10,
    "chains": [[functional.invert]], "weights": [0.5], "permutation": (2, 1, 0), "output_size": 8, "degrees": 10,
    "corner": "top_left", "p": 0.5, "kernels": "auto",
    "min_size": 8, "max_size": 12, "target_size": (8, 8), "transforms": [ops.RandomFlip()], "field": "x", "ops": [], "num_classes": 4,
}
OF = {("boxes", "form"): "xyxy", ("RandomBoxBlur", "radius"): (0.1, 2.0), ("RandomAffine", "scale"): (0.5, 1), ("RandomChoice", "ops"): [ops.RandomFlip()]}


def arguments(name, function):
    """Return {parameter: value} of those that must be given; None: a value is missing here."""
    found = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            found[parameter.name] = OF.get((name, parameter.name), GIVEN.get(parameter.name, GIVEN))
    return found


class Odd(unittest.TestCase):
    def check(self, name, function, use=lambda made: None):
        given = arguments(name, function)
        self.assertNotIn(id(GIVEN), [id(value) for value in given.values()], f"{name}: {given.keys()}")
        use(function(**given))
        bad = []
        for parameter in inspect.signature(function).parameters:
            for odd in ODD:
                try:
                    use(function(**{**given, parameter: odd}))
                except (TypeError, ValueError, penstock.PenstockError) as error:
                    if not FORM.match(str(error)):
                        bad.append(f"{name}({parameter}={odd!r:.40}): {type(error).__name__}: {error}")
                except Exception as error:
                    bad.append(f"{name}({parameter}={odd!r:.40}): {type(error).__name__}: {error}")
        return bad

    def test_functions_on_arrays(self):
        bad = []
        for name in functional.__all__:
            if name != "call":
                bad += self.check(name, getattr(functional, name))
        self.assertEqual(bad, [], "\n".join(bad))

    def test_operations(self):
        bad = []
        for name in ops.__all__:
            kind = getattr(ops, name)
            if isinstance(kind, type) and issubclass(kind, ops.Op) and kind not in (ops.Op, ops.Call):
                bad += self.check(name, kind, lambda made: penstock.image("x", [made]).to_c("x"))
        self.assertEqual(bad, [], "\n".join(bad))

    def test_outputs(self):
        bad = []
        for name in ("image", "scalar", "tensor", "ragged", "boxes", "keypoints", "mask", "per_box", "polygons"):
            bad += self.check(name, getattr(penstock, name))
        self.assertEqual(bad, [], "\n".join(bad))


ADVICE = re.compile(r"\((?:raise|lower|choose|leave)|(?:leave it out|raise it|choose another path|which no value fits|could not load|no such file|; add a )|lower batch_size|raise max_memory|has no column .*(?:adds one|lists its columns)|set overwrite=True to replace it|choose another directory|Ids: cannot read the file: |path: cannot append to the file: |a data set of the format \w+: open that one|holds no images: neither it|has a name that is not UTF-8|make it with mkdir -p|has no (?:image|integer) field .*; there are: ", re.DOTALL)
# Some are right for some parameters.
SIZES_AND_PATHS = ["1G", "64 MB", b"", b"a\0b", pathlib.Path("x"), pathlib.Path("a\0b"), pathlib.PurePosixPath("."), "/dev/null", "/proc/self/mem",
                   "/proc/no/such/folder", "s3://bucket/x", "\udcff", "\ud800", "x" * 300, "/" + "x/" * 3000]
NEEDS = {"TensorBoard": "tensorboard", "Prometheus": "prometheus_client", "TextFile": "prometheus_client"}
# Topics of a loader: the argument that takes each, and what must be given.
TOPICS = {"GlobalBatch": ("batch_size", {"rows": 4}), "Device": ("device", {}), "Order": ("order", {}), "Ranks": ("ranks", {}),
          "Memory": ("memory", {}), "Reading": ("reading", {}), "Observe": ("observe", {}), "Foreign": ("foreign", {})}
SUBSETS = {"Range": {"first": 0, "last": 5}, "Ids": {"ids": [1, 2]}, "Fraction": {"start": 0, "stop": 0.5}, "Fold": {"k": 0, "of": 4},
           "Where": {"column": "c", "at_least": 1}}
PLAIN = {
    "Boxes": {}, "Keypoints": {"n": 4}, "Mask": {}, "Polygons": {}, "Rle": {}, "Field": {"kind": "int64"}, "Task": {"pack": "a" * 32, "key": "k"},
    "MixUp": {"num_classes": 4}, "CutMix": {"num_classes": 4}, "MixUpCutMix": {"num_classes": 4}, "OneHot": {"num_classes": 4}, "Mosaic": {},
    "draw_mosaic": {"mosaic": penstock.Mosaic(), "n_rows": 4, "height": 8, "width": 8},
    "draw_mix": {"mix": penstock.MixUp(num_classes=4), "n_rows": 4, "height": 8, "width": 8},
    "draw": {"ops": [ops.Resize((8, 8))], "shape": (8, 8, 3)},
}
# Names that users do not call, or that a class above or other tests cover: results, errors, callables of operations.
ELSEWHERE = {
    "Batch", "BatchInfo", "ColumnInfo", "Crop", "DataSetStats", "Exported", "FixedOp", "MicroBatches", "MixedRow", "MosaicPart", "MosaicRow", "Output",
    "Ragged", "Ranks", "Stats", "Tensor", "TupleBatch", "get_include", "get_library",
    "five_crop", "rand_augment_timm", "ten_crop", "python", "record_stream", "image", "scalar", "tensor", "ragged", "boxes", "keypoints", "mask", "per_box", "polygons",
}


class Walks(Case):
    """A data set, and a walk over the parameters of what opens, writes or watches one."""

    def setUp(self):
        super().setUp()
        with penstock.Writer(self.path(), {"x": "int64", "w": "float32", "t": "utf8"}) as writer:
            for i in range(8):
                writer.add(x=i % 2, w=1.0, t="a")
        penstock.add_column(self.path(), "c", np.arange(8) + 1)
        self.n_paths = 0
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.makedirs(self.path("here"))
        os.chdir(self.path("here"))

    def fresh(self):
        self.n_paths += 1
        return self.path(f"out{self.n_paths}")

    def opened(self, **given):
        return penstock.Loader(**{"path": self.path(), "batch_size": 1, "outputs": ["x"], "framework": "numpy",
                                  "observe": penstock.Observe(monitor_path=False),
                                  "last_batch": "short", "n_threads": 1, **given})

    def load(self, **given):
        self.opened(**given).close()

    def write(self, **given):
        penstock.Writer(**{"path": self.fresh(), "schema": {"x": "int64"}, **given}).abort()

    def walk(self, name, function, use, given):
        bad = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            for odd in [*ODD, *SIZES_AND_PATHS]:
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        use(**{**given, parameter.name: odd})
                except (TypeError, ValueError, OSError, penstock.PenstockError) as error:
                    if not FORM.match(str(error)) and not (isinstance(error, (penstock.PenstockError, OSError)) and ADVICE.search(str(error))):
                        bad.append(f"{name}({parameter.name}={odd!r:.40}): {type(error).__name__}: {error}")
                except Exception as error:
                    bad.append(f"{name}({parameter.name}={odd!r:.40}): {type(error).__name__}: {error}")
        self.assertEqual(bad, [], "\n".join(bad))


class Opens(Walks):
    """Tests of the names that open or write a data set."""

    def test_loaders(self):
        self.load()
        self.walk("Loader", penstock.Loader, self.load, {})
        for name, (argument, given) in TOPICS.items():
            kind = getattr(penstock, name)
            self.walk(name, kind, lambda topic=kind, argument=argument, **given: self.load(**{argument: topic(**given)}), given)

    def test_data_sets(self):
        self.walk("Dataset", penstock.Dataset, lambda **given: penstock.Dataset(**{"path": self.path(), **given}).close(), {})

    def test_functions_that_write(self):
        self.write()
        self.walk("Writer", penstock.Writer, self.write, {})
        pack, export, merge = penstock.pack, penstock.export, penstock.merge
        self.walk("pack", pack, lambda **given: pack(**{"path": self.fresh(), "progress": False, **given}).close(),
                  {"dataset": [{"x": 1}], "num_workers": 0})
        self.walk("export", export, lambda **given: export(**{"out": self.fresh(), **given}), {"data": self.path(), "to": "npy", "fields": ["x"]})
        self.walk("merge", merge, lambda **given: merge(**{"path": self.fresh(), **given}), {"parts": [self.path()]})

    def test_packs_by_the_command_and_by_engines(self):
        pack, images, archive = penstock.pack, self.path("images"), self.path("a.tar")
        os.mkdir(images)
        optional("PIL.Image").fromarray(np.zeros((8, 8, 3), np.uint8)).save(os.path.join(images, "image.png"))
        with tarfile.open(archive, "w") as tar:
            tar.add(images, "")
        for source in (images, archive):
            with contextlib.redirect_stderr(io.StringIO()):
                self.walk("pack", pack, lambda source=source, **given: pack(**{"dataset": source, "path": self.fresh(), "progress": False, **given}).close(), {})
        self.walk("WriterSettings", WriterSettings, lambda **given: check(self.fresh(), WriterSettings(**given)), {})

    def test_samples_of_a_loader(self):
        for name, given in SUBSETS.items():
            kind = getattr(penstock, name)
            self.walk(name, kind, lambda kind=kind, **given: self.load(subset=kind(**given)), given)
        for name, given in (("Weighted", {"weights": [1] * 8}), ("Balanced", {"column": "c"})):
            kind = getattr(penstock, name)
            first = next(iter(inspect.signature(kind).parameters))
            self.walk(name, kind, lambda kind=kind, **given: self.load(weights=kind(**given)), {first: list(given.values())[0]})
        self.walk("Budget", penstock.Budget, lambda **given: self.load(batch_size=penstock.Budget(**given)), {"total": 100, "column": "c"})
        self.walk("Mixture", penstock.Mixture, lambda **given: self.load(path=penstock.Mixture(**given)), {"weights": {self.path(): 1}})

    def test_alerts(self):
        for name in alerts.__all__:
            kind = getattr(alerts, name)
            if isinstance(kind, type) and issubclass(kind, alerts.Rule) and kind is not alerts.Rule:
                self.walk(name, kind, kind, {"ms": 5} if name == "SlowReads" else {})

    def test_plain_objects_and_draws(self):
        for name, given in PLAIN.items():
            function = getattr(penstock, name)
            function(**given)
            self.walk(name, function, function, given)

    def test_a_new_public_callable_is_walked_or_listed(self):
        walked = {*PLAIN, *SUBSETS, *TOPICS, *ELSEWHERE, "Loader", "Dataset", "Writer", "pack", "export", "merge", "Weighted", "Balanced", "Budget", "Mixture",
                  "Monitor", "add_column", "remove_column", "show"}
        public = {name: getattr(module, name) for module in (penstock, ops) for name in module.__all__}
        self.assertEqual(sorted(ELSEWHERE - public.keys()), [])
        for name, made in public.items():
            if callable(made) and not (isinstance(made, type) and issubclass(made, (ops.Op, BaseException))):
                self.assertIn(name, walked, "walk it here, or list it as ELSEWHERE")

    def test_numbers_of_numpy_are_numbers(self):
        self.load(batch_size=np.int64(2), seed=np.uint8(3), reading=penstock.Reading(timeout=np.float32(5)),
                  n_threads=np.array(1), shuffle=np.bool_(True))
        self.write(n_parts=np.int64(2), part=np.uint32(1), shard_size=np.int64(1 << 20), schema={"x": penstock.Field("int64", shape=(np.int32(3), None))})
        self.assertEqual(penstock.Field("int64", shape=np.int64(3)).shape, (3,))
        self.load(subset=penstock.Where("c", at_least=np.float32(1.5), in_=np.arange(9)))
        self.load(batch_size=penstock.Budget(np.int64(100), "c", buckets=np.array([1, 5]), padded=np.bool_(True)))
        alerts.Slow(np.float32(0.5), np.int64(60), n_looks=np.int32(50), n_least=np.uint8(3))

    def test_a_text_is_no_list_and_a_word_no_switch(self):
        for use, says in ((lambda: self.write(names="ab"), "names: value is 'ab'; must be a list of class names"),
                          (lambda: self.write(overwrite="no"), "overwrite: value is 'no'; must be True or False"),
                          (lambda: penstock.merge("ab", self.fresh()), "parts: value is 'ab'; must be a list of paths"),
                          (lambda: self.load(batch_size=True), "batch_size: value is True; must be a whole number"),
                          (lambda: penstock.Dataset(self.path(), decode="x"), "decode: value is 'x'; must be True or False")):
            with self.assertRaisesRegex(TypeError, says):
                use()


class Watches(Walks):
    """Monitors, what they call, and contact sheets."""

    def test_monitors(self):
        with self.opened() as loader:
            def watch(**given):
                with penstock.Monitor(**{"every": 60, "gpu": None, "ranks": None, "line": False, **given}):
                    pass
            with contextlib.redirect_stderr(io.StringIO()), self.assertLogs("penstock.monitor"):  # logged for functions that are none of a Reading
                self.walk("Monitor", penstock.Monitor, watch, {"loader": loader})

    def test_sinks(self):
        for name in ("JSONLines", "TensorBoard", "Prometheus", "TextFile"):
            kind, missing = getattr(monitor, name), NEEDS.get(name)
            given = {"TensorBoard": {"writer": self.fresh()}, "Prometheus": {"port": 0}, "TextFile": {"folder": "."}}.get(name, {"path": self.fresh()})
            with self.subTest(name):
                if missing is not None:
                    optional(missing)
                self.walk(name, kind, lambda kind=kind, **given: kind(**given).close(), given)

    def test_contact_sheets(self):
        path, pixels = self.path("images"), np.zeros((8, 8, 3), np.uint8)
        penstock.pack([{"jpg": pixels, "cls": 1}] * 2, path, num_workers=0, progress=False).close()
        for given in ({"source": path}, {"source": path, "ops": None, "recipe": None, "ids": [1]}, {"source": {"image": pixels[None]}}):
            penstock.show(**given)
            self.walk("show", penstock.show, penstock.show, given)

    def test_columns(self):
        values = np.arange(8)
        self.walk("add_column", penstock.add_column, penstock.add_column, {"path": self.path(), "name": "c", "values": values, "overwrite": True})
        self.walk("remove_column", penstock.remove_column, penstock.remove_column, {"path": self.path(), "name": "d"})

    def test_receivers_and_the_rest(self):
        self.walk("Webhook", monitor.Webhook, monitor.Webhook, {"url": "http://127.0.0.1:1/"})
        self.walk("peak_flops", monitor.peak_flops, monitor.peak_flops, {"device": "NVIDIA H100 80GB HBM3"})

    def test_a_new_part_of_monitors_is_walked_or_listed(self):
        walked = {"Monitor", "JSONLines", "TensorBoard", "Prometheus", "TextFile", "Webhook", "peak_flops"}
        listed = {"Alert", "GpuReading", "PEAKS", "RankView", "Reading", "defaults"}  # results and tables
        callbacks = {"lightning_callback", "transformers_callback"}  # their arguments are those of a Monitor
        self.assertEqual(set(monitor.__all__) - walked - listed - callbacks - set(alerts.__all__), set())


if __name__ == "__main__":
    unittest.main()
