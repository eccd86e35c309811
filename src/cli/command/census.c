/* SPDX-License-Identifier: Apache-2.0 */
#include "command/census.h"

#include <stdio.h>

#include "ui/json.h"
#include "ui/unit.h"

struct census census_of(const struct pstk_field_stats *stats)
{
    struct census census = {.n_planes = stats->n_codec[PSTK_CODEC_PLANES],
                            .n_equivalent = stats->n_equivalent,
                            .n_damaged = stats->n_damaged,
                            .n_pixels = stats->n_encoding[PSTK_ENCODING_PIXELS]};
    const uint64_t n_jpeg = stats->n_encoding[PSTK_ENCODING_JPEG];
    census.n_exact =
        census.n_planes > census.n_equivalent ? census.n_planes - census.n_equivalent : 0;
    census.n_passthrough_jpeg = n_jpeg > census.n_planes ? n_jpeg - census.n_planes : 0;
    census.n_passthrough_png = stats->n_encoding[PSTK_ENCODING_PNG];
    return census;
}

void census_put(const struct census *census, struct json_t *object)
{
    json_put_count(object, "planes", census->n_planes);
    json_put_count(object, "exact", census->n_exact);
    json_put_count(object, "equivalent", census->n_equivalent);
    json_put_count(object, "passthrough", census->n_passthrough_jpeg + census->n_passthrough_png);
    json_put_count(object, "passthrough_jpeg", census->n_passthrough_jpeg);
    json_put_count(object, "passthrough_png", census->n_passthrough_png);
    json_put_count(object, "pixels", census->n_pixels);
    json_put_count(object, "damaged", census->n_damaged);
}

/* Write "3 as files (1 JPEG, 2 PNG; 1 damaged)". Returns its length. */
static size_t passthrough_text(const struct census *census, char *text, size_t size)
{
    const uint64_t n = census->n_passthrough_jpeg + census->n_passthrough_png;
    char all[UNIT_SIZE], jpeg[UNIT_SIZE], png[UNIT_SIZE], damaged[UNIT_SIZE];
    size_t at =
        (size_t)snprintf(text, size, "%s as %s (", unit_count(all, n), n == 1 ? "a file" : "files");
    if (census->n_passthrough_jpeg)
        at += (size_t)snprintf(text + at, size - at, "%s JPEG%s",
                               unit_count(jpeg, census->n_passthrough_jpeg),
                               census->n_passthrough_png ? ", " : "");
    if (census->n_passthrough_png)
        at += (size_t)snprintf(text + at, size - at, "%s PNG",
                               unit_count(png, census->n_passthrough_png));
    if (census->n_damaged)
        at += (size_t)snprintf(text + at, size - at, "; %s damaged",
                               unit_count(damaged, census->n_damaged));
    return at + (size_t)snprintf(text + at, size - at, ")");
}

const char *census_text(const struct census *census, char text[CENSUS_SIZE])
{
    char planes[UNIT_SIZE], part[UNIT_SIZE];
    size_t n = 0;
    text[0] = 0;
    if (census->n_planes) {
        n += (size_t)snprintf(text, CENSUS_SIZE, "%s as planes (",
                              unit_count(planes, census->n_planes));
        if (census->n_exact)
            n += (size_t)snprintf(text + n, CENSUS_SIZE - n, "%s given back byte for byte%s",
                                  census->n_equivalent ? unit_count(part, census->n_exact) : "all",
                                  census->n_equivalent ? ", " : "");
        if (census->n_equivalent)
            n += (size_t)snprintf(text + n, CENSUS_SIZE - n, "%s as an equivalent JPEG",
                                  census->n_exact ? unit_count(part, census->n_equivalent)
                                                  : "all given back");
        n += (size_t)snprintf(text + n, CENSUS_SIZE - n, ")");
    }
    if (census->n_passthrough_jpeg + census->n_passthrough_png) {
        n += (size_t)snprintf(text + n, CENSUS_SIZE - n, "%s", n ? ", " : "");
        n += passthrough_text(census, text + n, CENSUS_SIZE - n);
    }
    if (census->n_pixels)
        snprintf(text + n, CENSUS_SIZE - n, "%s%s as pixels", n ? ", " : "",
                 unit_count(part, census->n_pixels));
    return text;
}
