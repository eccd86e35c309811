/* SPDX-License-Identifier: Apache-2.0 */
#include "option/subset.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/message.h"

static int refuse(const char *text, const char *must_be)
{
    message_say("--subset: value is '%s'; must be %s", text, must_be);
    return -1;
}

/* Read digits. Returns 0 and moves *text past them, or -1. */
static int read_count(const char **text, uint64_t *value)
{
    char *end;
    if (**text < '0' || **text > '9')
        return -1;
    errno = 0;
    *value = strtoull(*text, &end, 10);
    *text = end;
    return errno ? -1 : 0;
}

/* Read a number such as 0.8, with at most 9 decimals, as billionths, without rounding. */
static int read_part(const char **text, uint64_t *value)
{
    uint64_t unit = PSTK_SUBSET_WHOLE;
    if (read_count(text, value) < 0 || *value > 1)
        return -1;
    *value *= unit;
    if (**text != '.' || (*text)[1] == '.')
        return 0;
    for (++*text; **text >= '0' && **text <= '9'; ++*text) {
        if (unit == 1)
            return -1;
        unit /= 10;
        *value += (uint64_t)(**text - '0') * unit;
    }
    return 0;
}

static int read_word(const char **text, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*text, word, n) != 0)
        return -1;
    *text += n;
    return 0;
}

/* Read ":seed=S" and, for folds, ":rest", in any order. */
static int read_ends(const char *text, struct pstk_subset *step)
{
    while (*text) {
        if (read_word(&text, ":seed=") == 0) {
            if (read_count(&text, &step->seed) < 0)
                return -1;
        } else if (step->kind == PSTK_SUBSET_FOLD && read_word(&text, ":rest") == 0) {
            step->inverted = 1;
        } else {
            return -1;
        }
    }
    return 0;
}

static int read_range(const char *text, struct pstk_subset *step)
{
    return read_count(&text, &step->first) == 0 && read_word(&text, "..") == 0 &&
                   read_count(&text, &step->last) == 0 && !*text
               ? 0
               : -1;
}

static int read_fraction(const char *text, struct pstk_subset *step)
{
    return read_part(&text, &step->first) == 0 && read_word(&text, "..") == 0 &&
                   read_part(&text, &step->last) == 0
               ? read_ends(text, step)
               : -1;
}

static int read_fold(const char *text, struct pstk_subset *step)
{
    uint64_t fold, of;
    if (read_count(&text, &fold) < 0 || read_word(&text, "/") < 0 || read_count(&text, &of) < 0 ||
        fold > UINT32_MAX || of > UINT32_MAX)
        return -1;
    step->fold = (uint32_t)fold;
    step->n_folds = (uint32_t)of;
    return read_ends(text, step);
}

/* Return the array with room for one more element of 8 bytes. Without memory it exits. */
static void *grown(void *values, uint64_t n)
{
    if (n & (n - 1))
        return values;
    void *larger = realloc(values, (n ? 2 * n : 1) * sizeof(uint64_t));
    if (!larger)
        message_no_memory();
    return larger;
}

/* Read a file with an id on each line. Returns 0, or -1 after a message. */
static int read_ids(const char *path, struct pstk_subset *step, void **values)
{
    char line[64];
    uint64_t n = 0, n_lines = 0, *ids = NULL;
    FILE *file = fopen(path, "r");
    if (!file) {
        message_say("--subset ids: %s: %s", path, strerror(errno));
        return -1;
    }
    int r = 0;
    while (r == 0 && fgets(line, sizeof line, file)) {
        const char *rest = line;
        n_lines++;
        line[strcspn(line, "\r\n")] = 0;
        if (!line[0])
            continue;
        ids = grown(ids, n);
        if (read_count(&rest, &ids[n++]) < 0 || *rest) {
            message_say("--subset ids: line %llu of %s is '%s'; must be a sample id, one on each "
                        "line",
                        (unsigned long long)n_lines, path, line);
            r = -1;
        }
    }
    fclose(file);
    *values = ids;
    step->ids = ids;
    step->n_ids = n;
    return r;
}

/* Read V,V,... of whole numbers. */
static int read_values(const char *text, struct pstk_subset *step, void **values)
{
    int64_t *list = NULL;
    uint64_t n = 0;
    for (;;) {
        char *end;
        list = grown(list, n);
        *values = list;
        errno = 0;
        list[n++] = strtoll(text, &end, 10);
        if (end == text || errno || (*end && *end != ','))
            return -1;
        if (!*end)
            break;
        text = end + 1;
    }
    step->values = list;
    step->n_values = n;
    return 0;
}

/* Read a number that ends with the text. *rest: the difference between *nearest and a whole number
 * of 64 bits. */
static int read_bound(const char *text, double *nearest, int64_t *rest)
{
    char *end;
    *nearest = strtod(text, &end);
    if (*end || end == text)
        return -1;
    const size_t sign = *text == '-' || *text == '+';
    errno = 0;
    const uint64_t whole = strtoull(text + sign, &end, 10);
    if (*end || errno || text[sign] < '0' || text[sign] > '9')
        return 0;
    const double magnitude = fabs(*nearest);
    const int64_t more = (int64_t)(whole - (magnitude < 0x1p64 ? (uint64_t)magnitude : 0));
    *rest = *text == '-' ? -more : more;
    return 0;
}

