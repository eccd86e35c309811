/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/quality: the quantisation tables of ITU T.81, K.1 and K.2, scaled by a quality of 1 to 100
 * as libjpeg's jpeg_set_quality does. Pure. */
#ifndef PSTK_JPEG_QUALITY_H
#define PSTK_JPEG_QUALITY_H

#include <stdint.h>

#define PSTK__JPEG_MAX_QUALITY 100u

/* Return entry i, in natural order, of the table of luma (0) or of chroma (1): 1 to 255. */
uint16_t pstk__jpeg_quality_entry(uint32_t is_chroma, uint32_t i, uint32_t quality);

#endif
