/* SPDX-License-Identifier: Apache-2.0 */
/* Pools whose processes are this program, with an argument that says how to behave. */
#include "process/pool.h"
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 100u /* bytes of data and row */
#define ROWS 8u   /* most rows of a batch */

/* ---- the process ----------------------------------------------------------------------------- */

static int answer(int result, const char *text)
{
    struct pstk_answer a = {.result = result};
    strcpy(a.text, text);
    const size_t size = sizeof a.result + strlen(text);
    return send(PSTK_PROCESS_SOCKET, &a, size, 0) == (ssize_t)size;
}

/* Act as a sample asks by its first byte. */
static void behave(const uint8_t *data)
{
    if (data[0] == 1)
        raise(SIGTERM); /* sanitizers catch others */
    if (data[0] == 2)
        _exit(9);
    if (data[0] == 3)
        pause();
    if (data[0] == 5)
        close(PSTK_PROCESS_SOCKET);
    if (data[0] == 6 && fork() > 0) /* the other one has the socket, too */
        raise(SIGTERM);
    if (data[0] >= 5 && data[0] <= 6) {
        alarm(3);
        pause();
    }
}

/* Each row is its data in reverse, plus the first byte of the job. */
static int process(const char *how)
{
    struct pstk_request r;
    uint8_t *memory = NULL, job = 0;
    struct stat file;
    if (strcmp(how, "ends") == 0)
        return 4;
    if (strcmp(how, "refuses") == 0)
        return !answer(-1, "no, thanks");
    if (strcmp(how, "is late") == 0)
        return pause();
    if (pread(PSTK_PROCESS_JOB, &job, 1, 0) != 1 || fstat(PSTK_PROCESS_MEMORY, &file) < 0 ||
        !getenv("TEST_POOL") || !answer(0, ""))
        return 1;
    memory = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                  PSTK_PROCESS_MEMORY, 0);
    while (memory != MAP_FAILED && recv(PSTK_PROCESS_SOCKET, &r, sizeof r, 0) == sizeof r) {
        const uint8_t *data = memory + r.data_offset;
        behave(data);
        for (uint64_t k = 0; k < r.row_size; k++)
            memory[r.row_offset + k] = (uint8_t)(data[r.data_size - 1 - k] + job);
        answer(data[0] == 4 ? -1 : 0, data[0] == 4 ? "bad sample" : "");
    }
    return 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int pool_of(struct pstk__process_pool **pool, const char *how, uint32_t n,
                   uint64_t start_timeout_ns)
{
    const char *const arguments[] = {"/proc/self/exe", "process", how, NULL};
    const char *const environment[] = {"TEST_POOL=1", NULL};
    const struct pstk_processes processes = {.size = sizeof processes,
                                             .arguments = arguments,
                                             .environment = environment,
                                             .job = "\005",
                                             .job_size = 1,
                                             .start_timeout_ns = start_timeout_ns};
    const struct pstk__process_pool_config config = {.processes = &processes,
                                                     .n_processes = n,
                                                     .data_size = ROWS * SIZE,
                                                     .row_size = ROWS * SIZE,
                                                     .whose = "output 'x'"};
    return pstk__process_pool_open(pool, &config, NULL);
}

/* Ask for rows whose first byte of data is `first`; n_rows 0: for one that is no batch. Returns the
 * result; wrong rows are -1. */
static int ask_rows(struct pstk__process_pool *pool, uint8_t first, uint32_t n_rows,
                    struct pstk_error *err)
{
    uint8_t data[ROWS * SIZE], rows[ROWS * SIZE + 1];
    const uint32_t size = (n_rows ? n_rows : 1) * SIZE;
    for (uint32_t k = 0; k < size; k++)
        data[k] = (uint8_t)(first + k);
    struct pstk__process_request request = {.head = {.data_size = size, .row_size = size},
                                            .data = data,
                                            .rows = rows,
                                            .timeout_ns = 300000000u,
                                            .is_batch = n_rows > 0};
    rows[size] = 7;
    pstk_error_init(err, sizeof *err);
    const int rc = pstk__process_pool_ask(pool, &request, err);
    for (uint32_t k = 0; k < size && rc == 0; k++)
        if (rows[k] != (uint8_t)(data[size - 1 - k] + 5))
            return -1;
    return rows[size] == 7 ? rc : -1;
}

