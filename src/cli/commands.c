/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <stddef.h>
#include <string.h>

const struct command *const commands[] = {
    &command_pack,   &command_merge,  &command_column, &command_info,  &command_verify,
    &command_get,    &command_export, &command_show,   &command_bench, &command_order,
    &command_doctor, &command_page,   &command_top,    &command_cache, NULL,
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}
