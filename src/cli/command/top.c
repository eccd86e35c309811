/* SPDX-License-Identifier: Apache-2.0 */
/* top: lists the loaders of this user on this machine, and the activity of each. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <penstock/penstock.h>

#include "command.h"
#include "command/status_files.h"
#include "names.h"
#include "option/options.h"
#include "ui/interrupt.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/text.h"
#include "ui/unit.h"

#define MAX_LOADERS 1024
#define ASK_NS 1000000000   /* maximum wait for a loader's answer */
#define FIRST_SECONDS 1.0   /* time between the first two checks */
#define LEFTOVER_SECONDS 60 /* an empty file of this age was never finished */

enum { OPT_ONCE = 256, OPT_INTERVAL, OPT_FOLDER, OPT_JSON };

static const struct option_row table[] = {
    {.name = "once", .code = OPT_ONCE, .text = "print the loaders once, and end"},
    {.name = "interval",
     .code = OPT_INTERVAL,
     .value = "S",
     .initial = "2",
     .text = "seconds between two updates"},
    {.name = "folder",
     .code = OPT_FOLDER,
     .value = "DIR",
     .initial = "penstock in $XDG_RUNTIME_DIR, or else /tmp/penstock-UID",
     .text = "where loaders have their status files (monitor_path)"},
    OPTION_JSON("print one JSON object for each update, on one line"),
    OPTION_END};

/* The state of a loader at a check. */
struct seen {
    char name[NAME_MAX + 1]; /* name of the file */
    struct pstk_status status;
    struct pstk_stats stats;
    struct pstk_metrics metrics;
    double at;    /* time of the check, by unit_now */
    uint64_t rss; /* bytes; PSTK_NONE: unknown */
    double cores; /* CPU time over time, since the previous check; negative: unknown, as before the
                     loop asks for its first batch */
    uint32_t bottleneck; /* bottleneck since the previous check, or, if that shows none, since open
                          */
    int since_open;      /* 1: since open */
};

/* All loaders, in the order of their processes. */
struct look {
    struct seen *loaders; /* owned */
    uint32_t n;
};

struct top {
    char folder[STATUS_FILES_PATH_SIZE];
    double interval;
    int is_own; /* 1: the folder has only status files, because it is not --folder's */
    int once, json, terminal;
    struct look now, before;
};

/* ---- looking --------------------------------------------------------------------------------- */

static const struct seen *find(const struct look *look, const char *name)
{
    for (uint32_t i = 0; i < look->n; i++)
        if (strcmp(look->loaders[i].name, name) == 0)
            return &look->loaders[i];
    return NULL;
}

static void subtract(struct pstk_stage_stats *from, const struct pstk_stage_stats *what)
{
    from->busy_ns -= what->busy_ns;
    from->starved_ns -= what->starved_ns;
    from->blocked_ns -= what->blocked_ns;
    from->cpu_ns -= what->cpu_ns;
    from->core_wait_ns -= what->core_wait_ns;
}

/* Find the bottleneck and the cores in use, from the previous check to this one. */
static void compare(struct seen *seen, const struct seen *before)
{
    struct pstk_stats since = seen->stats;
    seen->bottleneck = seen->stats.bottleneck;
    seen->since_open = 1;
    seen->cores = -1;
    if (!before || before->status.state != PSTK_STATUS_ANSWERED ||
        before->status.opened_ns != seen->status.opened_ns)
        return;
    const struct pstk_stats *old = &before->stats;
    subtract(&since.stage_reader, &old->stage_reader);
    subtract(&since.stage_workers, &old->stage_workers);
    subtract(&since.stage_consumer, &old->stage_consumer);
    subtract(&since.stage_uploader, &old->stage_uploader);
    since.n_batches -= old->n_batches;
    since.stream_used_ns -= old->stream_used_ns;
    since.stream_starved_ns -= old->stream_starved_ns;
    since.stream_start_ns -= old->stream_start_ns;
    const uint32_t found = pstk_find_bottleneck(&since);
    if (found != PSTK_BOTTLENECK_UNKNOWN) {
        seen->bottleneck = found;
        seen->since_open = 0;
    }
    const double seconds = (double)(seen->status.answered_ns - before->status.answered_ns) / 1e9;
    if (seconds > 0 && old->cpu_ns > 0) /* counted since the loop first asked for a batch */
        seen->cores = (double)(seen->stats.cpu_ns - old->cpu_ns) / 1e9 / seconds;
}