static int ask(struct pstk__process_pool *pool, uint8_t first, struct pstk_error *err)
{
    return ask_rows(pool, first, 0, err);
}

static int has_children(void)
{
    return waitpid(-1, NULL, WNOHANG) == 0;
}

TEST(processes_make_rows)
{
    struct pstk__process_pool *pool;
    struct pstk_error err;
    CHECK_EQ(pool_of(&pool, "works", 2, 0), 0);
    for (int i = 10; i < 60; i++)
        CHECK_EQ(ask(pool, (uint8_t)i, &err), 0);
    CHECK(pstk__process_pool_memory(pool) >= 4 * SIZE);
    pstk__process_pool_close(pool);
    CHECK(!has_children());
}

TEST(a_process_that_ends_or_is_late_costs_one_sample)
{
    static const struct {
        uint8_t first;
        const char *words;
    } cases[] = {{1, "was killed by signal 15 (SIGTERM) while"},
                 {2, "ended with exit status 9 while"},
                 {3, "longer than the timeout of 0.3 s"},
                 {4, "bad sample"},
                 {6, "was killed by signal 15 (SIGTERM) while"}};
    struct pstk__process_pool *pool;
    struct pstk_error err;
    CHECK_EQ(pool_of(&pool, "works", 1, 0), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(ask(pool, cases[i].first, &err), PSTK_ECANCELED);
        CHECK_EQ(err.stage, PSTK_STAGE_DECODE);
        CHECK(strstr(err.message, cases[i].words));
        CHECK_EQ(ask(pool, 77, &err), 0);
    }
    pstk__process_pool_close(pool);
    CHECK(!has_children());
}

/* And batches of other sizes and single rows take turns. */
TEST(processes_make_rows_of_batches)
{
    struct pstk__process_pool *pool;
    struct pstk_error err;
    CHECK_EQ(pool_of(&pool, "works", 2, 0), 0);
    for (uint32_t i = 0; i < 40; i++)
        CHECK_EQ(ask_rows(pool, (uint8_t)(10 + i), i % (ROWS + 1), &err), 0);
    CHECK_EQ(ask_rows(pool, 1, 3, &err), PSTK_ECANCELED);
    CHECK_STR(err.message, "the process was killed by signal 15 (SIGTERM) while it made the rows");
    CHECK_EQ(ask_rows(pool, 77, ROWS, &err), 0);
    pstk__process_pool_close(pool);
    CHECK(!has_children());
}

/* Rows ask without end, on more threads than there are processes. */
struct crowd {
    struct pstk__process_pool *pool;
    _Atomic int is_over;
    _Atomic uint32_t n_rows;
};

static void *ask_on(void *user)
{
    struct crowd *crowd = user;
    struct pstk_error err;
    int rc = 0;
    while (!crowd->is_over && rc == 0) {
        rc = ask(crowd->pool, 77, &err);
        crowd->n_rows++;
    }
    return rc == 0 ? user : NULL;
}

TEST(batches_go_before_rows)
{
    struct crowd crowd = {0};
    struct pstk_error err;
    pthread_t threads[6];
    uint32_t n_soon = 0; /* batches that few rows came before */
    CHECK_EQ(pool_of(&crowd.pool, "works", 1, 0), 0);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, ask_on, &crowd), 0);
    for (int i = 0; i < 200; i++) {
        usleep(500); /* rows come in between */
        const uint32_t before = crowd.n_rows;
        CHECK_EQ(ask_rows(crowd.pool, 88, ROWS, &err), 0);
        n_soon += crowd.n_rows - before <= 3;
    }
    crowd.is_over = 1;
    for (int i = 0; i < 6; i++) {
        void *result;
        pthread_join(threads[i], &result);
        CHECK(result == &crowd);
    }
    CHECK(n_soon > 100); /* this thread may not run meanwhile */
    pstk__process_pool_close(crowd.pool);
}

