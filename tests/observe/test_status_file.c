/* SPDX-License-Identifier: Apache-2.0 */
/* Status files: what a loader answers another process, and what becomes of files that are cut,
 * damaged or left by a process that was killed. Each question here goes through the file. */
#include "support/cuda_consumer.h"

#include "observe/status_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LONG_NS 20000000000

static char folder[256], path[300];

static struct pstk_settings host(void)
{
    struct pstk_settings s = base();
    s.device.kind = PSTK_HOST;
    s.observe.monitor_path = path;
    return s;
}

/* A status file without a loader, whose measurements all follow from how many there were. */
struct counted {
    _Atomic uint64_t n;
};

static void count(void *user, struct pstk_stats *stats, struct pstk_metrics *metrics,
                  uint64_t *epoch, uint64_t *position)
{
    struct counted *counted = user;
    const uint64_t n = counted->n++;
    stats->n_samples = stats->cpu_ns = metrics->duration_ns = metrics->free.max = n;
    *epoch = n + 1;
    *position = n + 2;
}

static struct pstk__status_file_config config_of(struct counted *counted)
{
    return (struct pstk__status_file_config){.path = path,
                                             .data_set = "data",
                                             .rank = 1,
                                             .world = 2,
                                             .n_samples = 300,
                                             .measure = count,
                                             .user = counted};
}

struct answer {
    struct pstk_status status;
    struct pstk_stats stats;
    struct pstk_metrics metrics;
    struct pstk_error err;
};

static int ask(struct answer *answer, int64_t timeout_ns)
{
    *answer = (struct answer){.status.size = sizeof answer->status,
                              .stats.size = sizeof answer->stats,
                              .metrics.size = sizeof answer->metrics,
                              .err = error_now()};
    return pstk_status_ask(path, timeout_ns, &answer->status, &answer->stats, &answer->metrics,
                           &answer->err);
}

TEST(a_loader_answers_with_what_it_counts)
{
    struct pstk_settings s = host();
    struct pstk_error err = error_now();
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    struct answer answer;
    struct stat file;
    uint64_t epoch, position;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK(stat(path, &file) == 0 && (file.st_mode & 0777) == 0600 && file.st_size == 4096);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pstk_next(loader, &batch, NULL, LONG_NS, &err), 1);
        pstk_release(&batch, NULL);
        CHECK_EQ(ask(&answer, LONG_NS), 0);
        CHECK_EQ(answer.status.state, PSTK_STATUS_ANSWERED);
        CHECK_EQ(pstk_get_stats(loader, &stats), 0);
        CHECK_EQ(answer.stats.n_batches, (uint64_t)i + 1);
        CHECK_EQ(answer.stats.n_samples, stats.n_samples);
        CHECK_EQ(answer.metrics.n_samples, stats.n_samples);
        CHECK_EQ(pstk_get_cursor(loader, &epoch, &position), 0);
        CHECK(answer.status.epoch == epoch && answer.status.position == position);
    }
    CHECK_EQ(answer.status.pid, (uint32_t)getpid());
    CHECK_EQ(answer.status.is_foreign, 0);
    CHECK_EQ(answer.status.n_samples, pstk_n_samples(loader));
    CHECK(strstr(answer.status.path, s.path));
    pstk_close(&loader);
    CHECK_EQ(ask(&answer, 0), PSTK_ENOENT);
}

TEST(processes_that_ask_at_once_get_whole_answers)
{
    struct counted counted = {.n = 0};
    const struct pstk__status_file_config config = config_of(&counted);
    struct pstk_error err = error_now();
    struct pstk__status_file *status;
    int n_wrong = 0;
    CHECK_EQ(pstk__status_file_open(&status, &config, &err), 0);
    const pid_t child = fork();
    for (int i = 0; i < 300; i++) {
        struct answer answer;
        const int r = ask(&answer, LONG_NS);
        const uint64_t n = answer.stats.n_samples;
        n_wrong += r != 0 || answer.status.state != PSTK_STATUS_ANSWERED ||
                   answer.stats.cpu_ns != n || answer.metrics.duration_ns != n ||
                   answer.metrics.free.max != n || answer.status.epoch != n + 1 ||
                   answer.status.position != n + 2;
    }
    if (child == 0)
        _exit(n_wrong != 0);
    int ended = -1;
    CHECK_EQ(waitpid(child, &ended, 0), child);
    CHECK(n_wrong == 0 && ended == 0);
    CHECK(counted.n >= 300);
    pstk__status_file_close(status);
}

