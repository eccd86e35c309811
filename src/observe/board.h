/* SPDX-License-Identifier: Apache-2.0 */
/*
 * board: a small file through which other processes ask a loader what it is doing; the other side,
 * pstk_board_ask, is board_ask.c.
 *
 *     0  struct pstk__board_head, written once
 *   512 + ...  see PSTK__BOARD_ANSWER: struct pstk__board_answer, written for each question
 *
 * Who asks writes a new number to head.question, and wakes the futex there. The board's thread
 * waits at that futex, and answers. It reads and writes by pread and pwrite, never through a
 * mapping: a file that somebody cuts or deletes then ends the board, where a mapping would end the
 * process by SIGBUS. The mapping is for the futex alone, which the kernel looks at without such a
 * danger.
 *
 * An answer is one pwrite, with its checksum and its number in it. Who reads it takes it if the
 * checksum is right and the number is new.
 *
 * All numbers are the machine's own: the file never leaves it.
 */
#ifndef PSTK_BOARD_FILE_H
#define PSTK_BOARD_FILE_H

#include "base/process.h"

#include <penstock/board.h>

#define PSTK__BOARD_MAGIC "pstkbrd" /* 8 bytes with its 0 */
#define PSTK__BOARD_VERSION 1u
#define PSTK__BOARD_SIZE 4096u    /* of the file */
#define PSTK__BOARD_ANSWER 1024u  /* where the answer begins */
#define PSTK__BOARD_STATS 1024u   /* room for struct pstk_stats in an answer, */
#define PSTK__BOARD_METRICS 1984u /* and for struct pstk_metrics */

/* Who has the board. */
struct pstk__board_head {
    char magic[8];
    uint32_t version;  /* of the layout */
    uint32_t question; /* the futex: the number of the newest question; not in the checksum */
    uint32_t crc;      /* CRC32C of all that follows in this struct */
    uint32_t rank, world, device;
    int32_t device_index;
    uint32_t reserved; /* 0 */
    uint64_t opened_ns, n_samples;
    struct pstk__process process;
    char path[512];
};

/* What its loader was doing at a moment. Members that are newer than the reader's, or older, are
 * left out by the sizes. */
struct pstk__board_answer {
    uint64_t number;   /* from 1 */
    uint32_t crc;      /* CRC32C of all that follows in this struct */
    uint32_t reserved; /* 0 */
    uint64_t answered_ns, epoch, position;
    uint32_t stats_size, metrics_size;
    unsigned char stats[PSTK__BOARD_STATS];
    unsigned char metrics[PSTK__BOARD_METRICS];
};

_Static_assert(sizeof(struct pstk__board_head) <= PSTK__BOARD_ANSWER, "the head has no room");
_Static_assert(PSTK__BOARD_ANSWER + sizeof(struct pstk__board_answer) <= PSTK__BOARD_SIZE,
               "the answer has no room");
_Static_assert(sizeof(struct pstk_stats) <= PSTK__BOARD_STATS, "statistics have no room");
_Static_assert(sizeof(struct pstk_metrics) <= PSTK__BOARD_METRICS, "metrics have no room");

/* What a board says of its loader. */
struct pstk__board_config {
    const char *path;     /* of the file */
    const char *data_set; /* copies the end of it */
    uint32_t rank, world, device;
    int32_t device_index;
    uint64_t n_samples;
    /* Measure now; on the board's thread. */
    void (*measure)(void *user, struct pstk_stats *stats, struct pstk_metrics *metrics,
                    uint64_t *epoch, uint64_t *position);
    void *user;
};

struct pstk__board;

/* Make the file, in place of the board of a process that has ended, and start the thread. Refuses a
 * path where something else lies. err->native: what the system refused; 0: nothing. Returns owned.
 */
int pstk__board_open(struct pstk__board **out, const struct pstk__board_config *config,
                     struct pstk_error *err);
/* End the thread; remove the file, if it is still ours. NULL is fine. */
void pstk__board_close(struct pstk__board *board);

/* CRC32C of a head, or of an answer. */
uint32_t pstk__board_head_crc(const struct pstk__board_head *head);
uint32_t pstk__board_answer_crc(const struct pstk__board_answer *answer);
/* Wait until the number at a futex is not `question` any more, or somebody wakes it, or the time is
 * up. -EFAULT: the file was cut. */
int pstk__board_wait(const uint32_t *futex, uint32_t question, int64_t timeout_ns);
void pstk__board_wake(const uint32_t *futex);

#endif
