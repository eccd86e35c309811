/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/codec.h"

/* Write short texts that repeat each other, the same bytes on each call. */
static size_t make_text(char *out, size_t size, uint32_t seed)
{
    static const char *const words[] = {"pressure ", "pipe ",  "turbine ",
                                        "water ",    "valve ", "gate "};
    size_t n = 0;
    uint32_t x = seed * 2654435761u + 1;
    while (n + 10 < size) {
        x = x * 1664525u + 1013904223u;
        n += (size_t)snprintf(out + n, size - n, "%s%u", words[(x >> 16) % 6], (x >> 8) % 10);
    }
    return n;
}

static struct pstk__decoder *make_decoder(void **memory)
{
    *memory = aligned_alloc(64, pstk__decoder_size());
    return pstk__decoder_init(*memory, pstk__decoder_size());
}

/* Encode; returns the stored size. */
static int64_t encode(void *out, uint64_t out_size, const void *data, uint64_t size,
                      const void *dictionary, uint64_t dictionary_size)
{
    struct pstk__encoder *e;
    if (pstk__encoder_open(&e, 0, dictionary, dictionary_size, NULL) < 0)
        return -1;
    int64_t n = pstk__encoder_encode(e, data, size, out, out_size, NULL);
    pstk__encoder_close(e);
    return n;
}

TEST(encoded_bytes_decode_to_the_original)
{
    static char text[70000], stored[80000], plain[70000];
    const size_t sizes[] = {0, 1, 20, 1000, 70000};
    void *memory;
    struct pstk__decoder *d = make_decoder(&memory);
    CHECK(d != NULL);
    for (int i = 0; i < 5; i++) {
        size_t size = sizes[i] < 20 ? sizes[i] : make_text(text, sizes[i], 7);
        CHECK(pstk__encoder_bound(size) <= sizeof stored);
        int64_t n = encode(stored, sizeof stored, text, size, NULL, 0);
        CHECK(n > 0);
        memset(plain, 0xee, sizeof plain);
        CHECK_EQ(
            pstk__codec_decode(d, PSTK_CODEC_ZSTD, NULL, stored, (uint64_t)n, plain, size, NULL),
            0);
        CHECK(memcmp(plain, text, size) == 0);
    }
    free(memory);
}

TEST(a_wrong_plain_size_is_refused_before_decoding)
{
    char text[1000], stored[1200], plain[1000];
    size_t size = make_text(text, sizeof text, 1);
    int64_t n = encode(stored, sizeof stored, text, size, NULL, 0);
    void *memory;
    struct pstk__decoder *d = make_decoder(&memory);
    struct pstk_error err = {0};
    memset(plain, 0xee, sizeof plain);
    CHECK_EQ(pstk__codec_decode(d, 1, NULL, stored, (uint64_t)n, plain, size - 1, &err),
             PSTK_EBADMSG);
    CHECK(strstr(err.message, "holds"));
    CHECK_EQ((uint8_t)plain[0], 0xee);
    CHECK_EQ(pstk__codec_decode(d, 0, NULL, text, 10, plain, 11, &err), PSTK_EBADMSG);
    free(memory);
}

TEST(anything_but_exactly_one_frame_is_refused)
{
    char text[500], stored[2000], plain[1000];
    size_t size = make_text(text, sizeof text, 2);
    uint64_t n = (uint64_t)encode(stored, 900, text, size, NULL, 0);
    void *memory;
    struct pstk__decoder *d = make_decoder(&memory);
    for (uint64_t cut = 0; cut < n; cut++)
        CHECK_EQ(pstk__codec_decode(d, 1, NULL, stored, cut, plain, size, NULL), PSTK_EBADMSG);
    memcpy(stored + n, stored, n);
    CHECK_EQ(pstk__codec_decode(d, 1, NULL, stored, 2 * n, plain, size, NULL), PSTK_EBADMSG);
    const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0};
    memcpy(stored + n, skippable, 8);
    CHECK_EQ(pstk__codec_decode(d, 1, NULL, stored, n + 8, plain, size, NULL), PSTK_EBADMSG);
    CHECK_EQ(pstk__codec_decode(d, 1, NULL, skippable, 8, plain, 0, NULL), PSTK_EBADMSG);
    free(memory);
}

TEST(no_flipped_bit_makes_it_crash)
{
    char text[300], stored[400], plain[300];
    size_t size = make_text(text, sizeof text, 3);
    int64_t n = encode(stored, sizeof stored, text, size, NULL, 0);
    void *memory;
    struct pstk__decoder *d = make_decoder(&memory);
    for (int64_t bit = 0; bit < 8 * n; bit++) {
        stored[bit / 8] ^= (char)(1 << bit % 8);
        int r = pstk__codec_decode(d, 1, NULL, stored, (uint64_t)n, plain, size, NULL);
        CHECK(r == 0 || r == PSTK_EBADMSG);
        stored[bit / 8] ^= (char)(1 << bit % 8);
    }
    CHECK_EQ(pstk__codec_decode(d, 1, NULL, stored, (uint64_t)n, plain, size, NULL), 0);
    free(memory);
}

