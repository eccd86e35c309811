/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sidecar: a checked file that is kept next to a data set, in `.penstock`, or in the folder for
 * caches: an index (index/), or the access points of a compressed file (unpack/). It is complete or
 * it is not there: it is written under another name. Its head has a magic, a version and a
 * checksum, as that of an entry of the cache does (cache/entry.h).
 */
#ifndef PSTK_SIDECAR_H
#define PSTK_SIDECAR_H

#include <penstock/types.h>

#include <limits.h>
#include <sys/stat.h>

#define PSTK__SIDECAR_FOLDER ".penstock" /* next to the data */
#define PSTK__SIDECAR_CACHE "index"      /* in the folder for caches */

/* How the names of files in these folders end. */
#define PSTK__SIDECAR_INDEX ".index"
#define PSTK__SIDECAR_POINTS ".points"
#define PSTK__SIDECAR_CHECKSUMS ".checksums"
#define PSTK__SIDECAR_LOCK ".lock"
#define PSTK__SIDECAR_TEMPORARY ".tmp-" /* and six characters, while it is written */

#define PSTK__SIDECAR_INDEX_MAGIC "PSTKIDX"
#define PSTK__SIDECAR_POINTS_MAGIC "PSTKPTS"

/* Its first bytes; the others are the file's own. */
enum pstk__sidecar_layout {
    PSTK__SIDECAR_CRC = 0, /* CRC32C of the head's bytes after it */
    PSTK__SIDECAR_VERSION = 4,
    PSTK__SIDECAR_MAGIC = 8,
    PSTK__SIDECAR_OWN = 16,
};

enum pstk__sidecar_state {
    PSTK__SIDECAR_IS_WHOLE,
    PSTK__SIDECAR_IS_OTHER, /* of another magic */
    PSTK__SIDECAR_IS_OF_ANOTHER_VERSION,
    PSTK__SIDECAR_IS_DAMAGED,
};

/* Write the first bytes of a head, once the others are set. */
void pstk__sidecar_seal(uint8_t *head, uint64_t size, const char magic[8], uint32_t version);
enum pstk__sidecar_state pstk__sidecar_check(const uint8_t *head, uint64_t size,
                                             const char magic[8], uint32_t version);
/* The checksum that a head should have. */
uint32_t pstk__sidecar_crc(const uint8_t *head, uint64_t size);

/* A file being written. */
struct pstk__sidecar {
    const char *what; /* static storage: "index" */
    int fd;           /* owned, or -1 */
    int dir;          /* borrowed; where the file is made */
    char path[PATH_MAX];
    char temporary[NAME_MAX + 1]; /* its name in dir; "": it has its own, or none */
};

/* Begin a file that will be at `path`, in its folder `dir`. On failure close is due all the same.
 * EACCES, EPERM, ENOENT, ...: the folder cannot be written to. */
int pstk__sidecar_open(struct pstk__sidecar *file, const char *what, int dir, const char *path,
                       struct pstk_error *err);
/* Take its name away for good: it is gone once nobody has it open. */
int pstk__sidecar_unname(struct pstk__sidecar *file, struct pstk_error *err);
int pstk__sidecar_write(struct pstk__sidecar *file, const void *bytes, uint64_t size,
                        uint64_t offset, struct pstk_error *err);
/* Sync; let others read it; give it its name. */
int pstk__sidecar_publish(struct pstk__sidecar *file, struct pstk_error *err);
/* Close it; removes what was not published. */
void pstk__sidecar_close(struct pstk__sidecar *file);
int pstk__sidecar_fail_memory(const char *what, const char *path, struct pstk_error *err);

/* How long nobody has written to a temporary file whose writer is dead. Whoever has the lock of an
 * index need only wait for a node that does not see the lock: some network file systems keep locks
 * on their node. Points have no lock of their own: the builds of several indexes make them. */
#define PSTK__SIDECAR_LOCKED_SECONDS 600
#define PSTK__SIDECAR_DEAD_SECONDS 3600

/* The name in its folder of a path. */
const char *pstk__sidecar_name(const char *path);
/* 1: nobody has written to the file for so long. */
int pstk__sidecar_is_left(const struct stat *st, int64_t seconds);
/* Remove temporary files that dead writers left, of files whose names end so. */
void pstk__sidecar_remove_left(int dir, const char *ending, int64_t seconds);
/* Make the folder for caches, and the folder that it is in: ~/.cache may be missing. 0 or a
 * negative errno. */
int pstk__sidecar_make_cache(const char *path);
/* Make a folder, if it is missing. 0 or a negative errno. */
int pstk__sidecar_make_folder(const char *path, mode_t mode);

#endif
