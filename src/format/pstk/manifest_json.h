/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_json: a manifest from JSON (manifest_json.c, by manifest_parse.h) and to JSON
 * (manifest_print.c). Parsing goes value by value and so takes at most 3.5 times the text, the
 * text included: manifest_json.c has the sum.
 */
#ifndef PSTK_MANIFEST_JSON_H
#define PSTK_MANIFEST_JSON_H

#include "format/pstk/manifest.h"

#include <stddef.h>

/* ,"crc32c":"xxxxxxxx"} and a newline: the file's last bytes. */
#define PSTK__TAIL_BEFORE ",\"crc32c\":\""
#define PSTK__TAIL_AFTER "\"}\n"

#define PSTK__N_ENCODINGS (PSTK_ENCODING_PIXELS + 1) /* that records may have */
#define PSTK__N_CODECS 3

/* Parse a whole manifest into *m (whatever it held is lost; on failure it is empty). `name` is the
 * file's path, for messages. EBADMSG names what is wrong; ENOTSUP: intact, of another version, or
 * with a feature that must be known. An empty data set (no shard) is a valid manifest. */
int pstk__manifest_parse(struct pstk__manifest *m, const void *bytes, uint64_t size,
                         const char *name, struct pstk_error *err);
/* Give `text`, which is UTF-8, as a JSON text to `take`, piece by piece. -1: out of memory, or what
 * take returned. */
int pstk__manifest_quote(const char *text, int (*take)(const char *, size_t, void *), void *user);
/* Check *m and print it, its checksum at the end. Returns owned bytes (free()) and their number,
 * without a terminating 0. EINVAL: m does not hold its invariants. */
int pstk__manifest_print(const struct pstk__manifest *m, char **bytes, uint64_t *size,
                         struct pstk_error *err);

#endif
