/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_image: any bytes as an image file. What the probe takes is decoded in full, then a box of it
 * that the bytes themselves choose, which must have the same pixels; then in full again, where
 * warnings are no damage, and by the checks of packing. A mask is also decoded to its samples. The
 * bytes are pixels of each kind, too. No input may crash, hang, write past the sink's rows, leave
 * the arena used, need more than the stated scratch, or fail with a code outside the contract.
 */
#include "image/image.h"
#include "image/jpeg/damaged.h"
#include "image/mask.h"
#include "image/pixels.h"
#include "image/png/decode.h"
#include "image/png/remake.h"

#include <penstock/format.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PIXELS 65536u /* a box of 256 x 256: keeps a run short, and large images refused */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int fact)
{
    if (!fact)
        abort();
}

/* The rows of a box. */
struct rows {
    uint32_t size; /* bytes of a row */
    uint32_t n;
    uint8_t *at; /* owned; n rows */
};

static void take_rows(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows)
{
    struct rows *rows = user;
    for (uint32_t k = 0; k < n_rows; k++, pixels += stride)
        memcpy(rows->at + (size_t)rows->n++ * rows->size, pixels, rows->size);
}

/* 1: the rows are those of the box in `whole`. Every byte is read: uninitialised ones are seen by
 * MSan. */
static int is_part(const struct rows *part, const struct rows *whole, const struct pstk__box *box,
                   uint32_t channels)
{
    int same = 1;
    for (uint32_t y = 0; y < box->height; y++)
        same &=
            memcmp(part->at + (size_t)y * part->size,
                   whole->at + (size_t)(box->top + y) * whole->size + (size_t)box->left * channels,
                   part->size) == 0;
    return same;
}

static uint32_t hash_of(const uint8_t *data, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ data[i]) * 16777619u;
    return h;
}

/* One thread's decoders, and what they decode. */
struct decoders {
    struct pstk__arena arena;
    struct pstk__image_state *state; /* NULL: pixels alone are decoded, whose state is the arena */
    uint32_t channels;
    const struct pstk__image_info *info;
    struct pstk__box box; /* chosen by the bytes */
};

static void decoders_open(struct decoders *d, const struct pstk__image_info *info, uint32_t h)
{
    const int is_file = info->encoding != PSTK_ENCODING_PIXELS;
    const uint64_t n_pixels = (uint64_t)info->width * info->height;
    *d = (struct decoders){.info = info, .channels = (const uint32_t[]){1, 3, 4}[h % 3]};
    require(pstk__arena_open(&d->arena, is_file ? pstk__image_scratch(info->width, info->height)
                                                : pstk__image_pixels.scratch(
                                                      info->width, info->height, n_pixels)) == 0);
    require(!is_file || pstk__image_state_open(&d->state, &d->arena, PSTK_KERNELS_AUTO, NULL) == 0);
    d->box = (struct pstk__box){.left = h % info->width, .top = (h >> 8) % info->height};
    d->box.width = 1 + (h >> 16) % (info->width - d->box.left);
    d->box.height = 1 + (h >> 4) % (info->height - d->box.top);
}

static void decoders_close(struct decoders *d)
{
    pstk__image_state_close(d->state);
    pstk__arena_close(&d->arena);
}

/* Decode a box to `rows`, whose memory the caller frees. */
static int decode(struct decoders *d, const uint8_t *data, size_t size,
                  const struct pstk__image_decoder *decoder, struct pstk__box box,
                  struct rows *rows)
{
    *rows = (struct rows){.size = box.width * d->channels};
    rows->at = malloc((size_t)rows->size * box.height);
    require(rows->at != NULL);
    const struct pstk__row_sink sink = {.rows = take_rows, .user = rows, .channels = d->channels};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const struct pstk__coded image = {decoder, data, size, d->info};
    const int r = d->state ? pstk__image_decode(d->state, &image, &box, &sink, &err)
                           : decoder->decode(&d->arena, &image, &box, &sink, &err);
    require(rows->n <= box.height && (r < 0 || rows->n == box.height));
    require(r == 0 || r == PSTK_EBADMSG || r == PSTK_ENOTSUP || r == PSTK_EFBIG);
    require(r == 0 || (err.code == r && err.stage == PSTK_STAGE_DECODE && err.message[0] != 0));
    require(d->arena.used == 0);
    return r;
}

/* Decode all and the box by one decoder. Returns the result of all, its rows in `whole`. */
static int decode_both(struct decoders *d, const uint8_t *data, size_t size,
                       const struct pstk__image_decoder *decoder, struct rows *whole)
{
    const struct pstk__box all = {.width = d->info->width, .height = d->info->height};
    struct rows part;
    const int r = decode(d, data, size, decoder, all, whole);
    const int of_part = decode(d, data, size, decoder, d->box, &part);
    require(r < 0 || of_part == 0); /* a box sees no damage that the whole does not */
    require(r < 0 || is_part(&part, whole, &d->box, d->channels));
    free(part.at);
    return r;
}

/* Check that the facts that packing finds in a JPEG are those of decoding it. r: result of its
 * decoder; of_guess: result of the decoder of damaged files. */
static void check_checks(const uint8_t *data, size_t size, int r, int of_guess)
{
    uint32_t damaged = 2, width, height;
    require(pstk_image_check(data, size, MAX_PIXELS, &width, &height, NULL) == r);
    require(pstk_image_check_damaged(data, size, MAX_PIXELS, &damaged, NULL) == r);
    require(damaged == (r == PSTK_EBADMSG && of_guess == 0));
}

