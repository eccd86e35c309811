/* SPDX-License-Identifier: Apache-2.0 */
/* main: the `penstock` command: finds the subcommand and runs it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <penstock/types.h>

#include "command.h"
#include "help.h"
#include "message.h"
#include "options.h"

#define MAX_COMMANDS 32

static const struct command *find(const char *name)
{
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[MAX_COMMANDS + 1];
    size_t n = 0;
    for (; commands[n] && n < MAX_COMMANDS; n++)
        names[n] = commands[n]->name;
    names[n] = NULL;
    const char *near = option_nearest(name, names);
    const char *what = name[0] == '-' ? "option" : "command";
    if (near)
        return message_usage("there is no %s %s; did you mean %s?", what, name, near);
    return message_usage("there is no %s %s; `penstock --help` lists them", what, name);
}

static int help_of(int argc, char **argv)
{
    if (argc < 3) {
        help_print_all(stdout);
        return message_finish(STATUS_OK);
    }
    const struct command *command = find(argv[2]);
    if (!command)
        return unknown(argv[2]);
    help_print(stdout, command);
    return message_finish(STATUS_OK);
}

/* What the command starts with, whoever starts it. */
static void settle(void)
{
    /* A standard stream that is closed would lend its number to the next file that is opened, and
     * messages would be written into a shard. It is opened the wrong way round, so that printing
     * there fails as before. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    /* Past the limit of `ulimit -f` a write shall fail, and be reported, instead of killing. */
    signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
    settle();
    if (argc < 2) {
        help_print_all(stderr);
        return STATUS_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help_of(argc, argv);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("penstock %s\n", pstk_version());
        return message_finish(STATUS_OK);
    }
    const struct command *command = find(name);
    if (!command)
        return unknown(name);
    return command->run(command, argc - 1, argv + 1);
}
