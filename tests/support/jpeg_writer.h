/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_writer: JPEG files of every kind, made by libjpeg, and libjpeg's own full decode of them,
 * for the tests of the decoders. The reference allocates as libjpeg likes and crops nothing.
 */
#ifndef PSTK_TEST_JPEG_WRITER_H
#define PSTK_TEST_JPEG_WRITER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

struct jpeg_spec {
    uint32_t width, height;
    int n_components; /* 1, 3 or 4 */
    int h, v;         /* sampling factors of the first component (and the fourth) */
    int h3;           /* horizontal factor of the third component, 0 = 1 */
    int progressive;  /* 1: standard script; 2: only the first scans, 3: only DC, without its last
                         bit, so that blocks get smoothed: jpeg_reference has other pixels then */
    int restart;      /* MCUs between restart markers, 0 none */
    int arithmetic;
    int interleaved; /* 0: one scan a component, 1: one scan */
    int rgb;         /* 1: RGB without transform, 4 components: CMYK instead of YCCK */
    int quality;
};

/* A deterministic sample: ramps, edges and noise, so that every coefficient is in use. */
static uint8_t jpeg_sample(uint32_t x, uint32_t y, uint32_t channel)
{
    uint32_t noise = (x * 2654435761u) ^ (y * 2246822519u) ^ (channel * 3266489917u);
    noise = (noise ^ noise >> 15) * 2246822519u;
    uint32_t smooth = x * (3 + channel) + y * (5 - channel) + ((x / 7 + y / 5) & 1) * 60;
    return (uint8_t)(smooth + (noise >> 27));
}

static void jpeg_set_scans(struct jpeg_compress_struct *c, const struct jpeg_spec *spec,
                           jpeg_scan_info *scans)
{
    if (spec->progressive == 1) {
        jpeg_simple_progression(c);
    } else if (spec->progressive == 2) { /* DC, then the first AC coefficients, coarsely */
        scans[0] = (jpeg_scan_info){.comps_in_scan = spec->n_components, .Al = 0};
        for (int i = 0; i < spec->n_components; i++)
            scans[0].component_index[i] = i;
        scans[1] = (jpeg_scan_info){.comps_in_scan = 1, .Ss = 1, .Se = 2, .Al = 1};
        c->scan_info = scans;
        c->num_scans = 2;
    } else if (spec->progressive == 3) {
        scans[0] = (jpeg_scan_info){.comps_in_scan = spec->n_components, .Al = 1};
        for (int i = 0; i < spec->n_components; i++)
            scans[0].component_index[i] = i;
        c->scan_info = scans;
        c->num_scans = 1;
    } else if (!spec->interleaved && spec->n_components > 1) {
        for (int i = 0; i < spec->n_components; i++) {
            scans[i] = (jpeg_scan_info){.comps_in_scan = 1, .Ss = 0, .Se = 63};
            scans[i].component_index[0] = i;
        }
        c->scan_info = scans;
        c->num_scans = spec->n_components;
    }
}

/* Return the file, to be freed, and its size. */
static uint8_t *jpeg_write(const struct jpeg_spec *spec, size_t *size)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    jpeg_scan_info scans[4];
    unsigned char *data = NULL;
    unsigned long n = 0;

    memset(&c, 0, sizeof c);
    memset(scans, 0, sizeof scans);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &n);
    c.image_width = spec->width;
    c.image_height = spec->height;
    c.input_components = spec->n_components;
    c.in_color_space = spec->n_components == 1   ? JCS_GRAYSCALE
                       : spec->n_components == 3 ? JCS_RGB
                                                 : JCS_CMYK;
    jpeg_set_defaults(&c);
    if (spec->n_components == 3)
        jpeg_set_colorspace(&c, spec->rgb ? JCS_RGB : JCS_YCbCr);
    if (spec->n_components == 4)
        jpeg_set_colorspace(&c, spec->rgb ? JCS_CMYK : JCS_YCCK);
    jpeg_set_quality(&c, spec->quality ? spec->quality : 90, TRUE);
    for (int i = 0; i < spec->n_components; i++) {
        c.comp_info[i].h_samp_factor = i == 0 || i == 3 ? spec->h : 1;
        c.comp_info[i].v_samp_factor = i == 0 || i == 3 ? spec->v : 1;
    }
    if (spec->h3)
        c.comp_info[2].h_samp_factor = spec->h3;
    c.restart_interval = (unsigned)spec->restart;
    c.arith_code = spec->arithmetic;
    jpeg_set_scans(&c, spec, scans);
    jpeg_start_compress(&c, TRUE);
    uint8_t *row = malloc((size_t)spec->width * 4);
    for (uint32_t y = 0; row && y < spec->height; y++) {
        for (uint32_t x = 0; x < spec->width; x++)
            for (int i = 0; i < spec->n_components; i++)
                row[x * (uint32_t)spec->n_components + (uint32_t)i] =
                    jpeg_sample(x, y, (uint32_t)i);
        jpeg_write_scanlines(&c, &row, 1);
    }
    free(row);
    if (spec->progressive >= 2)
        c.err->num_warnings = 0;
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    *size = n;
    return data;
}

/* libjpeg's full decode as RGB, CMYK by Pillow's formula. Blocks are smoothed as the linked release
 * does that. Returns the pixels, to be freed. */
__attribute__((unused)) static uint8_t *jpeg_reference(const uint8_t *data, size_t size,
                                                       uint32_t *width, uint32_t *height)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;

    memset(&c, 0, sizeof c);
    c.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, data, size);
    jpeg_read_header(&c, TRUE);
    c.out_color_space = c.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&c);
    *width = c.output_width;
    *height = c.output_height;
    uint8_t *rgb = malloc((size_t)*width * *height * 3);
    uint8_t *row = malloc((size_t)*width * 4);
    while (rgb && row && c.output_scanline < c.output_height) {
        uint8_t *out = rgb + (size_t)c.output_scanline * *width * 3;
        jpeg_read_scanlines(&c, &row, 1);
        if (c.num_components != 4)
            memcpy(out, row, (size_t)*width * 3);
        for (uint32_t x = 0; c.num_components == 4 && x < *width * 3; x++) {
            int black = row[x / 3 * 4 + 3], color = row[x / 3 * 4 + x % 3];
            out[x] = (uint8_t)(black - ((255 - color) * black * 2 + 255) / 510);
        }
    }
    free(row);
    jpeg_finish_decompress(&c);
    jpeg_destroy_decompress(&c);
    return rgb;
}

#endif
