/* SPDX-License-Identifier: Apache-2.0 */
#include "image/png/text.h"

#include "base/utf8.h"

#include <string.h>

/* ---- chunks --------------------------------------------------------------------------------- */

/* Take the bytes up to the next 0 byte from the front of a text's data. 0: there is no such byte.
 */
static int take_word(struct pstk__png_text *text, const uint8_t **word, uint32_t *size)
{
    const uint8_t *zero = text->size ? memchr(text->data, 0, text->size) : NULL;
    if (!zero)
        return 0;
    *word = text->data;
    *size = (uint32_t)(zero - text->data);
    text->data = zero + 1;
    text->size -= *size + 1;
    return 1;
}

/* Take the compression method, 0. Returns 0 when it is another one. */
static int take_method(struct pstk__png_text *text)
{
    if (text->size == 0)
        return 1; /* an empty text, in Pillow */
    if (text->data[0] != 0)
        return 0;
    text->data++;
    text->size--;
    text->is_deflated = 1;
    return 1;
}

/* Take the fields that precede the text of an iTXt chunk: flag, method, language and translated
 * key. */
static int take_international(struct pstk__png_text *text)
{
    const uint8_t *word;
    uint32_t size;
    if (text->size < 2 || (text->data[0] != 0 && text->data[1] != 0))
        return 0;
    text->is_deflated = text->data[0] != 0;
    text->data += 2;
    text->size -= 2;
    text->is_utf8 = 1;
    for (int i = 0; i < 2; i++) {
        if (!take_word(text, &word, &size))
            return 0;
        text->is_utf8 &= pstk__utf8_end(word, size) == size;
    }
    return 1;
}

int pstk__png_text_of(const struct pstk__png_chunk *chunk, struct pstk__png_text *text)
{
    const int is_international = pstk__png_chunk_is(chunk, "iTXt");
    const int is_compressed = pstk__png_chunk_is(chunk, "zTXt");
    const uint8_t *key;
    if (!is_international && !is_compressed && !pstk__png_chunk_is(chunk, "tEXt"))
        return 0;
    *text = (struct pstk__png_text){.data = chunk->data, .size = chunk->size};
    if (!take_word(text, &key, &text->key_size)) {
        key = chunk->data;
        text->key_size = chunk->size;
        text->size = 0;
    }
    text->key = (const char *)key;
    return is_international ? take_international(text) : !is_compressed || take_method(text);
}

int pstk__png_text_is(const struct pstk__png_text *text, const char *key)
{
    return text->key_size == strlen(key) && memcmp(text->key, key, text->key_size) == 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

static voidpf take_memory(voidpf user, uInt n, uInt size)
{
    struct pstk__png_text_reader *reader = user;
    const uint64_t bytes = ((uint64_t)n * size + 63) / 64 * 64;
    if (bytes > sizeof reader->memory - reader->used)
        return Z_NULL;
    reader->used += (uint32_t)bytes;
    return reader->memory + reader->used - bytes;
}

static void give_back(voidpf user, voidpf address)
{
    (void)user, (void)address; /* the memory lives as long as the reader */
}

void pstk__png_text_begin(struct pstk__png_text_reader *reader, const struct pstk__png_text *text)
{
    reader->text = text;
    reader->n_read = 0;
    reader->has_ended = 0;
    reader->has_failed = 0;
    reader->used = 0;
    reader->zlib = (z_stream){.zalloc = take_memory,
                              .zfree = give_back,
                              .opaque = reader,
                              .next_in = (z_const Bytef *)(uintptr_t)text->data,
                              .avail_in = text->size};
    reader->is_deflated = text->is_deflated && text->size != 0;
    if (reader->is_deflated && inflateInit(&reader->zlib) != Z_OK)
        reader->has_failed = 1;
}

/* Inflate as Python's decompressobj does: a stream that is cut short ends there, and bytes after
 * the stream are ignored. */
static int64_t inflate_some(struct pstk__png_text_reader *reader, uint8_t *out, uint32_t n)
{
    z_stream *zlib = &reader->zlib;
    if (reader->has_failed)
        return -1;
    zlib->next_out = out;
    zlib->avail_out = n;
    const int r = reader->has_ended ? Z_STREAM_END : inflate(zlib, Z_SYNC_FLUSH);
    const uint32_t made = n - zlib->avail_out;
    reader->n_read += made;
    reader->has_ended = r != Z_OK;
    reader->has_failed =
        (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) || reader->n_read > PSTK__PNG_TEXT_MAX;
    return reader->has_failed ? -1 : (int64_t)made;
}

int64_t pstk__png_text_read(struct pstk__png_text_reader *reader, uint8_t *out, uint32_t n)
{
    if (reader->is_deflated)
        return inflate_some(reader, out, n);
    const uint64_t left = reader->text->size - reader->n_read;
    const uint32_t taken = left < n ? (uint32_t)left : n;
    memcpy(out, reader->text->data + (taken ? reader->n_read : 0), taken);
    reader->n_read += taken;
    return taken;
}
