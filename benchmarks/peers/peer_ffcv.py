# SPDX-License-Identifier: Apache-2.0
"""FFCV: images in a file of its own (as they are, shrunk, or as pixels), decoded whole."""
import io

import measure
import numpy
from ffcv.fields import RGBImageField
from ffcv.fields.rgb_image import IMAGE_MODES, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip
from ffcv.writer import DatasetWriter
from PIL import Image

EPOCH = 32768  # samples at least: its threads start anew with each epoch


class KeptJpegField(RGBImageField):
    """Stores the file's own bytes, where RGBImageField would encode the pixels once more."""

    def encode(self, destination, image, malloc):
        data, (width, height) = image
        destination["mode"] = IMAGE_MODES["jpg"]
        destination["width"], destination["height"] = width, height
        destination["data_ptr"], storage = malloc(len(data))
        storage[:] = numpy.frombuffer(data, numpy.uint8)


class Images:
    """The samples that DatasetWriter reads: kept bytes, or pixels whose shorter side may be set."""

    def __init__(self, files, keep, shorter_side):
        self.files, self.keep, self.shorter_side = files, keep, shorter_side

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with open(self.files[index], "rb") as file:
            data = file.read()
        image = Image.open(io.BytesIO(data))
        if self.keep:
            return ((data, image.size),)
        image = image.convert("RGB")
        if self.shorter_side and min(image.size) > self.shorter_side:
            scale = self.shorter_side / min(image.size)
            image = image.resize([round(side * scale) for side in image.size], Image.BILINEAR)
        return (numpy.array(image),)


def path_of(task):
    return str(task.folder / "images.beton")


def prepare(task):
    task.fresh_folder()
    keep = task.options["write"] == "keep"
    field = KeptJpegField() if keep else RGBImageField(
        write_mode=task.options["write"], max_resolution=task.options.get("longer_side"),
        jpeg_quality=task.options.get("quality", 90))
    images = Images(task.files, keep, task.options.get("shorter_side"))
    writer = DatasetWriter(path_of(task), {"image": field}, num_workers=task.n_cores)
    writer.from_indexed_dataset(images)
    return measure.folder_size(task.folder)


def batches(task):
    decoder = RandomResizedCropRGBImageDecoder((measure.SIDE, measure.SIDE),
                                               measure.CROP_SCALE, measure.CROP_RATIO)
    n = len(task.files)
    loader = Loader(path_of(task), batch_size=task.batch_size, num_workers=task.n_cores,
                    os_cache=True, order=OrderOption.RANDOM, drop_last=True, seed=0,
                    indices=numpy.tile(numpy.arange(n, dtype="uint64"), -(-EPOCH // n)),
                    pipelines={"image": [decoder, RandomHorizontalFlip()]},
                    custom_fields={"image": RGBImageField},
                    batches_ahead=task.options["prefetch"])
    while True:
        for (images,) in loader:
            yield images


if __name__ == "__main__":
    measure.main(batches, prepare, packages=["ffcv", "torch", "opencv-python-headless"])
