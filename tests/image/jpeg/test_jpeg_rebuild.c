/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/kernels.h"
#include "image/jpeg/decode.h"
#include "image/jpeg/plain.h"
#include "image/jpeg/scan.h"
#include "support/jpeg_subject.h"

#include <dirent.h>

/* ---- what is not exact ---------------------------------------------------------------------- */

/* A table whose codes for the end of a block and for a run of 16 zeros change places turns the
 * blocks' ends into runs: no encoder writes that, but it decodes (to zeros) where the runs end. */
TEST(a_file_coded_in_an_odd_way_has_a_standard_file)
{
    static const uint8_t ends[] = {0xff, 0xc4, 0, 0x14, 0x10, 1, 0, 0, 0, 0, 0,
                                   0,    0,    0, 0,    0,    0, 0, 0, 0, 0, 0xf0};
    struct jpeg_spec spec = {.width = 8, .height = 8, .n_components = 1, .h = 1, .v = 1};
    size_t size;
    struct subject s;
    struct bytes b = {0};
    uint8_t *file = jpeg_write(&spec, &size);
    size_t sos = find_marker(file, size, 2, 0xda);
    append(&b, file, sos);
    append(&b, ends, sizeof ends);
    append(&b, file + sos, 10);
    append(&b, "\x03", 1); /* DC difference 0, then four runs of 16 zeros */
    append(&b, "\xff\xd9", 2);
    CHECK(subject_open(&s, b.data, b.size) == 0);
    CHECK_EQ(read_subject(&s), 0);
    CHECK(is_image_of(&s.image, b.data, b.size, 1));
    CHECK_EQ(choose_subject(&s), 0);
    CHECK_EQ(s.exact, 0);
    CHECK_EQ(s.image.rebuild, PSTK__JPEG_REBUILD_STANDARD);
    CHECK(is_image_of(&s.image, s.out, (size_t)s.out_size, 1));
    CHECK(has_same_pixels(b.data, b.size, s.out, (size_t)s.out_size));
    CHECK(has_standard(&s));
    subject_close(&s);
    free(b.data);
    free(file);
}

/* Markers of a file and their segments, those of one kind or the other. */
static struct bytes segments_of(const uint8_t *file, size_t size)
{
    struct bytes b = {0};
    size_t at = 2;
    while (at + 4 <= size && file[at] == 0xff && file[at + 1] != 0xda) {
        size_t n = 2 + ((size_t)file[at + 2] << 8 | file[at + 3]);
        if ((file[at + 1] & 0xf0) == 0xe0 || file[at + 1] == 0xfe)
            append(&b, file + at, n);
        at += n;
    }
    return b;
}

