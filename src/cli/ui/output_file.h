/* SPDX-License-Identifier: Apache-2.0 */
/* output_file: a file that a command writes completely or not at all. */
#ifndef PSTK_CLI_OUTPUT_FILE_H
#define PSTK_CLI_OUTPUT_FILE_H

#include <stdio.h>

/*
 * A file that a command writes. A regular file is made completely or not at all: it has no name
 * while it is written, is synced, and gets its name at the end; until then an older file stays
 * unchanged. A killed command leaves nothing, except on a file system without nameless files: there
 * the file is named `.penstock-PID-N` in the same folder until the end. (Elsewhere it has that name
 * between two system calls, when it replaces a file.) Symbolic links are followed, so a link stays
 * a link. A device, a FIFO or a standard stream is written directly and never removed. The stream
 * cannot seek.
 */
struct output_file {
    FILE *stream;     /* owned; for writing. A write fails after a signal that asks for the end */
    const char *path; /* borrowed; as the user wrote it */
    char *target; /* owned; path with symbolic links followed. NULL: the file is written directly */
    char *temporary; /* owned; its temporary name in the same folder. NULL: none yet */
    int fd;          /* owned unless it is standard output */
    int replaces;    /* 1: there is already a file at path */
    int native;      /* errno of the first write that failed */
};

/* Begin the file at `path` ("-": standard output). Returns 0, or an exit status after a message.
 * After a failure *file needs no close. */
int output_file_open(struct output_file *file, const char *path);
/* Finish: flush, sync, close, rename. `status` is the result of the writing. When it is not 0, or a
 * signal asked for the end, the file is discarded. Returns 0, or an exit status after a message,
 * which is the only one about this file. */
int output_file_close(struct output_file *file, int status);

#endif
