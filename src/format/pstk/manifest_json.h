/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_json: parses a manifest from JSON (manifest_json.c, with manifest_parse.h), and prints
 * it to JSON (manifest_print.c). Parsing goes value by value, and so takes at most 3.5 times the
 * text, the text included: manifest_json.c has the sum.
 */
#ifndef PSTK_MANIFEST_JSON_H
#define PSTK_MANIFEST_JSON_H

#include "format/pstk/manifest.h"

#include <stddef.h>

/* The last bytes of the file: ,"crc32c":"xxxxxxxx"} and a newline. */
#define PSTK__TAIL_BEFORE ",\"crc32c\":\""
#define PSTK__TAIL_AFTER "\"}\n"

#define PSTK__N_ENCODINGS                                                                          \
    (PSTK_ENCODING_PIXELS + 1) /* number of encodings that records may have                        \
                                */
#define PSTK__N_CODECS 3

/* Parse a whole manifest into *m, whose old contents are overwritten; on failure it is empty. name:
 * path of the file, for messages. EBADMSG: its message names the wrong part; ENOTSUP: intact, but
 * of another version, or with an unknown feature that readers must know. An empty data set (no
 * shard) is a valid manifest. */
int pstk__manifest_parse(struct pstk__manifest *m, const void *bytes, uint64_t size,
                         const char *name, struct pstk_error *err);
/* Hand `text`, which is UTF-8, to `take` as a JSON text, piece by piece. -1: out of memory; or the
 * result of take. */
int pstk__manifest_quote(const char *text, int (*take)(const char *, size_t, void *), void *user);
/* Check *m, and print it with its checksum at the end. Returns owned bytes (free()) and their
 * number, without a terminating 0. EINVAL: an invariant of m does not hold. */
int pstk__manifest_print(const struct pstk__manifest *m, char **bytes, uint64_t *size,
                         struct pstk_error *err);

#endif
