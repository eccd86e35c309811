/* SPDX-License-Identifier: Apache-2.0 */
/* export_mark: the file at the top of a folder that was exported. Who lists the folder's files
 * passes it over. */
#ifndef PSTK_EXPORT_MARK_H
#define PSTK_EXPORT_MARK_H

#define PSTK__EXPORT_MARK "penstock-export.json"

#endif
