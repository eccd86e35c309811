/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task: who wrote a part of unknown number: one attempt of one task of a pack. The program that
 * drives the pack gives all three, and later the order of the parts. Pure.
 */
#ifndef PSTK_TASK_H
#define PSTK_TASK_H

#include <stdint.h>

#define PSTK__PACK_ID_SIZE 32  /* bytes: hex digits */
#define PSTK__TASK_KEY_MAX 200 /* bytes */
#define PSTK__TASK_TEXT 256    /* bytes of a task's text, the terminating 0 included */

/* All zero: no task. pack_id alone: a numbered part of that pack. */
struct pstk__task {
    char pack_id[PSTK__PACK_ID_SIZE + 1]; /* the same in all parts of a pack; lower-case hex */
    char key[PSTK__TASK_KEY_MAX + 1];     /* 1 .. 200 of [A-Za-z0-9_.:=/-] */
    uint32_t attempt;
};

/* 1 when `text` may be the id of a pack / the key of a task. */
int pstk__pack_id_ok(const char *text);
int pstk__task_key_ok(const char *text);
/* Write "pack/key/attempt", the task's share of its shards' tags. Returns `text`. */
const char *pstk__task_text(const struct pstk__task *task, char text[PSTK__TASK_TEXT]);
/* Return a hash of that text, for names of files that no other task has. */
uint64_t pstk__task_hash(const struct pstk__task *task);

#endif
