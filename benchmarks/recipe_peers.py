# SPDX-License-Identifier: Apache-2.0
"""The peers of bench_recipes.py: whole recipes as other libraries run them on the CPU, from JPEG files in memory's page
cache to batches. PEERS[library][recipe](files, boxes, workers) returns a function that iterates over one epoch's
batches; len(batch) is its number of images. Images are float32, channels first, normalised."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, default_collate

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH = 50
CLASSES = 1000


class Files(Dataset):
    """decode(path), then transform(image), or transform(image, boxes) where there are boxes."""

    def __init__(self, files, decode, transform, boxes=None):
        self.files, self.decode, self.transform, self.boxes = files, decode, transform, boxes

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        image = self.decode(self.files[i])
        if self.boxes is None:
            return self.transform(image), i % CLASSES
        return self.transform(image, self.boxes[i])


def epochs(dataset, workers, collate=default_collate):
    """Return the function that iterates over an epoch of a DataLoader."""
    loader = DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, persistent_workers=True, collate_fn=collate)

    def run():
        for batch in loader:
            yield batch[0]
    return run


def first(batch):
    """Keep what has one row for each image."""
    return [row[0] for row in batch], [row[1] for row in batch]


# ---- decoders ----------------------------------------------------------------------------------------------


def pil(path):
    from PIL import Image
    with Image.open(path) as image:
        return image.convert("RGB")


def tensor(path):
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    return decode_jpeg(read_file(path), ImageReadMode.RGB)


def array(path):
    import cv2
    return cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)


# ---- resnet50-v2: torchvision's references ------------------------------------------------------------------


class Mix:
    """As references/classification: MixUp or CutMix of a batch, in the worker that collates it."""

    def __init__(self):
        from torchvision.transforms import v2
        self.mix = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=CLASSES), v2.CutMix(alpha=1.0, num_classes=CLASSES)])

    def __call__(self, batch):
        return self.mix(*default_collate(batch))


def resnet50_pil(files, boxes, workers):
    from torchvision import transforms as T
    bilinear = T.InterpolationMode.BILINEAR
    transform = T.Compose([T.RandomResizedCrop(176), T.RandomHorizontalFlip(), T.TrivialAugmentWide(interpolation=bilinear),
                           T.PILToTensor(), T.ConvertImageDtype(torch.float), T.Normalize(MEAN, STD), T.RandomErasing(0.1)])
    return epochs(Files(files, pil, transform), workers, Mix())


def resnet50_v2(files, boxes, workers):
    from torchvision.transforms import v2
    transform = v2.Compose([v2.RandomResizedCrop(176, antialias=True), v2.RandomHorizontalFlip(),
                            v2.TrivialAugmentWide(interpolation=v2.InterpolationMode.BILINEAR),
                            v2.ToDtype(torch.float, scale=True), v2.Normalize(MEAN, STD), v2.RandomErasing(0.1)])
    return epochs(Files(files, tensor, transform), workers, Mix())


# ---- DINO's ten views ---------------------------------------------------------------------------------------


class Views:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        return [transform(image) for transform in self.transforms]


def collate_views(batch):
    views = default_collate([views for views, _ in batch])
    return views[0], views


def dino_of(T, last):
    """Return the views by a module that has torchvision's names. last: from pixels to normalised floats."""
    bicubic = T.InterpolationMode.BICUBIC

    def view(size, scale, *more):
        return T.Compose([T.RandomResizedCrop(size, scale, interpolation=bicubic), T.RandomHorizontalFlip(),
                          T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), T.RandomGrayscale(0.2), *more, *last])

    def blur(p):
        return T.RandomApply([T.GaussianBlur(9, (0.1, 2.0))], p)
    return Views([view(224, (0.32, 1.0)), view(224, (0.32, 1.0), blur(0.9), T.RandomSolarize(128, 0.2)),
                  *[view(96, (0.05, 0.32), blur(0.5)) for _ in range(8)]])


def dino_pil(files, boxes, workers):
    from torchvision import transforms as T
    views = dino_of(T, [T.ToTensor(), T.Normalize(MEAN, STD)])
    return epochs(Files(files, pil, views), workers, collate_views)


def dino_v2(files, boxes, workers):
    from torchvision.transforms import v2
    views = dino_of(v2, [v2.ToDtype(torch.float, scale=True), v2.Normalize(MEAN, STD)])
    return epochs(Files(files, tensor, views), workers, collate_views)


class Albumentations:
    """One view by albumentations, which takes and gives arrays."""

    def __init__(self, transform):
        self.transform = transform

    def __call__(self, image):
        return self.transform(image=image)["image"]


def dino_albumentations(files, boxes, workers):
    import albumentations as A
    import cv2
    from albumentations.pytorch import ToTensorV2

    def view(size, scale, *more):
        return Albumentations(A.Compose([
            A.RandomResizedCrop((size, size), scale, interpolation=cv2.INTER_CUBIC), A.HorizontalFlip(p=0.5),
            A.ColorJitter(0.4, 0.4, 0.2, 0.1, p=0.8), A.ToGray(p=0.2), *more, A.Normalize(MEAN, STD), ToTensorV2()]))

    def blur(p):
        return A.GaussianBlur(blur_limit=(9, 9), sigma_limit=(0.1, 2.0), p=p)
    views = Views([view(224, (0.32, 1.0)), view(224, (0.32, 1.0), blur(0.9), A.Solarize(p=0.2)),
                   *[view(96, (0.05, 0.32), blur(0.5)) for _ in range(8)]])
    cv2.setNumThreads(1)
    return epochs(Files(files, array, views), workers, collate_views)