/* Return the memory that a process has, in bytes. */
static uint64_t rss_of(const struct pstk_status *status)
{
    char path[64];
    uint64_t pages = 0;
    if (status->is_foreign)
        return PSTK_NONE;
    snprintf(path, sizeof path, "/proc/%u/statm", status->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return PSTK_NONE;
    const int n = fscanf(file, "%*u %" SCNu64, &pages);
    fclose(file);
    return n == 1 ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : PSTK_NONE;
}

/* Delete the leftover of a killed loader: a status file, or, in a folder with only status files, an
 * empty file that was never finished. A loader may just be making a new one. */
static void clear(const struct top *top, const char *path, int code)
{
    struct stat file;
    if (code == 0 || (top->is_own && lstat(path, &file) == 0 && S_ISREG(file.st_mode) &&
                      file.st_size == 0 && file.st_mtime + LEFTOVER_SECONDS < time(NULL)))
        unlink(path);
}

/* Ask the loader of one file. Returns 1 when it is to be shown. */
static int ask(const struct top *top, const char *name, struct seen *seen)
{
    struct pstk_error err;
    char path[STATUS_FILES_PATH_SIZE + NAME_MAX + 2];
    snprintf(path, sizeof path, "%s/%s", top->folder, name);
    pstk_error_init(&err, sizeof err);
    memset(seen, 0, sizeof *seen);
    snprintf(seen->name, sizeof seen->name, "%s", name);
    seen->status.size = sizeof seen->status;
    seen->stats.size = sizeof seen->stats;
    seen->metrics.size = sizeof seen->metrics;
    const int r = pstk_status_ask(path, ASK_NS, &seen->status, &seen->stats, &seen->metrics, &err);
    if (r == 0 && seen->status.state != PSTK_STATUS_ENDED) {
        seen->at = unit_now();
        seen->rss = rss_of(&seen->status);
        compare(seen, find(&top->before, name));
        return 1;
    }
    if (r == 0 || r == PSTK_ENODATA)
        clear(top, path, r);
    else if (r != PSTK_ENOENT)
        message_error(&err, path);
    return 0;
}

static int by_process(const void *a, const void *b)
{
    const struct seen *first = a, *second = b;
    if (first->status.pid != second->status.pid)
        return first->status.pid < second->status.pid ? -1 : 1;
    return strcmp(first->name, second->name);
}

/* Check all loaders. Returns 0, or an exit status after a message. */
static int look(struct top *top)
{
    struct dirent *entry;
    free(top->before.loaders);
    top->before = top->now;
    top->now = (struct look){.n = 0};
    DIR *folder = opendir(top->folder);
    if (!folder && errno == ENOENT)
        return 0;
    if (!folder) {
        const int native = errno;
        message_say("%s: %s", top->folder, strerror(native));
        return status_of_path(native);
    }
    top->now.loaders = calloc(MAX_LOADERS, sizeof *top->now.loaders);
    if (!top->now.loaders)
        message_no_memory();
    while (!interrupt_seen() && (entry = readdir(folder)) != NULL && top->now.n < MAX_LOADERS)
        if (entry->d_name[0] != '.' && ask(top, entry->d_name, &top->now.loaders[top->now.n]))
            top->now.n++;
    closedir(folder);
    qsort(top->now.loaders, top->now.n, sizeof *top->now.loaders, by_process);
    return 0;
}

/* ---- figures --------------------------------------------------------------------------------- */

/* Return a count of the last minute as a rate per second. */
static double per_second(const struct seen *seen, uint64_t n)
{
    return seen->metrics.duration_ns ? (double)n * 1e9 / (double)seen->metrics.duration_ns : 0;
}

/* Return the part of the last minute that the training program waited for batches, 0 to 1. */
static double waiting(const struct seen *seen)
{
    const double part = per_second(seen, seen->metrics.wait.sum) / 1e9;
    return part < 1 ? part : 1;
}

/* Return the part of its epoch that a loader has delivered, 0 to 1. */
static double progress(const struct seen *seen)
{
    const double n = (double)seen->status.n_samples;
    return n > 0 && seen->status.position < seen->status.n_samples
               ? (double)seen->status.position / n
               : n > 0;
}

/* Return whether a loader's bottleneck is one of the time since open. */
static int is_of_open(const struct seen *seen)
{
    return seen->status.state == PSTK_STATUS_ANSWERED && seen->since_open &&
           seen->bottleneck != PSTK_BOTTLENECK_UNKNOWN;
}

/* The times of a stage in the last minute. */
struct stage_times {
    const char *name; /* name in pstk_metrics */
    const struct pstk_distribution *times;
};

#define N_STAGES 5

static void stages_of(const struct seen *seen, struct stage_times stages[N_STAGES])
{
    const struct pstk_metrics *metrics = &seen->metrics;
    stages[0] = (struct stage_times){"read", &metrics->read};
    stages[1] = (struct stage_times){"decode", &metrics->decode};
    stages[2] = (struct stage_times){"finish", &metrics->finish};
    stages[3] = (struct stage_times){"copy", &metrics->copy};
    stages[4] = (struct stage_times){"wait", &metrics->wait};
}

static const char *state_name(const struct seen *seen)
{
    return seen->status.state == PSTK_STATUS_ANSWERED ? "running"
           : seen->status.state == PSTK_STATUS_SILENT ? "silent"
                                                      : "elsewhere";
}

/* ---- for people ------------------------------------------------------------------------------ */

static int width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 100;
}

