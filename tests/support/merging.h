/* SPDX-License-Identifier: Apache-2.0 */
/* Merges, as most tests want them: parts, and where to. */
#ifndef PSTK_TEST_MERGING_H
#define PSTK_TEST_MERGING_H

#include <penstock/format.h>

static inline int merge_watched(const char *const *parts, uint32_t n, const char *out,
                                int overwrite, pstk_progress_fn on_progress, void *user,
                                struct pstk_error *err)
{
    const struct pstk_merge_settings s = {.size = sizeof s,
                                          .n_parts = n,
                                          .parts = parts,
                                          .out = out,
                                          .overwrite = (uint32_t)overwrite,
                                          .on_progress = on_progress,
                                          .user = user};
    return pstk_merge(&s, err);
}

static inline int merge_parts(const char *const *parts, uint32_t n, const char *out, int overwrite,
                              struct pstk_error *err)
{
    return merge_watched(parts, n, out, overwrite, NULL, NULL, err);
}

#endif
