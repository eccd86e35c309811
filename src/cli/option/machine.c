/* SPDX-License-Identifier: Apache-2.0 */
#include "option/machine.h"

#include <penstock/penstock.h>

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "ui/json.h"
#include "names.h"
#include "option/options.h"

/* A shorter struct ends before io_uring, so the library tries no ring and starts no CUDA driver. */
#define WITHOUT_TRIALS offsetof(struct pstk_machine, io_uring)

uint32_t machine_n_cores(uint32_t most)
{
    struct pstk_machine machine = {.size = WITHOUT_TRIALS};
    if (pstk_get_machine(NULL, &machine, NULL) == 0 && machine.n_usable > 0)
        return machine.n_usable < most ? machine.n_usable : most;
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > (long)most ? most : (uint32_t)n;
}

uint32_t machine_n_within(uint32_t n, uint64_t each)
{
    struct pstk_machine machine = {.size = WITHOUT_TRIALS};
    if (pstk_get_machine(NULL, &machine, NULL) < 0 || machine.memory == 0 ||
        machine.memory / each >= n)
        return n;
    return machine.memory < each ? 1 : (uint32_t)(machine.memory / each);
}

struct json_t *machine_json(const char *path)
{
    struct pstk_machine machine = {.size = sizeof machine};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pstk_get_machine(path, &machine, &err) < 0)
        return NULL;
    struct json_t *object = json_make_object();
    json_put_text(object, "cpu", machine.cpu);
    json_put_count(object, "cores", machine.n_cores);
    json_put_count(object, "usable_cores", machine.n_usable);
    json_put_count(object, "numa_nodes", machine.n_nodes);
    json_put_count(object, "memory_bytes", machine.memory);
    json_put_text(object, "kernels", option_choice_name(names_kernels, machine.kernels));
    json_put_text(object, "kernel", machine.kernel);
    json_put_text(object, "libjpeg", machine.libjpeg);
    json_put_text(object, "file_system", machine.file_system[0] ? machine.file_system : NULL);
    if (machine.rotational < 0)
        json_put_null(object, "rotational");
    else
        json_put_bool(object, "rotational", machine.rotational == 1);
    json_put_bool(object, "io_uring", machine.io_uring == 1);
    return object;
}

const char *machine_node(char text[MACHINE_NODE])
{
    memset(text, 0, MACHINE_NODE);
    return gethostname(text, MACHINE_NODE - 1) == 0 && text[0] ? text : NULL;
}
