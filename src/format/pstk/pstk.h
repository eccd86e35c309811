/* SPDX-License-Identifier: Apache-2.0 */
/* pstk: the format of `penstock pack`, an entry of format.c. */
#ifndef PSTK_FORMAT_PSTK_H
#define PSTK_FORMAT_PSTK_H

#include "format/format.h"

/* Name of the journal in a data set's directory. It exists while a writer is at work there, and
 * after a writer was killed: FORMAT.md, Directory. */
#define PSTK__JOURNAL_FILE ".tmp-writer"

extern const struct pstk__format pstk__format_pstk;

/* Check every byte of manifest, dictionaries and shards: `verify` of the table. */
int64_t pstk__pstk_verify(const struct pstk__verify_request *verify_request,
                          struct pstk_error *err);

#endif
