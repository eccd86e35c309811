/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries the methods of rebuilding a file. Nearly every file comes out equal at the first try. A
 * second try handles encoders that fill up last bytes with zeros, or leave bytes between the end of
 * a scan and the next marker.
 */
#include "image/jpeg/choose.h"

#include "base/error.h"
#include "image/jpeg/plain.h"
#include "image/jpeg/rebuild.h"

#include <string.h>

struct trial {
    struct pstk__jpeg_image *image;
    const uint8_t *data; /* the original */
    uint64_t size;
    uint8_t *out; /* the rebuilt file */
    uint64_t capacity, out_size;
    struct pstk__jpeg_attempt *attempt;
    struct pstk__arena *arena;
};

/* Rebuild the file. Returns 1 when it equals the original, 0 when it differs, < 0 when it cannot be
 * rebuilt by this method. */
static int rebuild(struct trial *trial, struct pstk_error *err)
{
    int r = pstk__jpeg_attempt(trial->attempt, trial->image, trial->out, trial->capacity,
                               trial->arena, err);
    trial->out_size = r == 0 ? (uint64_t)(trial->attempt->at - trial->attempt->out) : 0;
    return r < 0 ? r
                 : trial->out_size == trial->size &&
                       memcmp(trial->out, trial->data, (size_t)trial->size) == 0;
}

/*
 * Check that the original's scans begin with the data of the rebuilt scans, and give the image a
 * skeleton that includes the bytes after these. Returns 1: done; 0: they differ; ENOMEM.
 */
static int keep_rests(struct trial *trial)
{
    struct pstk__jpeg_walk walk = {.data = trial->data, .size = trial->size};
    struct pstk__jpeg_segment segment;
    uint64_t n = 0, n_copied = 0; /* bytes of the skeleton; bytes of the original already handled */
    uint64_t at = 0, from = 0;    /* out[at] corresponds to data[from] */
    uint32_t n_scans = 0;
    uint8_t *skeleton = pstk__arena_get(trial->arena, (size_t)trial->size);
    if (!skeleton)
        return PSTK_ENOMEM;
    while (pstk__jpeg_walk_next(&walk, &segment)) {
        if (segment.marker != PSTK__JPEG_SOS)
            continue;
        uint64_t coded = trial->attempt->scan_size[n_scans++];
        walk.at = pstk__jpeg_scan_end(trial->data, trial->size, segment.end);
        at += segment.end - from;
        if (coded > walk.at - segment.end ||
            memcmp(trial->out + at, trial->data + segment.end, (size_t)coded) != 0)
            return 0;
        memcpy(skeleton + n, trial->data + n_copied, (size_t)(segment.end - n_copied));
        n += segment.end - n_copied;
        n_copied = segment.end + coded;
        at += coded;
        from = walk.at;
    }
    memcpy(skeleton + n, trial->data + n_copied, (size_t)(trial->size - n_copied));
    trial->image->skeleton = skeleton;
    trial->image->skeleton_size = n + trial->size - n_copied;
    return 1;
}

/* Try one method. Returns 1 when it works: the image is set up for it, and out holds the file. 0:
 * it fails. < 0: no memory. */
static int try(struct trial *trial, uint32_t way, uint32_t parameters)
{
    struct pstk__jpeg_image *image = trial->image;
    uint8_t *skeleton = image->skeleton;
    uint64_t skeleton_size = image->skeleton_size;
    size_t mark = trial->arena->used;

    image->rebuild = way;
    image->parameters = parameters;
    int r = rebuild(trial, NULL);
    if (r != 0)
        return r == 1 || r == PSTK_ENOMEM ? r : 0;
    r = keep_rests(trial);
    if (r == 1)
        r = rebuild(trial, NULL);
    if (r == 1)
        return 1;
    image->skeleton = skeleton;
    image->skeleton_size = skeleton_size;
    pstk__arena_reset(trial->arena, mark);
    return r == PSTK_ENOMEM ? r : 0;
}

static int try_all(struct trial *trial, int *exact, struct pstk_error *err)
{
    int r = try(trial, PSTK__JPEG_REBUILD_SCANS, 0);
    if (r == 0)
        r = try(trial, PSTK__JPEG_REBUILD_SCANS, PSTK__JPEG_ZERO_PADDING);
    if (r == 0)
        r = try(trial, PSTK__JPEG_REBUILD_LIBRARY, 0);
    if (r == PSTK_ENOMEM)
        return pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG: no scratch memory for rebuilding");
    *exact = 1;
    if (r == 1)
        return 0;
    trial->image->rebuild = PSTK__JPEG_REBUILD_STANDARD;
    trial->image->parameters = 0;
    r = rebuild(trial, err);
    *exact = r == 1;
    return r < 0 ? r : 0;
}

int pstk__jpeg_image_choose(struct pstk__jpeg_image *image, const void *data, uint64_t size,
                            uint8_t *out, uint64_t *out_size, int *exact, struct pstk__arena *arena,
                            struct pstk_error *err)
{
    size_t mark = arena->used;
    const uint8_t *skeleton = image->skeleton;
    struct trial trial = {.image = image, .data = data, .size = size, .out = out, .arena = arena};
    *out_size = 0;
    *exact = 0;
    trial.capacity = pstk__jpeg_rebuild_bound(image);
    trial.attempt = pstk__arena_get(arena, sizeof *trial.attempt);
    if (!trial.attempt)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "JPEG: no scratch memory for rebuilding");
    int r = try_all(&trial, exact, err);
    *out_size = trial.out_size;
    if (image->skeleton == skeleton) /* else the new skeleton lies after the mark, and is kept */
        pstk__arena_reset(arena, mark);
    return r;
}

/*
 * Bound the memory. Reading takes the skeleton, and libjpeg's arrays, with each side rounded up to
 * at most 4 blocks and a pointer for each row; for a file of one component perhaps a copy of them.
 * libjpeg's tables and state add less than 96 KiB (decode.c), and our own reader its tables.
 * Choosing takes another skeleton, and one attempt at a time. Components count at full size, so
 * only the sides and n_components matter.
 */
uint64_t pstk__jpeg_image_scratch(const struct pstk__jpeg_frame *f, uint64_t file_size)
{
    struct pstk__jpeg_frame full = {.n_components = f->n_components};
    uint64_t across = (uint64_t)f->width / 8 + 4, down = (uint64_t)f->height / 8 + 4;
    uint64_t n_arrays = f->n_components == 1 ? 2 : f->n_components;
    for (uint32_t i = 0; i < f->n_components && i < PSTK__JPEG_MAX_COMPONENTS; i++) {
        full.component[i].stride = (uint32_t)across;
        full.component[i].rows = (uint32_t)down;
    }
    uint64_t arrays = n_arrays * (across * down * 128 + down * sizeof(void *) + 256);
    return arrays + 2 * (file_size + 64) + (96u << 10) + sizeof(struct pstk__jpeg_plain) + 64 +
           pstk__jpeg_rebuild_scratch(&full, file_size);
}
