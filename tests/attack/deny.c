/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deny: runs a command whose system calls are refused, as a container's seccomp profile refuses
 * them.
 *
 *   deny CALL=ERROR[@N] ... -- COMMAND [ARGUMENT ...]
 *
 * CALL is a name of the table below; ERROR is EPERM, EACCES, ...; with @N the first N calls of the
 * process, its threads included, are let through. open_direct is an openat with O_DIRECT,
 * set_direct a fcntl of F_SETFL with it. Without
 * @N the command replaces this program; with it this program decides each call, and ends as the
 * command does. Needs no privilege.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_RULES 16
#define MAX_EMITTED 7      /* instructions of one rule */
#define STATUS_REFUSED 125 /* this program failed, not the command */

#define LOAD(member)                                                                               \
    ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member)))
#define JUMP(test, value, when_true, when_false)                                                   \
    ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_##test | BPF_K, value, when_true, when_false))

static const struct name {
    const char *text;
    int value;
} calls[] =
    {
        {"io_uring_setup", SYS_io_uring_setup},
        {"io_uring_enter", SYS_io_uring_enter},
        {"io_uring_register", SYS_io_uring_register},
        {"openat", SYS_openat},
        {"open_direct", SYS_openat},
        {"set_direct", SYS_fcntl},
        {"read", SYS_read},
        {"pread", SYS_pread64},
        {"mmap", SYS_mmap},
        {"linkat", SYS_linkat},
        {"fsync", SYS_fsync},
        {"flock", SYS_flock},
        {"mlock", SYS_mlock},
        {"mbind", SYS_mbind},
        {"set_mempolicy", SYS_set_mempolicy},
        {"get_mempolicy", SYS_get_mempolicy},
        {"sched_setaffinity", SYS_sched_setaffinity},
},
  errors[] = {
      {"EPERM", EPERM},   {"ENOSYS", ENOSYS}, {"EACCES", EACCES}, {"EINVAL", EINVAL},
      {"EIO", EIO},       {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}, {"ENFILE", ENFILE},
      {"ESTALE", ESTALE}, {"EXDEV", EXDEV},   {"ENOSPC", ENOSPC}, {"EOPNOTSUPP", EOPNOTSUPP},
};

struct rule {
    int call;      /* number of the system call */
    int is_direct; /* 1: only an openat, or a fcntl of F_SETFL, with O_DIRECT */
    int error;
    int is_late;         /* 1: n_let of them are let through */
    unsigned long n_let; /* with is_late; counted down */
};

struct rules {
    struct rule list[MAX_RULES];
    unsigned n;
    int is_late; /* 1: one of them is */
};

static void end(const char *what)
{
    fprintf(stderr, "deny: %s: %s\n", what, strerror(errno));
    _exit(STATUS_REFUSED);
}

static int find(const struct name *names, size_t n, const char *text, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i].text) == length && memcmp(names[i].text, text, length) == 0)
            return names[i].value;
    fprintf(stderr, "deny: '%.*s' is not known\n", (int)length, text);
    exit(2);
}

static struct rule parse(const char *text)
{
    const char *equal = strchr(text, '='), *at = strchr(text, '@');
    if (!equal || (at && at < equal)) {
        fprintf(stderr, "deny: '%s' is not CALL=ERROR or CALL=ERROR@N\n", text);
        exit(2);
    }
    const char *stop = at ? at : text + strlen(text);
    struct rule r = {
        .call = find(calls, sizeof calls / sizeof *calls, text, (size_t)(equal - text)),
        .is_direct = strstr(text, "_direct=") != NULL,
        .error =
            find(errors, sizeof errors / sizeof *errors, equal + 1, (size_t)(stop - equal) - 1),
        .is_late = at != NULL,
        .n_let = at ? strtoul(at + 1, NULL, 10) : 0};
    return r;
}

/* Append what is to be done with one rule's call; the number of the call is in the accumulator,
 * before and after. */
