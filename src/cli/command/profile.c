/* SPDX-License-Identifier: Apache-2.0 */
#include "command/profile.h"

#include <stdio.h>
#include <string.h>

#include "ui/message.h"

#define MAX_SIDE 65535       /* pixels; a record holds no more */
#define QUALITY_OF_SHRUNK 90 /* default with --max-side but without --quality */

const struct choice profile_jpegs[] = {
    {"planes", PROFILE_PLANES}, {"exact", PROFILE_EXACT}, {"keep", PROFILE_KEEP}, {NULL, 0}};
const struct choice profile_damages[] = {
    {"refuse", PSTK_DAMAGED_UNCHECKED}, {"accept", PSTK_DAMAGED_ACCEPT}, {NULL, 0}};
const struct choice profile_compressions[] = {
    {"zstd", PSTK_CODEC_ZSTD}, {"none", PSTK_CODEC_NONE}, {NULL, 0}};

static int parse_compress(struct profile *profile, const char *text)
{
    uint64_t level = 0;
    if (strcmp(text, "none") == 0) {
        profile->codec = PSTK_CODEC_NONE;
        return 0;
    }
    if (strncmp(text, "zstd", 4) != 0 || (text[4] && text[4] != ':')) {
        message_say("--compress: value is '%s'; must be zstd, zstd:LEVEL or none", text);
        return -1;
    }
    if (text[4] == ':' &&
        option_count("the level of --compress", text + 5, (struct range){1, 22}, &level) < 0)
        return -1;
    profile->codec = PSTK_CODEC_ZSTD;
    profile->level = (uint32_t)level;
    return 0;
}

int profile_set(struct profile *profile, int code, const char *value)
{
    const struct range sides = {1, MAX_SIDE};
    switch (code) {
    case OPT_JPEG:
        profile->has_jpeg = 1;
        return option_choice("--jpeg", value, profile_jpegs, &profile->jpeg);
    case OPT_COMPRESS:
        return parse_compress(profile, value);
    case OPT_DAMAGED:
        return option_choice("--damaged", value, profile_damages, &profile->damaged);
    case OPT_PIXELS:
        return option_count32("--pixels", value, sides, &profile->convert.shorter_side);
    case OPT_MAX_SIDE:
        return option_count32("--max-side", value, sides, &profile->convert.max_side);
    default:
        return option_count32("--quality", value, (struct range){1, 100},
                              &profile->convert.quality);
    }
}

int profile_check(struct profile *profile)
{
    struct pstk_convert *convert = &profile->convert;
    if (convert->shorter_side && (profile->has_jpeg || convert->max_side || convert->quality))
        return message_usage("--pixels stores no JPEGs; must be without %s (leave one of them out)",
                             profile->has_jpeg   ? "--jpeg"
                             : convert->max_side ? "--max-side"
                                                 : "--quality");
    if (convert->shorter_side || convert->max_side || convert->quality)
        convert->size = sizeof *convert;
    convert->damaged = profile->damaged;
    return 0;
}

void profile_image_codec(const struct profile *profile, struct pstk_field *field)
{
    if (profile->convert.shorter_side) {
        profile_text_codec(profile, field);
    } else if (profile->jpeg != PROFILE_KEEP) {
        field->codec = PSTK_CODEC_PLANES;
        field->codec_level = profile->jpeg == PROFILE_EXACT ? 1 : 0;
    }
}

void profile_text_codec(const struct profile *profile, struct pstk_field *field)
{
    field->codec = profile->codec;
    field->codec_level = (int32_t)profile->level;
}

const char *profile_note(const struct profile *profile, char text[PROFILE_NOTE_SIZE])
{
    const struct pstk_convert *convert = &profile->convert;
    int n = snprintf(text, PROFILE_NOTE_SIZE, "penstock pack");
    if (convert->shorter_side)
        n += snprintf(text + n, PROFILE_NOTE_SIZE - (size_t)n, " pixels=%u", convert->shorter_side);
    if (convert->max_side)
        n += snprintf(text + n, PROFILE_NOTE_SIZE - (size_t)n, " max_side=%u", convert->max_side);
    if (convert->max_side || convert->quality)
        snprintf(text + n, PROFILE_NOTE_SIZE - (size_t)n, " quality=%u reencoded=%s",
                 convert->quality ? convert->quality : QUALITY_OF_SHRUNK,
                 convert->quality ? "all" : "shrunk");
    return text;
}