/* Decode a file by guessing, where warnings are no damage. `whole`: the rows that strict decoding
 * gave, with result r, where it gave some. */
static void decode_guessing(struct decoders *d, const uint8_t *data, size_t size, int r,
                            const struct rows *whole)
{
    const struct pstk__box all = {.width = d->info->width, .height = d->info->height};
    struct rows guessed, again;
    const int of_guess = decode_both(d, data, size, &pstk__image_damaged, &guessed);
    require(r < 0 || of_guess == 0);
    require(r < 0 || is_part(&guessed, whole, &all, d->channels));
    require(decode(d, data, size, &pstk__image_damaged, all, &again) == of_guess);
    require(of_guess < 0 || is_part(&again, &guessed, &all, d->channels));
    check_checks(data, size, r, of_guess);
    free(again.at);
    free(guessed.at);
}

/* The file that packing makes of a damaged one has the rows that are decoded in place. */
static void check_remade(struct decoders *d, const uint8_t *data, size_t size,
                         const struct rows *salvaged)
{
    const struct pstk__box all = {.width = d->info->width, .height = d->info->height};
    struct rows rows;
    void *file;
    uint64_t file_size;
    require(pstk__png_remake(data, size, d->info, &file, &file_size, NULL) == 0);
    require(decode(d, file, file_size, &pstk__image_png, all, &rows) == 0);
    require(is_part(&rows, salvaged, &all, d->channels));
    free(rows.at);
    free(file);
}

/* A PNG file whose fault may come after its rows; a file that is whole has the same rows, if it is
 * not refused as Pillow refuses it. */
static void decode_salvaging(struct decoders *d, const uint8_t *data, size_t size, int r,
                             const struct rows *whole)
{
    const struct pstk__box all = {.width = d->info->width, .height = d->info->height};
    struct rows salvaged;
    uint32_t damaged;
    const int of_salvage = decode_both(d, data, size, &pstk__image_png_damaged, &salvaged);
    require(r < 0 || of_salvage < 0 || is_part(&salvaged, whole, &all, d->channels));
    require(pstk_image_check_damaged(data, size, MAX_PIXELS, &damaged, NULL) == r);
    require(damaged ==
            (r == PSTK_EBADMSG && of_salvage == 0 ? PSTK_DAMAGE_REMADE : PSTK_DAMAGE_NONE));
    if (damaged == PSTK_DAMAGE_REMADE)
        check_remade(d, data, size, &salvaged);
    free(salvaged.at);
}

/* The last bytes as pixels, of a kind and width that the bytes choose. */
static void decode_pixels(const uint8_t *data, size_t size, uint32_t h)
{
    struct pstk__image_info info = {.encoding = PSTK_ENCODING_PIXELS,
                                    .width = 1 + (h >> 3) % 70,
                                    .orientation = 1,
                                    .channels = (uint8_t[]){1, 3, 4}[(h >> 10) % 3],
                                    .bit_depth = h >> 20 & 1 ? 16 : 8};
    const size_t stride = (size_t)info.width * pstk__pixels_size(info.channels, info.bit_depth);
    struct decoders d;
    struct rows whole;
    info.height = (uint32_t)(size / stride);
    if (info.height == 0)
        return;
    decoders_open(&d, &info, h);
    const int is_refused = info.channels == 1 && info.bit_depth == 16;
    const int r =
        decode_both(&d, data + size % stride, size - size % stride, &pstk__image_pixels, &whole);
    require(r == (is_refused ? PSTK_ENOTSUP : 0));
    free(whole.at);
    decoders_close(&d);
}

/* Check that an image that the probe of masks takes gives samples or an error, and that
 * pstk__mask_check agrees. */
static void decode_mask(const uint8_t *data, size_t size)
{
    struct pstk__image_info info;
    struct pstk_error err;
    if (pstk__mask_probe(data, size, MAX_PIXELS, &info, NULL) < 0)
        return;
    require(pstk__mask_known(info.encoding, info.channels) && info.width > 0 && info.height > 0);
    pstk_error_init(&err, sizeof err);
    const size_t n = (size_t)info.width * info.height * pstk__mask_sample_size(&info);
    uint8_t *samples = malloc(n);
    require(samples != NULL);
    const int r = pstk__mask_decode(data, size, &info, samples, &err);
    require(r == 0 || (r == PSTK_EBADMSG && err.message[0] != 0));
    require(r < 0 || hash_of(samples, n) + 1 != 0 || n > 0); /* every byte is read, for MSan */
    require(pstk__mask_check(data, size, &info, 1, &err) == r);
    free(samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint32_t h = hash_of(data, size);
    struct decoders d;
    struct pstk__image_info info;
    struct rows whole;

    decode_mask(data, size);
    decode_pixels(data, size, h);
    if (pstk__image_probe(data, size, MAX_PIXELS, &info, NULL) < 0)
        return 0;
    require(info.width > 0 && info.height > 0 && info.orientation >= 1 && info.orientation <= 8);
    require((uint64_t)info.width * info.height <= MAX_PIXELS);
    decoders_open(&d, &info, h);
    const int r = decode_both(&d, data, size, pstk__image_decoder(info.encoding), &whole);
    if (info.encoding == PSTK_ENCODING_JPEG)
        decode_guessing(&d, data, size, r, &whole);
    if (info.encoding == PSTK_ENCODING_PNG)
        decode_salvaging(&d, data, size, r, &whole);
    free(whole.at);
    decoders_close(&d);
    return 0;
}
