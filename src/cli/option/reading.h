/* SPDX-License-Identifier: Apache-2.0 */
/* reading: judges if a data set's storage needs the windowed order, which reads whole blocks. */
#ifndef PSTK_CLI_READING_H
#define PSTK_CLI_READING_H

#include <penstock/format.h>
#include <penstock/penstock.h>

#define READING_SIZE 400

/* A remark about an order. */
struct reading {
    char text[READING_SIZE];   /* why random reads are slow here */
    char advice[READING_SIZE]; /* an order that avoids them */
};

/* Return 1 when a file system keeps its files on other machines. */
int reading_is_remote(const char *file_system);
/* Judge random reads of a data set with samples, for `world` ranks. Returns 1 with *reading filled,
 * or 0 when they are no problem: the data set fits into memory, its records are large, or its
 * storage is neither a spinning disk nor remote. */
int reading_judge(const struct pstk_machine *machine, const struct pstk_dataset_info *info,
                  uint32_t world, struct reading *reading);
/* Return 1 when a loader that waits for storage could wait less with the windowed order: it reads
 * small records at random. */
int reading_is_scattered(uint32_t order, const struct pstk_dataset_info *info);

#endif