static size_t emit(struct sock_filter *f, const struct rule *r)
{
    const uint32_t action =
        r->is_late ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | (uint32_t)r->error;
    const uint8_t n_left = !r->is_direct ? 1 : r->call == SYS_fcntl ? 6 : 4; /* after the first */
    size_t n = 0;
    f[n++] = JUMP(JEQ, (uint32_t)r->call, 0, n_left);
    if (r->call == SYS_fcntl) {
        f[n++] = LOAD(args[1]);
        f[n++] = JUMP(JEQ, F_SETFL, 0, 3);
    }
    if (r->is_direct) {
        f[n++] = LOAD(args[2]);
        f[n++] = JUMP(JSET, O_DIRECT, 0, 1);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    if (r->is_direct)
        f[n++] = LOAD(nr);
    return n;
}

/* Refuse the calls from here on. Returns the descriptor that late rules are decided by, or -1. */
static int install(const struct rules *rules)
{
    struct sock_filter code[2 + MAX_RULES * MAX_EMITTED];
    struct sock_fprog program = {.filter = code};
    size_t n = 0;
    code[n++] = LOAD(nr);
    for (unsigned i = 0; i < rules->n; i++)
        n += emit(code + n, &rules->list[i]);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = (unsigned short)n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        end("PR_SET_NO_NEW_PRIVS");
    unsigned flags = rules->is_late ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (fd < 0)
        end("seccomp");
    return rules->is_late ? (int)fd : -1;
}

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

static void send_descriptor(int to, int fd)
{
    union control control;
    char byte = 0;
    struct iovec io = {.iov_base = &byte, .iov_len = 1};
    struct msghdr m = {.msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    memset(&control, 0, sizeof control);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (sendmsg(to, &m, 0) != 1)
        end("sendmsg");
}

static int receive_descriptor(int from)
{
    union control control;
    char byte;
    int fd = -1;
    struct iovec io = {.iov_base = &byte, .iov_len = 1};
    struct msghdr m = {.msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
        end("recvmsg");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static int is_of(const struct rule *r, const struct seccomp_data *data)
{
    if (!r->is_late || data->nr != r->call || (r->call == SYS_fcntl && data->args[1] != F_SETFL))
        return 0;
    return !r->is_direct || (data->args[2] & O_DIRECT) != 0;
}

/* Decide the calls that late rules catch, until no process is left that makes any. */
static void decide(int listener, struct rules *rules)
{
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    while (poll(&wait, 1, -1) >= 0 || errno == EINTR) {
        struct seccomp_notif call;
        struct seccomp_notif_resp answer;
        if (wait.revents & POLLHUP)
            return;
        memset(&call, 0, sizeof call);
        memset(&answer, 0, sizeof answer);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
            continue; /* the caller was killed meanwhile */
        answer.id = call.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        for (unsigned i = 0; i < rules->n; i++) {
            struct rule *r = &rules->list[i];
            if (!is_of(r, &call.data) || (r->n_let > 0 && r->n_let--))
                continue;
            answer.flags = 0;
            answer.error = -r->error;
            break;
        }
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* fails where the caller was killed */
    }
}

static int run_late(struct rules *rules, char **command)
{
    int pair[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        end("socketpair");
    pid_t child = fork();
    if (child < 0)
        end("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        send_descriptor(pair[1], install(rules));
        execvp(command[0], command);
        end(command[0]);
    }
    close(pair[1]);
    int listener = receive_descriptor(pair[0]);
    decide(listener, rules);
    if (waitpid(child, &status, 0) < 0)
        end("waitpid");
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    struct rules rules = {.n = 0};
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (rules.n == MAX_RULES)
            return fprintf(stderr, "deny: at most %d rules\n", MAX_RULES), 2;
        rules.list[rules.n] = parse(argv[i]);
        rules.is_late |= rules.list[rules.n++].is_late;
    }
    if (i + 1 >= argc)
        return fprintf(stderr, "usage: deny CALL=ERROR[@N] ... -- COMMAND [ARGUMENT ...]\n"), 2;
    if (rules.is_late)
        return run_late(&rules, argv + i + 1);
    install(&rules);
    execvp(argv[i + 1], argv + i + 1);
    end(argv[i + 1]);
}
