/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding out how a file can be rebuilt: by trying. Nearly every file comes out equal at the first
 * try. What encoders do otherwise and a second try gets right: they fill last bytes up with zeros,
 * or leave bytes between the end of a scan and the next marker.
 */
#include "image/jpeg/splice.h"

#include "base/error.h"

#include <string.h>

struct trial {
    struct pstk__jpeg_image *image;
    const uint8_t *data; /* the original */
    uint64_t size;
    uint8_t *out; /* the attempt's */
    uint64_t capacity, out_size;
    struct pstk__jpeg_attempt *attempt;
    struct pstk__arena *arena;
};

/* 1: equal to the original. 0: it is not. < 0: there is no such file. */
static int rebuild(struct trial *t, struct pstk_error *err)
{
    int r = pstk__jpeg_attempt(t->attempt, t->image, t->out, t->capacity, t->arena, err);
    t->out_size = r == 0 ? (uint64_t)(t->attempt->at - t->attempt->out) : 0;
    return r < 0 ? r : t->out_size == t->size && memcmp(t->out, t->data, (size_t)t->size) == 0;
}

/*
 * Are the scans' data at least what the original's begin with? Then give the image a skeleton with
 * what follows them. 1: done. 0: they differ. ENOMEM.
 */
static int keep_rests(struct trial *t)
{
    struct pstk__jpeg_walk walk = {.data = t->data, .size = t->size};
    struct pstk__jpeg_segment segment;
    uint64_t n = 0, n_copied = 0; /* bytes of the skeleton; of the original, looked at for it */
    uint64_t at = 0, from = 0;    /* out[at] belongs to data[from] */
    uint32_t n_scans = 0;
    uint8_t *skeleton = pstk__arena_get(t->arena, (size_t)t->size);
    if (!skeleton)
        return PSTK_ENOMEM;
    while (pstk__jpeg_walk_next(&walk, &segment)) {
        if (segment.marker != PSTK__JPEG_SOS)
            continue;
        uint64_t coded = t->attempt->scan_size[n_scans++];
        walk.at = pstk__jpeg_scan_end(t->data, t->size, segment.end);
        at += segment.end - from;
        if (coded > walk.at - segment.end ||
            memcmp(t->out + at, t->data + segment.end, (size_t)coded) != 0)
            return 0;
        memcpy(skeleton + n, t->data + n_copied, (size_t)(segment.end - n_copied));
        n += segment.end - n_copied;
        n_copied = segment.end + coded;
        at += coded;
        from = walk.at;
    }
    memcpy(skeleton + n, t->data + n_copied, (size_t)(t->size - n_copied));
    t->image->skeleton = skeleton;
    t->image->skeleton_size = n + t->size - n_copied;
    return 1;
}

/* Try one way. 1: the image is set up to be rebuilt so, and out holds the file. 0: it cannot. A
 * result < 0 is lack of memory. */
static int try(struct trial *t, uint32_t way, uint32_t parameters)
{
    struct pstk__jpeg_image *image = t->image;
    uint8_t *skeleton = image->skeleton;
    uint64_t skeleton_size = image->skeleton_size;
    size_t mark = t->arena->used;

    image->rebuild = way;
    image->parameters = parameters;
    int r = rebuild(t, NULL);
    if (r != 0)
        return r == 1 || r == PSTK_ENOMEM ? r : 0;
    r = keep_rests(t);
    if (r == 1)
        r = rebuild(t, NULL);
    if (r == 1)
        return 1;
    image->skeleton = skeleton;
    image->skeleton_size = skeleton_size;
    pstk__arena_reset(t->arena, mark);
    return r == PSTK_ENOMEM ? r : 0;
}

static int try_all(struct trial *t, int *exact, struct pstk_error *err)
{
    int r = try(t, PSTK__JPEG_REBUILD_SCANS, 0);
    if (r == 0)
        r = try(t, PSTK__JPEG_REBUILD_SCANS, PSTK__JPEG_ZERO_PADDING);
    if (r == 0)
        r = try(t, PSTK__JPEG_REBUILD_LIBRARY, 0);
    if (r == PSTK_ENOMEM)
        return pstk__fail(err, r, PSTK_STAGE_DECODE, "JPEG: no scratch memory for rebuilding");
    *exact = 1;
    if (r == 1)
        return 0;
    t->image->rebuild = PSTK__JPEG_REBUILD_STANDARD;
    t->image->parameters = 0;
    r = rebuild(t, err);
    *exact = r == 1;
    return r < 0 ? r : 0;
}

int pstk__jpeg_image_choose(struct pstk__jpeg_image *image, const void *data, uint64_t size,
                            uint8_t *out, uint64_t *out_size, int *exact, struct pstk__arena *arena,
                            struct pstk_error *err)
{
    size_t mark = arena->used;
    const uint8_t *skeleton = image->skeleton;
    struct trial t = {.image = image, .data = data, .size = size, .out = out, .arena = arena};
    *out_size = 0;
    *exact = 0;
    t.capacity = pstk__jpeg_rebuild_bound(image);
    t.attempt = pstk__arena_get(arena, sizeof *t.attempt);
    if (!t.attempt)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "JPEG: no scratch memory for rebuilding");
    int r = try_all(&t, exact, err);
    *out_size = t.out_size;
    if (image->skeleton == skeleton) /* else the new one lies behind the mark, and stays */
        pstk__arena_reset(arena, mark);
    return r;
}
