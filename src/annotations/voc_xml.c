/* SPDX-License-Identifier: Apache-2.0 */
#include "annotations/voc_xml.h"

#include <penstock/annotations.h>

#include <expat.h>
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MAX_PATH 256 /* bytes of the names of open elements; deeper ones are skipped */
#define MAX_DEPTH 64 /* nested elements */
#define BOX_MEMBERS 4

struct parse {
    struct pstk__voc_file *file;
    const char *path;
    XML_Parser parser;
    locale_t locale; /* locale with the decimal point, whatever the program's */
    struct pstk_error *err;
    int failed; /* result of the first failure, or 0 */
    int is_bad; /* the last object is bad and will be left out */
    uint32_t depth;
    char names[MAX_PATH]; /* "annotation/object/name" */
    char text[PSTK__VOC_TEXT];
    uint32_t text_size;
};

static void fail(struct parse *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Stop the parser. Only the first failure is kept. */
static void fail(struct parse *p, const char *fmt, ...)
{
    char what[300];
    va_list args;
    if (p->failed)
        return;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    p->failed = pstk__fail(p->err, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%.160s: line %" PRIu64 ": %s",
                           p->path, (uint64_t)XML_GetCurrentLineNumber(p->parser), what);
    XML_StopParser(p->parser, XML_FALSE);
}

static void fail_value(struct parse *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Report a wrong value of an element: leave out its object with skip_bad, or stop. */
static void fail_value(struct parse *p, const char *fmt, ...)
{
    static const char object[] = "annotation/object";
    struct pstk__voc_file *file = p->file;
    struct pstk_error own;
    char what[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (!file->skip_bad || strncmp(p->names, object, sizeof object - 1) != 0) {
        fail(p, "%s", what);
        return;
    }
    struct pstk_error *err = p->is_bad || file->n_bad ? &own : &file->bad;
    pstk_error_init(err, sizeof *err);
    p->is_bad = 1;
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%.160s: line %" PRIu64 ": %s", p->path,
               (uint64_t)XML_GetCurrentLineNumber(p->parser), what);
}

/* Stop the parser because there is no memory. */
static void fail_memory(struct parse *p)
{
    if (!p->failed)
        p->failed =
            pstk__fail(p->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to read %.200s", p->path);
    if (p->parser)
        XML_StopParser(p->parser, XML_FALSE);
}

static int is_at(const struct parse *p, const char *names)
{
    return strcmp(p->names, names) == 0;
}

static void add_object(struct parse *p)
{
    struct pstk__voc_file *file = p->file;
    if ((file->n & (file->n - 1)) == 0) {
        struct pstk__voc_object *more =
            reallocarray(file->objects, file->n ? 2 * file->n : 1, sizeof *more);
        if (!more) {
            fail_memory(p);
            return;
        }
        file->objects = more;
    }
    file->objects[file->n++] = (struct pstk__voc_object){.seen = 0};
}

static void XMLCALL on_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct parse *p = user;
    const size_t size = strlen(p->names);
    (void)attributes;
    p->text_size = 0;
    if (++p->depth > MAX_DEPTH)
        fail(p, "elements are nested more than %d deep", MAX_DEPTH);
    else if (p->depth == 1 && strcmp(name, "annotation") != 0)
        fail(p, "the first element is %.60s; must be annotation, as in VOC's files", name);
    else if (size + strlen(name) + 2 > MAX_PATH)
        fail(p, "the names of the elements here are longer than %d bytes", MAX_PATH);
    else
        snprintf(p->names + size, MAX_PATH - size, "%s%s", size ? "/" : "", name);
    if (!p->failed && is_at(p, "annotation/object"))
        add_object(p);
}

static void XMLCALL on_text(void *user, const XML_Char *text, int n)
{
    struct parse *p = user;
    if (p->text_size == PSTK__VOC_TEXT)
        return;
    const uint32_t room = PSTK__VOC_TEXT - 1 - p->text_size;
    const uint32_t more = (uint32_t)n < room ? (uint32_t)n : room;
    memcpy(p->text + p->text_size, text, more);
    p->text_size += more;
    if ((uint32_t)n > more)
        p->text_size = PSTK__VOC_TEXT; /* too long: take() refuses it if the member is used */
}

/* Take the element's text without surrounding space. Returns 0 or -1. */
static int take(struct parse *p, char text[PSTK__VOC_TEXT])
{
    if (p->text_size == PSTK__VOC_TEXT) {
        fail_value(p, "%s: value is longer than %d bytes", p->names, PSTK__VOC_TEXT - 1);
        return -1;
    }
    p->text[p->text_size] = 0;
    const char *from = p->text + strspn(p->text, " \t\r\n");
    size_t size = strlen(from);
    while (size && strchr(" \t\r\n", from[size - 1]))
        size--;
    memcpy(text, from, size);
    text[size] = 0;
    return 0;
}

static void take_number(struct parse *p, double min, double max, double *out)
{
    char text[PSTK__VOC_TEXT], *end;
    if (take(p, text) < 0)
        return;
    const double value = strtod_l(text, &end, p->locale);
    if (text[0] && !*end && !text[strspn(text, "0123456789+-.eE")] && value >= min && value <= max)
        *out = value;
    else
        fail_value(p, "%s: value is '%.60s'; must be a number from %g to %g", p->names, text, min,
                   max);
}

static uint32_t take_whole(struct parse *p, uint32_t max)
{
    double value = 0;
    take_number(p, 0, max, &value);
    if (value != (uint32_t)value)
        fail_value(p, "%s: value is %g; must be a whole number", p->names, value);
    return (uint32_t)value;
}

/* Take a member of the last object. */
static void take_member(struct parse *p, struct pstk__voc_object *object)
{
    static const char *const box[BOX_MEMBERS] = {
        "annotation/object/bndbox/xmin", "annotation/object/bndbox/ymin",
        "annotation/object/bndbox/xmax", "annotation/object/bndbox/ymax"};
    if (is_at(p, "annotation/object/name"))
        take(p, object->name);
    else if (is_at(p, "annotation/object/pose"))
        take(p, object->pose);
    else if (is_at(p, "annotation/object/difficult"))
        object->difficult = (uint8_t)take_whole(p, 1);
    else if (is_at(p, "annotation/object/truncated"))
        object->truncated = (uint8_t)take_whole(p, 1);
    for (uint32_t i = 0; i < BOX_MEMBERS && !p->failed; i++)
        if (is_at(p, box[i])) {
            if (object->seen & 1u << i)
                fail_value(p, "%s: it appears twice; an object must have one box", p->names);
            else
                take_number(p, -FLT_MAX, FLT_MAX, &object->box[i]);
            object->seen |= 1u << i;
        }
}

/* Check an object at its end, and remove a bad one. */
static void end_object(struct parse *p, const struct pstk__voc_object *object)
{
    const double *box = object->box;
    if (p->is_bad)
        ; /* its first error is kept */
    else if (!object->name[0])
        fail_value(p, "object: it has no name");
    else if (object->seen != (1u << BOX_MEMBERS) - 1)
        fail_value(p, "object %.60s: bndbox must have xmin, ymin, xmax and ymax", object->name);
    else if (box[2] < box[0] || box[3] < box[1])
        fail_value(
            p,
            "object %.60s: bndbox: values are %g, %g, %g, %g; xmax and ymax must be at least "
            "xmin and ymin",
            object->name, box[0], box[1], box[2], box[3]);
    p->file->n -= (uint64_t)p->is_bad;
    p->file->n_bad += (uint64_t)p->is_bad;
    p->is_bad = 0;
}

static void XMLCALL on_end(void *user, const XML_Char *name)
{
    struct parse *p = user;
    struct pstk__voc_file *file = p->file;
    struct pstk__voc_object *object = file->n ? &file->objects[file->n - 1] : NULL;
    (void)name;
    if (is_at(p, "annotation/size/width"))
        file->width = take_whole(p, PSTK_MAX_MASK_SIDE);
    else if (is_at(p, "annotation/size/height"))
        file->height = take_whole(p, PSTK_MAX_MASK_SIDE);
    else if (object && is_at(p, "annotation/object"))
        end_object(p, object);
    else if (object)
        take_member(p, object);
    char *last = strrchr(p->names, '/');
    *(last ? last : p->names) = 0;
    p->depth--;
    p->text_size = 0;
}

/* Refuse a document type: entities could name other files, or grow without bound. */
static void XMLCALL on_doctype(void *user, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public_name, int has_internal)
{
    (void)name, (void)system, (void)public_name, (void)has_internal;
    fail(user, "it has a document type (DOCTYPE), which is not read; remove that line");
}

static void run(struct parse *p, const void *text, uint64_t size)
{
    XML_SetUserData(p->parser, p);
    XML_SetElementHandler(p->parser, on_start, on_end);
    XML_SetCharacterDataHandler(p->parser, on_text);
    XML_SetStartDoctypeDeclHandler(p->parser, on_doctype);
    if (XML_Parse(p->parser, text, (int)size, 1) == XML_STATUS_ERROR && !p->failed) {
        const enum XML_Error code = XML_GetErrorCode(p->parser);
        if (code == XML_ERROR_NO_MEMORY)
            fail_memory(p);
        else
            fail(p, "it is not XML: %s", XML_ErrorString(code));
    }
}

int pstk__voc_parse(struct pstk__voc_file *file, const char *path, const void *text, uint64_t size,
                    struct pstk_error *err)
{
    struct parse p = {.file = file, .path = path, .err = err};
    if (size > INT32_MAX)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN, "%.200s: larger than 2 GiB", path);
    p.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    p.parser = XML_ParserCreate(NULL);
    if (p.locale && p.parser)
        run(&p, text, size);
    else
        fail_memory(&p);
    if (p.parser)
        XML_ParserFree(p.parser);
    if (p.locale)
        freelocale(p.locale);
    return p.failed;
}

void pstk__voc_file_close(struct pstk__voc_file *file)
{
    free(file->objects);
    *file = (struct pstk__voc_file){.n = 0};
}
