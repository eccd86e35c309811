# SPDX-License-Identifier: Apache-2.0
"""A data set with a field of every kind, for the tests of exports, and what each of its samples has."""
import penstock
from data_fixture import image_file, np
from penstock import Boxes, Field, Keypoints

N = 60
SCHEMA = {
    "image": "image",
    "mask": Field("mask", of="image"),
    "cls": "int64",
    "weight": "float32",
    "small": "int8",
    "large": "uint64",
    "half": "float16",
    "double": "float64",
    "brain": "bfloat16",
    "text": "utf8",
    "raw": "bytes",
    "fixed": Field("int16", (2, 3)),
    "tokens": Field("uint16", (None,)),
    "grid": Field("float32", (None, None)),
    "boxes": Boxes(form="xyxy", of="image"),
    "points": Keypoints(2, of="image"),
    "captions": ["utf8"],
    "views": ["image"],
    "files": ["bytes"],
}
NUMBERS = ("cls", "weight", "small", "large", "half", "double", "brain")
ARRAYS = ("fixed", "tokens", "grid", "boxes", "points")
LISTS = ("captions", "views", "files")


def mask(i):
    return np.arange(40 * 56, dtype="u1").reshape(40, 56) // (i + 1)


def sample(i):
    """Sample i. Some arrays and lists are empty; the mask and each third image are pixels."""
    return {
        "image": image_file(i) if i % 3 == 0 else image_file(i, "PNG") if i % 3 == 1 else pixels(i),
        "mask": mask(i),
        "cls": 3 * i - 20,
        "weight": i / 7,
        "small": i - 30,
        "large": 2**40 * i,
        "half": i / 8,
        "double": i / 3,
        "brain": i * 0.5,
        "text": "line\n\"%d\" \u00e4 \x01" % i,
        "raw": bytes(range(i)),
        "fixed": np.arange(6, dtype="i2").reshape(2, 3) - i,
        "tokens": np.arange(i % 5, dtype="u2") + 60000,
        "grid": np.arange(i % 3 * 4, dtype="f4").reshape(i % 3, 4) / 4,
        "boxes": np.arange(i % 2 * 4, dtype="f4").reshape(i % 2, 4),
        "points": np.ones((1, 2, 3), "f4") * (i % 3),
        "captions": ["a \u00fc", "\n"][:i % 3],
        "views": [image_file(i + k) for k in range(i % 2)] + ([pixels(i)] if i % 4 == 0 else []),
        "files": [b"x" * i, b""][:i % 3],
    }


def pixels(i):
    from data_fixture import picture
    return picture(i)


def write(path, schema=None, n=N, sample_of=sample, **settings):
    schema = SCHEMA if schema is None else schema
    with penstock.Writer(path, schema, **settings) as writer:
        for i in range(n):
            writer.add({name: value for name, value in sample_of(i).items() if name in schema})
    return path


def some(*names):
    return {name: SCHEMA[name] for name in names}