TEST(a_standard_file_keeps_all_application_and_comment_segments_in_order)
{
    struct jpeg_spec spec = plain;
    struct subject s;
    size_t size;
    spec.progressive = 1;
    spec.restart = 2;
    uint8_t *file = jpeg_write(&spec, &size);
    struct bytes one = insert(file, size, 0xdb, comment, sizeof comment - 1);
    struct bytes two = insert(one.data, one.size, 0xc4, exif, sizeof exif - 1);
    append(&two, "tail", 4);
    CHECK(subject_open(&s, two.data, two.size) == 0);
    CHECK_EQ(read_subject(&s), 0);
    CHECK_EQ(s.image.orientation, 6);
    s.image.rebuild = PSTK__JPEG_REBUILD_STANDARD;
    uint64_t out_size;
    int r;
    uint8_t *out = rebuild(&s.image, pstk__jpeg_rebuild_bound(&s.image), &out_size, &r);
    CHECK_EQ(r, 0);
    struct bytes a = segments_of(two.data, two.size), b = segments_of(out, (size_t)out_size);
    CHECK(a.size > sizeof comment + sizeof exif);
    CHECK(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
    CHECK(memcmp(out + out_size - 6, "\xff\xd9tail", 6) == 0);
    free(a.data);
    free(b.data);
    free(out);
    free(one.data);
    free(two.data);
    free(file);
    subject_close(&s);
}

/* A file whose progressive scans leave bits out: its pixels are smoothed. */
TEST(a_smoothed_file_is_marked)
{
    for (int progressive = 0; progressive <= 2; progressive++) {
        struct jpeg_spec spec = plain;
        struct subject s;
        size_t size;
        spec.progressive = progressive;
        uint8_t *file = jpeg_write(&spec, &size);
        CHECK(subject_open(&s, file, size) == 0);
        CHECK_EQ(read_subject(&s), 0);
        CHECK_EQ(s.image.smoothed, progressive == 2);
        CHECK_EQ(s.image.orientation, 1);
        subject_close(&s);
        free(file);
    }
}

/* ---- ISAs ------------------------------------------------------------------------------- */

/* Blocks from empty to full, runs of any length, values of any width. */
static void fill_blocks(int16_t *blocks, uint32_t n_blocks, uint32_t seed)
{
    uint32_t state = seed * 2654435761u + 1;
    memset(blocks, 0, (size_t)n_blocks * 128);
    for (uint32_t k = 0; k < n_blocks; k++) {
        uint32_t density = k % 65, width = seed % 3 == 0 ? 7 : 1 + (seed + k / 5) % 16;
        for (uint32_t i = 0; i < 64; i++) {
            state = state * 1664525u + 1013904223u;
            if (state >> 26 < density)
                blocks[k * 64 + i] = (int16_t)((int16_t)(state >> 8) >> (16 - width));
        }
        if (k % 7 == 0)
            blocks[k * 64 + 1 + k % 63] = k % 2 ? -128 : 128;
    }
}

/* Codes for all symbols, of 16 bits each, or for those that small values need. */
static void fill_tables(struct pstk__jpeg_script *script, int wide)
{
    struct pstk__huffman_spec spec = {.counts = {[15] = 0}};
    pstk__jpeg_script_init(script);
    for (uint32_t i = 0; i < 256; i++)
        spec.symbols[i] = (uint8_t)(i * 77);
    spec.counts[14] = 128;
    spec.counts[15] = 128;
    for (uint32_t i = 0; wide && i < 4; i++) {
        pstk__huffman_init(&script->dc[i], &spec);
        pstk__huffman_init(&script->ac[i], &spec);
    }
}

static int write_with(uint32_t isa, const struct pstk__jpeg_units *units,
                      const struct pstk__jpeg_script *script, uint8_t *out, size_t capacity,
                      size_t *size)
{
    struct pstk__bits bits;
    pstk__bits_init(&bits, out, out + capacity);
    int r = pstk__jpeg_scan_write(units, script, 1, isa, &bits);
    *size = (size_t)(bits.state.at - out);
    return r;
}

TEST(every_isa_codes_blocks_alike)
{
    struct pstk__jpeg_frame f = {.width = 300, .height = 80, .n_components = 3, .max_h = 2};
    const uint8_t factors[3][2] = {{2, 1}, {1, 1}, {1, 1}};
    int16_t *blocks[3];
    struct pstk__jpeg_script *script = malloc(sizeof *script);
    size_t capacity = 1u << 20, size, expected;
    uint8_t *reference = malloc(capacity), *out = malloc(capacity);
    uint32_t n_equal = 0;

    CHECK(script && reference && out);
    for (uint32_t i = 0; i < 3; i++) {
        f.component[i].h = factors[i][0];
        f.component[i].v = factors[i][1];
    }
    pstk__jpeg_frame_layout(&f);
    for (uint32_t i = 0; i < 3; i++)
        blocks[i] = malloc((size_t)f.component[i].stride * f.component[i].rows * 128);
    const int16_t *const all[] = {blocks[0], blocks[1], blocks[2]};
    const struct pstk__jpeg_units units = {&f, all, &script->scan};
    for (uint32_t seed = 0; seed < 60; seed++) {
        for (uint32_t i = 0; i < 3; i++)
            fill_blocks(blocks[i], f.component[i].stride * f.component[i].rows, seed + i);
        fill_tables(script, seed % 4 != 0);
        script->scan = (struct pstk__jpeg_scan){.n_components = seed % 5 ? 3 : 1,
                                                .component = {0, 1, 2},
                                                .dc_table = {0, 1, 1},
                                                .ac_table = {0, 1, 1},
                                                .last = 63,
                                                .restart_interval = seed % 7};
        int r = write_with(PSTK_KERNELS_C, &units, script, reference, capacity, &expected);
        for (uint32_t isa = PSTK_KERNELS_C; isa <= PSTK_KERNELS_NEON; isa++) {
            if (!pstk__kernels_run(isa))
                continue;
            CHECK_EQ(write_with(isa, &units, script, out, capacity, &size), r);
            if (r < 0)
                continue; /* a value without a symbol */
            CHECK(size == expected && memcmp(out, reference, size) == 0);
            CHECK_EQ(write_with(isa, &units, script, out, size - 1, &size), PSTK_EBADMSG);
            n_equal++;
        }
    }
    uint32_t n_isas = 0;
    for (uint32_t isa = PSTK_KERNELS_C; isa <= PSTK_KERNELS_NEON; isa++)
        n_isas += (uint32_t)pstk__kernels_run(isa);
    CHECK(n_equal > 30 * n_isas); /* as many of each ISA */
    /* the tables have a code for every byte, but -32768 has 16 bits, which are no symbol's */
    fill_tables(script, 1);
    for (uint32_t place = 0; place < 64; place = place * 8 + 1)
        for (uint32_t isa = PSTK_KERNELS_C; isa <= PSTK_KERNELS_NEON; isa++) {
            if (!pstk__kernels_run(isa))
                continue;
            script->scan = (struct pstk__jpeg_scan){.n_components = 1, .last = 63};
            f.component[0].across = 4;
            f.component[0].down = 1;
            memset(blocks[0], 0, 64 * 4 * 2);
            CHECK_EQ(write_with(isa, &units, script, out, capacity, &size), 0);
            blocks[0][64 * 3 + place] = -32768;
            CHECK_EQ(write_with(isa, &units, script, out, capacity, &size), PSTK_EBADMSG);
        }
    /* one symbol without a code: no run, and values of one bit */
    script->ac[0].codes[1] = (struct pstk__huffman_code){.missing = 1};
    for (int16_t value = -3; value <= 3; value++)
        for (uint32_t isa = PSTK_KERNELS_C; isa <= PSTK_KERNELS_NEON; isa++) {
            if (!pstk__kernels_run(isa))
                continue;
            memset(blocks[0], 0, 64 * 4 * 2);
            blocks[0][64 * 2 + 1] = value;
            CHECK_EQ(write_with(isa, &units, script, out, capacity, &size),
                     value == 1 || value == -1 ? PSTK_EBADMSG : 0);
        }
    for (uint32_t i = 0; i < 3; i++)
        free(blocks[i]);
    free(script);
    free(reference);
    free(out);
}

TEST(optimal_codes_have_no_more_than_16_bits)
{
    static const uint32_t n_symbols[] = {0, 1, 2, 3, 40, 80, 256};
    for (size_t i = 0; i < sizeof n_symbols / sizeof n_symbols[0]; i++) {
        struct pstk__huffman_spec spec;
        struct pstk__huffman codes;
        uint64_t counts[256] = {0};
        uint32_t kraft = 0;
        for (uint32_t k = 0; k < n_symbols[i]; k++) /* as Fibonacci's, the deepest of trees */
            counts[k * 7 % 256] =
                k < 2 || k > 80 ? 1 : counts[(k - 1) * 7 % 256] + counts[(k - 2) * 7 % 256];
        pstk__huffman_optimal(&spec, counts);
        CHECK_EQ(pstk__huffman_n_codes(&spec), n_symbols[i]);
        for (uint32_t k = 0; k < 16; k++)
            kraft += (uint32_t)spec.counts[k] << (15 - k);
        CHECK(kraft < 65536); /* one code, of all ones, stays free */
        pstk__huffman_init(&codes, &spec);
        for (uint32_t k = 0; k < 256; k++)
            CHECK_EQ(codes.codes[k].missing, counts[k] == 0);
    }
}

/* ---- damage and hostility ------------------------------------------------------------------- */

static void drop_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    (void)user;
    (void)rgb;
    (void)stride;
    (void)n_rows;
}