/* And not that the system killed it. */
TEST(a_process_that_closes_its_socket_is_killed)
{
    struct pstk__process_pool *pool;
    struct pstk_error err;
    CHECK_EQ(pool_of(&pool, "works", 1, 0), 0);
    CHECK_EQ(ask(pool, 5, &err), PSTK_ECANCELED);
    CHECK_STR(err.message, "the process closed its socket, and was killed while it made the row");
    CHECK_EQ(ask(pool, 77, &err), 0);
    pstk__process_pool_close(pool);
    CHECK(!has_children());
}

TEST(processes_that_cannot_start_are_an_error_for_good)
{
    static const char *const cases[][2] = {
        {"ends", "output 'x': a process ended with exit status 4 before it was ready"},
        {"refuses", "output 'x': a process cannot work: no, thanks"},
        {"is late", "output 'x': a process was not ready 1 s after its start, the limit "
                    "(start_timeout), and was killed"}};
    for (int i = 0; i < 3; i++) {
        struct pstk__process_pool *pool;
        struct pstk_error err;
        CHECK_EQ(pool_of(&pool, cases[i][0], 2, i < 2 ? 0 : 1000000000u), 0);
        for (int k = 0; k < 5; k++) {
            CHECK_EQ(ask(pool, 77, &err), PSTK_ECANCELED);
            CHECK_EQ(err.stage, PSTK_STAGE_OPEN);
            CHECK_STR(err.message, cases[i][1]);
        }
        pstk__process_pool_close(pool);
        CHECK(!has_children());
    }
}

/* Asks for a row that never comes. */
static void *ask_in_vain(void *pool)
{
    struct pstk_error err;
    return ask(pool, 3, &err) == PSTK_ECANCELED ? pool : NULL;
}

TEST(stopping_ends_all_waits)
{
    struct pstk__process_pool *pool;
    struct pstk_error err;
    pthread_t threads[4];
    CHECK_EQ(pool_of(&pool, "works", 2, 0), 0);
    CHECK_EQ(ask(pool, 77, &err), 0);
    for (int i = 0; i < 4; i++) /* two of them wait for a process */
        CHECK_EQ(pthread_create(&threads[i], NULL, ask_in_vain, pool), 0);
    usleep(20000);
    pstk__process_pool_stop(pool);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        CHECK(result == pool);
    }
    CHECK_EQ(ask(pool, 77, &err), PSTK_ECANCELED);
    pstk__process_pool_close(pool);
    CHECK(!has_children());
}

TEST(wrong_settings_are_refused)
{
    const char *const program[] = {"/bin/true", NULL}, *const nothing[] = {NULL};
    const uint32_t size = sizeof(struct pstk_processes);
    const struct {
        struct pstk_processes processes;
        const char *words;
    } cases[] = {
        {{.size = 4, .arguments = program}, "size: value is 4"},
        {{.size = size}, "arguments"},
        {{.size = size, .arguments = nothing}, "arguments"},
        {{.size = size, .arguments = program, .n_processes = 99999}, "n_processes"},
        {{.size = size, .arguments = program, .job_size = 1}, "job: value is NULL"},
        {{.size = size, .arguments = program, .start_timeout_ns = UINT64_MAX}, "start_timeout_ns"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        CHECK_EQ(pstk__process_pool_check(&cases[i].processes, 3, &err), PSTK_EINVAL);
        CHECK(strstr(err.message, "outputs[3].processes.") && strstr(err.message, cases[i].words));
    }
    const struct pstk_processes right = {.size = size, .arguments = program};
    CHECK_EQ(pstk__process_pool_check(&right, 0, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        CASE(processes_make_rows),
        CASE(processes_make_rows_of_batches),
        CASE(batches_go_before_rows),
        CASE(a_process_that_ends_or_is_late_costs_one_sample),
        CASE(a_process_that_closes_its_socket_is_killed),
        CASE(processes_that_cannot_start_are_an_error_for_good),
        CASE(stopping_ends_all_waits),
        CASE(wrong_settings_are_refused),
    };
    return argc == 3 ? process(argv[2]) : RUN_CASES(cases);
}
