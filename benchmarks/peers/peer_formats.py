# SPDX-License-Identifier: Apache-2.0
"""Images of a format through its own reader and PyTorch's DataLoader: ImageFolder, WebDataset, MosaicML Streaming.

options: format (folder, webdataset, mds), path, decode (pillow, torchvision), workers. What they read ahead is their
default. Rows are uint8 in the layout that costs least: HWC of Pillow, CHW of torchvision.io.
"""
import functools
import io
import json
import os
import pathlib
import warnings

import measure
import numpy
import torch
from PIL import Image
from peer_dataloader import Shuffled
from torchvision import datasets, transforms
from torchvision import io as vision_io
from torchvision.transforms import v2

SHUFFLE = 1000  # samples of WebDataset's buffer
warnings.filterwarnings("ignore", message="The given buffer is not writable")


def pillow():
    """From a file-like object, or from an image that the format has opened."""
    augment = transforms.Compose([transforms.RandomResizedCrop(measure.SIDE), transforms.RandomHorizontalFlip()])

    def decode(given):
        with given if isinstance(given, Image.Image) else Image.open(given) as image:
            return torch.from_numpy(numpy.array(augment(image.convert("RGB"))))

    return decode


def torchvision():
    """From the bytes of a file, as a tensor."""
    augment = v2.Compose([v2.RandomResizedCrop(measure.SIDE, antialias=True), v2.RandomHorizontalFlip()])

    def decode(data):
        return augment(vision_io.decode_jpeg(data, mode=vision_io.ImageReadMode.RGB))

    return decode


def as_tensor(data):
    """Return a tensor on the same bytes, not copied; nothing writes to them, whatever PyTorch fears."""
    return torch.frombuffer(data, dtype=torch.uint8)


def collate(samples):
    return torch.stack([image for image, _ in samples]), torch.tensor([label for _, label in samples])


def folder(task, is_pillow):
    if is_pillow:
        data = datasets.ImageFolder(task.options["path"], transform=pillow(), loader=functools.partial(open, mode="rb"))
    else:
        data = datasets.ImageFolder(task.options["path"], transform=torchvision(), loader=vision_io.read_file)
    return torch.utils.data.DataLoader(data, batch_sampler=Shuffled(len(data), task.batch_size), collate_fn=collate,
                                       num_workers=task.options["workers"], persistent_workers=True)


def webdataset(task, is_pillow):
    import webdataset as wds

    decode = pillow() if is_pillow else torchvision()
    urls = sorted(str(path) for path in pathlib.Path(task.options["path"]).glob("*.tar"))
    data = (wds.WebDataset(urls, resampled=True, shardshuffle=False).shuffle(SHUFFLE, initial=SHUFFLE // 4)
            .to_tuple("jpg", "cls")
            .map_tuple(lambda jpg: decode(io.BytesIO(jpg) if is_pillow else as_tensor(jpg)), int)
            .batched(task.batch_size, collation_fn=collate, partial=False))
    return wds.WebLoader(data, batch_size=None, num_workers=task.options["workers"], persistent_workers=True)


def mds(task, is_pillow):
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()  # memory that an interrupted run left
    decode = pillow() if is_pillow else torchvision()

    class Images(StreamingDataset):
        def __getitem__(self, at):
            sample = super().__getitem__(at)
            return decode(sample["jpg"] if is_pillow else as_tensor(sample["jpg"])), int(sample["cls"])

    data = Images(local=task.options["path"] if is_pillow else str(as_bytes(task)), shuffle=True,
                  batch_size=task.batch_size, num_canonical_nodes=1)
    return torch.utils.data.DataLoader(data, batch_size=task.batch_size, num_workers=task.options["workers"],
                                       collate_fn=collate, drop_last=True, persistent_workers=True)


def as_bytes(task):
    """Make a copy of the index whose images the reader gives as bytes, not as images of Pillow."""
    given, made = pathlib.Path(task.options["path"]), task.fresh_folder()
    index = json.loads((given / "index.json").read_text())
    for shard in index["shards"]:
        shard["column_encodings"] = ["bytes" if one == "jpeg" else one for one in shard["column_encodings"]]
        os.link(given / shard["raw_data"]["basename"], made / shard["raw_data"]["basename"])
    (made / "index.json").write_text(json.dumps(index))
    return made


READERS = {"folder": folder, "webdataset": webdataset, "mds": mds}


def batches(task):
    loader = READERS[task.options["format"]](task, task.options["decode"] == "pillow")
    while True:
        for images, _ in loader:
            yield images


if __name__ == "__main__":
    measure.main(batches, packages=["torch", "torchvision", "pillow", "webdataset", "mosaicml-streaming"])