/* Return the result of decoding the whole file. */
static int decode(const uint8_t *file, size_t size)
{
    static const struct pstk__row_sink nowhere = {.rows = drop_rows, .channels = 3};
    struct pstk__image_info info;
    struct pstk__image_state *state;
    struct pstk__arena arena;
    int r = pstk__image_probe(file, size, PSTK__MAX_PIXELS, &info, NULL);
    if (r < 0)
        return r;
    const struct pstk__box all = {.width = info.width, .height = info.height};
    if (pstk__arena_open(&arena, (size_t)pstk__image_scratch(info.width, info.height)) < 0 ||
        pstk__image_state_open(&state, &arena, PSTK_KERNELS_C, NULL) < 0)
        return -1;
    r = pstk__image_decode(state, &(const struct pstk__coded){&pstk__image_jpeg, file, size, &info},
                           &all, &nowhere, NULL);
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    return r;
}

/* Does our own reader take the file? */
static int is_plain(const uint8_t *file, size_t size)
{
    static struct pstk__jpeg_plain plain_file;
    return pstk__jpeg_plain_open(&plain_file, file, size) && pstk__jpeg_plain_check(&plain_file);
}

/* A damaged file in memory of its own: read takes it exactly when decoding does, and then it comes
 * back, or has a standard file; if our own reader takes it, as libjpeg reads it. Returns 1 when it
 * is taken, 0 when not, -1 when that is not so. */
