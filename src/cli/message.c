/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "interrupt.h"

static void print(const char *format, va_list args)
{
    fputs("penstock: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void message_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(format, args);
    va_end(args);
}

int message_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(format, args);
    va_end(args);
    return STATUS_USAGE;
}

int message_status(int code)
{
    switch (code) {
    case PSTK_OK:
        return STATUS_OK;
    case PSTK_EPERM:
    case PSTK_ENOENT:
    case PSTK_EACCES:
    case PSTK_EEXIST:
    case PSTK_EINVAL:
    case PSTK_ENODATA:
    case PSTK_ENOTSUP:
        return STATUS_USAGE;
    case PSTK_EINTR:
    case PSTK_ECANCELED:
        return interrupt_seen() ? interrupt_status() : STATUS_DAMAGED;
    default: /* damaged data, a limit passed, or a machine out of memory or space */
        return STATUS_DAMAGED;
    }
}

int message_refuse(const struct pstk_error *err, const char *path)
{
    const char *text = err->message[0] ? err->message : pstk_strerror(err->code);
    if (path && !strstr(text, path))
        message_say("%s: %s", path, text);
    else
        message_say("%s", text);
    return message_status(err->code);
}

void message_no_memory(void)
{
    message_say("out of memory");
    exit(STATUS_DAMAGED);
}

int message_finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    message_say("cannot write to standard output: %s", strerror(errno));
    return STATUS_DAMAGED;
}
