/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU's features, compared with those that the kernel lists in /proc/cpuinfo; and kernel ISAs
 * that the CPU lacks: the tests make it a lesser one for that.
 */
#include "base/cpu.h"

#include "image/jpeg/kernels.h"
#include "pixels/resize.h"
#include "image/planes/kernels.h"
#include "pixels/blur.h"
#include "pixels/colour.h"
#include "pixels/warp.h"
#include "support/sample_fixture.h"
#include "support/test.h"

#if defined(__x86_64__)
#define IS_X86 1
#define FLAGS "flags"
#define BUILT PSTK_KERNELS_AVX512 /* the best ISA that this build has */
static const char *const crc32_flags[] = {"sse4_2", "pclmulqdq"};
#else
#if defined(PSTK_NEON)
#define BUILT PSTK_KERNELS_NEON
#else
#define BUILT PSTK_KERNELS_C
#endif
#define IS_X86 0
#define FLAGS "Features"
static const char *const crc32_flags[] = {"crc32", "pmull"};
#endif

/* ---- a lesser CPU ---------------------------------------------------------------------------- */

static uint32_t pretended; /* enum pstk_kernels; 0: what the CPU is */

uint32_t __real_pstk__cpu_kernels(void);
uint32_t __wrap_pstk__cpu_kernels(void);
uint32_t __wrap_pstk__cpu_kernels(void)
{
    return pretended ? pretended : __real_pstk__cpu_kernels();
}

/* ---- what the kernel lists ------------------------------------------------------------------- */

/* Value of a line of /proc/cpuinfo of the first CPU, with a space before and after; 0: none. */
static int cpuinfo(const char *key, char *value, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    static char line[16384];
    int found = 0;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        found = colon && strncmp(line, key, strlen(key)) == 0;
        if (found)
            snprintf(value, size, " %.*s ", (int)strcspn(colon + 1, "\n"), colon + 1);
    }
    if (f)
        fclose(f);
    return found;
}

/* Return whether all of these flags, with spaces between them, are in the list. */
static int has_all(const char *list, const char *const *flags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char spaced[32];
        snprintf(spaced, sizeof spaced, " %s ", flags[i]);
        if (!strstr(list, spaced))
            return 0;
    }
    return 1;
}

#define HAS_ALL(list, flags) has_all(list, flags, sizeof(flags) / sizeof(flags)[0])

static const char *const avx2_flags[] = {"avx2", "bmi2", "fma", "f16c"};
static const char *const avx512_flags[] = {"avx512f",    "avx512bw",     "avx512dq",   "avx512vl",
                                           "avx512vbmi", "avx512_vbmi2", "avx512_vnni"};

TEST(the_isa_is_the_best_whose_instructions_the_kernel_lists)
{
    static char flags[16384];
    uint32_t expected = PSTK_KERNELS_C;
    if (!IS_X86) {
        CHECK_EQ(pstk__cpu_kernels(), BUILT);
        return;
    }
    if (!cpuinfo(FLAGS, flags, sizeof flags))
        SKIP("missing: the flags of /proc/cpuinfo");
    if (HAS_ALL(flags, avx2_flags))
        expected = HAS_ALL(flags, avx512_flags) ? PSTK_KERNELS_AVX512 : PSTK_KERNELS_AVX2;
    CHECK_EQ(pstk__cpu_kernels(), expected);
}

TEST(crc32_is_there_where_the_kernel_lists_both_of_its_instructions)
{
    static char flags[16384];
    if (!cpuinfo(FLAGS, flags, sizeof flags))
        SKIP(IS_X86
                 ? "missing: the flags of /proc/cpuinfo"
                 : "/proc/cpuinfo has no flags, or is that of the machine that emulates this one");
    CHECK_EQ(pstk__cpu_has_crc32(), HAS_ALL(flags, crc32_flags));
}

TEST(every_cpu_with_a_vector_isa_has_crc32)
{
    CHECK(pstk__cpu_kernels() >= PSTK_KERNELS_C && pstk__cpu_kernels() <= PSTK_KERNELS_NEON);
    CHECK(pstk__cpu_kernels() == PSTK_KERNELS_C || pstk__cpu_has_crc32());
}

/* ---- the name -------------------------------------------------------------------------------- */

TEST(the_name_is_the_kernels_model_name_without_spaces_around_it)
{
    char name[64], listed[100];
    pstk__cpu_name(name, sizeof name);
    CHECK(name[0] && name[0] != ' ' && name[strlen(name) - 1] != ' ');
    printf("# %s, ISA %u\n", name, pstk__cpu_kernels());
    if (!IS_X86) {
        unsigned implementer, part, revision;
        CHECK(sscanf(name, "ARM implementer %x part %x revision %u", &implementer, &part,
                     &revision) == 3);
        if (!cpuinfo("CPU part", listed, sizeof listed))
            SKIP("/proc/cpuinfo has no part, or is that of the machine that emulates this one");
        CHECK_EQ(part, strtoul(listed, NULL, 0));
        return;
    }
    if (!cpuinfo("model name", listed, sizeof listed))
        SKIP("missing: the model name of /proc/cpuinfo");
    char *start = listed + strspn(listed, " "), *end = start + strlen(start);
    while (end > start && end[-1] == ' ')
        *--end = 0;
    CHECK_STR(name, start);
}