static int check_damaged(const uint8_t *file, size_t size)
{
    struct subject s;
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return -1;
    memcpy(copy, file, size);
    int decoded = decode(copy, size), r = subject_open(&s, copy, size);
    if (r == 0)
        r = read_subject(&s);
    int is = r == decoded && (r == 0 || (s.err.code == r && s.err.message[0] != 0));
    if (is && r == 0 && is_plain(copy, size))
        is = is_image_of(&s.image, copy, size, 1);
    if (is && r == 0) {
        int chosen = choose_subject(&s);
        is = chosen == 0 ? !s.exact || is_rebuilt(&s) : chosen == PSTK_EBADMSG;
        if (is && chosen == 0 && !s.exact && !s.image.smoothed)
            is = has_same_pixels(copy, size, s.out, (size_t)s.out_size);
    }
    if (!is)
        printf("# decode %d, read %d: %s\n", decoded, r, s.err.message);
    subject_close(&s);
    free(copy);
    return is ? r == 0 : -1;
}

TEST(a_damaged_file_is_read_exactly_when_it_decodes)
{
    for (int kind = 0; kind < 4; kind++) {
        struct jpeg_spec spec = {.width = 21, .height = 17, .n_components = 3, .h = 2, .v = 1};
        size_t size;
        uint32_t n[2] = {0, 0};
        spec.progressive = kind == 1;
        spec.arithmetic = kind == 2;
        spec.interleaved = kind != 3;
        spec.restart = kind == 3 ? 2 : 0;
        spec.quality = 60;
        uint8_t *file = jpeg_write(&spec, &size);
        for (size_t cut = 0; cut < size; cut += 1 + cut % 5)
            CHECK_EQ(check_damaged(file, cut), 0);
        for (size_t bit = 0; bit < size * 8; bit += 3) {
            file[bit / 8] ^= (uint8_t)(1u << bit % 8);
            int r = check_damaged(file, size);
            file[bit / 8] ^= (uint8_t)(1u << bit % 8);
            CHECK(r >= 0);
            n[r]++;
        }
        CHECK(n[0] > 0 && n[1] > 0);
        free(file);
    }
}

TEST(files_that_are_not_read_are_refused_with_the_decoders_codes)
{
    struct subject s;
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    CHECK(subject_open(&s, file, size) == 0);
    CHECK_EQ(pstk__jpeg_image_read(&s.image, file, size, 75 * 61 - 1, &s.arena, &s.err),
             PSTK_EFBIG);
    size_t frame = find_marker(file, size, 2, 0xc0);
    file[frame + 11] = 0x33; /* 3 x 3 beside 2 x 1 */
    file[frame + 14] = 0x21;
    CHECK_EQ(read_subject(&s), PSTK_ENOTSUP);
    file[frame + 9] = 2;
    CHECK_EQ(read_subject(&s), PSTK_ENOTSUP);
    subject_close(&s);
    free(file);
}

