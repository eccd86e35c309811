/* SPDX-License-Identifier: Apache-2.0 */
#include "census.h"

#include <stdio.h>

#include "json.h"
#include "unit.h"

struct census census_of(const struct pstk_field_stats *s)
{
    struct census c = {.n_planes = s->n_codec[PSTK_CODEC_PLANES],
                       .n_equivalent = s->n_equivalent,
                       .n_pixels = s->n_encoding[PSTK_ENCODING_PIXELS]};
    const uint64_t n_files = s->n_encoding[PSTK_ENCODING_JPEG] + s->n_encoding[PSTK_ENCODING_PNG];
    c.n_exact = c.n_planes > c.n_equivalent ? c.n_planes - c.n_equivalent : 0;
    c.n_kept = n_files > c.n_planes ? n_files - c.n_planes : 0;
    return c;
}

void census_put(const struct census *c, struct json_t *object)
{
    json_put_count(object, "planes", c->n_planes);
    json_put_count(object, "exact", c->n_exact);
    json_put_count(object, "equivalent", c->n_equivalent);
    json_put_count(object, "kept", c->n_kept);
    json_put_count(object, "pixels", c->n_pixels);
}

const char *census_text(const struct census *c, char text[CENSUS_SIZE])
{
    char planes[UNIT_SIZE], part[UNIT_SIZE];
    size_t n = 0;
    text[0] = 0;
    if (c->n_planes) {
        n += (size_t)snprintf(text, CENSUS_SIZE, "%s as planes (", unit_count(planes, c->n_planes));
        if (c->n_exact)
            n += (size_t)snprintf(text + n, CENSUS_SIZE - n, "%s given back byte for byte%s",
                                  c->n_equivalent ? unit_count(part, c->n_exact) : "all",
                                  c->n_equivalent ? ", " : "");
        if (c->n_equivalent)
            n +=
                (size_t)snprintf(text + n, CENSUS_SIZE - n, "%s as an equivalent JPEG",
                                 c->n_exact ? unit_count(part, c->n_equivalent) : "all given back");
        n += (size_t)snprintf(text + n, CENSUS_SIZE - n, ")");
    }
    if (c->n_kept)
        n += (size_t)snprintf(text + n, CENSUS_SIZE - n, "%s%s as %s came", n ? ", " : "",
                              unit_count(part, c->n_kept), c->n_kept == 1 ? "it" : "they");
    if (c->n_pixels)
        snprintf(text + n, CENSUS_SIZE - n, "%s%s as pixels", n ? ", " : "",
                 unit_count(part, c->n_pixels));
    return text;
}
