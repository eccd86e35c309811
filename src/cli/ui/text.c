/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/text.h"

#include <stdlib.h>
#include <string.h>

#define RIGHT 91      /* last column of wrapped text */
#define MAX_WORD 4096 /* bytes of one word of wrapped text: a path */

/* The terminating 0 is no continuation byte, so nothing after it is read. */
static int length_of(const unsigned char *s)
{
    int n = *s < 0x80 ? 1 : *s < 0xC2 ? 0 : *s < 0xE0 ? 2 : *s < 0xF0 ? 3 : *s < 0xF5 ? 4 : 0;
    /* The second byte shows overlong forms, surrogates, and code points above U+10FFFF. */
    if ((*s == 0xE0 && s[1] < 0xA0) || (*s == 0xED && s[1] > 0x9F) || (*s == 0xF0 && s[1] < 0x90) ||
        (*s == 0xF4 && s[1] > 0x8F))
        return 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

int text_character(const char *text)
{
    return length_of((const unsigned char *)text);
}

/* Return 1 for C1 in UTF-8: U+0080 to U+009F. */
static int is_c1(const unsigned char *s)
{
    return s[0] == 0xC2 && s[1] >= 0x80 && s[1] < 0xA0;
}

static int is_control(const unsigned char *s)
{
    return *s < 0x20 || *s == 0x7F || is_c1(s);
}

int text_is_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        int n = length_of(s);
        if (n == 0)
            return 0;
        s += n;
    }
    return 1;
}

void text_print(FILE *file, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        int n = length_of(s);
        int whole = n > 0 && !is_control(s);
        n = n > 0 ? n : 1;
        if (whole)
            fwrite(s, 1, (size_t)n, file);
        for (int i = 0; i < n && !whole; i++)
            fprintf(file, "\\x%02x", s[i]);
        s += n;
    }
}

void text_print_wrapped(FILE *file, const char *text, int indent)
{
    int column = 0;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        char word[MAX_WORD];
        snprintf(word, sizeof word, "%.*s", length, text);
        if (column && column + 1 + length > RIGHT - indent) {
            fprintf(file, "\n%*s", indent, "");
            column = 0;
        } else if (column) {
            putc(' ', file);
            column++;
        }
        text_print(file, word); /* a path, or the name of a file */
        column += length;
        text += length + strspn(text + length, " ");
    }
    putc('\n', file);
}

char *text_copy(const char *text)
{
    char *copy = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&copy, &size);
    if (!file)
        return NULL;
    text_print(file, text);
    if (fclose(file) == 0)
        return copy;
    free(copy);
    return NULL;
}

void text_print_json(FILE *file, const char *json)
{
    for (const unsigned char *s = (const unsigned char *)json; *s; s++) {
        if (*s == 0x7F)
            fputs("\\u007f", file);
        else if (is_c1(s))
            fprintf(file, "\\u%04x", *++s);
        else
            fputc(*s, file);
    }
}

/* Return 1 when a command line takes the path without quotes. */
static int is_plain(const char *path)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789/._-+,:@";
    const unsigned char *s = (const unsigned char *)path;
    for (; *s; s++)
        if (*s < 0x80 && !strchr(letters, *s))
            return 0;
    return path[0] != 0;
}

/* Return 1 when the path has bytes that must not be printed unchanged. */
static int has_odd_bytes(const char *path)
{
    const unsigned char *s = (const unsigned char *)path;
    for (int n; *s; s += n) {
        n = length_of(s);
        if (n == 0 || is_control(s))
            return 1;
    }
    return 0;
}

/* Print a path as $'...', the only quotes of shells in which every byte has a printable form. */
static void print_escaped(FILE *file, const char *path)
{
    const unsigned char *s = (const unsigned char *)path;
    fputs("$'", file);
    while (*s) {
        int n = length_of(s);
        int whole = n > 0 && !is_control(s);
        n = n > 0 ? n : 1;
        if (whole && (*s == '\'' || *s == '\\'))
            fputc('\\', file);
        if (whole)
            fwrite(s, 1, (size_t)n, file);
        for (int i = 0; i < n && !whole; i++)
            fprintf(file, "\\%03o", s[i]); /* not \x1b, because shells differ in where that ends */
        s += n;
    }
    fputc('\'', file);
}

static void print_quoted(FILE *file, const char *path)
{
    fputc('\'', file);
    for (; *path; path++) {
        if (*path == '\'')
            fputs("'\\''", file);
        else
            fputc(*path, file);
    }
    fputc('\'', file);
}

void text_print_word(FILE *file, const char *path)
{
    if (path[0] == '-')
        fputs("./", file);
    if (has_odd_bytes(path))
        print_escaped(file, path);
    else if (is_plain(path))
        fputs(path, file);
    else
        print_quoted(file, path);
}
