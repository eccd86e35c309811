/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG files stored as planes: pixels against libjpeg's, and the files that come back. */
#include "support/channels.h"
#include "support/exact_arena.h"
#include "support/jpeg_writer.h"
#include "support/png_writer.h"
#include "support/test.h"

#include "base/codec.h"
#include "image/image.h"
#include "image/jpeg/decode.h"
#include "image/jpeg/kernels.h"
#include "image/planes/decode.h"
#include "image/planes/file.h"
#include "image/planes/kernels.h"

#include <dirent.h>

#define EACH_ISA(v)                                                                                \
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)                                 \
        if (pstk__planes_kernels(v) != NULL && pstk__jpeg_kernels(v) != NULL)

static struct pstk__planes_encoder *encoder; /* opened by main */

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

/* ---- pixels --------------------------------------------------------------------------------- */

/* A file, its field, and the pixels of the whole by libjpeg. */
struct picture {
    uint8_t *file, *field, *rgb;
    uint64_t file_size, field_size, plain_size;
    uint32_t equivalent;
    struct pstk__image_info info;
    uint32_t passthrough; /* enum pstk_passthrough */
};

struct rows {
    const struct picture *picture; /* NULL: they are kept */
    uint8_t *rgb;
    struct pstk__box box;
    uint32_t channels;
    uint32_t n, n_different;
};

static void take_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct rows *r = user;
    for (uint32_t k = 0; k < n_rows; k++, rgb += stride, r->n++) {
        const size_t size = (size_t)r->box.width * 3;
        if (r->picture == NULL) {
            memcpy(r->rgb + r->n * size, rgb, size);
            continue;
        }
        const size_t at = ((size_t)(r->box.top + r->n) * r->picture->info.width + r->box.left) * 3;
        r->n_different += r->n >= r->box.height ||
                          row_differs(rgb, r->picture->rgb + at, r->box.width, r->channels);
    }
}

/* Decoders of an ISA, with the scratch promised for an image of this size. */
struct decoder {
    struct pstk__arena arena;
    struct pstk__image_state *state;
};

static void decoder_open(struct decoder *d, const struct pstk__image_info *info, uint32_t isa)
{
    const uint64_t size = pstk__image_scratch(info->width, info->height);
    if (pstk__arena_open(&d->arena, size) < 0 ||
        pstk__image_state_open(&d->state, &d->arena, isa, NULL) < 0)
        abort();
}

static void decoder_close(struct decoder *d)
{
    pstk__image_state_close(d->state);
    pstk__arena_close(&d->arena);
}

static int channels_differ(struct decoder *d, const struct picture *p, struct pstk__box box,
                           uint32_t channels)
{
    struct rows rows = {.picture = p, .box = box, .channels = channels};
    const struct pstk__coded image = {&pstk__image_planes, p->field, p->field_size, &p->info};
    const struct pstk__row_sink sink = {.rows = take_rows, .user = &rows, .channels = channels};
    const int r = pstk__image_decode(d->state, &image, &box, &sink, NULL);
    const int bad = r != 0 || rows.n != box.height || rows.n_different != 0 || d->arena.used != 0;
    if (bad)
        printf("# box %u,%u %ux%u, %u channels: %d, %u rows, %u differ\n", box.left, box.top,
               box.width, box.height, channels, r, rows.n, rows.n_different);
    return bad;
}

/* In all numbers of channels. */
static int box_differs(struct decoder *d, const struct picture *p, struct pstk__box box)
{
    return channels_differ(d, p, box, 3) || channels_differ(d, p, box, 1) ||
           channels_differ(d, p, box, 4);
}

/* Decode these bytes whole, by libjpeg. NULL: it fails. */
static uint8_t *decode_file(const uint8_t *file, uint64_t size, struct pstk__image_info *info)
{
    struct decoder d;
    if (pstk__image_jpeg.probe(file, size, UINT64_MAX, info, NULL) < 0)
        return NULL;
    const struct pstk__box all = {.width = info->width, .height = info->height};
    struct rows rows = {.rgb = malloc((size_t)info->width * info->height * 3), .box = all};
    const struct pstk__row_sink sink = {.rows = take_rows, .user = &rows, .channels = 3};
    decoder_open(&d, info, PSTK_KERNELS_C);
    if (pstk__image_decode(d.state,
                           &(const struct pstk__coded){&pstk__image_jpeg, file, size, info}, &all,
                           &sink, NULL) < 0) {
        free(rows.rgb);
        rows.rgb = NULL;
    }
    decoder_close(&d);
    return rows.rgb;
}

