/* SPDX-License-Identifier: Apache-2.0 */
/* planes/decode: the decoder of JPEGs stored as coefficient planes. It reads the stored bytes. */
#ifndef PSTK_PLANES_DECODE_H
#define PSTK_PLANES_DECODE_H

#include "image/decoder.h"

extern const struct pstk__image_decoder pstk__image_planes;
#endif
