/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_coco: any bytes as a COCO file. A file that is read gives records whose fields belong
 * together, as the writer checks them.
 */
#include <penstock/annotations.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/value.h"

#define MOST 32 /* fields */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The values of an image are what their fields say, except for the size of the image. */
static void check_values(const struct pstk_field *fields, uint32_t n,
                         const struct pstk_value *values)
{
    uint64_t rows[MOST];
    for (uint32_t f = 0; f < n; f++) {
        char text[160];
        if (pstk__value_check(&fields[f], values[f].data, values[f].size, text))
            abort();
        rows[f] = 0;
        if (fields[f].kind == PSTK_FIELD_UTF8_LIST || fields[f].n_dims == 0)
            continue;
        uint64_t row = pstk_dtype_size(fields[f].dtype);
        for (uint32_t d = 1; d < fields[f].n_dims; d++)
            row *= fields[f].shape[d];
        rows[f] = values[f].size / row;
        for (uint32_t e = 0; e < f; e++)
            if (fields[f].rows[0] && strcmp(fields[e].rows, fields[f].rows) == 0 &&
                rows[e] != rows[f])
                abort();
    }
    for (uint32_t f = 0; f < n; f++) {
        const uint32_t *lengths = values[f].data;
        uint64_t sum = 0;
        for (uint64_t i = 0; fields[f].splits[0] && i < rows[f]; i++)
            sum += lengths[i];
        for (uint32_t e = 0; e < n; e++)
            if (fields[f].splits[0] && strcmp(fields[e].rows, fields[f].splits) == 0 &&
                rows[e] != sum)
                abort();
    }
}

/* Masks that are pixels are as large as they say. */
static void check_pixels(const struct pstk_annotations *a, uint32_t n,
                         const struct pstk_value *values)
{
    struct pstk_pixels pixels = {.size = sizeof pixels};
    for (uint32_t f = 0; f < n; f++)
        if (pstk_annotations_get_pixels(a, f, &pixels) == 1 &&
            values[f].size != (uint64_t)pixels.height * pixels.width * (pixels.bit_depth / 8))
            abort();
}

static void read_all(struct pstk_annotations *a, int is_panoptic)
{
    struct pstk_annotations_info info = {.size = sizeof info};
    struct pstk_field fields[MOST];
    struct pstk_value values[MOST];
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pstk_annotations_get_info(a, &info) < 0 || info.n_fields > MOST || info.n_images == 0)
        abort();
    for (uint32_t f = 0; f < info.n_fields; f++)
        if (pstk_annotations_get_field(a, f, &fields[f]) < 0)
            abort();
    for (uint64_t i = 0; i < info.n_images; i++) {
        if (!pstk_annotations_file(a, i) || pstk_annotations_file(a, i)[0] == '/')
            abort();
        const int r = pstk_annotations_read(a, i, values, info.n_fields, &err);
        if (r == 0) {
            check_values(fields, info.n_fields, values);
            check_pixels(a, info.n_fields, values);
        } else if ((r != PSTK_EBADMSG && !is_panoptic) || err.message[0] == 0)
            abort(); /* runs of another size than the image, or what the path of a mask is of */
    }
    for (uint64_t c = 0; c < info.n_names; c++)
        if (!pstk_annotations_name(a, c))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pstk_annotations_settings s;
    struct pstk_annotations *a;
    struct pstk_error err;
    char path[64];
    const int fd = memfd_create("coco", MFD_CLOEXEC);
    if (fd < 0 || size > 1 << 20 || write(fd, data, size) != (ssize_t)size)
        return close(fd), 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    pstk_error_init(&err, sizeof err);
    pstk_annotations_settings_init(&s, sizeof s);
    s.format = PSTK_ANNOTATIONS_COCO;
    s.path = path;
    for (int i = 0; i < 4; i++) {
        s.skip_empty = i & 1;
        s.panoptic_masks = i & 2 ? "/proc/self/fdinfo" : NULL; /* has no PNG file */
        const int r = pstk_annotations_open(&a, &s, &err);
        if (r == 0)
            read_all(a, s.panoptic_masks != NULL);
        else if (a || r != err.code || err.message[0] == 0)
            abort();
        pstk_annotations_close(&a);
    }
    close(fd);
    return 0;
}