/* Return the lines of the terminal; another output has room for all. */
static int height(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
        return size.ws_row;
    return INT_MAX;
}

/* Print the end of a text in at most `room` columns. */
static void print_end(const char *text, int room)
{
    char *safe = text_copy(text);
    if (!safe)
        message_no_memory();
    const int n = (int)strlen(safe);
    const char *from = safe;
    if (n > room) {
        from = safe + n - (room > 4 ? room - 3 : room);
        while ((*from & 0xC0) == 0x80) /* a byte in the middle of a character */
            from++;
    }
    printf("%s%s", n > room && room > 4 ? "..." : "", from);
    free(safe);
}

static void print_rank(const struct pstk_status *status)
{
    char text[32] = "-";
    if (status->world > 1)
        snprintf(text, sizeof text, "%u/%u", status->rank, status->world);
    printf("%8u%c %9s ", status->pid, status->is_foreign ? '*' : ' ', text);
}

static void end_line(const struct top *top)
{
    fputs(top->terminal ? "\033[K\n" : "\n", stdout);
}

static void print_ms(uint64_t ns)
{
    if (ns > 0 && ns < 10000)
        fputs("<0.01", stdout);
    else
        printf("%.3g", (double)ns / 1e6);
}

/* Print the times of the stages that have any. */
static void print_times(const struct top *top, const struct seen *seen)
{
    struct stage_times stages[N_STAGES];
    int is_first = 1;
    stages_of(seen, stages);
    for (int i = 0; i < N_STAGES; i++) {
        const struct pstk_distribution *times = stages[i].times;
        if (times->n == 0)
            continue;
        if (is_first)
            printf("%20sp50/p95 in ms: ", "");
        printf("%s%s ", is_first ? "" : ", ", stages[i].name);
        print_ms(times->p50);
        putchar('/');
        print_ms(times->p95);
        is_first = 0;
    }
    if (!is_first)
        end_line(top);
}

