/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/status_file.h"

#include "base/error.h"
#include "observe/timeline.h"

#include <string.h>

/* Runs on the status file's thread: the three functions that it calls are for any thread. */
static void measure(void *user, struct pstk_stats *stats, struct pstk_metrics *metrics,
                    uint64_t *epoch, uint64_t *position)
{
    struct pstk_loader *loader = user;
    if (pstk_get_stats(loader, stats) < 0)
        memset(stats, 0, sizeof *stats);
    if (pstk_get_metrics(loader, PSTK_WINDOW_MINUTE, metrics) < 0)
        memset(metrics, 0, sizeof *metrics);
    if (pstk_get_cursor(loader, epoch, position) < 0)
        *epoch = *position = 0;
}

int pstk__loader_status_file(struct pstk__status_file **out, struct pstk_loader *loader,
                             struct pstk__pipeline *pipeline, struct pstk_error *err)
{
    const struct pstk_settings *s = &pipeline->settings;
    const struct pstk__status_file_config config = {.path = s->observe.monitor_path,
                                                    .data_set = pipeline->source->path,
                                                    .rank = s->ranks.rank,
                                                    .world = s->ranks.world,
                                                    .device = s->device.kind,
                                                    .device_index = s->device.index,
                                                    .n_samples = pipeline->stream.partition.n,
                                                    .measure = measure,
                                                    .user = loader};
    struct pstk_error refused;
    pstk_error_init(&refused, sizeof refused);
    if (pstk__status_file_open(out, &config, &refused) == 0)
        return 0;
    if (!refused.native || pstk__timeline_path_is_wrong(refused.native))
        return pstk__fail(err, refused.code == PSTK_ENOMEM ? PSTK_ENOMEM : PSTK_EINVAL,
                          PSTK_STAGE_OPEN, "%s%s", refused.message,
                          refused.native ? "; must be a path in a folder that exists" : "");
    atomic_fetch_or_explicit(&pipeline->fallbacks, PSTK_FALLBACK_NO_MONITOR, memory_order_relaxed);
    return 0;
}
