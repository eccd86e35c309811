/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task: the writer of a part of unknown number: one attempt of one task of a pack. The program that
 * drives the pack gives all three, and later the order of the parts. Pure.
 */
#ifndef PSTK_TASK_H
#define PSTK_TASK_H

#include <stdint.h>

#define PSTK__PACK_ID_SIZE 32  /* hex digits of an id */
#define PSTK__TASK_KEY_MAX 200 /* max bytes of a key */
#define PSTK__TASK_TEXT 256    /* bytes of a task's text, its 0 included */

/* A task. All zero: none. Only pack_id: a numbered part of that pack. */
struct pstk__task {
    char pack_id[PSTK__PACK_ID_SIZE + 1]; /* the same in all parts of a pack; lower-case hex */
    char key[PSTK__TASK_KEY_MAX + 1];     /* 1 .. 200 of [A-Za-z0-9_.:=/-] */
    uint32_t attempt;
};

/* 1: `text` may be the id of a pack, or the key of a task. */
int pstk__pack_id_ok(const char *text);
int pstk__task_key_ok(const char *text);
/* Write "pack/key/attempt", the task's share of its shards' tags. Returns `text`. */
const char *pstk__task_text(const struct pstk__task *task, char text[PSTK__TASK_TEXT]);
/* Return a hash of that text, for file names that no other task has. */
uint64_t pstk__task_hash(const struct pstk__task *task);

#endif