static void picture_close(struct picture *p)
{
    free(p->file);
    free(p->field);
    free(p->rgb);
}

static int is_same_info(const struct pstk__image_info *a, const struct pstk__image_info *b)
{
    return a->encoding == b->encoding && a->width == b->width && a->height == b->height &&
           a->orientation == b->orientation && a->channels == b->channels &&
           a->bit_depth == b->bit_depth && a->has_palette == b->has_palette;
}

/* Takes the file. What pstk__planes_encode returned; -1 when what it gave is not as promised:
 * smaller, the same file again or one of the same pixels, in memory of its size. */
static int picture_open(struct picture *p, uint8_t *file, uint64_t size)
{
    struct pstk__planes_file stored;
    struct pstk__image_info plain_info;
    *p = (struct picture){.file = file, .file_size = size};
    const int r = pstk__planes_encode(encoder, file, size, 0, &stored, NULL);
    p->passthrough = stored.passthrough;
    if (r != 1)
        return r;
    p->field = malloc(stored.stored_size);
    memcpy(p->field, stored.stored, stored.stored_size);
    p->field_size = stored.stored_size;
    p->plain_size = stored.plain_size;
    p->equivalent = stored.equivalent;
    p->rgb = decode_file(file, size, &p->info);
    if (p->rgb == NULL || stored.stored_size >= size)
        return -1;
    if (!stored.equivalent)
        return stored.plain_size == size && memcmp(stored.plain, file, size) == 0 ? 1 : -1;
    uint8_t *rgb = decode_file(stored.plain, stored.plain_size, &plain_info);
    const int same = rgb && is_same_info(&plain_info, &p->info) &&
                     memcmp(rgb, p->rgb, (size_t)p->info.width * p->info.height * 3) == 0;
    free(rgb);
    return same ? 1 : -1;
}

/* Rebuild the file from the field, within exactly the promised scratch. 0: it is the file, or an
 * equivalent one with the same pixels. */
static int file_differs(const struct picture *p)
{
    const uint64_t scratch =
        pstk__planes_decode_scratch(p->info.width, p->info.height, UINT64_MAX, p->plain_size);
    const uint64_t memory_size = pstk__decoder_size();
    void *memory = aligned_alloc(64, memory_size);
    uint8_t *out = malloc(p->plain_size);
    struct pstk__arena arena = {.base = NULL};
    struct pstk__image_info info;
    exact_arena_open(&arena, scratch, 0xa5);
    struct pstk__decoder *d = pstk__decoder_init(memory, memory_size);
    int bad = pstk__planes_decode(d,
                                  &(const struct pstk__planes_field){p->field, p->field_size,
                                                                     p->info.width, p->info.height,
                                                                     p->plain_size},
                                  out, &arena, NULL) != 0;
    bad |= arena.used != 0;
    if (!bad && !p->equivalent)
        bad = p->plain_size != p->file_size || memcmp(out, p->file, p->file_size) != 0;
    if (!bad && p->equivalent) {
        uint8_t *rgb = decode_file(out, p->plain_size, &info);
        bad = !rgb || memcmp(rgb, p->rgb, (size_t)p->info.width * p->info.height * 3) != 0;
        free(rgb);
    }
    exact_arena_close(&arena);
    free(memory);
    free(out);
    return bad;
}

static struct pstk__box draw_box(const struct pstk__image_info *info)
{
    struct pstk__box box = {draw(3) ? draw(info->width) : 0, draw(3) ? draw(info->height) : 0, 0,
                            0};
    box.width = draw(4) ? 1 + draw(info->width - box.left) : info->width - box.left;
    box.height = draw(4) ? 1 + draw(info->height - box.top) : info->height - box.top;
    return box;
}

/* The whole, and n random boxes, by each ISA. */
static int boxes_differ(const struct picture *p, uint32_t n)
{
    int bad = 0;
    EACH_ISA(v)
    {
        struct decoder d;
        decoder_open(&d, &p->info, v);
        bad |= box_differs(&d, p, (struct pstk__box){0, 0, p->info.width, p->info.height});
        for (uint32_t i = 0; i < n && !bad; i++)
            bad |= box_differs(&d, p, draw_box(&p->info));
        decoder_close(&d);
    }
    return bad;
}

