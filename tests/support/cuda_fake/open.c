/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_fake/open: for programs that know nothing of the fake and are linked with it. Where the
 * environment has PENSTOCK_FAKE_CUDA, say "devices=2,delay_us=100,seed=3", they find these devices;
 * else a machine without a driver. A program that leaves hazards or leaks behind exits with 99.
 * The Python package's tests hold streams: cuda_fake_set_held.
 */
#include "cuda_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRONMENT "PENSTOCK_FAKE_CUDA"
#define STATUS 99

static void refuse(const char *text)
{
    fprintf(stderr, ENVIRONMENT ": what is '%s'?\n", text);
    _exit(STATUS);
}

struct wish {
    struct cuda_fake_config config;
    int poisoned; /* device whose kernels have faulted; -1: none */
};

static void set(struct wish *w, const char *name, uint64_t value)
{
    struct cuda_fake_config *c = &w->config;
    if (strcmp(name, "devices") == 0)
        c->n_devices = (uint32_t)value;
    else if (strcmp(name, "delay_us") == 0)
        c->max_delay_us = (uint32_t)value;
    else if (strcmp(name, "seed") == 0)
        c->seed = value;
    else if (strcmp(name, "memory") == 0)
        c->device_memory = value;
    else if (strcmp(name, "pinned_limit") == 0)
        c->pinned_limit = value;
    else if (strcmp(name, "driver") == 0)
        c->driver_version = (int)value;
    else if (strcmp(name, "no_driver") == 0)
        c->no_driver = (cudaError_t)value;
    else if (strcmp(name, "no_register") == 0)
        c->no_register = (cudaError_t)value;
    else if (strcmp(name, "poison") == 0)
        w->poisoned = (int)value;
    else
        refuse(name);
}

__attribute__((constructor)) static void open_fake(void)
{
    const char *wanted = getenv(ENVIRONMENT);
    struct wish w = {.poisoned = -1};
    char text[256], *rest, *end;
    if (!wanted)
        return;
    snprintf(text, sizeof text, "%s", wanted);
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(item, '=');
        if (!value)
            refuse(item);
        *value++ = '\0';
        set(&w, item, strtoull(value, &end, 10));
        if (*end || end == value)
            refuse(value);
    }
    cuda_fake_open(&w.config);
    if (w.poisoned >= 0)
        cuda_fake_poison(w.poisoned, cudaErrorLaunchFailure);
}

/* Hold a stream, or let it go: the one function of the fake that penstock_on_fake exports. */
__attribute__((visibility("default"))) void cuda_fake_set_held(cudaStream_t stream, int held);
void cuda_fake_set_held(cudaStream_t stream, int held)
{
    if (held)
        cuda_fake_hold(stream);
    else
        cuda_fake_let(stream);
}

__attribute__((destructor)) static void close_fake(void)
{
    if (!getenv(ENVIRONMENT) || cuda_fake_close() == 0)
        return;
    fflush(stdout);
    _exit(STATUS);
}
