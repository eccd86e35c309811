/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fake: opening, closing, and what there is to be told. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT(member, value)                                                                     \
    do {                                                                                           \
        if ((member) == 0)                                                                         \
            (member) = (value);                                                                    \
    } while (0)

void cuda_fake_open(const struct cuda_fake_config *config)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cuda_fake__enter();
    if (f->open) {
        fprintf(stderr, "cuda_fake_open: it is open\n");
        abort();
    }
    struct cuda_fake_config *c = &f->config;
    *c = config ? *config : (struct cuda_fake_config){0};
    DEFAULT(c->n_devices, 1);
    DEFAULT(c->delay_percent, 100);
    DEFAULT(c->device_memory, (uint64_t)256 << 20);
    DEFAULT(c->whole_check, 64 << 10);
    DEFAULT(c->check_stride, 4 << 10);
    DEFAULT(c->driver_version, 13000);
    DEFAULT(c->runtime_version, 13000);
    DEFAULT(c->arch, 90);
    if (c->n_devices > CUDA_FAKE_DEVICES)
        c->n_devices = CUDA_FAKE_DEVICES;
    memset(f->devices, 0, sizeof f->devices);
    for (int i = 0; i < CUDA_FAKE_DEVICES; i++)
        f->devices[i].index = i;
    memset(&f->counts, 0, sizeof f->counts);
    memset(f->orders, 0, sizeof f->orders);
    memset(f->slot_time, 0, sizeof f->slot_time);
    memset(f->slot_free, 0, sizeof f->slot_free);
    memset(&f->host, 0, sizeof f->host);
    f->n_functions = f->n_slots = 0;
    f->capture = f->hold_copies = 0;
    f->captured = NULL;
    f->clock_ns = 0;
    f->generation++;
    f->open = 1;
    cuda_fake__leave();
}

static void live(struct cuda_fake_stats *out)
{
    const struct cuda_fake__state *f = &cuda_fake__state;
    for (uint32_t i = 0; i < CUDA_FAKE_DEVICES; i++) {
        out->devices[i].has_context = f->devices[i].has_context;
        for (uint32_t k = 0; k < CUDA_FAKE__N_ENGINES; k++)
            out->n_at_engines += f->devices[i].engines[k].n_bytes;
    }
    for (const struct cuda_fake__range *r = f->ranges; r; r = r->next) {
        if (r->tried)
            continue;
        out->n_allocations += r->device >= 0;
        out->n_registrations += r->device < 0 && r->registered;
        out->n_pinned += r->device < 0 && !r->registered;
        out->n_pinned_bytes += r->device < 0 ? r->size : 0;
        if (r->device >= 0) {
            out->devices[r->device].n_allocations++;
            out->devices[r->device].n_allocated += r->size;
        }
    }
    for (const struct CUstream_st *s = f->streams; s; s = s->next) {
        const uint32_t n = !s->tried && !s->implicit;
        out->n_streams += n;
        out->devices[s->device].n_streams += n;
    }
    for (const struct CUevent_st *e = f->events; e; e = e->next) {
        out->n_events += !e->tried;
        out->devices[e->device].n_events += !e->tried;
    }
    out->n_modules = f->n_modules;
}

void cuda_fake_stats(struct cuda_fake_stats *out)
{
    cuda_fake__enter();
    *out = cuda_fake__state.counts;
    live(out);
    cuda_fake__leave();
}

void cuda_fake_reset(void)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cuda_fake__enter();
    memset(&f->counts, 0, sizeof f->counts);
    f->n_functions = 0;
    cuda_fake__leave();
}

static void tell(const struct cuda_fake_stats *s)
{
    for (uint64_t i = 0; i < s->n_hazards && i < CUDA_FAKE_TEXTS; i++)
        printf("# cuda_fake: hazard: %s\n", s->texts[i]);
    if (s->n_allocations + s->n_registrations + s->n_pinned + s->n_streams + s->n_events +
            s->n_modules >
        0)
        printf("# cuda_fake: left behind: %u allocations, %u registrations, %u pinned, %u streams, "
               "%u events, %u modules\n",
               s->n_allocations, s->n_registrations, s->n_pinned, s->n_streams, s->n_events,
               s->n_modules);
}

uint64_t cuda_fake_close(void)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    struct cuda_fake_stats s;
    memset(&s, 0, sizeof s);
    cuda_fake__enter();
    struct cuda_fake_stats alive;
    memset(&alive, 0, sizeof alive);
    live(&alive);
    cuda_fake__streams_close(); /* may still find a source that changed */
    f->open = 0;
    s = f->counts;
    s.n_allocations = alive.n_allocations;
    s.n_registrations = alive.n_registrations;
    s.n_pinned = alive.n_pinned;
    s.n_streams = alive.n_streams;
    s.n_events = alive.n_events;
    s.n_modules = alive.n_modules;
    while (f->ranges)
        cuda_fake__range_free(f->ranges);
    cuda_fake__events_free();
    cuda_fake__modules_free();
    cuda_fake__hands_free();
    for (int i = 0; i < CUDA_FAKE_DEVICES; i++)
        cuda_fake__region_free(&f->devices[i]);
    cuda_fake__leave();
    if (!f->config.quiet)
        tell(&s);
    return s.n_hazards + s.n_allocations + s.n_registrations + s.n_pinned + s.n_streams +
           s.n_events + s.n_modules;
}
