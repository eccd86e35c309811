/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: which launcher counts, and in which words its errors are. tests/python/launchers.json has
 * more environments, for the package and the command. */
#include "support/test.h"

#include <penstock/penstock.h>

#define MAX_VARIABLES 24

/* An environment: a list of variables with blanks between them. */
struct environment {
    char text[1024];
    const char *list[MAX_VARIABLES + 1];
};

static struct pstk_found_ranks found;
static struct pstk_error err;

static struct pstk_rank_query query_of(struct environment *env, const char *variables)
{
    size_t n = 0;
    snprintf(env->text, sizeof env->text, "%s", variables);
    for (char *word = strtok(env->text, " "); word && n < MAX_VARIABLES; word = strtok(NULL, " "))
        env->list[n++] = word;
    env->list[n] = NULL;
    return (struct pstk_rank_query){.size = sizeof(struct pstk_rank_query),
                                    .terminal = PSTK_TERMINAL_NONE,
                                    .environment = env->list};
}

/* Ask, and write what is found as "1 of 4, 0 of 1: srun", or the error. */
static const char *ask(const struct pstk_rank_query *query)
{
    static char text[sizeof err.message];
    pstk_error_init(&err, sizeof err);
    found = (struct pstk_found_ranks){.size = sizeof found};
    const int r = pstk_find_ranks(query, &found, &err);
    if (r < 0)
        snprintf(text, sizeof text, "%s", r == PSTK_EINVAL ? err.message : "not EINVAL");
    else
        snprintf(text, sizeof text, "%u of %u, %u of %u: %s", found.rank, found.world,
                 found.local_rank, found.local_world, found.source);
    return text;
}

static const char *find(const char *variables)
{
    struct environment env;
    const struct pstk_rank_query query = query_of(&env, variables);
    return ask(&query);
}

/* Ask where libraries of the program report ranks. */
static const char *find_known(const char *variables, const struct pstk_known_ranks *known,
                              uint32_t n)
{
    struct environment env;
    struct pstk_rank_query query = query_of(&env, variables);
    query.known = known;
    query.n_known = n;
    query.known_size = sizeof *known;
    return ask(&query);
}

static const char *check_alone(const char *variables)
{
    struct environment env;
    struct pstk_rank_query query = query_of(&env, variables);
    pstk_error_init(&err, sizeof err);
    query.option = "";
    const int r = pstk_check_alone(&query, &err);
    return r == 0 ? "" : err.message;
}

#define TORCHRUN(rank, world)                                                                      \
    "RANK=" #rank " WORLD_SIZE=" #world " LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "
#define MPI(rank, world) "OMPI_COMM_WORLD_RANK=" #rank " OMPI_COMM_WORLD_SIZE=" #world " "
#define SRUN(rank, world) "SLURM_PROCID=" #rank " SLURM_STEP_NUM_TASKS=" #world " "
#define JOB "PROCESS_ID=3 NUM_PROCESSES=5 COORDINATOR_ADDRESS=a "
#define GIVE "or give ranks.rank and ranks.world)"

TEST(nothing_is_one_process)
{
    const struct pstk_rank_query query = {.size = sizeof query};
    CHECK_STR(ask(&query), "0 of 1, 0 of 1: alone");
    CHECK_STR(find("PATH=/bin RANKS=3 XRANK=1"), "0 of 1, 0 of 1: alone");
    CHECK_EQ(found.is_bound, 0);
}

TEST(the_innermost_launcher_counts)
{
    const struct pstk_known_ranks ray = {"Ray Train", PSTK_KNOWN_BY_LAUNCHER, 2, 8, 2, 4, 0};
    const struct pstk_known_ranks group = {"my group", PSTK_KNOWN_BY_GROUP, 1, 9, 0, 0, 0};
    CHECK_STR(find(JOB), "3 of 5, 0 of 1: Kubeflow JAXJob");
    CHECK_STR(find(JOB SRUN(2, 5)), "2 of 5, 0 of 1: srun");
    CHECK_STR(find(JOB SRUN(2, 5) MPI(4, 6)), "4 of 6, 0 of 1: Open MPI");
    CHECK_STR(find(JOB SRUN(2, 5) MPI(4, 6) TORCHRUN(3, 7)), "3 of 7, 0 of 1: torchrun");
    CHECK_STR(find_known(JOB SRUN(2, 5) MPI(4, 6), &ray, 1), "2 of 8, 2 of 4: Ray Train");
    CHECK_STR(find_known(JOB SRUN(2, 5) MPI(4, 6) TORCHRUN(3, 7), &group, 1),
              "1 of 9, 0 of 1: my group");
}

