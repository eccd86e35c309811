/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields: the options for reading a data set in another format. --root-path: the folder of a
 * table's images. --split-at: the dot that splits names in tar archives. --by-content: images with
 * any name. --field, repeatable: the type of a field, `cls=int32`, `tokens=uint16[2049]`,
 * `boxes=float32[*,4]`, with a default for records without it, `label=int64=0`; or the suffixes of
 * tar members, the first of which is the field, `image=jpg;png`. --damaged, for commands that
 * decode: the treatment of damaged images.
 */
#ifndef PSTK_CLI_FIELDS_H
#define PSTK_CLI_FIELDS_H

#include <penstock/foreign.h>

#include "option/option.h"

enum {
    OPT_FIELD = 4096,
    OPT_ROOT_PATH,
    OPT_SPLIT_AT,
    OPT_BY_CONTENT,
    OPT_READ_DAMAGED
}; /* above the codes of all commands */

#define FIELDS_OPTIONS                                                                             \
    {.name = "field",                                                                              \
     .code = OPT_FIELD,                                                                            \
     .value = "NAME=TYPE",                                                                         \
     .initial = "the types of the data",                                                           \
     .text = "for data in another format: read a field as TYPE: image, bytes, utf8 (or text), a "  \
             "dtype such as int64, or a dtype with a shape such as 'uint16[2049]' or "             \
             "'float32[*,4]' (*: this dimension differs from sample to sample); for tar archives " \
             "also the first of several members, 'image=jpg;png'; for TFRecords also a default "   \
             "for records without the field, 'label=int64=0'; may be given again"},                \
        {.name = "root-path",                                                                      \
         .code = OPT_ROOT_PATH,                                                                    \
         .value = "DIR",                                                                           \
         .initial = "the table's folder",                                                          \
         .text = "for a table of images: the folder that its paths start from"},                   \
        {.name = "split-at",                                                                       \
         .code = OPT_SPLIT_AT,                                                                     \
         .values = fields_splits,                                                                  \
         .initial = "auto",                                                                        \
         .text = "for tar archives: the dot in a file name between the sample's key and the "      \
                 "field: first, as in WebDataset, or last; auto: first, but contradicting names "  \
                 "are refused"},                                                                   \
    {                                                                                              \
        .name = "by-content", .code = OPT_BY_CONTENT,                                              \
        .text = "for a folder of images: find JPEG and PNG files by their first bytes, whatever "  \
                "their names (x.jfif, or no suffix)"                                               \
    }

/* A row for tables of commands that decode. */
#define FIELDS_DAMAGED_OPTION                                                                      \
    {                                                                                              \
        .name = "damaged", .code = OPT_READ_DAMAGED, .values = fields_damages,                     \
        .initial = "refuse",                                                                       \
        .text = "for data in another format: what to do with damaged images that Pillow loads, "   \
                "JPEGs by guessing and PNGs whose damage follows their rows (refuse: they are "    \
                "bad samples; accept: decode them as Pillow does)"                                 \
    }

extern const struct choice fields_splits[], fields_damages[];

/* The cases of a switch that goes to fields_take. */
#define FIELDS_CASES                                                                               \
    case OPT_FIELD:                                                                                \
    case OPT_ROOT_PATH:                                                                            \
    case OPT_SPLIT_AT:                                                                             \
    case OPT_BY_CONTENT:                                                                           \
    case OPT_READ_DAMAGED

/* Zero it. It must not move while a data set is opened with it. */
struct fields {
    uint32_t n;
    struct pstk_field at[PSTK_MAX_FIELDS];
    uint32_t n_defaults;
    struct pstk_default defaults[PSTK_MAX_FIELDS];
    uint8_t numbers[PSTK_MAX_FIELDS][8]; /* defaults */
    uint32_t n_first_of;
    struct pstk_first_of first_of[PSTK_MAX_FIELDS];
    char names[PSTK_MAX_FIELDS][PSTK_MAX_NAME]; /* names in first_of */
    const char *root_path;                      /* borrowed; NULL: not given */
    uint32_t split_at;                          /* enum pstk_split_at */
    uint32_t by_content;                        /* 1: images are found by their first bytes */
    uint32_t damaged;                           /* enum pstk_damaged */
};

/* Return 1 when the code belongs to one of these options. */
static inline int fields_have(int code)
{
    return code >= OPT_FIELD && code <= OPT_READ_DAMAGED;
}
/* Take one of these options; borrows its text. Returns 0, or -1 after a message. */
int fields_take(struct fields *fields, int code, const char *text);
/* Return the first of these options that was given, as "--field"; NULL: none was. */
static inline const char *fields_given(const struct fields *fields)
{
    return fields->n || fields->n_first_of ? "--field"
           : fields->root_path             ? "--root-path"
           : fields->split_at              ? "--split-at"
           : fields->by_content            ? "--by-content"
           : fields->damaged               ? "--read-damaged"
                                           : NULL;
}
/* Apply the options to the opening of a data set. Borrows. */
void fields_apply(const struct fields *fields, struct pstk_foreign *foreign);
/* Replace the library's settings by the command's options in the error of an open. A field that no
 * sample has becomes one of --field, with the field that was probably meant; root_path becomes
 * --root-path; cache_path and cache_size become $PENSTOCK_CACHE and $PENSTOCK_CACHE_SIZE. Other
 * errors stay. */
void fields_explain(const struct fields *fields, struct pstk_error *err);

#endif
