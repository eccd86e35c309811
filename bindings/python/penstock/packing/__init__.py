# SPDX-License-Identifier: Apache-2.0
"""A data set being made. `writer` writes records, whose fields `schema` describes and whose values `values`
encodes; `pack` writes every sample of a source, which `importers` opens and `samples` makes records of, with the class
numbers of `classes`; `folder` packs a folder of images."""