TEST(libraries_of_one_level_must_agree)
{
    struct pstk_known_ranks known[] = {{"torch.distributed", PSTK_KNOWN_BY_GROUP, 1, 4, 0, 0, 0},
                                       {"jax.distributed", PSTK_KNOWN_BY_GROUP, 1, 4, 0, 0, 0}};
    const struct pstk_known_ranks ray = {"Ray Train", PSTK_KNOWN_BY_LAUNCHER, 0, 2, 0, 1, 0};
    CHECK_STR(find_known("", known, 2), "1 of 4, 0 of 1: torch.distributed");
    known[1].rank = 0;
    CHECK_STR(find_known("", known, 2),
              "ranks: torch.distributed reports rank 1 of 4, and jax.distributed rank 0 of 4; must "
              "agree (unset the variables of the one that did not start this process, " GIVE);
    CHECK_STR(find_known(TORCHRUN(1, 4), &ray, 1),
              "ranks: Ray Train reports rank 0 of 2, and torchrun rank 1 of 4; must agree (unset "
              "the variables of the one that did not start this process, " GIVE);
}

TEST(local_numbers_come_from_whoever_has_the_same_ranks)
{
    const struct pstk_known_ranks group = {"g", PSTK_KNOWN_BY_GROUP, 3, 4, 0, 0, 0};
    const char *tasks = SRUN(3, 4) "SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2(x2)";
    CHECK_STR(find_known(tasks, &group, 1), "3 of 4, 1 of 2: g");
    CHECK_STR(find_known("LOCAL_RANK=1", &group, 1), "3 of 4, 1 of 2: g");
    CHECK_STR(find_known("LOCAL_RANK=x", &group, 1), "3 of 4, 0 of 1: g");
    CHECK_STR(find(SRUN(3, 4) "SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2 PMI_RANK=3 PMI_SIZE=4"),
              "3 of 4, 1 of 2: PMI");
}

TEST(numbers_of_one_process_that_were_left_are_refused)
{
    const char *left = "ranks: RANK is 0 and WORLD_SIZE is 1, but LOCAL_RANK is not set, and srun "
                       "reports rank 1 of 4; must agree (unset RANK and WORLD_SIZE, " GIVE;
    CHECK_STR(find("RANK=0 WORLD_SIZE=1 " SRUN(1, 4)), left);
    CHECK_STR(find("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 " SRUN(1, 4)), "0 of 1, 0 of 1: torchrun");
    CHECK_STR(find("RANK=0 WORLD_SIZE=1 " SRUN(0, 1)), "0 of 1, 0 of 1: torchrun");
}

TEST(numbers_that_may_count_machines_are_refused)
{
    const char *machines = "ranks: RANK and WORLD_SIZE are set, but LOCAL_RANK is not, so they may "
                           "count machines instead of processes (start the processes with "
                           "torchrun, " GIVE;
    CHECK_STR(find("RANK=1 WORLD_SIZE=2"), machines);
    CHECK_STR(find("RANK=1 WORLD_SIZE=2 PET_NPROC_PER_NODE=8"), machines);
    CHECK_STR(find("RANK=1 WORLD_SIZE=2 PET_NPROC_PER_NODE=1"), "1 of 2, 0 of 1: torchrun");
    CHECK_STR(find("RANK=1 WORLD_SIZE=2 " MPI(1, 2)), "1 of 2, 0 of 1: torchrun");
    CHECK_STR(find("RANK=1 WORLD_SIZE=2 PET_NPROC_PER_NODE=1 " MPI(1, 2)),
              "1 of 2, 0 of 1: torchrun");
    CHECK_STR(
        find("RANK=1 WORLD_SIZE=2 PET_NPROC_PER_NODE=1 " MPI(3, 8)),
        "ranks: RANK is 1 and WORLD_SIZE is 2, but LOCAL_RANK is not set, and Open MPI reports "
        "rank 3 of 8; must agree (unset RANK and WORLD_SIZE, " GIVE);
}

TEST(the_program_may_say_whether_it_has_a_terminal)
{
    struct environment env;
    struct pstk_rank_query query = query_of(&env, SRUN(1, 2) "SLURM_JOB_NAME=bash");
    CHECK_STR(ask(&query), "1 of 2, 0 of 1: srun");
    query.terminal = PSTK_TERMINAL_OWN;
    CHECK_STR(ask(&query), "0 of 1, 0 of 1: alone");
}