/* Read A..B, of which one may be missing. */
static int read_between(const char *text, const char *dots, struct pstk_subset *step)
{
    step->kind = PSTK_SUBSET_BETWEEN;
    step->least = -INFINITY;
    step->below = INFINITY;
    if (dots != text) {
        char least[64];
        if ((size_t)(dots - text) >= sizeof least)
            return -1;
        snprintf(least, sizeof least, "%.*s", (int)(dots - text), text);
        if (read_bound(least, &step->least, &step->least_rest) < 0)
            return -1;
    }
    if (dots[2]) {
        if (read_bound(dots + 2, &step->below, &step->below_rest) < 0)
            return -1;
        if (step->below == (double)INFINITY) { /* inf itself is not below: finite values are */
            step->below = DBL_MAX;
            step->below_rest = 1;
        }
    }
    return dots == text && !dots[2] ? -1 : 0;
}

/* Read COLUMN=V,V, COLUMN!=V,V or COLUMN=A..B; text is the step's own copy. */
static int read_where(char *text, struct pstk_subset *step, void **values)
{
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return -1;
    step->inverted = equals[-1] == '!';
    equals[-(int)step->inverted] = 0;
    step->column = text;
    const char *dots = strstr(equals + 1, "..");
    if (dots && !step->inverted)
        return read_between(equals + 1, dots, step);
    return read_values(equals + 1, step, values);
}

int subset_add(struct subset *subset, const char *text)
{
    static const struct {
        const char *word;
        uint32_t kind;
        const char *must_be;
    } kinds[] = {
        {"range:", PSTK_SUBSET_RANGE, "range:A..B, the samples A to B - 1"},
        {"fraction:", PSTK_SUBSET_FRACTION,
         "fraction:A..B or fraction:A..B:seed=S, of 0 to 1 with at most 9 decimals"},
        {"fold:", PSTK_SUBSET_FOLD, "fold:K/N, fold:K/N:seed=S or fold:K/N:seed=S:rest, K below N"},
        {"ids:", PSTK_SUBSET_IDS, "ids:FILE"},
        {"where:", PSTK_SUBSET_WHERE,
         "where:COLUMN=V,V..., where:COLUMN!=V,V... or "
         "where:COLUMN=A..B, at least A and below B"},
    };
    const uint32_t i = subset->n;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const char *rest = text;
        if (read_word(&rest, kinds[k].word) < 0)
            continue;
        if (i == PSTK_SUBSET_MAX_STEPS) {
            message_say("--subset: given more than %d times", PSTK_SUBSET_MAX_STEPS);
            return -1;
        }
        struct pstk_subset *step = &subset->steps[i];
        *step = (struct pstk_subset){.size = sizeof *step, .kind = kinds[k].kind};
        subset->n++;
        subset->texts[i] = strdup(rest);
        if (!subset->texts[i])
            message_no_memory();
        if (step->kind == PSTK_SUBSET_IDS)
            return read_ids(rest, step, &subset->values[i]);
        const int r = step->kind == PSTK_SUBSET_RANGE      ? read_range(rest, step)
                      : step->kind == PSTK_SUBSET_FRACTION ? read_fraction(rest, step)
                      : step->kind == PSTK_SUBSET_FOLD
                          ? read_fold(rest, step)
                          : read_where(subset->texts[i], step, &subset->values[i]);
        return r < 0 ? refuse(text, kinds[k].must_be) : 0;
    }
    return refuse(text, "range:A..B, fraction:A..B, fold:K/N, ids:FILE or where:COLUMN=V");
}

int subset_draw(struct subset *subset, uint32_t kind, const char *column)
{
    const char *before = subset_draws(subset);
    if (before) {
        message_say("--%s: cannot be given together with --%s",
                    kind == PSTK_SUBSET_BALANCED ? "balanced" : "weights", before);
        return -1;
    }
    subset->weights.size = sizeof subset->weights;
    subset->weights.kind = kind;
    subset->weights.column = column;
    return 0;
}

const char *subset_draws(const struct subset *subset)
{
    return subset->weights.kind == 0                      ? NULL
           : subset->weights.kind == PSTK_SUBSET_BALANCED ? "balanced"
                                                          : "weights";
}

int subset_is_range(const struct subset *subset)
{
    for (uint32_t i = 0; i < subset->n; i++)
        if (subset->steps[i].kind != PSTK_SUBSET_RANGE)
            return 0;
    return 1;
}

const struct pstk_subset *subset_first(struct subset *subset)
{
    struct pstk_subset *weights = subset->weights.kind ? &subset->weights : NULL;
    for (uint32_t i = 0; i < subset->n; i++)
        subset->steps[i].next = i + 1 < subset->n ? &subset->steps[i + 1] : weights;
    return subset->n ? &subset->steps[0] : weights;
}

void subset_close(struct subset *subset)
{
    for (uint32_t i = 0; i < subset->n; i++) {
        free(subset->texts[i]);
        free(subset->values[i]);
    }
    subset->n = 0;
}
