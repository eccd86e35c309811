/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_planes: fields of coefficient planes. The first byte of an input says what the others are:
 *   even  a field;
 *   odd   a recipe, from which a valid field is written: seed (2), width, height, colour, lanes
 *         and whether it may have built-in tables, factors (2), kind; then what is done to it, 3
 *         bytes each: place (2), its highest bit 1 for the parts before the strips, and what is
 *         added.
 * Every ISA must say the same of it: results, coefficients, pixels of a box and of the whole.
 * Images that are decoded after it have the pixels that they always have.
 * No input may crash, hang, leave the arena used, need more than the stated scratch, or fail with a
 * code outside the contract.
 *
 * The corpus: recipe-* are recipes of each kind and colour, written by hand (printf). field-* are
 * what a recipe without damage gives, with an even byte before it: built with -DKEEP_FIELDS, this
 * program writes to the current folder the field of every recipe it is given.
 */
#include "support/planes_field.h"

#include "base/codec.h"
#include "image/image.h"
#include "image/planes/decode.h"
#include "image/planes/file.h"

#include <stdio.h>

#define MAX_PIXELS 65536u /* keeps a run short, and large images refused */
#define MAX_SIDE 4096u
#define N_ISAS (PSTK_KERNELS_NEON + 1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int fact)
{
    if (!fact)
        abort();
}

static uint32_t hash_of(uint32_t h, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        h = (h ^ data[i]) * 16777619u;
    return h;
}

static void check_error(const struct pstk_error *err, int r, const char *start)
{
    require(r == 0 || r == PSTK_EBADMSG || r == PSTK_ENOTSUP);
    require(r == 0 || (err->code == r && strncmp(err->message, start, strlen(start)) == 0));
}

/* ---- coefficients --------------------------------------------------------------------------- */

static void check_coefficients(const uint8_t *field, size_t size,
                               const struct pstk__image_info *info)
{
    static struct field_reader readers[N_ISAS];
    int first = 0;
    for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++) {
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        if (pstk__planes_kernels(v) == NULL)
            continue;
        int r = field_open(&readers[v], field, size, info->width, info->height, v, &err);
        if (r == 0)
            r = field_expand(&readers[v], &err);
        check_error(&err, r, "planes");
        first = v == PSTK_KERNELS_C ? r : first;
        require(r == first);
        require(r < 0 || field_has(&readers[v], readers[PSTK_KERNELS_C].blocks));
    }
    for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++)
        if (pstk__planes_kernels(v) != NULL)
            field_close(&readers[v]);
}

/* ---- pixels --------------------------------------------------------------------------------- */

struct rows {
    uint32_t size; /* bytes of a row */
    uint32_t n, hash;
};

static void take_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct rows *rows = user;
    for (uint32_t k = 0; k < n_rows; k++, rgb += stride) {
        rows->n++;
        rows->hash = hash_of(rows->hash, rgb, rows->size);
    }
}

struct decoders {
    struct pstk__arena arena;
    struct pstk__image_state *state[N_ISAS]; /* NULL: this CPU lacks the ISA */
};

/* Made once. */
static struct decoders *get_decoders(void)
{
    static struct decoders d;
    if (d.arena.base != NULL)
        return &d;
    require(pstk__arena_open(&d.arena,
                             pstk__image_scratch_within(MAX_SIDE, MAX_SIDE, MAX_PIXELS)) == 0);
    for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++)
        if (pstk__planes_kernels(v) != NULL && pstk__jpeg_kernels(v) != NULL)
            require(pstk__image_state_open(&d.state[v], &d.arena, v, NULL) == 0);
    return &d;
}

/* Decode a box by every ISA. *hash: of its pixels. */
static int check_box(const uint8_t *field, size_t size, const struct pstk__image_info *info,
                     struct pstk__box box, uint32_t *hash)
{
    struct decoders *d = get_decoders();
    struct rows first = {0};
    int result = 0;
    for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++) {
        struct rows rows = {.size = box.width * 3, .hash = 2166136261u};
        const struct pstk__row_sink sink = {.rows = take_rows, .user = &rows, .channels = 3};
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        if (d->state[v] == NULL)
            continue;
        const int r = pstk__image_decode(
            d->state[v], &(const struct pstk__coded){&pstk__image_planes, field, size, info}, &box,
            &sink, &err);
        check_error(&err, r, "");
        require(rows.n <= box.height && (r < 0 || rows.n == box.height));
        require(d->arena.used == 0);
        if (v == PSTK_KERNELS_C) {
            first = rows;
            result = r;
        }
        require(r == result && rows.n == first.n && rows.hash == first.hash);
    }
    *hash = first.hash;
    return result;
}

static void check_pixels(const uint8_t *field, size_t size, const struct pstk__image_info *info)
{
    const uint32_t h = hash_of(2166136261u, field, size);
    struct pstk__box box = {.left = h % info->width, .top = (h >> 8) % info->height};
    box.width = 1 + (h >> 16) % (info->width - box.left);
    box.height = 1 + (h >> 4) % (info->height - box.top);
    const struct pstk__box all = {.width = info->width, .height = info->height};
    uint32_t hash;
    const int part = check_box(field, size, info, box, &hash);
    const int whole = check_box(field, size, info, all, &hash);
    require(whole < 0 || part == 0); /* a box sees no damage that the whole does not */
}

/* An image that is decoded after every other, by the same decoders: always to the same pixels. */
struct neighbour {
    uint8_t *field; /* owned; NULL: not made */
    uint64_t size;
    struct pstk__image_info info;
    uint32_t hash;
};