#define COLUMNS 80 /* columns of a row before the data set */

static void print_row(const struct top *top, const struct seen *seen)
{
    char rate[UNIT_SIZE], bytes[UNIT_SIZE], memory[UNIT_SIZE], cores[UNIT_SIZE] = "-", limit[16];
    print_rank(&seen->status);
    if (seen->status.state != PSTK_STATUS_ANSWERED) {
        printf("%-59s", seen->status.state == PSTK_STATUS_SILENT
                            ? "does not answer: stopped, or the machine is very busy"
                            : "does not answer; it runs on another machine or in a container, and "
                              "may have ended");
    } else {
        if (seen->cores >= 0)
            snprintf(cores, sizeof cores, "%.1f", seen->cores);
        snprintf(limit, sizeof limit, "%s%s",
                 option_choice_name(names_bottleneck, seen->bottleneck),
                 is_of_open(seen) ? "+" : "");
        printf("%9s %9s %4.0f%% %3" PRIu64 " %3.0f%% %5s %8s %-9s",
               unit_count(rate, (uint64_t)(per_second(seen, seen->metrics.n_samples) + 0.5)),
               unit_bytes(bytes, per_second(seen, seen->metrics.bytes_read)), 100 * waiting(seen),
               seen->status.epoch, 100 * progress(seen), cores,
               seen->rss == PSTK_NONE ? "-" : unit_bytes(memory, (double)seen->rss), limit);
    }
    putchar(' ');
    print_end(seen->status.path, width() - COLUMNS - 1 > 8 ? width() - COLUMNS - 1 : 8);
    end_line(top);
    if (seen->stats.n_replacements) {
        printf("%20s%s bad sample%s replaced: `penstock verify` finds them", "",
               unit_count(rate, seen->stats.n_replacements),
               seen->stats.n_replacements == 1 ? " was" : "s were");
        end_line(top);
    }
}

static void print_none(const struct top *top)
{
    printf("No loader of this user runs here; looked in ");
    text_print(stdout, top->folder);
    putchar('.');
    end_line(top);
    fputs("Python's Loader and `penstock bench` have their status files there by themselves. A C "
          "program "
          "sets monitor_path",
          stdout);
    end_line(top);
    fputs("to a file there. Another container has a folder of its own.", stdout);
    end_line(top);
}

static void print_notes(const struct top *top)
{
    int is_foreign = 0, since_open = 0;
    for (uint32_t i = 0; i < top->now.n; i++) {
        is_foreign |= (int)top->now.loaders[i].status.is_foreign;
        since_open |= is_of_open(&top->now.loaders[i]);
    }
    if (is_foreign) {
        fputs("* a process of another container or machine, by its number there", stdout);
        end_line(top);
    }
    if (since_open) {
        fputs("+ since open: too few batches since the update before", stdout);
        end_line(top);
    }
}

#define OTHER_LINES 4 /* the head, the notes, and the line of the cursor */

