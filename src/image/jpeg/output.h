/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/output: converts libjpeg's rows to Pillow's rows of 1, 3 or 4 channels. */
#ifndef PSTK_JPEG_OUTPUT_H
#define PSTK_JPEG_OUTPUT_H

#include <stdint.h>
#include <stdio.h>
#include <jpeglib.h>

/* Choose libjpeg's output for a sink of 1, 3 or 4 channels: CMYK for CMYK and YCCK, gray for a gray
 * file if the sink takes gray, otherwise RGB or RGBA; accurate DCT, fancy upsampling. Call it
 * between jpeg_read_header and jpeg_start_decompress. */
void pstk__jpeg_choose_output(j_decompress_ptr cinfo, uint32_t channels);
/* Convert pixels from that output to `channels` channels, in place. */
void pstk__jpeg_convert_row(j_decompress_ptr cinfo, uint8_t *row, uint32_t n_pixels,
                            uint32_t channels);

#endif
