/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "command.h"
#include "ui/text.h"
#include "ui/unit.h"

/* Print one line. Names, notes and the library's messages may quote any text, so every line is made
 * safe first. It is one write, so that lines of several processes do not mix. */
static void print(const char *format, va_list args)
{
    char *line;
    if (vasprintf(&line, format, args) < 0)
        message_no_memory();
    char *safe = text_copy(line);
    if (!safe)
        message_no_memory();
    fprintf(stderr, "penstock: %s\n", safe);
    free(safe);
    free(line);
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

/* Return the soft limit of this process, or RLIM_INFINITY when it is not known. */
static rlim_t limit_of(int resource)
{
    struct rlimit limit;
    return getrlimit((__rlimit_resource_t)resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

const char *message_advice(int native, char text[MESSAGE_ADVICE_SIZE])
{
    const rlim_t size = limit_of(RLIMIT_FSIZE), files = limit_of(RLIMIT_NOFILE);
    char number[UNIT_SIZE];
    text[0] = 0;
    if (native == EFBIG && size != RLIM_INFINITY)
        snprintf(text, MESSAGE_ADVICE_SIZE,
                 "; a file may have %s bytes here: raise this limit (ulimit -f)",
                 unit_count(number, size));
    else if (native == EMFILE && files != RLIM_INFINITY)
        snprintf(text, MESSAGE_ADVICE_SIZE,
                 "; this process may open %s files at once: raise this limit (ulimit -n)",
                 unit_count(number, files));
    return text;
}

/* Return the errno value of an error; 0 when `native` is a code of libjpeg or CUDA. */
static int errno_of(const struct pstk_error *err)
{
    return err->stage == PSTK_STAGE_DECODE || err->stage == PSTK_STAGE_DEVICE ? 0 : err->native;
}

/* Return 1 when the text before `at` shows that the next word is a setting, not part of a path. */
static int is_before_setting(const char *message, const char *at)
{
    static const char *const before[] = {"set ", " or ", "with ", "lower ", "raise ", "("};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const size_t n = strlen(before[i]);
        if ((size_t)(at - message) >= n && strncmp(at - n, before[i], n) == 0)
            return 1;
    }
    return at == message;
}

/* Replace a setting in a message by its variable or option. */
static void name_variable(struct pstk_error *err, const char *setting, const char *variable)
{
    char text[sizeof err->message];
    const size_t n = strlen(setting);
    for (char *at = err->message; (at = strstr(at, setting)); at++) {
        if (!is_before_setting(err->message, at) || (at[n] && !strchr(" ,:;)", at[n])))
            continue;
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - err->message), err->message, variable,
                 at + n);
        memcpy(err->message, text, sizeof text);
    }
}

/* Replace the package's fields={"NAME": TYPE} at `at` by the option --field NAME=TYPE. */
static void name_field(struct pstk_error *err, const char *at, const char *name)
{
    static const struct {
        const char *before, *after; /* text around the type's word in the package */
        const char *tail, *quote;   /* text around it in the option */
    } types[] = {{"\": \"", "\"}", "", ""},
                 {"\": [\"", "\"]}", "_list", ""},
                 {"\": (\"", "\", (), 0)} reads 0, and (None,) none", "=0 reads 0", ""},
                 {"\": (\"", "\", (None,))}", "[*]", "'"}};
    char text[sizeof err->message];
    const char *name_end = strchr(name, '"');
    for (size_t i = 0; name_end && i < sizeof types / sizeof *types; i++) {
        const char *type = name_end + strlen(types[i].before);
        if (strncmp(name_end, types[i].before, strlen(types[i].before)) != 0)
            continue;
        const char *end = strstr(type, types[i].after);
        if (!end)
            continue;
        snprintf(text, sizeof text, "%.*s--field %s%.*s=%.*s%s%s%s", (int)(at - err->message),
                 err->message, types[i].quote, (int)(name_end - name), name, (int)(end - type),
                 type, types[i].tail, types[i].quote, end + strlen(types[i].after));
        memcpy(err->message, text, sizeof text);
        return;
    }
}

/* Replace every fields={...} in a message. */
static void name_fields(struct pstk_error *err)
{
    static const char begin[] = "fields={\"";
    for (char *at = err->message; (at = strstr(at, begin)); at++)
        name_field(err, at, at + sizeof begin - 1);
}

void message_settings(struct pstk_error *err)
{
    name_variable(err, "cache_path", "$PENSTOCK_CACHE");
    name_variable(err, "cache_size", "$PENSTOCK_CACHE_SIZE");
    name_variable(err, "image_set", "--image-set");
    name_variable(err, "n_threads", "--threads");
    name_variable(err, "panoptic_masks", "--panoptic-masks");
    name_variable(err, "shard_size", "--shard-size");
    name_variable(err, "skip_bad", "--skip-bad");
    name_variable(err, "skip_empty", "--skip-empty");
    name_variable(err, "split_at", "--split-at");
    name_variable(err, "trace_path", "--trace");
    name_fields(err);
}

void message_error(const struct pstk_error *err, const char *path)
{
    struct pstk_error worded = *err;
    message_settings(&worded);
    const char *text = worded.message[0] ? worded.message : pstk_strerror(err->code);
    char advice[MESSAGE_ADVICE_SIZE];
    message_advice(errno_of(err), advice);
    if (path && !strstr(text, path))
        message_say("%s: %s%s", path, text, advice);
    else
        message_say("%s%s", text, advice);
}

void message_no_memory(void)
{
    fputs("penstock: out of memory\n", stderr); /* message_say would need memory */
    exit(STATUS_DAMAGED);
}

void message_program(void)
{
    const char *name = program_invocation_name;
    text_print_word(stdout, strchr(name, '/') ? name : "penstock");
}

void message_next(const char *command, const char *path)
{
    fputs("next: ", stdout);
    message_program();
    printf(" %s ", command);
    text_print_word(stdout, path);
    putchar('\n');
}

int message_finish(int status)
{
    errno = 0;
    int failed = ferror(stdout);
    if (fclose(stdout) == 0 && !failed)
        return status;
    message_say("cannot write to standard output: %s",
                errno ? strerror(errno) : "it failed before");
    return STATUS_DAMAGED;
}
