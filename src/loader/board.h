/* SPDX-License-Identifier: Apache-2.0 */
/* board: what a loader answers those who ask by its file at settings.monitor_path. */
#ifndef PSTK_LOADER_BOARD_H
#define PSTK_LOADER_BOARD_H

#include "loader/pipeline.h"
#include "observe/board.h"

/* Make the board of a loader whose threads run. A wrong path is refused; what the disk refuses is a
 * fallback, and *out is NULL. Returns owned, for pstk__board_close before anything else is closed.
 */
int pstk__loader_board(struct pstk__board **out, struct pstk_loader *loader,
                       struct pstk__pipeline *pipeline, struct pstk_error *err);

#endif
