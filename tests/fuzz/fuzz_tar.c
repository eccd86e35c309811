/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tar: any bytes as an archive, walked member by member. Places rise and agree. */
#include "format/tar/member.h"
#include "record/translate.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Set the checksum of each header again, so that the fuzzer gets past it. */
static void mend(uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at + 512 <= size; at += 512) {
        unsigned sum = 8 * ' ';
        for (size_t i = 0; i < 512; i++)
            sum += i >= 148 && i < 156 ? 0 : bytes[at + i];
        if (bytes[at])
            for (int i = 0; i < 6; i++)
                bytes[at + 148 + i] = (uint8_t)('0' + (sum >> 3 * (5 - i) & 7));
        bytes[at + 154] = 0;
    }
}

/* The key lies where the member says, or comes from its header. */
static void check_key(const uint8_t *bytes, const struct pstk__tar_member *member,
                      const struct pstk__tar_name *name)
{
    static const struct pstk_field field = {.name = "__key__", .kind = PSTK_FIELD_UTF8};
    char key[PSTK__TAR_MAX_NAME], text[160];
    if (member->named != PSTK_NONE)
        memcpy(key, bytes + member->named + (name->key - member->name), name->key_size);
    else if (pstk__translate(PSTK__FOREIGN_USTAR_NAME, &field,
                             bytes + member->data - PSTK__TAR_BLOCK, PSTK__TAR_BLOCK, key,
                             name->key_size, text))
        abort();
    if (memcmp(key, name->key, name->key_size) != 0)
        abort();
}

static void walk(const uint8_t *bytes, uint64_t size)
{
    static struct pstk__tar_member member;
    struct pstk__tar_name name;
    struct pstk__tar_fault fault = {0};
    for (uint64_t at = 0; at < size; at = member.next) {
        const enum pstk__tar_step step = pstk__tar_read(&member, at, bytes + at, size - at, &fault);
        if (step == PSTK__TAR_BAD && (!fault.why || fault.at < at || fault.at >= size))
            abort();
        if (step != PSTK__TAR_MEMBER && step != PSTK__TAR_OTHER)
            return;
        if (member.begin != at || member.data < at + 512 || member.data > size ||
            member.next < member.data + member.size || member.next % 512 != at % 512 ||
            !memchr(member.name, 0, sizeof member.name))
            abort();
        pstk__tar_split(&name, member.name, (int)(member.size & 1));
        check_key(bytes, &member, &name);
        if (name.suffix_size && (strlen(name.suffix) != name.suffix_size ||
                                 name.key + name.key_size > member.name + strlen(member.name)))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *exact = calloc(1, size ? size : 1); /* so that a read past it is seen */
    if (!exact)
        return 0;
    if (size)
        memcpy(exact, data, size);
    walk(exact, size);
    mend(exact, size);
    walk(exact, size);
    free(exact);
    return 0;
}