static void print_table(const struct top *top)
{
    const int has_room = 2LL * top->now.n + OTHER_LINES <= height();
    if (top->terminal)
        fputs("\033[H", stdout);
    if (top->now.n) {
        printf("%8s  %9s %9s %9s %5s %8s %5s %8s %-9s DATA SET", "PID", "RANK", "SAMPLES/S",
               "READ/S", "WAIT", "EPOCH", "CORES", "MEMORY", "LIMIT");
        end_line(top);
    } else {
        print_none(top);
    }
    for (uint32_t i = 0; i < top->now.n; i++) {
        print_row(top, &top->now.loaders[i]);
        if (has_room)
            print_times(top, &top->now.loaders[i]);
    }
    print_notes(top);
    if (top->terminal)
        fputs("\033[J", stdout);
    fflush(stdout);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Put the times of each stage: null for a stage without any. */
static void put_times(struct json_t *object, const struct seen *seen)
{
    struct stage_times stages[N_STAGES];
    stages_of(seen, stages);
    for (int i = 0; i < N_STAGES; i++) {
        const struct pstk_distribution *of = stages[i].times;
        if (of->n == 0) {
            json_put_null(object, stages[i].name);
            continue;
        }
        struct json_t *times = json_make_object();
        json_put_count(times, "n", of->n);
        json_put_count(times, "p50_ns", of->p50);
        json_put_count(times, "p95_ns", of->p95);
        json_put_count(times, "p99_ns", of->p99);
        json_put_count(times, "max_ns", of->max);
        json_put(object, stages[i].name, times);
    }
}

/* Put the values that only an answer has. */
static void put_answer(struct json_t *object, const struct seen *seen)
{
    const struct pstk_stats *stats = &seen->stats;
    struct json_t *fallbacks = json_make_array();
    for (const struct choice *fallback = names_fallback; fallback->name; fallback++)
        if (stats->fallbacks & fallback->value)
            json_append_text(fallbacks, fallback->name);
    json_put_count(object, "epoch", seen->status.epoch);
    json_put_count(object, "position", seen->status.position);
    json_put_real(object, "window_seconds", (double)seen->metrics.duration_ns / 1e9);
    json_put_real(object, "samples_per_second", per_second(seen, seen->metrics.n_samples));
    json_put_real(object, "batches_per_second", per_second(seen, seen->metrics.n_batches));
    json_put_real(object, "read_bytes_per_second", per_second(seen, seen->metrics.bytes_read));
    json_put_real(object, "waiting", waiting(seen));
    put_times(object, seen);
    json_put_count(object, "slots_ready_p50", seen->metrics.ready.p50);
    json_put_count(object, "n_slots",
                   stats->n_device_slots ? stats->n_device_slots : stats->n_slots);
    json_put_count(object, "n_threads", stats->n_threads);
    json_put_text(object, "bottleneck", option_choice_name(names_bottleneck, seen->bottleneck));
    if (seen->bottleneck == PSTK_BOTTLENECK_UNKNOWN)
        json_put_null(object, "bottleneck_since");
    else
        json_put_text(object, "bottleneck_since", seen->since_open ? "open" : "look");
    json_put_count(object, "n_samples", stats->n_samples);
    json_put_count(object, "n_batches", stats->n_batches);
    json_put_count(object, "n_replacements", stats->n_replacements);
    json_put_count(object, "bytes_read", stats->bytes_read);
    json_put(object, "fallbacks", fallbacks);
}

static struct json_t *loader_of(const struct seen *seen)
{
    const struct pstk_status *status = &seen->status;
    struct json_t *object = json_make_object();
    json_put_text(object, "state", state_name(seen));
    json_put_count(object, "pid", status->pid);
    json_put_text(object, "host", status->host);
    json_put_bool(object, "is_foreign", (int)status->is_foreign);
    json_put_real(object, "opened", (double)status->opened_ns / 1e9);
    json_put_count(object, "rank", status->rank);
    json_put_count(object, "world", status->world);
    json_put_text(object, "device", option_choice_name(names_device_kind, status->device));
    json_put_count(object, "device_index", (uint64_t)status->device_index);
    json_put_text(object, "data_set", status->path);
    json_put_count(object, "epoch_samples", status->n_samples);
    json_put_count(object, "rss_bytes", seen->rss);
    json_put_real(object, "cores", seen->cores >= 0 ? seen->cores : (double)NAN);
    if (status->state == PSTK_STATUS_ANSWERED)
        put_answer(object, seen);
    return object;
}

static void print_json(const struct top *top)
{
    struct json_t *object = json_make_object(), *loaders = json_make_array();
    for (uint32_t i = 0; i < top->now.n; i++)
        json_append(loaders, loader_of(&top->now.loaders[i]));
    json_put_text(object, "folder", top->folder);
    json_put(object, "loaders", loaders);
    json_print_line(object);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Sleep, unless a signal comes. */
static void pause_for(double seconds)
{
    const double end = unit_now() + seconds;
    double left;
    while (!interrupt_seen() && (left = end - unit_now()) > 0) {
        const double most = left < 0.1 ? left : 0.1; /* a signal just before the call is lost */
        const struct timespec time = {.tv_nsec = (long)(most * 1e9)};
        nanosleep(&time, NULL);
    }
}

/* Check twice, and then print and check again until a signal comes. Rates need two checks. */
static int watch(struct top *top)
{
    int status = look(top);
    if (status == 0 && top->now.n) {
        pause_for(FIRST_SECONDS < top->interval ? FIRST_SECONDS : top->interval);
        status = look(top);
    }
    while (status == 0 && !interrupt_seen()) {
        if (top->json)
            print_json(top);
        else
            print_table(top);
        if (top->once || ferror(stdout))
            return status;
        pause_for(top->interval);
        if (interrupt_seen())
            break;
        if (!top->terminal && !top->json)
            putchar('\n');
        status = look(top);
    }
    return status;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options = {.command = self, .argc = argc, .argv = argv};
    struct top top = {.interval = 2};
    const char *folder = NULL;
    int c;
    while ((c = options_next(&options)) > 0) {
        if (c == OPT_ONCE)
            top.once = 1;
        else if (c == OPT_JSON)
            top.json = 1;
        else if (c == OPT_FOLDER)
            folder = optarg;
        else if (option_real("--interval", optarg, 0.1, 86400, &top.interval) < 0)
            return STATUS_USAGE;
    }
    if (c < 0)
        return options.status;
    if (options_n_operands(&options) > 0)
        return message_usage("top takes no operands, and was given '%s'",
                             options_operand(&options, 0));
    if (folder) {
        struct stat at;
        if (strlen(folder) >= sizeof top.folder)
            return message_usage("--folder: the path is too long");
        strcpy(top.folder, folder);
        if (stat(folder, &at) != 0 || !S_ISDIR(at.st_mode))
            return message_usage("--folder: value is '%s'; must be a folder that exists", folder);
    } else if (!status_files_folder(top.folder)) {
        return message_usage("%s", top.folder);
    }
    top.is_own = folder == NULL;
    interrupt_install();
    const char *term = getenv("TERM");
    top.terminal = !top.once && !top.json && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
    if (top.terminal)
        fputs("\033[?1049h", stdout); /* the alternate screen, so that the old contents come back */
    const int status = watch(&top);
    if (top.terminal) {
        fputs("\033[?1049l", stdout);
        top.terminal = 0;
        print_table(&top);
    }
    free(top.now.loaders);
    free(top.before.loaders);
    return message_finish(status); /* Ctrl-C is the normal end */
}

const struct command command_top = {
    .name = "top",
    .summary = "watch the loaders of this machine",
    .operands = "",
    .text = "Print the loaders that run on this machine as this user, again every two seconds "
            "until Ctrl-C: samples and bytes a second and the part of its time that the training "
            "program waited for data, all of the last minute; the epoch, and how much of it is "
            "done; cores and memory that the process uses; the bottleneck since the update before, "
            "or, marked with +, since the loader was opened, if there were too few batches; and "
            "the data set. Where the screen has room, a second line has the times of the stages in "
            "the last minute: half of them and 95 % of them are at most so long. A read is one of "
            "the storage; decode is the work on a run of rows, finish the work on a whole batch, "
            "copy that to the device, and wait the program's for a batch.\n\nA loader of Python "
            "and `penstock bench` are found by themselves. A C program sets monitor_path to a file "
            "in the folder. A loader answers even while its program computes, and measures nothing "
            "while nobody asks. The file of a process that was killed is deleted.\n",
    .options = table,
    .examples = "penstock top\n"
                "penstock top --once\n"
                "penstock top --once --json | jq '.loaders[].samples_per_second'\n",
    .exit_status = "0, also after Ctrl-C; 2 wrong usage or folder",
    .run = run,
};
