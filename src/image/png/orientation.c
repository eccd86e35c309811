/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png/orientation.h"

#include "base/utf8.h"
#include "image/exif.h"
#include "image/png/chunk.h"
#include "image/png/text.h"
#include "image/xmp.h"

#include <string.h>

/* Largest number of bytes that are inflated to check texts; Pillow refuses a file with more text
 * (MAX_TEXT_MEMORY). */
#define CHECK_MAX (64ull << 20)
/* Lines before the hexadecimal digits of a raw profile: an empty one, its name, its size. */
#define N_PROFILE_LINES 3

/* The locations of the metadata. The last one of each kind counts, as in Pillow's dictionary. */
struct metadata {
    const uint8_t *exif; /* NULL: there is none */
    uint32_t exif_size;
    int is_refused;                  /* 1: Pillow cannot read the last text "exif" as Exif */
    struct pstk__png_text profile;   /* key NULL: there is none */
    struct pstk__png_text xmp;       /* size 0: there is none */
    struct pstk__png_text xmp_bytes; /* number of bytes inflated so far */
    uint64_t n_checked;              /* bytes inflated so far */
};

/* ---- chunks --------------------------------------------------------------------------------- */

/* The result of reading a text to its end. */
struct check {
    int does_inflate;
    int is_utf8;
    uint64_t size; /* bytes of the inflated text */
};

static struct check check_text(struct metadata *found, const struct pstk__png_text *text)
{
    struct pstk__png_text_reader reader;
    struct check check = {.is_utf8 = 1};
    uint8_t bytes[4096];
    uint64_t kept = 0; /* bytes of a character that may be incomplete */
    int64_t n;
    pstk__png_text_begin(&reader, text);
    while ((n = pstk__png_text_read(&reader, bytes + kept, (uint32_t)(sizeof bytes - kept))) > 0 &&
           found->n_checked <= CHECK_MAX) {
        const uint64_t size = kept + (uint64_t)n, end = pstk__utf8_end(bytes, size);
        check.size += (uint64_t)n;
        found->n_checked += (uint64_t)n;
        check.is_utf8 &= size - end < 4;
        kept = check.is_utf8 ? size - end : 0;
        memmove(bytes, bytes + end, kept);
    }
    check.is_utf8 &= kept == 0;
    check.does_inflate = n == 0;
    return check;
}

/* Note a text that may hold metadata. Pillow ignores an iTXt chunk whose text does not inflate, and
 * takes the text of such a zTXt chunk for an empty one. */
static void take_text(struct metadata *found, const struct pstk__png_chunk *chunk)
{
    struct pstk__png_text text;
    if (!pstk__png_text_of(chunk, &text))
        return;
    const int is_international = pstk__png_chunk_is(chunk, "iTXt");
    const int is_exif = pstk__png_text_is(&text, "exif");
    const int is_profile = pstk__png_text_is(&text, "Raw profile type exif");
    const int is_xmp = pstk__png_text_is(&text, "XML:com.adobe.xmp");
    if (!is_exif && !is_profile && !is_xmp)
        return;
    struct check check = {1, 1, text.size};
    if (is_international || text.is_deflated)
        check = check_text(found, &text);
    if (is_international && !check.does_inflate)
        return;
    if (!check.does_inflate || check.size == 0)
        text.size = 0;
    if (is_international && is_xmp)
        found->xmp_bytes = text;
    if (is_international && !(text.is_utf8 && check.is_utf8))
        return;
    if (is_xmp)
        found->xmp = text;
    if (is_profile)
        found->profile = text;
    if (is_exif) {
        found->exif = text.data;
        found->exif_size = text.size;
        found->is_refused = !pstk__png_chunk_is(chunk, "tEXt");
    }
}

/* The frames of an animation, by the chunks before the image data. */
struct animation {
    uint32_t n_frames; /* frames; 0: no animation */
    int has_frame;     /* 1: the image data are a frame */
};

static void take_frame(struct animation *animation, const struct pstk__png_chunk *chunk)
{
    if (pstk__png_chunk_is(chunk, "fcTL"))
        animation->has_frame = 1;
    if (!pstk__png_chunk_is(chunk, "acTL") || chunk->size < 8)
        return;
    const uint8_t *p = chunk->data;
    const uint32_t n = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    if (animation->n_frames != 0 ||
        (n != 0 && n <= 0x80000000u)) /* a second one ends the animation */
        animation->n_frames = animation->n_frames != 0 ? 0 : n;
}

