/* SPDX-License-Identifier: Apache-2.0 */
/* formats: counts of files by image format, for the formats that pack does not take. */
#ifndef PSTK_CLI_FORMATS_H
#define PSTK_CLI_FORMATS_H

#include <stdint.h>

#define FORMATS_MAX 32 /* names; more than pstk_image_format has */
#define FORMATS_TEXT 512

/* Zeroed at the start. */
struct formats {
    struct {
        const char *name; /* static storage */
        uint64_t n;
    } of[FORMATS_MAX]; /* in the order of their first files */
    uint32_t n_names;
    uint64_t n; /* files */
};

/* Count n files; `name` comes from pstk_image_format. */
void formats_add(struct formats *formats, const char *name, uint64_t n);
/* Write "3 WebP, 1 BMP". Returns `text`. */
const char *formats_text(const struct formats *formats, char text[FORMATS_TEXT]);

#endif