TEST(a_name_is_cut_to_the_room_there_is_and_ends_with_a_zero)
{
    char whole[64], part[66];
    pstk__cpu_name(whole, sizeof whole);
    for (uint32_t size = 1; size <= sizeof whole; size++) {
        memset(part, '#', sizeof part);
        pstk__cpu_name(part, size);
        const size_t n = strlen(whole) < size - 1 ? strlen(whole) : size - 1;
        CHECK_EQ(strlen(part), n);
        CHECK(memcmp(part, whole, n) == 0);
        for (size_t i = size; i < sizeof part; i++)
            CHECK_EQ(part[i], '#');
    }
}

TEST(no_room_for_a_name_is_not_touched)
{
    char one = '#';
    pstk__cpu_name(&one, 0);
    CHECK_EQ(one, '#');
    pstk__cpu_name(NULL, 0);
}

/* ---- ISAs that do not run ---------------------------------------------------------------- */

enum family { PIXEL, JPEG, PLANES, COLOUR, WARP, BLUR, N_FAMILIES };

/* The ISA of the table that each family of kernels gives for `wanted`; 0: it gives none. */
static void isas_given(uint32_t wanted, uint32_t given[N_FAMILIES])
{
    const struct pstk__pixel_kernels *pixel = pstk__pixel_kernels(wanted);
    const struct pstk__jpeg_kernels *jpeg = pstk__jpeg_kernels(wanted);
    const struct pstk__planes_kernels *planes = pstk__planes_kernels(wanted);
    const struct pstk__colour_kernels *colour = pstk__colour_kernels(wanted);
    const struct pstk__warp_kernels *warp = pstk__warp_kernels(wanted);
    const struct pstk__blur_kernels *blur = pstk__blur_kernels(wanted);
    given[PIXEL] = pixel ? pixel->isa : 0;
    given[JPEG] = jpeg ? jpeg->isa : 0;
    given[PLANES] = planes ? planes->isa : 0;
    given[COLOUR] = colour ? colour->isa : 0;
    given[WARP] = warp ? warp->isa : 0;
    given[BLUR] = blur ? blur->isa : 0;
}

/* Return whether an ISA is one of this processor's, and no better than `best`. */
static int is_at_most(uint32_t isa, uint32_t best)
{
    const int is_here = isa == PSTK_KERNELS_C || (isa == PSTK_KERNELS_NEON) == !IS_X86;
    return is_here && isa >= PSTK_KERNELS_C && isa <= best;
}

/* Families without a text for NEON give C instead. */
static uint32_t isa_of_family(int family, uint32_t isa)
{
    const int has_neon = family != PLANES && family != WARP && family != BLUR;
    return isa == PSTK_KERNELS_NEON && !has_neon ? PSTK_KERNELS_C : isa;
}

TEST(every_family_of_kernels_gives_what_the_cpu_runs_and_refuses_the_rest)
{
    for (uint32_t best = PSTK_KERNELS_C; best <= BUILT; best++)
        for (uint32_t wanted = PSTK_KERNELS_AUTO; wanted <= PSTK_KERNELS_NEON + 1; wanted++) {
            uint32_t given[N_FAMILIES];
            if (!is_at_most(best, BUILT))
                continue;
            pretended = best;
            isas_given(wanted, given);
            pretended = 0;
            for (int i = 0; i < N_FAMILIES; i++)
                CHECK_EQ(given[i], wanted == PSTK_KERNELS_AUTO ? isa_of_family(i, best)
                                   : is_at_most(wanted, best)  ? isa_of_family(i, wanted)
                                                               : 0);
        }
}

TEST(a_plan_refuses_an_isa_that_does_not_run_and_names_the_setting)
{
    const struct pstk_output output = {.field = "lab", .kind = PSTK_OUTPUT_SCALAR};
    struct fixture f;
    struct pstk__plan *plan;
    struct pstk_error err;
    CHECK_EQ(small_open(&f), 0);
    for (uint32_t best = PSTK_KERNELS_C; best <= __real_pstk__cpu_kernels(); best++) {
        struct pstk_settings s = settings_of(&output, 1);
        if (!is_at_most(best, BUILT))
            continue;
        pstk_error_init(&err, sizeof err);
        pretended = best;
        s.reading.kernels = best;
        int right = pstk__plan_open(&plan, &s, &f.source, &err);
        if (right == 0)
            pstk__plan_close(plan);
        s.reading.kernels = best + 1;
        int wrong = pstk__plan_open(&plan, &s, &f.source, &err);
        pretended = 0;
        CHECK_EQ(right, 0);
        CHECK_EQ(wrong, PSTK_ENOTSUP);
        char says[32];
        snprintf(says, sizeof says, "kernels: value is %u; must be ", best + 1);
        CHECK(strstr(err.message, says));
    }
    fixture_close(&f);
    free(small_image.rgb);
    small_image.rgb = NULL;
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_isa_is_the_best_whose_instructions_the_kernel_lists),
        CASE(crc32_is_there_where_the_kernel_lists_both_of_its_instructions),
        CASE(every_cpu_with_a_vector_isa_has_crc32),
        CASE(the_name_is_the_kernels_model_name_without_spaces_around_it),
        CASE(a_name_is_cut_to_the_room_there_is_and_ends_with_a_zero),
        CASE(no_room_for_a_name_is_not_touched),
        CASE(every_family_of_kernels_gives_what_the_cpu_runs_and_refuses_the_rest),
        CASE(a_plan_refuses_an_isa_that_does_not_run_and_names_the_setting),
    };
    return RUN_CASES(cases);
}