# ---- timm ---------------------------------------------------------------------------------------------------


def timm_rand(files, boxes, workers):
    from timm.data import create_transform
    transform = create_transform(224, is_training=True, interpolation="random", auto_augment="rand-m9-mstd0.5-inc1",
                                 re_prob=0.25, re_mode="pixel")
    return epochs(Files(files, pil, transform), workers)


# ---- SSD ----------------------------------------------------------------------------------------------------


class Detection:
    """torchvision's references/detection, "ssd", and the model's resize to 300 x 300."""

    def __init__(self, last):
        from torchvision.transforms import v2
        self.transform = v2.Compose([
            v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=(123, 117, 104)), v2.RandomIoUCrop(),
            v2.RandomHorizontalFlip(), v2.SanitizeBoundingBoxes(), v2.Resize((300, 300), antialias=True), *last,
            v2.ToDtype(torch.float, scale=True), v2.Normalize(MEAN, STD)])

    def __call__(self, image, boxes):
        from torchvision import tv_tensors
        size = image.size[::-1] if hasattr(image, "getbands") else image.shape[-2:]
        if not hasattr(image, "getbands"):
            image = tv_tensors.Image(image)
        target = {"boxes": tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=tuple(size)),
                  "labels": torch.zeros(len(boxes), dtype=torch.int64)}
        return self.transform(image, target)


def ssd_pil(files, boxes, workers):
    from torchvision.transforms import v2
    return epochs(Files(files, pil, Detection([v2.ToImage()]), boxes), workers, first)


def ssd_v2(files, boxes, workers):
    return epochs(Files(files, tensor, Detection([]), boxes), workers, first)


# ---- DALI ---------------------------------------------------------------------------------------------------


def resnet50_dali(files, boxes, workers):
    """TrivialAugmentWide and erasing; without MixUp, which DALI does not have."""
    from nvidia.dali import fn, pipeline_def, types
    from nvidia.dali.auto_aug import trivial_augment

    @pipeline_def(enable_conditionals=True)
    def images():
        encoded, _ = fn.readers.file(files=files, random_shuffle=True, initial_fill=len(files), name="reader")
        rows = fn.decoders.image_random_crop(encoded, device="cpu", output_type=types.RGB,
                                             random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3])
        rows = fn.resize(rows, size=[176, 176], antialias=True)
        rows = fn.flip(rows, horizontal=fn.random.coin_flip())
        rows = trivial_augment.trivial_augment_wide(rows, shape=[176, 176])
        return fn.crop_mirror_normalize(rows, dtype=types.FLOAT, output_layout="CHW",
                                        mean=[255 * value for value in MEAN], std=[255 * value for value in STD])
    return dali_epochs(images, len(files), workers)


def dino_dali(files, boxes, workers):
    from nvidia.dali import fn, pipeline_def, types

    def view(rows, size, area, blur, solarize=False):
        rows = fn.random_resized_crop(rows, size=[size, size], random_area=area, interp_type=types.INTERP_CUBIC,
                                      antialias=True)
        rows = fn.flip(rows, horizontal=fn.random.coin_flip())
        jitter = fn.random.coin_flip(probability=0.8)
        rows = fn.color_twist(rows, brightness=1 + jitter * fn.random.uniform(range=[-0.4, 0.4]),
                              contrast=1 + jitter * fn.random.uniform(range=[-0.4, 0.4]),
                              saturation=1 + jitter * fn.random.uniform(range=[-0.2, 0.2]),
                              hue=jitter * fn.random.uniform(range=[-36, 36]))
        rows = fn.saturation(rows, saturation=1.0 - fn.random.coin_flip(probability=0.2))
        if blur:
            if fn.random.coin_flip(probability=blur):
                rows = fn.gaussian_blur(rows, window_size=9, sigma=fn.random.uniform(range=[0.1, 2.0]))
            else:
                rows = rows
        if solarize:
            flags = fn.random.coin_flip(probability=0.2)
            rows = fn.cast_like(rows + flags * (rows >= 128) * (255 - 2 * rows), rows)
        return fn.crop_mirror_normalize(rows, dtype=types.FLOAT, output_layout="CHW",
                                        mean=[255 * value for value in MEAN], std=[255 * value for value in STD])

    @pipeline_def(enable_conditionals=True)
    def images():
        encoded, _ = fn.readers.file(files=files, random_shuffle=True, initial_fill=len(files), name="reader")
        rows = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)
        return (view(rows, 224, [0.32, 1.0], 0), view(rows, 224, [0.32, 1.0], 0.9, True),
                *[view(rows, 96, [0.05, 0.32], 0.5) for _ in range(8)])
    return dali_epochs(images, len(files), workers)


def dali_epochs(pipeline, n_files, workers):
    pipe = pipeline(batch_size=BATCH, num_threads=workers, device_id=None, seed=0, prefetch_queue_depth=2)
    pipe.build()

    def run():
        for _ in range(n_files // BATCH):
            yield np.asarray(pipe.run()[0].as_tensor())
    return run


PEERS = {
    "torchvision PIL": {"resnet50-v2": resnet50_pil, "dino": dino_pil, "ssd": ssd_pil},
    "torchvision v2": {"resnet50-v2": resnet50_v2, "dino": dino_v2, "ssd": ssd_v2},
    "albumentations": {"dino": dino_albumentations},
    "timm": {"timm-rand-m9": timm_rand},
    "DALI": {"resnet50-v2": resnet50_dali, "dino": dino_dali},
}
