/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_image: any bytes as an image file. What the probe takes is decoded, a box of it that the
 * bytes themselves choose, and then in full; a mask also to its samples. No input may crash, hang,
 * write past the sink's rows, leave the arena used, need more than the stated scratch, or fail with
 * a code outside the contract.
 */
#include "image/image.h"
#include "image/jpeg/damaged.h"
#include "image/mask.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PIXELS 65536u /* a box of 256 x 256: keeps a run short, and large images refused */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct rows {
    uint32_t size; /* bytes of a row */
    uint32_t n;
    uint32_t sum; /* so that every byte is read: uninitialised ones are seen by MSan */
};

static void take_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct rows *rows = user;
    for (uint32_t k = 0; k < n_rows; k++, rgb += stride) {
        rows->n++;
        for (uint32_t i = 0; i < rows->size; i++)
            rows->sum += rgb[i];
    }
}

static void require(int fact)
{
    if (!fact)
        abort();
}

static uint32_t hash_of(const uint8_t *data, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ data[i]) * 16777619u;
    return h;
}

/* One thread's decoders. */
struct decoders {
    struct pstk__arena arena;
    struct pstk__image_state *state;
    uint32_t channels;
};

static int decode(struct decoders *d, const uint8_t *data, size_t size,
                  const struct pstk__image_decoder *decoder, const struct pstk__image_info *info,
                  struct pstk__box box)
{
    struct rows rows = {.size = box.width * d->channels};
    const struct pstk__row_sink sink = {.rows = take_rows, .user = &rows, .channels = d->channels};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int r = pstk__image_decode(d->state, &(const struct pstk__coded){decoder, data, size, info},
                               &box, &sink, &err);
    require(rows.n <= box.height && (r < 0 || rows.n == box.height));
    require(r == 0 || r == PSTK_EBADMSG || r == PSTK_ENOTSUP || r == PSTK_EFBIG);
    require(r == 0 || (err.code == r && err.stage == PSTK_STAGE_DECODE && err.message[0] != 0));
    require(d->arena.used == 0);
    return r;
}

/* What the probe of masks takes gives samples, or an error; it is checked as it is decoded. */
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
    struct decoders d;
    struct pstk__image_info info;

    decode_mask(data, size);
    if (pstk__image_probe(data, size, MAX_PIXELS, &info, NULL) < 0)
        return 0;
    require(info.width > 0 && info.height > 0 && info.orientation >= 1 && info.orientation <= 8);
    require((uint64_t)info.width * info.height <= MAX_PIXELS);
    require(pstk__arena_open(&d.arena, pstk__image_scratch(info.width, info.height)) == 0);
    require(pstk__image_state_open(&d.state, &d.arena, PSTK_KERNELS_AUTO, NULL) == 0);
    uint32_t h = hash_of(data, size);
    d.channels = (const uint32_t[]){1, 3, 4}[h % 3];
    struct pstk__box box = {.left = h % info.width, .top = (h >> 8) % info.height};
    box.width = 1 + (h >> 16) % (info.width - box.left);
    box.height = 1 + (h >> 4) % (info.height - box.top);
    const struct pstk__box all = {.width = info.width, .height = info.height};
    const struct pstk__image_decoder *decoder = pstk__image_decoder(info.encoding);
    int r = decode(&d, data, size, decoder, &info, box);
    int whole = decode(&d, data, size, decoder, &info, all);
    require(whole < 0 || r == 0);              /* a box sees no damage that the whole does not */
    if (info.encoding == PSTK_ENCODING_JPEG) { /* the same, where warnings are no damage */
        r = decode(&d, data, size, &pstk__image_damaged, &info, box);
        const int guessed = decode(&d, data, size, &pstk__image_damaged, &info, all);
        require((guessed < 0 || r == 0) && (whole < 0 || guessed == 0));
    }
    pstk__image_state_close(d.state);
    pstk__arena_close(&d.arena);
    return 0;
}
