/* SPDX-License-Identifier: Apache-2.0 */
/* The header of xxHash contains all of its code, so nothing is linked. */
#include "base/hash_kind.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* For each kind: its name, the prefix of its functions, and its canonical form, which is
 * big-endian. */
#define KINDS(X)                                                                                   \
    X(xxh32, XXH32_state_t, XXH32_reset(state, 0), XXH32_update, XXH32_digest,                     \
      XXH32_canonicalFromHash, XXH32_canonical_t)                                                  \
    X(xxh64, XXH64_state_t, XXH64_reset(state, 0), XXH64_update, XXH64_digest,                     \
      XXH64_canonicalFromHash, XXH64_canonical_t)                                                  \
    X(xxh3_64, XXH3_state_t, XXH3_64bits_reset(state), XXH3_64bits_update, XXH3_64bits_digest,     \
      XXH64_canonicalFromHash, XXH64_canonical_t)                                                  \
    X(xxh3_128, XXH3_state_t, XXH3_128bits_reset(state), XXH3_128bits_update, XXH3_128bits_digest, \
      XXH128_canonicalFromHash, XXH128_canonical_t)

#define FUNCTIONS(kind, type, reset, update, digest, canonical_from, canonical)                    \
    static void begin_##kind(void *state)                                                          \
    {                                                                                              \
        reset;                                                                                     \
    }                                                                                              \
    static void add_##kind(void *state, const void *bytes, size_t size)                            \
    {                                                                                              \
        update(state, bytes, size);                                                                \
    }                                                                                              \
    static void get_##kind(const void *state, uint8_t *bytes)                                      \
    {                                                                                              \
        canonical_from((canonical *)bytes, digest(state));                                         \
    }

#define ENTRY(kind, type, reset, update, digest, canonical_from, canonical)                        \
    {#kind, sizeof(type), sizeof(canonical), begin_##kind, add_##kind, get_##kind},

KINDS(FUNCTIONS)

const struct pstk__hash_kind pstk__hash_xx[] = {
    KINDS(ENTRY){"xxh128", sizeof(XXH3_state_t), sizeof(XXH128_canonical_t), begin_xxh3_128,
                 add_xxh3_128, get_xxh3_128},
    {.name = NULL},
};
