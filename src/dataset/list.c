/* SPDX-License-Identifier: Apache-2.0 */
/* list: takes a list value apart into its items. */
#include "record/list.h"

#include "base/error.h"

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_RECORD, fmt, ##__VA_ARGS__)

int64_t pstk_list_read(uint32_t kind, const void *data, uint64_t size, struct pstk_list_item *items,
                       uint64_t n_items, struct pstk_error *err)
{
    struct pstk__list list;
    struct pstk__field_view view;
    char text[160];
    if (!(pstk__field_traits(kind) & PSTK__TRAIT_LIST))
        return FAIL(PSTK_EINVAL,
                    "kind: value is %u; must be UTF8_LIST, BYTES_LIST, IMAGE_LIST or "
                    "MASK_LIST of enum pstk_field_kind",
                    kind);
    if ((size && !data) || (n_items && !items))
        return FAIL(PSTK_EINVAL, "%s is NULL", size && !data ? "data" : "items");
    const char *wrong = pstk__list_check(kind, data, size, text);
    if (wrong)
        return FAIL(PSTK_EBADMSG, "the list is damaged: %s", wrong);
    pstk__list_begin(&list, kind, data, size, text);
    while (list.i < list.n && list.i < n_items) {
        pstk__list_next(&list, &view, text);
        items[list.i - 1] = (struct pstk_list_item){
            .data = view.data,
            .size = view.plain_size,
            .encoding = view.encoding,
            .width = view.width,
            .height = view.height,
            .channels = view.channels,
            .bit_depth = view.bit_depth,
            .has_palette = (view.flags & PSTK__FIELD_PALETTE) != 0,
        };
    }
    return list.n;
}