TEST(nothing_is_measured_while_nobody_asks)
{
    struct counted counted = {.n = 0};
    const struct pstk__status_file_config config = config_of(&counted);
    struct pstk_error err = error_now();
    struct pstk__status_file *status;
    struct answer answer;
    CHECK_EQ(pstk__status_file_open(&status, &config, &err), 0);
    usleep(50000);
    CHECK_EQ(counted.n, 0);
    CHECK_EQ(ask(&answer, LONG_NS), 0);
    CHECK_EQ(counted.n, 1);
    pstk__status_file_close(status);
    CHECK(counted.n == 1);
}

TEST(a_program_may_change_its_folder)
{
    struct counted counted = {.n = 0};
    struct pstk__status_file_config config = config_of(&counted);
    struct pstk_error err = error_now();
    struct pstk__status_file *status;
    struct stat file;
    char here[4096];
    CHECK(getcwd(here, sizeof here) && chdir(folder) == 0);
    config.path = "status";
    CHECK_EQ(pstk__status_file_open(&status, &config, &err), 0);
    CHECK(stat(path, &file) == 0 && chdir("/") == 0);
    pstk__status_file_close(status);
    CHECK(stat(path, &file) != 0 && chdir(here) == 0);
}

TEST(a_file_that_is_cut_or_deleted_ends_the_status_file_alone)
{
    struct pstk_settings s = host();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    struct answer answer;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(truncate(path, 100), 0);
    CHECK_EQ(ask(&answer, 0), PSTK_EBADMSG);
    CHECK_EQ(truncate(path, 0), 0);
    CHECK_EQ(ask(&answer, 0), PSTK_ENODATA);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(pstk_next(loader, &batch, NULL, LONG_NS, &err), 1);
    pstk_release(&batch, NULL);
    pstk_close(&loader);
}

TEST(a_process_that_was_killed_is_found_out_and_its_place_taken)
{
    struct pstk_error err = error_now();
    struct pstk__status_file *status;
    struct counted counted = {.n = 0};
    const struct pstk__status_file_config config = config_of(&counted);
    struct answer answer;
    int ready[2];
    char byte;
    CHECK_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (pstk__status_file_open(&status, &config, &err) == 0 && write(ready[1], "r", 1) == 1)
            pause();
        _exit(1);
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    CHECK_EQ(ask(&answer, LONG_NS), 0);
    CHECK(answer.status.state == PSTK_STATUS_ANSWERED && answer.status.pid == (uint32_t)child);
    CHECK(answer.status.rank == 1 && answer.status.world == 2);
    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    CHECK_EQ(ask(&answer, 20000000), 0);
    CHECK_EQ(answer.status.state, PSTK_STATUS_SILENT);
    CHECK_EQ(answer.stats.n_samples, 0);
    kill(child, SIGKILL);
    siginfo_t info;
    CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0); /* it stays a zombie */
    CHECK_EQ(ask(&answer, LONG_NS), 0);
    CHECK_EQ(answer.status.state, PSTK_STATUS_ENDED);
    waitpid(child, NULL, 0);
    CHECK_EQ(ask(&answer, LONG_NS), 0);
    CHECK_EQ(answer.status.state, PSTK_STATUS_ENDED);
    CHECK_EQ(pstk__status_file_open(&status, &config, &err), 0);
    CHECK_EQ(ask(&answer, LONG_NS), 0);
    CHECK_EQ(answer.status.pid, (uint32_t)getpid());
    pstk__status_file_close(status);
    close(ready[0]);
    close(ready[1]);
}

/* Write a head whose process is changed, with its checksum. */
static void change(int fd, struct pstk__status_file_head head)
{
    head.crc = pstk__status_file_head_crc(&head);
    CHECK_EQ(pwrite(fd, &head, sizeof head, 0), sizeof head);
}

