/* SPDX-License-Identifier: Apache-2.0 */
/* output_file: a file that a command writes, whole or not at all. */
#ifndef PSTK_CLI_OUTPUT_FILE_H
#define PSTK_CLI_OUTPUT_FILE_H

#include <stdio.h>

/*
 * A file that a command writes. A regular file is made whole or not at all: it is written without a
 * name, synced, and gets its name in the end; until then the older file stays as it was. A killed
 * command leaves nothing, except on a file system without nameless files: there the file is
 * `.penstock-PID-N` in the same folder until the end. (It has that name elsewhere, too, between two
 * system calls, when it replaces a file.) Symbolic links are followed, so that a link stays a link.
 * What is no regular file (a device, a FIFO, a standard stream) is written to as it is, and never
 * removed. Not seekable.
 */
struct output_file {
    FILE *stream;     /* owned; to write to. A write fails once a signal asked for the end */
    const char *path; /* borrowed; as the user named it */
    char *target;     /* owned; where the symbolic links of path lead. NULL: written straight */
    char *temporary;  /* owned; its name in the same folder. NULL: it has none yet */
    int fd;           /* owned unless it is standard output */
    int replaces;     /* 1: a file is there already */
    int native;       /* errno of the first write that failed */
};

/* Begin the file at `path` ("-": standard output). Returns 0, or an exit status after a message. On
 * failure *f needs no abort. */
int output_file_open(struct output_file *file, const char *path);
/* Finish: flush, sync, close, rename. `status` is that of the writing: where it is not 0, or a
 * signal asked for the end, the file is given up. Returns 0, or an exit status after a message,
 * which is the only one about this file. */
int output_file_close(struct output_file *file, int status);

#endif
