/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export: the contract of the targets, a table of functions each, and the state of an export that
 * they see.
 *
 * export.c lists the targets and drives them: samples.h reads values ahead on several threads, and
 * hands them in order to one target, on the caller's thread. A target writes files only through
 * outdir.h or shards.h. Memory: the blocks of samples that are read ahead, and one sample in the
 * form of the target.
 */
#ifndef PSTK_EXPORT_CONTRACT_H
#define PSTK_EXPORT_CONTRACT_H

#include "export/outdir.h"
#include "record/schema.h"

#include <penstock/export.h>

/* The value of one field. */
struct pstk__export_value {
    const uint8_t *data; /* plain bytes, checked; borrowed for the call */
    uint64_t size;       /* bytes */
    uint32_t encoding;   /* images: JPEG or PNG, and data is such a file; else NONE */
    uint32_t is_encoded; /* 1: the value was stored as pixels, and this file was encoded from them
                          */
};

struct pstk__export_sample {
    uint64_t number;                         /* within the export, from 0 */
    uint64_t id;                             /* within the data set */
    const struct pstk__export_value *values; /* one for each field */
};

struct pstk__export_target;

/* The state of an export. Targets read it, and write `files` and `result`. */
struct pstk__export {
    const struct pstk__export_target *target;
    const struct pstk_export_settings *settings; /* borrowed; complete, whatever the caller's size
                                                  */
    const struct pstk_dataset *dataset;          /* borrowed, as are the pointers below */
    uint64_t n_samples;                          /* samples to export */
    uint64_t shard_size;                         /* bytes; with its default */
    /* The fields, in the order of the schema. BF16 is F32 here, as in values. */
    struct pstk_field fields[PSTK_MAX_FIELDS];
    struct pstk_field_stats stats[PSTK_MAX_FIELDS]; /* statistics of each field; all 0: the format
                                                       has none */
    uint32_t numbers[PSTK_MAX_FIELDS];              /* number of each field in the schema */
    uint32_t n_fields;
    int32_t image, label, key; /* numbers of these fields; -1: none */
    struct pstk__outdir files; /* open between begin and the end */
    struct pstk_export_result result;
};

/*
 * One target: an entry of export.c's list. All functions run on the caller's thread.
 */
struct pstk__export_target {
    uint32_t target; /* enum pstk_export_target */
    const char *name;
    const char *one;     /* noun for the container of a sample, "a TFRecord"; for messages */
    uint64_t shard_size; /* default, bytes; 0: the target has no shards */
    uint64_t max_shard_size;
    int has_image, has_label, has_key; /* 1: the setting of that name is used */
    /* Return NULL, or the reason why the target cannot hold field i, as a phrase that follows the
     * field's name. */
    const char *(*refuse)(const struct pstk__export *e, uint32_t i);
    /* Check the fields together, and open the target's state; owned, `abort` frees it. Writes
     * nothing. */
    int (*open)(void **state, struct pstk__export *e, struct pstk_error *err);
    /* Begin the files that have no sample. The directory is open. NULL: there are none. */
    int (*begin)(void *state, struct pstk_error *err);
    /* Add a sample. Samples come in their order in the export. */
    int (*add)(void *state, const struct pstk__export_sample *sample, struct pstk_error *err);
    /* End the open shard, if there is one. NULL: the target has no shards. */
    int (*end_shard)(void *state, struct pstk_error *err);
    /* Write the files that come after all samples and shards; all files are closed then. */
    int (*commit)(void *state, struct pstk_error *err);
    /* Free the state in any condition; its files may still be open. NULL is fine. */
    void (*abort)(void *state);
};

extern const struct pstk__export_target pstk__export_folder;
extern const struct pstk__export_target pstk__export_webdataset;
extern const struct pstk__export_target pstk__export_tfrecord;
extern const struct pstk__export_target pstk__export_mds;
extern const struct pstk__export_target pstk__export_npy;

/* Fail for the value of a field: "sample 17: FIELD ...", with the sample's id. */
int pstk__export_fail(const struct pstk__export *e, const struct pstk__export_sample *sample,
                      uint32_t field, int code, struct pstk_error *err, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* Fail because there is no memory for the target's form of a sample. */
int pstk__export_no_memory(const struct pstk__export *e, struct pstk_error *err);

#endif
