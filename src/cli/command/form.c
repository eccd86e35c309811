/* SPDX-License-Identifier: Apache-2.0 */
#include "command/form.h"

#include <stdio.h>
#include <string.h>

#include "ui/message.h"

#define MAX_SIDE 65535       /* pixels; a record holds no more */
#define QUALITY_OF_SHRUNK 90 /* the quality with --max-side but without --quality */

const struct choice form_jpegs[] = {
    {"planes", FORM_PLANES}, {"exact", FORM_EXACT}, {"keep", FORM_KEEP}, {NULL, 0}};
const struct choice form_damages[] = {
    {"refuse", PSTK_DAMAGED_UNCHECKED}, {"accept", PSTK_DAMAGED_ACCEPT}, {NULL, 0}};
const struct choice form_compressions[] = {
    {"zstd", PSTK_CODEC_ZSTD}, {"none", PSTK_CODEC_NONE}, {NULL, 0}};

static int parse_compress(struct form *form, const char *text)
{
    uint64_t level = 0;
    if (strcmp(text, "none") == 0) {
        form->codec = PSTK_CODEC_NONE;
        return 0;
    }
    if (strncmp(text, "zstd", 4) != 0 || (text[4] && text[4] != ':')) {
        message_say("--compress: value is '%s'; must be zstd, zstd:LEVEL or none", text);
        return -1;
    }
    if (text[4] == ':' &&
        option_count("the level of --compress", text + 5, (struct range){1, 22}, &level) < 0)
        return -1;
    form->codec = PSTK_CODEC_ZSTD;
    form->level = (uint32_t)level;
    return 0;
}

int form_set(struct form *form, int code, const char *value)
{
    const struct range sides = {1, MAX_SIDE};
    switch (code) {
    case OPT_JPEG:
        form->has_jpeg = 1;
        return option_choice("--jpeg", value, form_jpegs, &form->jpeg);
    case OPT_COMPRESS:
        return parse_compress(form, value);
    case OPT_DAMAGED:
        return option_choice("--damaged", value, form_damages, &form->damaged);
    case OPT_PIXELS:
        return option_count32("--pixels", value, sides, &form->convert.shorter_side);
    case OPT_MAX_SIDE:
        return option_count32("--max-side", value, sides, &form->convert.max_side);
    default:
        return option_count32("--quality", value, (struct range){1, 100}, &form->convert.quality);
    }
}

int form_check(struct form *form)
{
    struct pstk_convert *convert = &form->convert;
    if (convert->shorter_side && (form->has_jpeg || convert->max_side || convert->quality))
        return message_usage("--pixels stores no JPEGs; must be without %s (leave one of them out)",
                             form->has_jpeg      ? "--jpeg"
                             : convert->max_side ? "--max-side"
                                                 : "--quality");
    if (convert->shorter_side || convert->max_side || convert->quality)
        convert->size = sizeof *convert;
    convert->damaged = form->damaged;
    return 0;
}

void form_image_codec(const struct form *form, struct pstk_field *field)
{
    if (form->convert.shorter_side) {
        form_text_codec(form, field);
    } else if (form->jpeg != FORM_KEEP) {
        field->codec = PSTK_CODEC_PLANES;
        field->codec_level = form->jpeg == FORM_EXACT ? 1 : 0;
    }
}

void form_text_codec(const struct form *form, struct pstk_field *field)
{
    field->codec = form->codec;
    field->codec_level = (int32_t)form->level;
}

const char *form_note(const struct form *form, char text[FORM_NOTE_SIZE])
{
    const struct pstk_convert *convert = &form->convert;
    int n = snprintf(text, FORM_NOTE_SIZE, "penstock pack");
    if (convert->shorter_side)
        n += snprintf(text + n, FORM_NOTE_SIZE - (size_t)n, " pixels=%u", convert->shorter_side);
    if (convert->max_side)
        n += snprintf(text + n, FORM_NOTE_SIZE - (size_t)n, " max_side=%u", convert->max_side);
    if (convert->max_side || convert->quality)
        snprintf(text + n, FORM_NOTE_SIZE - (size_t)n, " quality=%u reencoded=%s",
                 convert->quality ? convert->quality : QUALITY_OF_SHRUNK,
                 convert->quality ? "all" : "shrunk");
    return text;
}
