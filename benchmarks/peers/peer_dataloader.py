# SPDX-License-Identifier: Apache-2.0
"""PyTorch's DataLoader: over images with Pillow or torchvision, over records in a memory map."""
import functools

import measure
import numpy
import torch
from torch.utils.data import DataLoader, Dataset


class Shuffled:
    """Batches of indices in a new random order each time round, without end."""

    def __init__(self, n, batch_size):
        self.n, self.batch_size = n, batch_size

    def __iter__(self):
        rest = torch.empty(0, dtype=torch.int64)
        while True:
            while len(rest) < self.batch_size:
                rest = torch.cat([rest, torch.randperm(self.n)])
            yield rest[:self.batch_size].tolist()
            rest = rest[self.batch_size:]


class Images(Dataset):
    def __init__(self, files, decode):
        self.files, self.decode = files, decode

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.decode(self.files[index])


class Records(Dataset):
    """Whole batches at once (__getitems__), the quickest way that a DataLoader has."""

    def __init__(self, path):
        self.path, self.map = path, None

    def __getitems__(self, indices):
        if self.map is None:
            self.map = numpy.load(self.path, mmap_mode="r")
        return self.map[indices]


def decode_with_pillow():
    from PIL import Image
    from torchvision import transforms

    augment = transforms.Compose([transforms.RandomResizedCrop(measure.SIDE),
                                  transforms.RandomHorizontalFlip()])

    def decode(path):
        with Image.open(path) as image:
            return torch.from_numpy(numpy.array(augment(image.convert("RGB"))))

    return decode


def decode_with_torchvision():
    from torchvision import io
    from torchvision.transforms import v2

    augment = v2.Compose([v2.RandomResizedCrop(measure.SIDE, antialias=True),
                          v2.RandomHorizontalFlip()])

    def decode(path):
        image = io.decode_jpeg(io.read_file(path), mode=io.ImageReadMode.RGB)
        return augment(image).permute(1, 2, 0)

    return decode


DECODERS = {"pillow": decode_with_pillow, "torchvision": decode_with_torchvision}


def batches(task):
    if task.records:
        records = numpy.load(task.records, mmap_mode="r")
        data, n, collate = Records(task.records), len(records), torch.from_numpy
    else:
        data, n = Images(task.files, DECODERS[task.options["decode"]]()), len(task.files)
        collate = functools.partial(torch.stack, dim=0)
    return iter(DataLoader(data, batch_sampler=Shuffled(n, task.batch_size), collate_fn=collate,
                           num_workers=task.n_cores, prefetch_factor=task.options["prefetch"],
                           persistent_workers=True, multiprocessing_context="fork"))


if __name__ == "__main__":
    measure.main(batches, packages=["torch", "torchvision", "pillow"])