/* Any byte of the skeleton, any size of output, any frame: a result, and nothing out of bounds. */
TEST(a_hostile_skeleton_or_frame_is_refused)
{
    uint32_t n_refused = 0, n_taken = 0;
    for (int kind = 0; kind < 3; kind++) {
        struct jpeg_spec spec = {.width = 21, .height = 17, .n_components = 3, .h = 2, .v = 2};
        struct subject s;
        uint64_t out_size;
        size_t size;
        int r;
        spec.interleaved = 1;
        spec.progressive = kind == 1;
        spec.arithmetic = kind == 2;
        uint8_t *file = jpeg_write(&spec, &size);
        CHECK(subject_open(&s, file, size) == 0);
        CHECK_EQ(read_subject(&s), 0);
        CHECK_EQ(choose_subject(&s), 0);
        for (size_t bit = 0; bit < s.image.skeleton_size * 8; bit += 1 + bit % 3) {
            struct pstk__jpeg_image image = s.image;
            image.skeleton[bit / 8] ^= (uint8_t)(1u << bit % 8);
            image.rebuild = bit % 3 == 0 ? PSTK__JPEG_REBUILD_STANDARD : s.image.rebuild;
            free(rebuild(&image, size + bit % 7 * 100, &out_size, &r));
            image.skeleton[bit / 8] ^= (uint8_t)(1u << bit % 8);
            CHECK(r == 0 || r == PSTK_EBADMSG);
            n_refused += r < 0;
            n_taken += r == 0;
        }
        for (uint32_t i = 0; i < sizeof s.image.frame * 8; i++) {
            struct pstk__jpeg_image image = s.image;
            uint8_t frame[sizeof image.frame];
            memcpy(frame, &image.frame, sizeof frame);
            frame[i / 8] ^= (uint8_t)(1u << i % 8);
            memcpy(&image.frame, frame, sizeof frame);
            struct pstk__jpeg_frame safe = image.frame; /* its scratch is the caller's affair */
            memcpy(&image.frame, &s.image.frame, sizeof safe);
            uint64_t scratch = pstk__jpeg_rebuild_scratch(&image.frame, image.skeleton_size);
            image.frame = safe;
            struct pstk__arena arena;
            CHECK(pstk__arena_open(&arena, (size_t)scratch) == 0);
            uint8_t *out = malloc(size);
            r = pstk__jpeg_image_rebuild(&image, out, size, &out_size, &arena, NULL);
            CHECK(r == 0 || r == PSTK_EBADMSG || r == PSTK_ENOMEM);
            free(out);
            pstk__arena_close(&arena);
        }
        for (uint32_t way = 0; way <= 5; way++) {
            struct pstk__jpeg_image image = s.image;
            image.rebuild = way;
            free(rebuild(&image, size, &out_size, &r));
            CHECK(r == (way == s.image.rebuild ? 0 : PSTK_EBADMSG) || way == 3);
        }
        s.image.parameters = 2;
        free(rebuild(&s.image, size, &out_size, &r));
        CHECK_EQ(r, PSTK_EBADMSG);
        subject_close(&s);
        free(file);
    }
    CHECK(n_refused > 0 && n_taken > 0);
}

/* Each call with less and less memory in the arena. */
TEST(an_arena_that_is_too_small_is_an_error_at_any_size)
{
    for (int kind = 0; kind < 3; kind++) {
        struct jpeg_spec spec = {.width = 30, .height = 20, .n_components = 1, .h = 2, .v = 2};
        struct subject s;
        size_t size, n_refused = 0;
        spec.arithmetic = kind == 1;
        spec.progressive = kind == 2;
        uint8_t *file = jpeg_write(&spec, &size);
        CHECK(subject_open(&s, file, size) == 0);
        for (size_t left = 0; left < s.arena.size; left += 64 + left / 64 / 8 * 64) {
            pstk__arena_reset(&s.arena, 0);
            CHECK(pstk__arena_get(&s.arena, s.arena.size - left) != NULL);
            int r = pstk__jpeg_image_read(&s.image, file, size, PSTK__MAX_PIXELS, &s.arena, &s.err);
            if (r == 0)
                r = choose_subject(&s);
            CHECK(r == 0 || r == PSTK_ENOMEM);
            CHECK(r == 0 || s.err.code == PSTK_ENOMEM);
            CHECK(r < 0 || s.exact);
            n_refused += r < 0;
        }
        CHECK(n_refused > 10);
        CHECK_EQ(read_subject(&s), 0);
        CHECK_EQ(choose_subject(&s), 0);
        CHECK_EQ(s.exact, 1);
        subject_close(&s);
        free(file);
    }
}