/* Files of many kinds, and what must become of each: planes, or why not. */
enum outcome { SAME, INCOMPLETE = PSTK_PASSTHROUGH_INCOMPLETE, NO_GAIN = PSTK_PASSTHROUGH_NO_GAIN };

static const struct kind {
    struct jpeg_spec spec;
    enum outcome outcome;
} kinds[] = {
    {{.width = 75, .height = 51, .n_components = 1, .h = 1, .v = 1, .interleaved = 1}, SAME},
    {{.width = 75, .height = 51, .n_components = 1, .h = 2, .v = 3, .interleaved = 1}, SAME},
    {{.width = 75, .height = 51, .n_components = 3, .h = 1, .v = 1, .interleaved = 1}, SAME},
    {{.width = 75, .height = 51, .n_components = 3, .h = 2, .v = 1, .interleaved = 1}, SAME},
    {{.width = 75, .height = 51, .n_components = 3, .h = 1, .v = 2, .interleaved = 1}, SAME},
    {{.width = 75, .height = 51, .n_components = 3, .h = 2, .v = 2, .interleaved = 1}, SAME},
    {{.width = 75, .height = 51, .n_components = 3, .h = 4, .v = 1, .interleaved = 1}, SAME},
    {{.width = 75, .height = 51, .n_components = 3, .h = 2, .v = 2, .interleaved = 0}, SAME},
    {{.width = 75, .height = 51, .n_components = 3, .h = 2, .v = 1, .restart = 3, .interleaved = 1},
     SAME},
    {{.width = 300, .height = 200, .n_components = 3, .h = 2, .v = 2, .progressive = 1}, SAME},
    {{.width = 300, .height = 400, .n_components = 3, .h = 2, .v = 2, .progressive = 2},
     INCOMPLETE},
    {{.width = 75,
      .height = 51,
      .n_components = 3,
      .h = 2,
      .v = 2,
      .arithmetic = 1,
      .interleaved = 1,
      .quality = 50},
     SAME},
    {{.width = 300,
      .height = 300,
      .n_components = 3,
      .h = 2,
      .v = 2,
      .arithmetic = 1,
      .interleaved = 1,
      .quality = 50},
     NO_GAIN} /* the file is smaller */,
    {{.width = 75, .height = 51, .n_components = 3, .h = 1, .v = 1, .rgb = 1, .interleaved = 1},
     SAME},
    {{.width = 75, .height = 51, .n_components = 4, .h = 1, .v = 1, .rgb = 1, .interleaved = 1},
     SAME},
    {{.width = 75, .height = 51, .n_components = 4, .h = 2, .v = 2, .interleaved = 1}, SAME},
    {{.width = 300,
      .height = 400,
      .n_components = 3,
      .h = 2,
      .v = 2,
      .interleaved = 1,
      .quality = 75},
     SAME},
    {{.width = 400,
      .height = 300,
      .n_components = 3,
      .h = 1,
      .v = 1,
      .interleaved = 1,
      .quality = 98},
     SAME},
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

TEST(files_of_every_kind_come_back_and_their_boxes_have_libjpegs_pixels)
{
    for (uint32_t i = 0; i < N_KINDS; i++) {
        struct picture p;
        size_t size;
        uint8_t *file = jpeg_write(&kinds[i].spec, &size);
        const int r = picture_open(&p, file, size);
        if (r != (kinds[i].outcome == SAME))
            printf("# kind %u: %d\n", i, r);
        CHECK_EQ(r, kinds[i].outcome == SAME);
        CHECK_EQ(p.passthrough, (uint32_t)kinds[i].outcome);
        if (r == 1) {
            CHECK(!p.equivalent);
            CHECK(!file_differs(&p));
            CHECK(!boxes_differ(&p, 25));
        }
        picture_close(&p);
    }
}

/* Strips of one or two MCU rows: boxes begin and end in every place of them. */
TEST(every_box_of_a_small_image_has_libjpegs_pixels)
{
    static const struct jpeg_spec spec = {.width = 19,
                                          .height = 18,
                                          .n_components = 3,
                                          .h = 2,
                                          .v = 2,
                                          .interleaved = 1,
                                          .quality = 95};
    struct picture p;
    struct decoder d;
    size_t size;
    uint8_t *file = jpeg_write(&spec, &size);
    CHECK_EQ(picture_open(&p, file, size), 1);
    decoder_open(&d, &p.info, PSTK_KERNELS_AUTO);
    for (uint32_t top = 0; top < p.info.height; top++)
        for (uint32_t left = 0; left < p.info.width; left++)
            for (uint32_t height = 1; height <= p.info.height - top; height++)
                for (uint32_t width = 1; width <= p.info.width - left; width += 1 + width / 3)
                    CHECK(!box_differs(&d, &p, (struct pstk__box){left, top, width, height}));
    decoder_close(&d);
    picture_close(&p);
}

TEST(the_decoder_of_planes_keeps_the_contract_of_decoders)
{
    static const struct jpeg_spec spec = {
        .width = 75, .height = 51, .n_components = 3, .h = 2, .v = 2, .interleaved = 1};
    struct picture p;
    struct decoder d;
    struct pstk__image_info info;
    struct rows rows = {.box = {0, 0, 76, 51}};
    const struct pstk__row_sink sink = {.rows = take_rows, .user = &rows, .channels = 3};
    size_t size;
    uint8_t *file = jpeg_write(&spec, &size);
    CHECK_EQ(picture_open(&p, file, size), 1);
    CHECK_EQ(pstk__image_planes.probe(p.field, p.field_size, 75 * 51, &info, NULL), 0);
    CHECK(is_same_info(&info, &p.info));
    CHECK_EQ(pstk__image_planes.probe(p.field, p.field_size, 75 * 51 - 1, &info, NULL), PSTK_EFBIG);
    decoder_open(&d, &p.info, PSTK_KERNELS_AUTO);
    CHECK_EQ(pstk__image_decode(
                 d.state,
                 &(const struct pstk__coded){&pstk__image_planes, p.field, p.field_size, &p.info},
                 &rows.box, &sink, NULL),
             PSTK_EINVAL);
    info.width = 76;
    CHECK_EQ(pstk__image_decode(
                 d.state,
                 &(const struct pstk__coded){&pstk__image_planes, p.field, p.field_size, &info},
                 &rows.box, &sink, NULL),
             PSTK_EBADMSG);
    CHECK(rows.n == 0 && d.arena.used == 0);
    decoder_close(&d);
    picture_close(&p);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Libjpeg smooths its blocks, which planes know nothing of. Zeros behind the end make it one that
 * would shrink. */
TEST(a_file_that_libjpeg_smooths_stays_as_it_is)
{
    for (int progressive = 1; progressive <= 2; progressive++) {
        const struct jpeg_spec spec = {.width = 75,
                                       .height = 51,
                                       .n_components = 3,
                                       .h = 2,
                                       .v = 2,
                                       .progressive = progressive};
        struct pstk__planes_file out;
        size_t size;
        uint8_t *file = jpeg_write(&spec, &size), *longer = calloc(1, size + 5000);
        memcpy(longer, file, size);
        CHECK_EQ(pstk__planes_encode(encoder, longer, size + 5000, 0, &out, NULL),
                 progressive == 1);
        CHECK_EQ(out.passthrough, progressive == 1 ? 0 : PSTK_PASSTHROUGH_INCOMPLETE);
        free(file);
        free(longer);
    }
}

TEST(a_file_that_is_no_sound_jpeg_stays_as_it_is)
{
    static const struct png_spec png = {
        .width = 30, .height = 40, .color = PNG_COLOR_TYPE_RGB, .depth = 8};
    static const struct jpeg_spec jpeg = {
        .width = 75, .height = 51, .n_components = 3, .h = 2, .v = 2, .interleaved = 1};
    struct pstk__planes_file out;
    size_t size;
    uint8_t *file = png_write(&png, &size);
    CHECK_EQ(pstk__planes_encode(encoder, file, size, 0, &out, NULL), 0);
    CHECK_EQ(out.passthrough, PSTK_PASSTHROUGH_DAMAGED);
    for (uint32_t i = 0; i < size; i++)
        file[i] = (uint8_t)draw(256);
    for (uint32_t n = 0; n < 64; n++)
        CHECK_EQ(pstk__planes_encode(encoder, file, n, 0, &out, NULL), 0);
    CHECK_EQ(pstk__planes_encode(encoder, file, size, 0, &out, NULL), 0);
    free(file);
    file = jpeg_write(&jpeg, &size);
    /* the last byte or two are the marker of the end, without which a file is read */
    for (uint64_t n = 0; n < size - 2; n += 1 + draw(30))
        CHECK(pstk__planes_encode(encoder, file, n, 0, &out, NULL) == 0 &&
              out.passthrough == PSTK_PASSTHROUGH_DAMAGED);
    CHECK_EQ(pstk__planes_encode(encoder, file, size, 1, &out, NULL), 1);
    CHECK_EQ(out.passthrough, 0);
    free(file);
}

/* A gray image whose blocks end in four runs of 16 zeros, coded by a table that has nothing else:
 * no encoder writes that, but it decodes. Six bits a block. */
static uint8_t *odd_file(size_t *size)
{
    static const uint8_t runs[22] = {0xff, 0xc4, 0, 0x14, 0x10, 1, 0, 0, 0, 0, 0,
                                     0,    0,    0, 0,    0,    0, 0, 0, 0, 0, 0xf0};
    static const struct jpeg_spec spec = {
        .width = 8, .height = 8, .n_components = 1, .h = 1, .v = 1, .interleaved = 1};
    const uint32_t side = 512, coded = side / 8 * side / 8 * 6 / 8;
    uint8_t *file = jpeg_write(&spec, size), *odd = NULL;
    size_t scan = 2;
    while (file[scan + 1] != 0xda) { /* segment by segment */
        if (file[scan + 1] == 0xc0)
            file[scan + 5] = file[scan + 7] = side >> 8, file[scan + 6] = file[scan + 8] = 0;
        scan += 2 + ((size_t)file[scan + 2] << 8 | file[scan + 3]);
    }
    *size = scan + sizeof runs + 10 + coded + 2;
    odd = calloc(1, *size);
    memcpy(odd, file, scan);
    memcpy(odd + scan, runs, sizeof runs);
    memcpy(odd + scan + sizeof runs, file + scan, 10);
    memcpy(odd + *size - 2, "\xff\xd9", 2);
    free(file);
    return odd;
}

TEST(a_file_that_cannot_be_rebuilt_is_stored_as_an_equivalent_one_or_not_at_all)
{
    struct picture p;
    struct pstk__planes_file out;
    size_t size;
    uint8_t *odd = odd_file(&size);
    CHECK_EQ(pstk__planes_encode(encoder, odd, size, 1, &out, NULL), 0);
    CHECK_EQ(out.passthrough, PSTK_PASSTHROUGH_NOT_EXACT);
    CHECK_EQ(picture_open(&p, odd, size), 1);
    CHECK(p.equivalent);
    CHECK(!file_differs(&p));
    CHECK(!boxes_differ(&p, 3));
    picture_close(&p);
}

TEST(a_damaged_field_gives_no_file_of_another_size_and_no_other_error)
{
    static const struct jpeg_spec spec = {
        .width = 40, .height = 30, .n_components = 3, .h = 2, .v = 2, .interleaved = 1};
    struct picture p;
    struct pstk__arena arena = {.base = NULL};
    struct pstk_error err;
    size_t size;
    uint32_t n_whole = 0;
    const uint64_t memory_size = pstk__decoder_size();
    void *memory = aligned_alloc(64, memory_size);
    struct pstk__decoder *d = pstk__decoder_init(memory, memory_size);
    uint8_t *file = jpeg_write(&spec, &size);
    CHECK_EQ(picture_open(&p, file, size), 1);
    uint8_t *out = malloc(size + 1), skeleton[4];
    memcpy(skeleton, p.field + 28, 4);
    pstk_error_init(&err, sizeof err);
    exact_arena_open(&arena, pstk__planes_decode_scratch(40, 30, UINT64_MAX, size + 1), 0);
    for (int by = -1; by <= 1; by++)
        CHECK_EQ(pstk__planes_decode(
                     d,
                     &(const struct pstk__planes_field){p.field, p.field_size, 40, 30, size + by},
                     out, &arena, &err),
                 by ? PSTK_EBADMSG : 0);
    memset(p.field + 28, 0xff, 4); /* bytes of the skeleton */
    CHECK_EQ(pstk__planes_decode(
                 d, &(const struct pstk__planes_field){p.field, p.field_size, 40, 30, size}, out,
                 &arena, &err),
             PSTK_EBADMSG);
    memcpy(p.field + 28, skeleton, 4);
    for (uint64_t bit = 0; bit < 8 * p.field_size; bit += 1 + draw(5)) {
        p.field[bit / 8] ^= (uint8_t)(1u << bit % 8);
        out[size] = 0xa5;
        const int r = pstk__planes_decode(
            d, &(const struct pstk__planes_field){p.field, p.field_size, 40, 30, size}, out, &arena,
            &err);
        CHECK(r == 0 || r == PSTK_EBADMSG || r == PSTK_ENOTSUP || r == PSTK_ENOMEM);
        CHECK(out[size] == 0xa5 && arena.used == 0 && (r == 0 || err.code == r));
        n_whole += r == 0 && memcmp(out, p.file, size) == 0;
        p.field[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    printf("# %u of %u changes give the file\n", n_whole, (unsigned)p.field_size * 8 / 3);
    exact_arena_close(&arena);
    free(out);
    free(memory);
    picture_close(&p);
}

/* ---- real files ----------------------------------------------------------------------------- */

static uint8_t *read_file(const char *folder, const char *name, size_t *size)
{
    char path[4096];
    uint8_t *data = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    long end = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (end > 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)end);
    *size = end > 0 ? (size_t)end : 0;
    if (data && fread(data, 1, *size, f) != *size)
        abort();
    if (f)
        fclose(f);
    return data;
}

/* Every `step`-th file of a folder. Returns how many differ. */
static uint32_t folder_differs(const char *folder, uint32_t step)
{
    uint32_t n[2] = {0}, n_equivalent = 0, n_bad = 0, number = 0;
    struct dirent *e;
    DIR *d = opendir(folder);
    while (d && (e = readdir(d)) != NULL) {
        struct picture p;
        size_t size;
        uint8_t *file = e->d_name[0] != '.' && number++ % step == 0
                            ? read_file(folder, e->d_name, &size)
                            : NULL;
        if (file == NULL)
            continue;
        const int r = picture_open(&p, file, size);
        const int bad = r < 0 || (r == 1 && (file_differs(&p) || boxes_differ(&p, 4)));
        if (bad)
            printf("# %s: %d\n", e->d_name, r);
        n_bad += bad != 0;
        n[r == 1]++;
        n_equivalent += p.equivalent;
        picture_close(&p);
    }
    if (d)
        closedir(d);
    printf("# %u stored, %u of them as equivalents; %u stay\n", n[1], n_equivalent, n[0]);
    return n_bad;
}

TEST(real_files_come_back_and_their_boxes_have_libjpegs_pixels)
{
    const char *images = getenv("PENSTOCK_TEST_IMAGES"), *jpegs = getenv("PENSTOCK_TEST_JPEGS");
    if (!images && !jpegs)
        SKIP("neither PENSTOCK_TEST_IMAGES nor PENSTOCK_TEST_JPEGS names a folder");
    if (images)
        CHECK_EQ(folder_differs(images, 10), 0);
    if (jpegs)
        CHECK_EQ(folder_differs(jpegs, 1), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(files_of_every_kind_come_back_and_their_boxes_have_libjpegs_pixels),
        CASE(every_box_of_a_small_image_has_libjpegs_pixels),
        CASE(the_decoder_of_planes_keeps_the_contract_of_decoders),
        CASE(a_file_that_libjpeg_smooths_stays_as_it_is),
        CASE(a_file_that_is_no_sound_jpeg_stays_as_it_is),
        CASE(a_file_that_cannot_be_rebuilt_is_stored_as_an_equivalent_one_or_not_at_all),
        CASE(a_damaged_field_gives_no_file_of_another_size_and_no_other_error),
        CASE(real_files_come_back_and_their_boxes_have_libjpegs_pixels),
    };
    if (pstk__planes_encoder_open(&encoder, NULL) < 0)
        return 1;
    const int r = RUN_CASES(cases);
    pstk__planes_encoder_close(encoder);
    return r;
}
