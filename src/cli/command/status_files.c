/* SPDX-License-Identifier: Apache-2.0 */
#include "command/status_files.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Write a path. Returns 1, or 0 if it does not fit. */
__attribute__((format(printf, 2, 3))) static int put(char path[STATUS_FILES_PATH_SIZE],
                                                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(path, STATUS_FILES_PATH_SIZE, format, args);
    va_end(args);
    return n > 0 && n < STATUS_FILES_PATH_SIZE;
}

int status_files_folder(char path[STATUS_FILES_PATH_SIZE])
{
    struct stat folder;
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char name[STATUS_FILES_PATH_SIZE];
    if (!(runtime && runtime[0] == '/' && put(path, "%s/penstock", runtime)))
        put(path, "/tmp/penstock-%u", (unsigned)geteuid());
    if (lstat(path, &folder) != 0)
        return 1;
    memcpy(name, path, sizeof name);
    if (!S_ISDIR(folder.st_mode))
        put(path, "%.3900s is not a folder", name);
    else if (folder.st_uid != geteuid())
        put(path, "%.3900s belongs to another user", name);
    else if (folder.st_mode & 022)
        put(path, "others can write to %.3900s: chmod 700 it", name);
    else
        return 1;
    return 0;
}

const char *status_files_path(char path[STATUS_FILES_PATH_SIZE])
{
    char folder[STATUS_FILES_PATH_SIZE];
    struct timespec now;
    /* The folder is checked again once it exists: another user may have made it meanwhile. */
    if (!status_files_folder(folder) || (mkdir(folder, 0700) != 0 && errno != EEXIST) ||
        !status_files_folder(folder))
        return NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    return put(path, "%.4000s/%u-%lx%lx", folder, (unsigned)getpid(), (unsigned long)now.tv_sec,
               (unsigned long)now.tv_nsec)
               ? path
               : NULL;
}
