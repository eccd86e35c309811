/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "support/test.h"

/* Digests of "abc": SHA-1 and SHA-2 from FIPS 180, MD5 from RFC 1321, xxHash from the package
 * xxhash 3.6. */
static const char *const known[][2] = {
    {"md5", "900150983cd24fb0d6963f7d28e17f72"},
    {"sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"},
    {"sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"sha384",
     "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358ba"
     "eca134c825a7"},
    {"sha512",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba"
     "3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"},
    {"xxh32", "32d153ff"},
    {"xxh64", "44bc2cf5ad770999"},
    {"xxh3_64", "78af5f94892f3950"},
    {"xxh3_128", "06b05ab6733a618578af5f94892f3950"},
    {"xxh128", "06b05ab6733a618578af5f94892f3950"},
};
#define N_KNOWN (sizeof known / sizeof known[0])

/* The hash of bytes in pieces of a size. */
static void hash_in_pieces(const char *name, const uint8_t *bytes, size_t size, size_t piece,
                           char hex[PSTK__HASH_HEX])
{
    struct pstk__hash *hash = pstk__hash_open(name);
    CHECK(hash != NULL);
    for (size_t at = 0; hash && at < size; at += piece)
        pstk__hash_add(hash, bytes + at, size - at < piece ? size - at : piece);
    if (hash)
        pstk__hash_get(hash, hex);
    pstk__hash_close(hash);
}

TEST(known_answers)
{
    char hex[PSTK__HASH_HEX];
    for (size_t i = 0; i < N_KNOWN; i++) {
        if (!pstk__hash_is_known(known[i][0]))
            continue; /* the build has no such library */
        hash_in_pieces(known[i][0], (const uint8_t *)"abc", 3, 3, hex);
        CHECK_STR(hex, known[i][1]);
    }
}

TEST(any_pieces_give_the_same)
{
    static uint8_t bytes[5000];
    char whole[PSTK__HASH_HEX], hex[PSTK__HASH_HEX];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i >> 3);
    for (size_t i = 0; i < N_KNOWN; i++) {
        if (!pstk__hash_is_known(known[i][0]))
            continue;
        hash_in_pieces(known[i][0], bytes, sizeof bytes, sizeof bytes, whole);
        for (size_t piece = 1; piece < sizeof bytes; piece = piece * 3 + 1) {
            hash_in_pieces(known[i][0], bytes, sizeof bytes, piece, hex);
            CHECK_STR(hex, whole);
        }
    }
}

TEST(a_hash_may_be_asked_for_in_the_middle)
{
    char hex[PSTK__HASH_HEX];
    for (size_t i = 0; i < N_KNOWN; i++) {
        struct pstk__hash *hash = pstk__hash_open(known[i][0]);
        if (!hash)
            continue;
        pstk__hash_add(hash, "a", 1);
        pstk__hash_get(hash, hex);
        pstk__hash_add(hash, "bc", 2);
        pstk__hash_get(hash, hex);
        CHECK_STR(hex, known[i][1]);
        pstk__hash_close(hash);
    }
}

TEST(others_are_unknown)
{
    CHECK(!pstk__hash_is_known("blake2b"));
    CHECK(!pstk__hash_is_known(""));
    CHECK(pstk__hash_open("blake2b") == NULL);
}

int main(void)
{
    const struct test_case cases[] = {CASE(known_answers), CASE(any_pieces_give_the_same),
                                      CASE(a_hash_may_be_asked_for_in_the_middle),
                                      CASE(others_are_unknown)};
    return RUN_CASES(cases);
}