TEST(a_job_of_kubernetes_needs_its_number_of_pods)
{
    struct environment env;
    struct pstk_rank_query query = query_of(&env, "JOB_COMPLETION_INDEX=2");
    query.option = "--part";
    query.indexed = "--parts N";
    CHECK_STR(ask(&query),
              "--part: JOB_COMPLETION_INDEX is 2, but the number of processes is in no variable; "
              "this process's part follows from both (set it as the launcher does, or give --parts "
              "N)");
    query.n_indexed = 3;
    CHECK_STR(ask(&query), "2 of 3, 0 of 1: Kubernetes Job");
    query.n_indexed = 2;
    query.indexed = NULL;
    query.numbers = "--part I/N";
    CHECK_STR(ask(&query), "--part: JOB_COMPLETION_INDEX is 2; must be below 2 (give --part I/N, "
                           "the completions of the Job)");
}

TEST(errors_are_in_the_words_of_the_program)
{
    struct environment env;
    struct pstk_rank_query query = query_of(&env, "SLURM_PROCID=0 SLURM_NTASKS=4");
    const char *batch = "SLURM_PROCID is 0 and SLURM_NTASKS is 4, but SLURM_STEP_NUM_TASKS is not "
                        "set: this process is the job's batch script, not one of 4 tasks (start it "
                        "with srun and give an AUTO; or give an ALONE if it should get all samples "
                        "alone)";
    query.option = "";
    query.automatic = "an AUTO";
    query.alone = "an ALONE";
    CHECK_STR(ask(&query), batch);
    CHECK_STR(find("RANK=x WORLD_SIZE=1"), "ranks: RANK is 'x'; must be a whole number (set it as "
                                           "the launcher does, " GIVE);
}

TEST(a_program_without_ranks_is_warned_of_several_processes)
{
    const char *two = "WORLD_SIZE reports 2 processes, and this loader gives each of them all "
                      "samples (give it what pstk_find_ranks finds for a part each, or ranks.rank "
                      "0 and ranks.world 1 if each should get all)";
    CHECK_STR(check_alone(""), "");
    CHECK_STR(check_alone(TORCHRUN(0, 1)), "");
    CHECK_STR(check_alone(TORCHRUN(0, 2)), two);
    CHECK_STR(check_alone("WORLD_SIZE=2"), two);
    CHECK_STR(check_alone("RANK=x WORLD_SIZE=2"), two);
    CHECK_STR(check_alone("RANK=x WORLD_SIZE=y SLURM_NTASKS=x SLURM_PROCID=0"), "");
    CHECK(strncmp(check_alone("RANK=0 WORLD_SIZE=1 " SRUN(1, 4)),
                  "SLURM_STEP_NUM_TASKS reports 4 processes, ", 42) == 0);
    CHECK(strncmp(check_alone("SLURM_PROCID=0 SLURM_NTASKS=4"),
                  "SLURM_PROCID is 0 and SLURM_NTASKS is 4, but ", 45) == 0);
}

TEST(a_variable_is_a_number_of_at_most_nine_digits)
{
    struct environment env;
    const struct pstk_rank_query query = query_of(&env, "A=12 B=1234567890 C= D=012 E=-1 A=7");
    uint32_t n = 0;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_get_variable(&query, "A", &n, &err), 1);
    CHECK_EQ(n, 12);
    CHECK_EQ(pstk_get_variable(&query, "D", &n, &err), 1);
    CHECK_EQ(n, 12);
    CHECK_EQ(pstk_get_variable(&query, "C", &n, &err), 0);
    CHECK_EQ(pstk_get_variable(&query, "F", &n, &err), 0);
    CHECK_EQ(pstk_get_variable(&query, "B", &n, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_get_variable(&query, "E", &n, &err), PSTK_EINVAL);
    CHECK_STR(err.message, "ranks: E is '-1'; must be a whole number (set it as the launcher does, "
                           "or give ranks.rank and ranks.world)");
}

TEST(what_was_found_is_used)
{
    struct pstk_settings s;
    struct pstk_machine machine = {.size = offsetof(struct pstk_machine, io_uring)};
    struct pstk_found_ranks some = {sizeof some, 5, 8, 1, 4, 0, "srun"};
    pstk_settings_init(&s, sizeof s);
    pstk_use_ranks(&some, &s);
    CHECK(s.ranks.rank == 5 && s.ranks.world == 8);
    CHECK(s.ranks.local_rank == 1 && s.ranks.local_world == 4);
    CHECK_EQ(s.memory.max_memory, 0);
    some.is_bound = 1;
    s.memory.max_memory = 7;
    pstk_use_ranks(&some, &s);
    CHECK(s.ranks.local_rank == 0 && s.ranks.local_world == 1);
    CHECK_EQ(s.memory.max_memory, 7);
    s.memory.max_memory = 0;
    pstk_use_ranks(&some, &s);
    CHECK_EQ(pstk_get_machine(NULL, &machine, NULL), 0);
    CHECK_EQ(s.memory.max_memory, machine.memory / 4 * 3 / 4);
}

