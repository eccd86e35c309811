# SPDX-License-Identifier: Apache-2.0
"""Make a data set. `writer` writes records; `schema` describes their fields, and `values` encodes their values. `pack`
writes every sample of a source: `importers` opens the source, `samples` makes records of its samples, and `classes`
gives class names their numbers. `folder` packs a folder of images."""
