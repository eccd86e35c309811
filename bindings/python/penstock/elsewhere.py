# SPDX-License-Identifier: Apache-2.0
"""Names of torchvision and of other loaders that the package lacks, and what to write instead. Whoever asks
for one of them reads it in the error."""
from __future__ import annotations

__all__ = ["ADVICE"]

# Code in backticks is run by the tests: `t` is torchvision.transforms.v2's operation of that name, `images`
# and `labels` are a batch's tensors.
_TO_TENSOR = ("batches are tensors already; what it does is said by penstock.image(field, [..., "
              "Normalize()], layout='nchw'): Normalize divides by 255 and gives float32")
_NO_SUCH = "there is no such operation here: "
_EACH_ROW = "`torch.stack([t(image) for image in images])`"
_DRAWS = (_NO_SUCH + "apply torchvision.transforms.v2's to each image of a batch whose layout is 'nchw': "
          + _EACH_ROW + "; one call for the whole batch would make the same random choice for all its images; "
          "what changes colours clamps normalised images: leave Normalize out of the loader, and apply "
          "v2.Normalize last")
_WHOLE = (_NO_SUCH + "apply torchvision.transforms.v2's to a whole batch whose layout is 'nchw': `t(images)`")
_CUTMIX = (_NO_SUCH + "apply torchvision.transforms.v2's to a whole batch whose layout is 'nchw': "
           "`t(images, labels)`")
_MIXUP = _CUTMIX + "; it needs dtype='float32', as bytes cannot be mixed"
_LIST = "penstock.image(field, [op, op, ...]) takes the list itself"
_LOADER = "penstock.Loader is the whole loader; docs/coming-from.md has what became of its arguments"
_WRITER = "write data sets by penstock.pack(data, path) or penstock.Writer(path, {name: kind})"
_PACK = ("pack the files once, by the command `penstock pack FOLDER OUT` or by penstock.pack, and open "
         "penstock.Loader(OUT)")

ADVICE = {
    # torchvision
    **dict.fromkeys(("ToTensor", "PILToTensor", "ToImage", "ConvertImageDtype", "ToDtype", "ToTorchImage",
                     "ToPureTensor"), _TO_TENSOR),
    **dict.fromkeys(("Compose", "Sequential"), _LIST),
    **dict.fromkeys(("RandomApply", "RandomChoice", "RandomOrder", "RandomVerticalFlip", "RandomRotation",
                     "RandomAffine", "RandomPerspective", "ColorJitter", "RandomGrayscale", "GaussianBlur",
                     "RandomErasing", "ElasticTransform", "RandomInvert", "RandomPosterize", "RandomSolarize",
                     "RandomAdjustSharpness", "RandomAutocontrast", "RandomEqualize", "AutoAugment",
                     "RandAugment", "TrivialAugmentWide", "AugMix", "RandomPhotometricDistort",
                     "RandomChannelPermutation", "JPEG"), _DRAWS),
    # These draw nothing; GaussianNoise draws for every element.
    **dict.fromkeys(("Pad", "Grayscale", "FiveCrop", "TenCrop", "GaussianNoise"), _WHOLE),
    "Lambda": (_NO_SUCH + "call the function in the loop, with a whole batch, `t(images)`, or, where it makes "
               "random choices, with each image: " + _EACH_ROW),
    "CutMix": _CUTMIX,
    "MixUp": _MIXUP,
    "RandomCrop": _DRAWS + "; RandomResizedCrop(size, scale=...), which also resizes, is here",
    "RandomSizedCrop": "it is RandomResizedCrop",
    "Scale": "it is Resize",
    "InterpolationMode": "resizing is bilinear with antialiasing, as torchvision's of PIL images",
    # PyTorch
    **dict.fromkeys(("DataLoader", "StatefulDataLoader", "StreamingDataLoader"), _LOADER),
    **dict.fromkeys(("DistributedSampler", "RandomSampler", "SequentialSampler", "BatchSampler", "Sampler"),
                    "say penstock.Loader(..., shuffle=True or False, rank='auto')"),
    **dict.fromkeys(("IterableDataset", "ImageFolder", "StreamingDataset", "WebDataset"), _PACK),
    # FFCV, MosaicML Streaming, WebDataset
    "NormalizeImage": "it is Normalize",
    "RandomResizedCropRGBImageDecoder": "it is RandomResizedCrop; decoding goes without saying",
    "CenterCropRGBImageDecoder": "it is Resize and CenterCrop; decoding goes without saying",
    "ToDevice": "say penstock.Loader(..., device='cuda')",
    **dict.fromkeys(("DatasetWriter", "MDSWriter", "ShardWriter", "TarWriter"), _WRITER),
}
