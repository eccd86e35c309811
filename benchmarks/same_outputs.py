# SPDX-License-Identifier: Apache-2.0
"""Print digests of what a Python package of penstock delivers from a data set, as one JSON object.

`same` starts  python same_outputs.py DATA KINDS  with each build's own package and library; KINDS
is the kind of each field, as JSON. The outputs are those that `bench` does not have: two images of
one random group, an orientation, a layout, arrays by kind.
"""
import inspect
import json
import sys
import zlib

import penstock
from penstock.ops import CenterCrop, Normalize, RandomFlip, RandomResizedCrop, Resize

N_EPOCHS = 2


def image_outputs(field):
    crop = RandomResizedCrop(96, scale=(0.3, 1.0))
    return {
        "pairs of one random group": {
            "a": penstock.image(field, [crop, RandomFlip(), Normalize()], dtype="float16",
                                layout="channels_last", random_group=1),
            "b": penstock.image(field, [crop, RandomFlip()], random_group=1)},
        "upright, float32 without Normalize": {
            "x": penstock.image(field, [Resize((60, 90))], dtype="float32", layout="nchw",
                                exif_orientation=True)},
        "resized and cropped, bfloat16": {
            "x": penstock.image(field, [Resize(70), CenterCrop((64, 80)), Normalize()],
                                dtype="bfloat16")},
        "stored bytes": {"x": penstock.ragged(field)},
    }


def tensors_of(value):
    """Return the arrays of one output of a batch: a tensor, or data and offsets."""
    return [value.data, value.offsets] if isinstance(value, penstock.Ragged) else [value]


def keywords():
    """Return the loader's, by the names that this build's package has: those of 0.1.0, or those before."""
    if "observe" in inspect.signature(penstock.Loader.__init__).parameters:
        return {"last_batch": "short", "observe": penstock.Observe(report_crops=True)}
    return {"last": "short", "with_crops": True}


def digest(path, outputs):
    """CRC-32 of every batch: epoch, ids, crops, shapes and bytes."""
    crc = n_samples = 0
    with penstock.Loader(path, batch_size=24, outputs=outputs, framework="dlpack", seed=11,
                         n_threads=2, **keywords()) as loader:
        for epoch in range(N_EPOCHS):
            for batch in loader.epoch(epoch):
                n_samples += batch.n_valid
                for value in (tensor for output in batch for tensor in tensors_of(output)):
                    crc = zlib.crc32(repr((value.dtype, tuple(value.shape))).encode(), crc)
                    crc = zlib.crc32(value.read(), crc)
                facts = (batch.epoch, batch.position, batch.next_position, batch.sample_ids,
                        {name: list(map(tuple, crops)) for name, crops in batch.crops.items()})
                crc = zlib.crc32(repr(facts).encode(), crc)
    return f"{crc:08x} of {n_samples} samples"


def main():
    path, kinds, found = sys.argv[1], json.loads(sys.argv[2]), {}
    images = [name for name, kind in kinds.items() if kind == "image"]
    for field in images:
        for title, outputs in image_outputs(field).items():
            found[f"{field}: {title}"] = digest(path, outputs)
    others = [name for name in kinds if name not in images]
    found[f"{len(others)} fields by their kinds"] = digest(path, others)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