static void neighbour_make(struct neighbour *n, enum field_kind kind, uint32_t has_sets)
{
    const struct field_spec spec = {.width = 45,
                                    .height = 38,
                                    .color = PSTK__JPEG_YCC,
                                    .h = {2, 1, 1},
                                    .v = {2, 1, 1},
                                    .kind = kind};
    struct pstk__jpeg_image image;
    field_state = 88172645463325252ull; /* the same state, whatever input comes first */
    field_lanes = 0;
    field_has_sets = has_sets;
    field_image(&image, &spec);
    n->field = field_write(&image, 20, &n->size);
    field_image_close(&image);
    require(n->field != NULL &&
            pstk__image_planes.probe(n->field, n->size, MAX_PIXELS, &n->info, NULL) == 0);
}

/* One with a built-in set, one that may have own tables beside it, one with own tables. */
static void check_neighbours(void)
{
    static struct neighbour all[3];
    for (uint32_t i = 0; i < 3; i++) {
        const int is_new = all[i].field == NULL;
        uint32_t hash;
        if (is_new)
            neighbour_make(&all[i], i == 1 ? FIELD_SMALL : FIELD_PHOTO, i < 2);
        const struct pstk__box box = {.width = all[i].info.width, .height = all[i].info.height};
        require(check_box(all[i].field, all[i].size, &all[i].info, box, &hash) == 0);
        all[i].hash = is_new ? hash : all[i].hash;
        require(hash == all[i].hash);
    }
}

/* ---- the file ------------------------------------------------------------------------------- */

static void check_file(const uint8_t *field, size_t size, const struct pstk__image_info *info)
{
    static struct pstk__arena arena;
    static struct pstk__decoder *decoder;
    if (decoder == NULL)
        decoder = pstk__decoder_init(aligned_alloc(64, pstk__decoder_size()), pstk__decoder_size());
    const uint64_t plain_size = 2 * size + 1000;
    uint8_t *out = malloc(plain_size);
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    exact_arena_open(&arena,
                     pstk__planes_decode_scratch(info->width, info->height, UINT64_MAX, plain_size),
                     0xa5);
    require(out != NULL && decoder != NULL);
    check_error(&err,
                pstk__planes_decode(decoder,
                                    &(const struct pstk__planes_field){field, size, info->width,
                                                                       info->height, plain_size},
                                    out, &arena, &err),
                "");
    require(arena.used == 0);
    free(out);
}

static void check_field(const uint8_t *field, size_t size)
{
    struct pstk__image_info info;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = pstk__image_planes.probe(field, size, MAX_PIXELS, &info, &err);
    if (r == PSTK_EFBIG)
        return;
    check_error(&err, r, "planes");
    if (r < 0 || info.width > MAX_SIDE || info.height > MAX_SIDE)
        return;
    require(info.width > 0 && info.height > 0 && info.orientation >= 1 && info.orientation <= 8);
    check_coefficients(field, size, &info);
    check_pixels(field, size, &info);
    check_file(field, size, &info);
    check_neighbours();
}

/* ---- recipes -------------------------------------------------------------------------------- */

#define RECIPE 8u

static void keep_field(const uint8_t *field, uint64_t size)
{
#ifdef KEEP_FIELDS
    static uint32_t n;
    char name[32];
    snprintf(name, sizeof name, "field-%u", n++);
    FILE *f = fopen(name, "wb");
    require(f && fputc(0, f) == 0 && fwrite(field, 1, size, f) == size && fclose(f) == 0);
#else
    (void)field;
    (void)size;
#endif
}

static void check_recipe(const uint8_t *data, size_t size)
{
    static const uint32_t lanes[] = {0, 4, 16, 64};
    const uint32_t most = data[7] / N_FIELD_KINDS % 8 == 7 ? 256 : 96; /* several strips: rarely */
    struct field_spec spec = {.width = 1 + data[2] % most, .height = 1 + data[3] % most};
    struct pstk__jpeg_image image;
    struct pstk__planes_header h;
    uint64_t field_size;
    field_state = 88172645463325252ull + data[0] + 256u * data[1];
    spec.color = PSTK__JPEG_GRAY + data[4] % 5;
    field_lanes = lanes[data[4] / 5 % 4];
    field_has_sets = data[4] / 20 % 2;
    spec.kind = data[7] % N_FIELD_KINDS;
    for (uint32_t c = 0; c < 4; c++) {
        spec.h[c] = 1 + (data[5] >> 2 * c) % 4;
        spec.v[c] = 1 + (data[6] >> 2 * c) % 4;
    }
    field_image(&image, &spec);
    uint8_t *field = field_write(&image, 20, &field_size);
    require(field != NULL && pstk__planes_header_read(&h, field, field_size, NULL) == 0);
    keep_field(field, field_size);
    const uint64_t head = (uint64_t)(h.strips - field);
    for (size_t i = RECIPE; i + 3 <= size; i += 3) {
        const uint32_t place = data[i] | (data[i + 1] & 127u) << 8;
        field[data[i + 1] & 128 ? place % head : head + place % h.strips_size] += data[i + 2];
    }
    check_field(field, field_size);
    free(field);
    field_image_close(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1 + RECIPE && data[0] % 2)
        check_recipe(data + 1, size - 1);
    else if (size > 0 && data[0] % 2 == 0)
        check_field(data + 1, size - 1);
    return 0;
}
