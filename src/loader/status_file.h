/* SPDX-License-Identifier: Apache-2.0 */
/* status_file: the answers of a loader to processes that ask through its file at
 * settings.observe.monitor_path. */
#ifndef PSTK_LOADER_STATUS_FILE_H
#define PSTK_LOADER_STATUS_FILE_H

#include "loader/pipeline.h"
#include "observe/status_file.h"

/* Make the status file of a loader whose threads run. A wrong path is refused; an error of the disk
 * is a fallback, and *out is NULL. Returns owned; the caller passes it to pstk__status_file_close
 * before it closes anything else. */
int pstk__loader_status_file(struct pstk__status_file **out, struct pstk_loader *loader,
                             struct pstk__pipeline *pipeline, struct pstk_error *err);

#endif
