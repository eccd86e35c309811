/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <penstock/penstock.h>

#include "command.h"
#include "ui/message.h"

/* A signal handler gets no argument, so these are the only mutable globals. All three are lock-free
 * atomics, which a handler may use. */
static _Atomic int seen;
static _Atomic(struct pstk_loader *) attached;
static _Atomic(const char *) words;

/* A closed terminal sends SIGHUP. */
static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

static void write_text(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* the reader is gone */
}

/* Print the last words and exit. The handler and interrupt_at_once call it, so it calls only
 * functions that a handler may call. */
static void end_at_once(const char *last_words, int number)
{
    write_text("\npenstock: interrupted: ");
    write_text(last_words);
    write_text("\n");
    _exit(STATUS_SIGNAL + number);
}

/* Handle a signal. It interrupts the main thread anywhere, even in a function that holds a lock. So
 * the handler only uses the three atomics, writes, and calls pstk_interrupt, which a handler may
 * call. */
static void on_signal(int number)
{
    atomic_store(&seen, number);
    const char *last = atomic_load(&words);
    if (last)
        end_at_once(last, number);
    struct pstk_loader *loader = atomic_load(&attached);
    if (loader)
        pstk_interrupt(loader);
}

void interrupt_install(void)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action, old;
        memset(&action, 0, sizeof action);
        action.sa_handler = on_signal;
        sigemptyset(&action.sa_mask);
        action.sa_flags = (int)SA_RESETHAND; /* a second signal kills the process */
        /* A shell ignores SIGINT for a command in the background, and nohup ignores SIGHUP: keep
         * that. */
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

int interrupt_seen(void)
{
    return atomic_load(&seen);
}

int interrupt_status(void)
{
    return STATUS_SIGNAL + atomic_load(&seen);
}

int interrupt_say(const char *what)
{
    message_say("interrupted: %s", what);
    return interrupt_status();
}

void interrupt_attach(struct pstk_loader *loader)
{
    atomic_store(&attached, loader);
}

static void mask(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    pthread_sigmask(how, &set, NULL);
}

void interrupt_block(void)
{
    mask(SIG_BLOCK);
}

void interrupt_unblock(void)
{
    mask(SIG_UNBLOCK);
}

void interrupt_at_once(const char *last_words)
{
    atomic_store(&words, last_words);
    const int number = atomic_load(&seen); /* an earlier signal found no last words */
    if (last_words && number)
        end_at_once(last_words, number);
}

void interrupt_ignore_pipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}