/* 400 short texts end to end. */
static uint32_t make_samples(char *samples, size_t *sizes)
{
    size_t at = 0;
    for (uint32_t i = 0; i < 400; i++) {
        sizes[i] = make_text(samples + at, 200, i);
        at += sizes[i];
    }
    return 400;
}

TEST(a_trained_dictionary_is_the_same_each_time_and_makes_short_records_shorter)
{
    static char samples[400 * 200], one[4096], two[4096];
    static size_t sizes[400];
    uint32_t n = make_samples(samples, sizes);
    uint64_t size, again;
    CHECK_EQ(pstk__dictionary_train(one, sizeof one, samples, sizes, n, &size, NULL), 0);
    CHECK(size > 256 && size <= sizeof one);
    CHECK_EQ(pstk__dictionary_train(two, sizeof two, samples, sizes, n, &again, NULL), 0);
    CHECK_EQ(again, size);
    CHECK(memcmp(one, two, size) == 0);
    char text[200], with[400], without[400], plain[200];
    size_t plain_size = make_text(text, sizeof text, 1000);
    int64_t n_with = encode(with, sizeof with, text, plain_size, one, size);
    int64_t n_without = encode(without, sizeof without, text, plain_size, NULL, 0);
    CHECK(n_with > 0 && n_with < n_without);
    struct pstk__dictionary *dictionary;
    void *memory;
    struct pstk__decoder *d = make_decoder(&memory);
    CHECK_EQ(pstk__dictionary_open(&dictionary, one, size, NULL), 0);
    int r = pstk__codec_decode(d, 1, dictionary, with, (uint64_t)n_with, plain, plain_size, NULL);
    int same = memcmp(plain, text, plain_size) == 0;
    struct pstk_error err = {0};
    int none = pstk__codec_decode(d, 1, NULL, with, (uint64_t)n_with, plain, plain_size, &err);
    int plain_frame =
        pstk__codec_decode(d, 1, dictionary, without, (uint64_t)n_without, plain, plain_size, NULL);
    pstk__dictionary_close(dictionary);
    free(memory);
    CHECK_EQ(r, 0);
    CHECK(same);
    CHECK_EQ(none, PSTK_EBADMSG);
    CHECK(strstr(err.message, "dictionary"));
    CHECK_EQ(plain_frame, 0);
}

TEST(too_few_samples_train_nothing)
{
    char out[4096];
    const size_t sizes[2] = {4, 4};
    uint64_t size = 1;
    CHECK_EQ(pstk__dictionary_train(out, sizeof out, "abcdefgh", sizes, 2, &size, NULL), 0);
    CHECK_EQ(size, 0);
}

TEST(invalid_dictionaries_are_refused)
{
    struct pstk__dictionary *d;
    uint8_t magic_only[64] = {0x37, 0xa4, 0x30, 0xec, 1};
    CHECK_EQ(pstk__dictionary_open(&d, "", 0, NULL), PSTK_EBADMSG);
    CHECK(d == NULL);
    CHECK_EQ(pstk__dictionary_open(&d, "some text that is no dictionary", 31, NULL), PSTK_EBADMSG);
    CHECK_EQ(pstk__dictionary_open(&d, magic_only, sizeof magic_only, NULL), PSTK_EBADMSG);
    pstk__dictionary_close(NULL);
}

TEST(a_codec_that_does_not_decode_bytes_is_refused_by_name)
{
    void *memory;
    struct pstk__decoder *d = make_decoder(&memory);
    struct pstk_error err = {0};
    char out[4];
    CHECK_EQ(pstk__codec_decode(d, PSTK_CODEC_PLANES, NULL, "abcd", 4, out, 4, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "planes"));
    CHECK_EQ(pstk__codec_decode(d, 200, NULL, "abcd", 4, out, 4, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "200"));
    CHECK_EQ(pstk__codec_known(PSTK_CODEC_PLANES), 1);
    CHECK_EQ(pstk__codec_known(3), 0);
    CHECK_STR(pstk__codec_name(3), "?");
    free(memory);
}

TEST(a_decoder_refuses_memory_that_is_small_or_crooked)
{
    uint64_t size = pstk__decoder_size();
    char *memory = aligned_alloc(64, size + 64);
    CHECK(pstk__decoder_init(memory, size - 1) == NULL);
    CHECK(pstk__decoder_init(memory + 8, size) == NULL);
    CHECK(pstk__decoder_init(NULL, size) == NULL);
    CHECK(pstk__decoder_init(memory, size) != NULL);
    free(memory);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(encoded_bytes_decode_to_the_original),
        CASE(a_wrong_plain_size_is_refused_before_decoding),
        CASE(anything_but_exactly_one_frame_is_refused),
        CASE(no_flipped_bit_makes_it_crash),
        CASE(a_trained_dictionary_is_the_same_each_time_and_makes_short_records_shorter),
        CASE(too_few_samples_train_nothing),
        CASE(invalid_dictionaries_are_refused),
        CASE(a_codec_that_does_not_decode_bytes_is_refused_by_name),
        CASE(a_decoder_refuses_memory_that_is_small_or_crooked),
    };
    return RUN_CASES(cases);
}
