/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash: hashes of whole files, by their names in Python's packages: xxh32, xxh64, xxh3_64, xxh3_128
 * and xxh128, if the build found the header of xxHash; md5, sha1, sha256, sha384 and sha512, if it
 * found libmd.
 */
#ifndef PSTK_HASH_H
#define PSTK_HASH_H

#include <stddef.h>

#define PSTK__HASH_HEX 129 /* bytes of the longest hash in hexadecimal, with the 0 */

struct pstk__hash;

/* Return 1 when this build computes hashes of that name. */
int pstk__hash_is_known(const char *name);
/* Begin a hash of a known name. Returns owned; NULL: no memory. */
struct pstk__hash *pstk__hash_open(const char *name);
void pstk__hash_add(struct pstk__hash *hash, const void *bytes, size_t size);
/* Write the hash of the bytes so far as lower-case digits, most significant first. */
void pstk__hash_get(const struct pstk__hash *hash, char hex[PSTK__HASH_HEX]);
/* Free a hash; NULL is fine. */
void pstk__hash_close(struct pstk__hash *hash);

#endif
