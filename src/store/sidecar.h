/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sidecar: a checked file kept in `.penstock` next to a data set, or in the folder for caches: an
 * index (index/), or the access points of a compressed file (unpack/). The writer uses a temporary
 * name, so the file is either complete or absent. Its head has a magic, a version and a checksum,
 * as the head of a cache entry (cache/entry.h) has.
 */
#ifndef PSTK_SIDECAR_H
#define PSTK_SIDECAR_H

#include <penstock/types.h>

#include <limits.h>
#include <sys/stat.h>

#define PSTK__SIDECAR_FOLDER ".penstock" /* next to the data */
#define PSTK__SIDECAR_CACHE "index"      /* in the folder for caches */

/* Endings of file names in these folders. */
#define PSTK__SIDECAR_INDEX ".index"
#define PSTK__SIDECAR_POINTS ".points"
#define PSTK__SIDECAR_CHECKSUMS ".checksums"
#define PSTK__SIDECAR_LOCK ".lock"
#define PSTK__SIDECAR_TEMPORARY                                                                    \
    ".tmp-" /* followed by six characters, while the file is written                               \
             */

#define PSTK__SIDECAR_INDEX_MAGIC "PSTKIDX"
#define PSTK__SIDECAR_POINTS_MAGIC "PSTKPTS"

/* First bytes of the head; the other bytes are specific to the file. */
enum pstk__sidecar_layout {
    PSTK__SIDECAR_CRC = 0, /* CRC32C of the bytes of the head after it */
    PSTK__SIDECAR_VERSION = 4,
    PSTK__SIDECAR_MAGIC = 8,
    PSTK__SIDECAR_OWN = 16,
};

enum pstk__sidecar_state {
    PSTK__SIDECAR_IS_WHOLE,
    PSTK__SIDECAR_IS_OTHER, /* the magic differs */
    PSTK__SIDECAR_IS_OF_ANOTHER_VERSION,
    PSTK__SIDECAR_IS_DAMAGED,
};

/* Write the first bytes of a head, after the caller has set the others. */
void pstk__sidecar_seal(uint8_t *head, uint64_t size, const char magic[8], uint32_t version);
enum pstk__sidecar_state pstk__sidecar_check(const uint8_t *head, uint64_t size,
                                             const char magic[8], uint32_t version);
/* Return the checksum that a head should have. */
uint32_t pstk__sidecar_crc(const uint8_t *head, uint64_t size);

/* A file that is being written. */
struct pstk__sidecar {
    const char *what; /* kind of the file, static storage: "index" */
    int fd;           /* owned, or -1 */
    int dir;          /* folder of the file, borrowed */
    char path[PATH_MAX];
    char temporary[NAME_MAX + 1]; /* temporary name in dir; "": published, or without a name */
};

/* Begin a file that will be at `path`, in its folder `dir`. Call close even on failure. EACCES,
 * EPERM, ENOENT, ...: the folder cannot be written to. */
int pstk__sidecar_open(struct pstk__sidecar *file, const char *what, int dir, const char *path,
                       struct pstk_error *err);
/* Remove its name for good: the system frees the file once nobody has it open. */
int pstk__sidecar_unname(struct pstk__sidecar *file, struct pstk_error *err);
int pstk__sidecar_write(struct pstk__sidecar *file, const void *bytes, uint64_t size,
                        uint64_t offset, struct pstk_error *err);
/* Sync the file, let others read it, and give it its final name. */
int pstk__sidecar_publish(struct pstk__sidecar *file, struct pstk_error *err);
/* Close the file, and remove it if it was not published. */
void pstk__sidecar_close(struct pstk__sidecar *file);
int pstk__sidecar_fail_memory(const char *what, const char *path, struct pstk_error *err);

/* Seconds without a write after which a temporary file's writer counts as dead. Some network file
 * systems keep locks on one node, so the holder of an index lock waits (LOCKED) for writers of
 * other nodes, which do not see its lock. Points have no lock of their own, because the builds of
 * several indexes make them. */
#define PSTK__SIDECAR_LOCKED_SECONDS 600
#define PSTK__SIDECAR_DEAD_SECONDS 3600

/* Return the last component of a path. */
const char *pstk__sidecar_name(const char *path);
/* 1: nobody has written to the file for `seconds`. */
int pstk__sidecar_is_left(const struct stat *st, int64_t seconds);
/* Remove the temporary files that dead writers left of files whose names end in `ending`. */
void pstk__sidecar_remove_left(int dir, const char *ending, int64_t seconds);
/* Make the folder for caches, and its parent: ~/.cache may be missing. 0 or a negative errno. */
int pstk__sidecar_make_cache(const char *path);
/* Make a folder if it is missing. 0 or a negative errno. */
int pstk__sidecar_make_folder(const char *path, mode_t mode);

#endif
