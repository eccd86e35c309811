/* SPDX-License-Identifier: Apache-2.0 */
/* export_mark: the file at the top of an exported folder. Code that lists the folder's files skips
 * it. */
#ifndef PSTK_EXPORT_MARK_H
#define PSTK_EXPORT_MARK_H

#define PSTK__EXPORT_MARK "penstock-export.json"

#endif
