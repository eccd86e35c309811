# SPDX-License-Identifier: Apache-2.0
"""Names of torchvision and of other loaders that the package lacks, and what to write instead: it tells
whoever asks for them."""
from __future__ import annotations

__all__ = ["ADVICE"]

_TO_TENSOR = ("batches are tensors already; what it does is said by penstock.image(field, [..., "
              "Normalize()], dtype='float32', layout='nchw'): Normalize divides by 255")
_ON_BATCHES = ("there is no such operation here: apply it to whole batches in the loop, on the GPU "
               "(torchvision.transforms.v2 takes batches), or store its result if it is not random")
_MIXED = "there is no such operation here: mix whole batches in the loop (torchvision.transforms.v2 has it)"
_LIST = "penstock.image(field, [op, op, ...]) takes the list itself"
_LOADER = "penstock.Loader is the whole loader; docs/coming-from.md has what became of its arguments"
_WRITER = "write data sets by penstock.pack(data, path) or penstock.Writer(path, {name: kind})"
_PACK = ("pack the files once, by the command `penstock pack FOLDER OUT` or by penstock.pack, and open "
         "penstock.Loader(OUT)")

ADVICE = {
    # torchvision
    **dict.fromkeys(("ToTensor", "PILToTensor", "ToImage", "ConvertImageDtype", "ToDtype", "ToTorchImage",
                     "ToPureTensor"), _TO_TENSOR),
    **dict.fromkeys(("Compose", "Sequential", "RandomApply", "RandomChoice", "RandomOrder"), _LIST),
    **dict.fromkeys(("RandomVerticalFlip", "RandomRotation", "RandomAffine", "RandomPerspective", "Pad",
                     "ColorJitter", "Grayscale", "RandomGrayscale", "GaussianBlur", "GaussianNoise",
                     "RandomErasing", "ElasticTransform", "RandomInvert", "RandomPosterize", "RandomSolarize",
                     "RandomAdjustSharpness", "RandomAutocontrast", "RandomEqualize", "AutoAugment",
                     "RandAugment", "TrivialAugmentWide", "AugMix", "FiveCrop", "TenCrop", "Lambda"),
                    _ON_BATCHES),
    **dict.fromkeys(("MixUp", "CutMix"), _MIXED),
    "RandomCrop": "RandomResizedCrop(size, scale=...) cuts at random, CenterCrop(size) the middle",
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