/* Find the metadata before IEND, or before the next frame of an animation. */
static void find(struct metadata *found, const void *file, uint64_t size)
{
    struct pstk__png_chunk chunk;
    struct animation animation = {0, 0};
    uint64_t at = PSTK__PNG_IHDR_END;
    int has_data = 0;
    while (pstk__png_chunk_next(file, size, &at, &chunk) && !pstk__png_chunk_is(&chunk, "IEND")) {
        if (!has_data)
            take_frame(&animation, &chunk);
        else if (pstk__png_chunk_is(&chunk, "fcTL") &&
                 (animation.n_frames > 1 || (animation.n_frames == 1 && !animation.has_frame)))
            break;
        has_data |= pstk__png_chunk_is(&chunk, "IDAT");
        if (pstk__png_chunk_is(&chunk, "eXIf")) {
            found->exif = chunk.data;
            found->exif_size = chunk.size;
            found->is_refused = 0;
        } else {
            take_text(found, &chunk);
        }
    }
}

/* ---- a raw profile -------------------------------------------------------------------------- */

/* A reader of the bytes that a text has as hexadecimal digits. */
struct profile {
    const struct pstk__png_text *text;
    struct pstk__png_text_reader reader;
    uint64_t at; /* bytes returned so far */
    uint32_t n_lines;
    uint32_t next, n; /* characters in `characters` */
    uint8_t characters[512];
};

enum { ENDS = -1, FAILS = -2 };

static void begin_profile(struct profile *profile)
{
    pstk__png_text_begin(&profile->reader, profile->text);
    profile->at = 0;
    profile->n_lines = 0;
    profile->next = profile->n = 0;
}

/* Return the next character after the first lines that is not a line feed; ENDS. */
static int next_character(struct profile *profile)
{
    for (;;) {
        if (profile->next == profile->n) {
            const int64_t n = pstk__png_text_read(&profile->reader, profile->characters,
                                                  sizeof profile->characters);
            if (n <= 0)
                return ENDS;
            profile->n = (uint32_t)n;
            profile->next = 0;
        }
        const int c = profile->characters[profile->next++];
        if (c == '\n')
            profile->n_lines += profile->n_lines < N_PROFILE_LINES;
        else if (profile->n_lines == N_PROFILE_LINES)
            return c;
    }
}

static int digit_of(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    const int letter = c | 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Return the next byte, by the rules of Python's bytes.fromhex; ENDS; FAILS: these are no digits.
 */
static int next_byte(struct profile *profile)
{
    int c;
    do
        c = next_character(profile);
    while (c == ' ' || (c >= '\t' && c <= '\r'));
    if (c == ENDS)
        return ENDS;
    const int high = digit_of(c), low = digit_of(next_character(profile));
    if (high < 0 || low < 0)
        return FAILS;
    profile->at++;
    return high << 4 | low;
}

static uint32_t read_profile(void *user, uint64_t at, uint8_t *out, uint32_t n)
{
    struct profile *profile = user;
    uint32_t done = 0;
    if (at < profile->at)
        begin_profile(profile);
    while (done < n) {
        const uint64_t here = profile->at;
        const int byte = next_byte(profile);
        if (byte < 0)
            break;
        if (here >= at)
            out[done++] = (uint8_t)byte;
    }
    return done;
}

static uint32_t profile_orientation(const struct pstk__png_text *text)
{
    struct profile profile = {.text = text};
    int byte;
    begin_profile(&profile);
    do
        byte = next_byte(&profile);
    while (byte >= 0);
    if (byte == FAILS)
        return 1;
    const struct pstk__exif exif = {read_profile, &profile, profile.at};
    return pstk__exif_orientation(&exif);
}

/* ---- XMP ------------------------------------------------------------------------------------ */

static uint32_t text_xmp_orientation(const struct pstk__png_text *text)
{
    struct pstk__png_text_reader reader;
    uint8_t bytes[4096];
    uint32_t kept = 0, found = 0;
    int64_t n;
    pstk__png_text_begin(&reader, text);
    while (found == 0 &&
           (n = pstk__png_text_read(&reader, bytes + kept, sizeof bytes - kept)) > 0) {
        const uint32_t size = kept + (uint32_t)n;
        found = pstk__xmp_orientation(bytes, size);
        kept = size < PSTK__XMP_MATCH_SIZE - 1 ? size : PSTK__XMP_MATCH_SIZE - 1;
        memmove(bytes, bytes + size - kept, kept);
    }
    return found;
}

/* ---- the rule ------------------------------------------------------------------------------- */

uint32_t pstk__png_orientation(const void *file, uint64_t size)
{
    struct metadata found = {.exif = NULL};
    uint32_t orientation = 0;
    find(&found, file, size);
    if (found.exif)
        orientation = found.is_refused ? 1 : pstk__exif_orientation_of(found.exif, found.exif_size);
    else if (found.profile.key)
        orientation = profile_orientation(&found.profile);
    const struct pstk__png_text *xmp = found.xmp.size ? &found.xmp : &found.xmp_bytes;
    if (orientation == 0 && xmp->size)
        orientation = text_xmp_orientation(xmp);
    return orientation ? orientation : 1;
}
