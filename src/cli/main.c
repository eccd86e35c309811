/* SPDX-License-Identifier: Apache-2.0 */
/* main: the `penstock` command, which finds the subcommand and runs it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <penstock/types.h>

#include "command.h"
#include "complete.h"
#include "option/help.h"
#include "option/options.h"
#include "ui/message.h"

#define MAX_COMMANDS 32

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
    const struct command *command = command_find(argv[2]);
    if (!command)
        return unknown(argv[2]);
    help_print(stdout, command);
    return message_finish(STATUS_OK);
}

/* Set up the process for any state that it was started in. */
static void settle(void)
{
    /* A closed standard stream would give its number to the next opened file, and messages would be
     * written into a shard. So such a stream is opened in the wrong direction; a print to it still
     * fails. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    /* A write past the limit of `ulimit -f` shall fail and be reported, not kill the process. */
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
    if (strcmp(name, "--complete") == 0)
        return complete(argc - 2, argv + 2);
    const struct command *command = command_find(name);
    if (!command)
        return unknown(name);
    return command->run(command, argc - 1, argv + 1);
}
