/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status_file: a small file through which other processes ask a loader what it is doing; the other
 * side, pstk_status_ask, is status_ask.c.
 *
 *     0  struct pstk__status_file_head, written once
 *   512 + ...  see PSTK__STATUS_FILE_ANSWER: struct pstk__status_answer, written for each question
 *
 * A process that asks writes a new number to head.question, and wakes the futex there. The status
 * file's thread waits at that futex, and answers. It reads and writes by pread and pwrite, never
 * through a mapping. If somebody cuts or deletes the file, only the status file ends; with a
 * mapping, SIGBUS would end the process. The mapping is only for the futex, which the kernel reads
 * without such a danger.
 *
 * An answer is one pwrite, with its checksum and its number in it. A reader takes it if the
 * checksum is right and the number is new.
 *
 * All numbers are in the machine's byte order: the file never leaves it.
 */
#ifndef PSTK_STATUS_FILE_H
#define PSTK_STATUS_FILE_H

#include "base/process.h"

#include <penstock/diagnostics.h>

#define PSTK__STATUS_FILE_MAGIC "pstkbrd" /* 8 bytes with the final 0 */
#define PSTK__STATUS_FILE_VERSION 4u
#define PSTK__STATUS_FILE_SIZE 4096u    /* bytes of the file */
#define PSTK__STATUS_FILE_ANSWER 1024u  /* offset of the answer, bytes */
#define PSTK__STATUS_FILE_STATS 1024u   /* bytes for struct pstk_stats in an answer */
#define PSTK__STATUS_FILE_METRICS 1984u /* bytes for struct pstk_metrics in an answer */

/* The head of the file, which names the loader that owns it. */
struct pstk__status_file_head {
    char magic[8];
    uint32_t version;  /* version of the layout */
    uint32_t question; /* the futex: number of the newest question; not part of the checksum */
    uint32_t crc;      /* CRC32C of the rest of this struct */
    uint32_t rank, world, device;
    int32_t device_index;
    uint32_t reserved; /* always 0 */
    uint64_t opened_ns, n_samples;
    struct pstk__process process;
    char path[512];
};

/* The loader's statistics at one moment. The sizes say which members the writer has; a reader takes
 * only members that it also has. */
struct pstk__status_answer {
    uint64_t number;   /* number of the answer, from 1 */
    uint32_t crc;      /* CRC32C of the rest of this struct */
    uint32_t reserved; /* always 0 */
    uint64_t answered_ns, epoch, position;
    uint32_t stats_size, metrics_size;
    unsigned char stats[PSTK__STATUS_FILE_STATS];
    unsigned char metrics[PSTK__STATUS_FILE_METRICS];
};

_Static_assert(sizeof(struct pstk__status_file_head) <= PSTK__STATUS_FILE_ANSWER,
               "the head has no room");
_Static_assert(PSTK__STATUS_FILE_ANSWER + sizeof(struct pstk__status_answer) <=
                   PSTK__STATUS_FILE_SIZE,
               "the answer has no room");
_Static_assert(sizeof(struct pstk_stats) <= PSTK__STATUS_FILE_STATS, "statistics have no room");
_Static_assert(sizeof(struct pstk_metrics) <= PSTK__STATUS_FILE_METRICS, "metrics have no room");

/* Settings of a status file: the loader that it describes. */
struct pstk__status_file_config {
    const char *path;     /* path of the status file */
    const char *data_set; /* the file holds a copy of the end of this text */
    uint32_t rank, world, device;
    int32_t device_index;
    uint64_t n_samples;
    /* Measure now; called on the status file's thread. */
    void (*measure)(void *user, struct pstk_stats *stats, struct pstk_metrics *metrics,
                    uint64_t *epoch, uint64_t *position);
    void *user;
};

struct pstk__status_file;

/* Create the file and start the thread; replaces the status file of a process that has ended.
 * Refuses a path where another file lies. err->native: errno of a refusal by the system, else 0.
 * Returns owned. */
int pstk__status_file_open(struct pstk__status_file **out,
                           const struct pstk__status_file_config *config, struct pstk_error *err);
/* End the thread; remove the file, if it is still this one's. NULL is fine. */
void pstk__status_file_close(struct pstk__status_file *status);

/* Return the CRC32C of a head, or of an answer. */
uint32_t pstk__status_file_head_crc(const struct pstk__status_file_head *head);
uint32_t pstk__status_answer_crc(const struct pstk__status_answer *answer);
/* Wait until the number at a futex differs from `question`, somebody wakes it, or the time is up.
 * -EFAULT: the file was cut. */
int pstk__status_file_wait(const uint32_t *futex, uint32_t question, int64_t timeout_ns);
void pstk__status_file_wake(const uint32_t *futex);

#endif