TEST(structs_of_another_version_are_taken)
{
    struct environment env;
    struct pstk_rank_query query = query_of(&env, TORCHRUN(1, 2));
    struct {
        struct pstk_known_ranks now;
        uint64_t later;
    } known[2] = {{{"a", PSTK_KNOWN_BY_GROUP, 1, 4, 0, 0, 0}, 9},
                  {{"b", PSTK_KNOWN_BY_GROUP, 1, 4, 1, 2, 0}, 9}};
    CHECK_EQ(pstk_find_ranks(&query, &(struct pstk_found_ranks){0}, &err), PSTK_EINVAL);
    query.size = offsetof(struct pstk_rank_query, known);
    query.option = "not read";
    CHECK_STR(ask(&query), "1 of 2, 0 of 1: torchrun");
    found = (struct pstk_found_ranks){.size = offsetof(struct pstk_found_ranks, world), .world = 9};
    CHECK_EQ(pstk_find_ranks(&query, &found, &err), 0);
    CHECK(found.size == offsetof(struct pstk_found_ranks, world) && found.rank == 1);
    CHECK_EQ(found.world, 9);
    query.size = sizeof query;
    query.known = &known[0].now;
    query.n_known = 2;
    query.known_size = sizeof known[0];
    CHECK_STR(ask(&query), "1 of 4, 1 of 2: a");
    known[0].now.by = 77;
    CHECK_STR(ask(&query), "known: by must be one of enum pstk_known_by, and reserved 0");
    known[0].now.source = NULL;
    CHECK_STR(ask(&query), "known: value of source is NULL; must be a name of at most 31 bytes");
    known[0].now.source = "a library whose name has 32 bytes";
    CHECK_STR(ask(&query),
              "known: value of source is too long; must be a name of at most 31 bytes");
    query.known = NULL;
    CHECK_STR(ask(&query), "known: value is NULL, and n_known is 2; must be as many");
    query.n_known = 0;
    query.terminal = 3;
    CHECK_STR(ask(&query), "terminal: value is 3; must be one of enum pstk_terminal");
    query.terminal = PSTK_TERMINAL_OWN;
    query.reserved = 1;
    CHECK_STR(ask(&query), "reserved: value is 1; must be 0");
    query.size = 0;
    CHECK_STR(ask(&query), "query: size must be sizeof(struct pstk_rank_query)");
}

TEST(ranks_that_cannot_be_are_refused)
{
    struct pstk_known_ranks known[PSTK_MAX_KNOWN_RANKS + 1] = {
        {"a", PSTK_KNOWN_BY_GROUP, 4, 4, 0, 0, 0}};
    CHECK_STR(find_known("", known, 1), "known: a reports rank 4 of 4, and local rank 0 of 0; a "
                                        "rank must be below the number of ranks");
    known[0].rank = 3;
    known[0].local_rank = known[0].local_world = 2;
    CHECK_STR(find_known("", known, 1), "known: a reports rank 3 of 4, and local rank 2 of 2; a "
                                        "rank must be below the number of ranks");
    CHECK_STR(find_known("", known, PSTK_MAX_KNOWN_RANKS + 1),
              "n_known: value is 9; must be at most 8");
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(nothing_is_one_process),
        CASE(the_innermost_launcher_counts),
        CASE(libraries_of_one_level_must_agree),
        CASE(local_numbers_come_from_whoever_has_the_same_ranks),
        CASE(numbers_of_one_process_that_were_left_are_refused),
        CASE(numbers_that_may_count_machines_are_refused),
        CASE(the_program_may_say_whether_it_has_a_terminal),
        CASE(a_job_of_kubernetes_needs_its_number_of_pods),
        CASE(errors_are_in_the_words_of_the_program),
        CASE(a_program_without_ranks_is_warned_of_several_processes),
        CASE(a_variable_is_a_number_of_at_most_nine_digits),
        CASE(what_was_found_is_used),
        CASE(structs_of_another_version_are_taken),
        CASE(ranks_that_cannot_be_are_refused),
    };
    return RUN_CASES(cases);
}
