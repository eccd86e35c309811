/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields: what fields of a data set in another format are to be read as, which --field names, one
 * an option: `cls=int32`, `tokens=uint16[2049]`, `boxes=float32[*,4]`.
 */
#ifndef PSTK_CLI_FIELDS_H
#define PSTK_CLI_FIELDS_H

#include <penstock/foreign.h>

#include "option.h"

enum { OPT_FIELD = 4096 }; /* above the codes of all commands */

#define FIELDS_OPTION                                                                              \
    {                                                                                              \
        .name = "field", .code = OPT_FIELD, .value = "NAME=TYPE", .initial = "what the data has",  \
        .text = "of a data set in another format: read a field as TYPE: image, bytes, utf8 (or "   \
                "text), a dtype such as int64, or a dtype with a shape such as 'uint16[2049]' or " \
                "'float32[*,4]' (*: this dimension differs from sample to sample); may be given "  \
                "again"                                                                            \
    }

/* Zero it. It must not move while a data set is opened with it. */
struct fields {
    uint32_t n;
    struct pstk_field at[PSTK_MAX_FIELDS];
};

/* Read one option and append it. Returns 0, or -1 after a message. */
int fields_add(struct fields *fields, const char *text);
/* Have a data set opened with the fields. Borrows. */
void fields_apply(const struct fields *fields, struct pstk_foreign *foreign);
/* Word the error of an open that names a field which no sample has as one of --field, with the
 * field that was probably meant. Other errors stay. */
void fields_explain(const struct fields *fields, struct pstk_error *err);

#endif
