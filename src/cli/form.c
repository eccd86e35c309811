/* SPDX-License-Identifier: Apache-2.0 */
#include "form.h"

#include <stdio.h>
#include <string.h>

#include "message.h"

#define MAX_SIDE 65535       /* pixels: what a record holds */
#define QUALITY_OF_SHRUNK 90 /* where --max-side stands alone */

static const struct choice jpegs[] = {
    {"planes", FORM_PLANES}, {"exact", FORM_EXACT}, {"keep", FORM_KEEP}, {NULL, 0}};

static int parse_compress(struct form *f, const char *text)
{
    uint64_t level = 0;
    if (strcmp(text, "none") == 0) {
        f->codec = PSTK_CODEC_NONE;
        return 0;
    }
    if (strncmp(text, "zstd", 4) != 0 || (text[4] && text[4] != ':')) {
        message_say("--compress is zstd, zstd:LEVEL or none, not '%s'", text);
        return -1;
    }
    if (text[4] == ':' &&
        option_count("the level of --compress", text + 5, (struct range){1, 22}, &level) < 0)
        return -1;
    f->codec = PSTK_CODEC_ZSTD;
    f->level = (uint32_t)level;
    return 0;
}

int form_set(struct form *f, int code, const char *value)
{
    const struct range sides = {1, MAX_SIDE};
    switch (code) {
    case OPT_JPEG:
        f->has_jpeg = 1;
        return option_choice("--jpeg", value, jpegs, &f->jpeg);
    case OPT_COMPRESS:
        return parse_compress(f, value);
    case OPT_PIXELS:
        return option_count32("--pixels", value, sides, &f->convert.shorter_side);
    case OPT_MAX_SIDE:
        return option_count32("--max-side", value, sides, &f->convert.max_side);
    default:
        return option_count32("--quality", value, (struct range){1, 100}, &f->convert.quality);
    }
}

int form_check(struct form *f)
{
    struct pstk_convert *c = &f->convert;
    if (c->shorter_side && (f->has_jpeg || c->max_side || c->quality))
        return message_usage("--pixels stores no JPEGs, so it does not go with %s",
                             f->has_jpeg   ? "--jpeg"
                             : c->max_side ? "--max-side"
                                           : "--quality");
    if (c->shorter_side || c->max_side || c->quality)
        c->size = sizeof *c;
    return 0;
}

void form_image_codec(const struct form *f, struct pstk_field *field)
{
    if (f->convert.shorter_side) {
        form_text_codec(f, field);
    } else if (f->jpeg != FORM_KEEP) {
        field->codec = PSTK_CODEC_PLANES;
        field->codec_level = f->jpeg == FORM_EXACT ? 1 : 0;
    }
}

void form_text_codec(const struct form *f, struct pstk_field *field)
{
    field->codec = f->codec;
    field->codec_level = (int32_t)f->level;
}

const char *form_note(const struct form *f, char text[FORM_NOTE_SIZE])
{
    const struct pstk_convert *c = &f->convert;
    int n = snprintf(text, FORM_NOTE_SIZE, "penstock pack");
    if (c->shorter_side)
        n += snprintf(text + n, FORM_NOTE_SIZE - (size_t)n, " pixels=%u", c->shorter_side);
    if (c->max_side)
        n += snprintf(text + n, FORM_NOTE_SIZE - (size_t)n, " max_side=%u", c->max_side);
    if (c->max_side || c->quality)
        snprintf(text + n, FORM_NOTE_SIZE - (size_t)n, " quality=%u reencoded=%s",
                 c->quality ? c->quality : QUALITY_OF_SHRUNK, c->quality ? "all" : "shrunk");
    return text;
}
