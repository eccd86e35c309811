/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash_kind.h"

#include <sys/types.h>

#include <md5.h>
#include <sha1.h>
#include <sha2.h>

/* For each kind: its name, the prefix of libmd's functions, the type of the state, and the bytes of
 * the hash. */
#define KINDS(X)                                                                                   \
    X(md5, MD5, MD5_CTX, MD5_DIGEST_LENGTH)                                                        \
    X(sha1, SHA1, SHA1_CTX, SHA1_DIGEST_LENGTH)                                                    \
    X(sha256, SHA256, SHA2_CTX, SHA256_DIGEST_LENGTH)                                              \
    X(sha384, SHA384, SHA2_CTX, SHA384_DIGEST_LENGTH)                                              \
    X(sha512, SHA512, SHA2_CTX, SHA512_DIGEST_LENGTH)

#define FUNCTIONS(kind, prefix, type, n_bytes)                                                     \
    static void begin_##kind(void *state)                                                          \
    {                                                                                              \
        prefix##Init(state);                                                                       \
    }                                                                                              \
    static void add_##kind(void *state, const void *bytes, size_t size)                            \
    {                                                                                              \
        prefix##Update(state, bytes, size);                                                        \
    }                                                                                              \
    static void get_##kind(const void *state, uint8_t *bytes)                                      \
    {                                                                                              \
        type last = *(const type *)state; /* Final changes the state */                            \
        prefix##Final(bytes, &last);                                                               \
    }
#define ENTRY(kind, prefix, type, n_bytes)                                                         \
    {#kind, sizeof(type), n_bytes, begin_##kind, add_##kind, get_##kind},

KINDS(FUNCTIONS)

const struct pstk__hash_kind pstk__hash_md[] = {KINDS(ENTRY){.name = NULL}};
