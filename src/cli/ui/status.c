/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/status.h"

#include <errno.h>

#include "command.h"
#include "ui/interrupt.h"
#include "ui/message.h"

int status_of_code(int code)
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
    default: /* damaged data, an exceeded limit, or a machine out of memory or space */
        return STATUS_DAMAGED;
    }
}

int status_of_path(int native)
{
    switch (native) {
    case EPERM:
    case ENOENT:
    case EACCES:
    case EEXIST:
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENODEV:
    case ENOTDIR:
    case ENOTSUP:
    case ENXIO:
    case EROFS:
    case ETXTBSY:
        return STATUS_USAGE;
    default: /* no space, no descriptors, no memory, a failing disk */
        return STATUS_DAMAGED;
    }
}

int status_refuse(const struct pstk_error *err, const char *path)
{
    message_error(err, path);
    return status_of_code(err->code);
}