/* ---- real files ----------------------------------------------------------------------------- */

static uint8_t *load(const char *folder, const char *name, size_t *size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0 && ftell(file) > 0) {
        *size = (size_t)ftell(file);
        data = malloc(*size);
        rewind(file);
        if (data && fread(data, 1, *size, file) != *size) {
            free(data);
            data = NULL;
        }
    }
    if (file)
        fclose(file);
    return data;
}

struct tally {
    uint32_t n_files, n_refused, n_exact[4], n_inexact, n_wrong;
};

static void check_real(struct tally *t, const char *name, const uint8_t *file, size_t size)
{
    struct subject s;
    int decoded = decode(file, size), r = subject_open(&s, file, size);
    if (r == 0)
        r = read_subject(&s);
    t->n_files++;
    if (r != decoded || (r == 0 && choose_subject(&s) < 0)) {
        t->n_wrong++;
        printf("# %s: decode %d, read %d, %s\n", name, decoded, r, s.err.message);
    } else if (r < 0) {
        t->n_refused++;
    } else if (s.exact) {
        t->n_exact[s.image.rebuild & 3]++;
        t->n_wrong += !is_rebuilt(&s) || !is_image_of(&s.image, file, size, 1);
    } else {
        t->n_inexact++;
        printf("# %s: not exact\n", name);
        t->n_wrong += !has_same_pixels(file, size, s.out, (size_t)s.out_size);
    }
    subject_close(&s);
}

TEST(real_files_come_back)
{
    const char *folders[] = {getenv("PENSTOCK_TEST_IMAGES"), getenv("PENSTOCK_TEST_JPEGS")};
    struct tally t = {0};
    for (size_t i = 0; i < 2; i++) {
        struct dirent **entries;
        int n = folders[i] ? scandir(folders[i], &entries, NULL, alphasort) : 0;
        for (int k = 0; k < n; k++) {
            size_t size;
            const char *name = entries[k]->d_name;
            uint8_t *file = name[0] == '.' ? NULL : load(folders[i], name, &size);
            if (file && size > 2 && file[0] == 0xff && file[1] == 0xd8)
                check_real(&t, name, file, size);
            free(file);
            free(entries[k]);
        }
        if (n > 0)
            free(entries);
    }
    if (t.n_files == 0)
        SKIP("PENSTOCK_TEST_IMAGES and PENSTOCK_TEST_JPEGS are not set");
    printf("# %u files: %u refused, exact by our coder %u, by libjpeg %u, not exact %u\n",
           t.n_files, t.n_refused, t.n_exact[PSTK__JPEG_REBUILD_SCANS],
           t.n_exact[PSTK__JPEG_REBUILD_LIBRARY], t.n_inexact);
    CHECK_EQ(t.n_wrong, 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_file_coded_in_an_odd_way_has_a_standard_file),
        CASE(a_standard_file_keeps_all_application_and_comment_segments_in_order),
        CASE(a_smoothed_file_is_marked),
        CASE(every_isa_codes_blocks_alike),
        CASE(optimal_codes_have_no_more_than_16_bits),
        CASE(a_damaged_file_is_read_exactly_when_it_decodes),
        CASE(files_that_are_not_read_are_refused_with_the_decoders_codes),
        CASE(a_hostile_skeleton_or_frame_is_refused),
        CASE(an_arena_that_is_too_small_is_an_error_at_any_size),
        CASE(real_files_come_back),
    };
    return RUN_CASES(cases);
}