TEST(a_reused_process_id_and_another_machine_are_told_apart)
{
    struct pstk__status_file_head head = {.version = 0}, other;
    struct pstk_error err = error_now();
    struct counted counted = {.n = 0};
    const struct pstk__status_file_config config = config_of(&counted);
    struct pstk__status_file *status;
    struct answer answer;
    CHECK_EQ(pstk__status_file_open(&status, &config, &err), 0);
    int fd = open(path, O_RDWR);
    unsigned char page[PSTK__STATUS_FILE_SIZE];
    CHECK_EQ(pread(fd, page, sizeof page, 0), sizeof page);
    memcpy(&head, page, sizeof head);
    close(fd);
    pstk__status_file_close(status);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600); /* the same, and nobody answers */
    CHECK_EQ(pwrite(fd, page, sizeof page, 0), sizeof page);
    CHECK_EQ(ask(&answer, 0), 0);
    CHECK_EQ(answer.status.state, PSTK_STATUS_SILENT);
    other = head;
    other.process.start_ticks++;
    change(fd, other);
    CHECK_EQ(ask(&answer, 0), 0);
    CHECK(answer.status.state == PSTK_STATUS_ENDED && !answer.status.is_foreign);
    other = head;
    other.process.pid_namespace++;
    change(fd, other);
    CHECK_EQ(ask(&answer, 0), 0);
    CHECK(answer.status.state == PSTK_STATUS_ELSEWHERE && answer.status.is_foreign);
    other = head;
    other.process.host[0] ^= 1;
    change(fd, other);
    CHECK_EQ(ask(&answer, 0), 0);
    CHECK(answer.status.state == PSTK_STATUS_ELSEWHERE && answer.status.is_foreign);
    other = head;
    other.process.boot[0] ^= 1;
    change(fd, other);
    CHECK_EQ(ask(&answer, 0), 0);
    CHECK_EQ(answer.status.state, PSTK_STATUS_ENDED);
    other = head;
    other.version++;
    change(fd, other);
    CHECK_EQ(ask(&answer, 0), PSTK_ENOTSUP);
    CHECK(strstr(answer.err.message, "version 5"));
    for (uint32_t i = 16; i < sizeof head; i += 7) { /* every damage of the head is seen */
        unsigned char byte = ((unsigned char *)&head)[i] ^ 4;
        change(fd, head);
        CHECK_EQ(pwrite(fd, &byte, 1, i), 1);
        CHECK_EQ(ask(&answer, 0), PSTK_EBADMSG);
    }
    close(fd);
    unlink(path);
}

TEST(wrong_paths_are_refused_and_other_files_are_left_alone)
{
    struct pstk_settings s = host();
    struct pstk_error err = error_now();
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_loader *loader;
    struct answer answer;
    char text[8] = "";
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK_EQ(write(fd, "notes", 5), 5);
    CHECK_EQ(ask(&answer, 0), PSTK_ENODATA);
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "monitor_path: ") && strstr(err.message, path));
    CHECK(pread(fd, text, 5, 0) == 5 && strcmp(text, "notes") == 0);
    close(fd);
    unlink(path);
    CHECK_EQ(symlink("/etc/passwd", path), 0);
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_EINVAL);
    CHECK(ask(&answer, 0) < 0);
    unlink(path);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_EINVAL);
    CHECK_EQ(ask(&answer, 0), PSTK_ENODATA);
    unlink(path);
    s.observe.monitor_path = "";
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_EINVAL);
    s.observe.monitor_path = "/nonexistent/board";
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "a folder that exists"));
    s.observe.monitor_path = NULL;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK_EQ(stats.fallbacks & PSTK_FALLBACK_NO_MONITOR, 0);
    pstk_close(&loader);
    CHECK_EQ(pstk_status_ask("", 0, &answer.status, NULL, NULL, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_status_ask(path, 0, NULL, NULL, NULL, &err), PSTK_EINVAL);
}

/* The limit of a file's size stands for a disk without room. */
TEST(a_full_disk_is_a_fallback_and_the_run_goes_on)
{
    struct pstk_settings s = host();
    struct pstk_error err = error_now();
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_loader *loader = NULL;
    struct pstk_batch *batch;
    struct stat file;
    struct rlimit before, none;
    getrlimit(RLIMIT_FSIZE, &before);
    none = before;
    none.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    const int r = pstk_open(&loader, &s, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_EQ(r, 0);
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK(stats.fallbacks & PSTK_FALLBACK_NO_MONITOR);
    CHECK(lstat(path, &file) != 0);
    CHECK_EQ(pstk_next(loader, &batch, NULL, LONG_NS, &err), 1);
    pstk_release(&batch, NULL);
    pstk_close(&loader);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_loader_answers_with_what_it_counts),
        CASE(processes_that_ask_at_once_get_whole_answers),
        CASE(nothing_is_measured_while_nobody_asks),
        CASE(a_program_may_change_its_folder),
        CASE(a_file_that_is_cut_or_deleted_ends_the_status_file_alone),
        CASE(a_process_that_was_killed_is_found_out_and_its_place_taken),
        CASE(a_reused_process_id_and_another_machine_are_told_apart),
        CASE(wrong_paths_are_refused_and_other_files_are_left_alone),
        CASE(a_full_disk_is_a_fallback_and_the_run_goes_on),
    };
    snprintf(folder, sizeof folder, "/tmp/penstock-status-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/status", folder);
    consumer_begin();
    const int failed = RUN_CASES(cases);
    consumer_end();
    rmdir(folder);
    return failed;
}
