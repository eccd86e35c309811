/* SPDX-License-Identifier: Apache-2.0 */
/* main: the `penstock` command: finds the subcommand and runs it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <penstock/types.h>

#include "command.h"
#include "message.h"
#include "options.h"

/* In the order in which a newcomer needs them. */
static const struct command *const commands[] = {&command_pack,   &command_merge, &command_info,
                                                 &command_verify, &command_get,   &command_show,
                                                 &command_bench,  &command_order, &command_doctor};

#define N_COMMANDS (sizeof commands / sizeof *commands)

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void print_help(FILE *file)
{
    fputs("usage: penstock COMMAND ...\n"
          "\n"
          "Sharded record files for training: packed once, streamed, decoded and augmented in a\n"
          "reproducible order.\n"
          "\n"
          "commands:\n",
          file);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(file, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n"
          "`penstock COMMAND --help` has options and examples; `penstock --version` the version.\n"
          "\n"
          "examples:\n"
          "  penstock pack imagenet/train train      # folders of images become a data set\n"
          "  penstock bench train                    # how fast is it here, and what limits it?\n"
          "  penstock show train --ids 0..15 -o sheet.png\n",
          file);
}

static int unknown(const char *name)
{
    const char *names[N_COMMANDS + 1];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i]->name;
    names[N_COMMANDS] = NULL;
    const char *near = option_nearest(name, names);
    const char *what = name[0] == '-' ? "option" : "command";
    if (near)
        return message_usage("there is no %s %s; did you mean %s?", what, name, near);
    return message_usage("there is no %s %s; `penstock --help` lists them", what, name);
}

static int help_of(int argc, char **argv)
{
    if (argc < 3) {
        print_help(stdout);
        return message_finish(STATUS_OK);
    }
    const struct command *c = find(argv[2]);
    if (!c)
        return unknown(argv[2]);
    fputs(c->help, stdout);
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
        print_help(stderr);
        return STATUS_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help_of(argc, argv);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("penstock %s\n", pstk_version());
        return message_finish(STATUS_OK);
    }
    const struct command *c = find(name);
    if (!c)
        return unknown(name);
    return c->run(c, argc - 1, argv + 1);
}
