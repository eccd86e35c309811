# SPDX-License-Identifier: Apache-2.0
"""simplejpeg: libjpeg-turbo decodes the whole image, Pillow resizes the crop, in a thread pool."""
import collections
import concurrent.futures
import random

import measure
import numpy
import simplejpeg
from PIL import Image

SIZE = (measure.SIDE, measure.SIDE)


def decode(path, row):
    with open(path, "rb") as file:
        pixels = simplejpeg.decode_jpeg(file.read())
    height, width, _ = pixels.shape
    left, top, width, height = measure.crop_box(width, height)
    crop = Image.fromarray(numpy.ascontiguousarray(pixels[top:top + height, left:left + width]))
    resized = numpy.asarray(crop.resize(SIZE, Image.BILINEAR))
    row[:] = resized[:, ::-1] if random.random() < 0.5 else resized


def batches(task):
    """Yield batches: all threads decode a batch's images, which are done when the batch is taken."""
    files = measure.files_forever(task)
    ahead = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(task.n_cores) as pool:
        while True:
            while len(ahead) <= task.options["prefetch"]:
                batch = numpy.empty((task.batch_size, *SIZE, 3), numpy.uint8)
                ahead.append((batch, [pool.submit(decode, next(files), row) for row in batch]))
            batch, images = ahead.popleft()
            for image in images:
                image.result()
            yield batch


if __name__ == "__main__":
    measure.main(batches, packages=["simplejpeg", "numpy", "pillow"])
