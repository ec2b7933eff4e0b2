#include "faults.h"

#include "base/fd.h"
#include "ipc/channel.h"
#include "ipc/progress.h"
#include "notes.h"
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ANY 0u

enum action {
    ACT_SEGV,
    ACT_ABORT,
    ACT_KILL,
    ACT_STOP,
    ACT_SIGSYS,
    ACT_EXIT0,
    ACT_EXIT7,
    ACT_HANG,
    ACT_SPIN,
    ACT_FLOOD,
    ACT_GARBAGE,
    ACT_FAIL,
    ACT_CLOSE,
    ACT_CLOSE_HANG,
    ACT_HANG_UP,
    ACT_OOM_HOST,
    ACT_OOM_DEVICE,
    ACT_LOST,
    ACT_PAUSE,
    ACT_UNBLOCK,
    ACT_RING,
    ACT_DRAIN,
    ACT_UNLISTED,
    ACT_HOARD,
    ACT_HAND_OUT,
    ACT_TAMPER, /* from here on: one for each of BHI_TAMPERS */
    ACTIONS = ACT_TAMPER + BHI_TAMPER_COUNT,
};

static const char *const action_names[ACT_TAMPER] = {
    "segv",  "abort",   "kill", "stop",  "sigsys",     "exit0",   "exit7",    "hang",       "spin",
    "flood", "garbage", "fail", "close", "close_hang", "hang_up", "oom_host", "oom_device", "lost",
    "pause", "unblock", "ring", "drain", "unlisted",   "hoard",   "hand_out",
};
static const char *const tamper_names[] = {
#define TAMPER_NAME(NAME, text) text,
    BHI_TAMPERS(TAMPER_NAME)};

static const struct {
    const char *name;
    bool starts; /* each passage counts; otherwise only those from `ready` on */
} points[] = {
#define START(name) {#name, true},
#define RUN(name)   {#name, false},
#define CALL(name)  {"start_" #name, true}, {#name, true}, /* bhi_fault_call picks one */
#include "points.def"
};

struct rule {
    enum bhi_point point;
    unsigned worker;         /* ANY: each */
    unsigned nth;            /* ANY: each time */
    _Atomic unsigned passed; /* how often any thread of this worker has passed the point */
    enum action action;
};

static struct {
    struct rule rules[BHI_FAULT_RULES];
    size_t count;
    struct bhi_fault_plan *plan;   /* NULL: none */
    struct bhi_fault_notes *notes; /* NULL: the test has asked for none */
    struct bhi_tamper_target target;
} errors;

struct bhi_faults bhi_faults;

static bool parse_number(const char *text, unsigned *out) {
    if (strcmp(text, "*") == 0) {
        *out = ANY;
        return true;
    }
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *out = (unsigned)value;
    return *text != '\0' && *end == '\0' && value > 0 && value < BHI_SENTINEL_ORDINAL;
}

static bool parse_action(const char *text, enum action *out) {
    for (unsigned i = 0; i < ACTIONS; i++) {
        if (strcmp(text, i < ACT_TAMPER ? action_names[i] : tamper_names[i - ACT_TAMPER]) == 0) {
            *out = (enum action)i;
            return true;
        }
    }
    return false;
}

static bool parse_point(const char *text, enum bhi_point *out) {
    for (unsigned i = 0; i < BHI_POINTS; i++) {
        if (strcmp(text, points[i].name) == 0) {
            *out = (enum bhi_point)i;
            return true;
        }
    }
    return false;
}

static bool parse_worker(const char *text, unsigned *out) {
    if (strcmp(text, "sentinel") == 0) {
        *out = BHI_SENTINEL_ORDINAL;
        return true;
    }
    return parse_number(text, out);
}

/* Parses WORKER:POINT:NTH=ACTION. A ? before it means that the test does not require the fault. */
static bool parse_rule(char *text, struct rule *rule) {
    char *state = NULL;
    const char *worker = strtok_r(text + (text[0] == '?'), ":", &state);
    const char *point = strtok_r(NULL, ":", &state);
    const char *nth = strtok_r(NULL, "=", &state);
    const char *action = strtok_r(NULL, "", &state);
    return worker && point && nth && action && parse_point(point, &rule->point) &&
           parse_worker(worker, &rule->worker) && parse_number(nth, &rule->nth) &&
           parse_action(action, &rule->action);
}

static void *map_file(const char *path, size_t bytes) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        abort(); /* a test must not pass if its fault is missing */
    }
    close(fd);
    return map;
}

void bhi_faults_init(void) {
    const char *list = getenv("BULKHEAD_TEST_FAULTS");
    char *copy = !list ? NULL : strdup(list);
    char *state = NULL;
    const char *notes = !list ? NULL : strstr(list, "notes=");
    if (notes) { /* the notes come last in the list */
        errors.notes = map_file(notes + 6, sizeof *errors.notes);
    }
    for (char *item = !copy ? NULL : strtok_r(copy, ",", &state); item;
         item = strtok_r(NULL, ",", &state)) {
        if (strncmp(item, "plan=", 5) == 0) {
            errors.plan = map_file(item + 5, sizeof *errors.plan);
            continue;
        }
        if (strncmp(item, "notes=", 6) == 0) {
            continue;
        }
        char named[sizeof errors.notes->refused];
        snprintf(named, sizeof named, "%s", item);
        /* A typo in a test must fail the test. */
        if (errors.count == BHI_FAULT_RULES || !parse_rule(item, &errors.rules[errors.count])) {
            if (errors.notes) {
                memcpy(errors.notes->refused, named, sizeof named);
            }
            abort();
        }
        errors.count++;
    }
    free(copy);
}

bool bhi_faults_named(enum bhi_point point) {
    bool named = false;
    for (size_t i = 0; i < errors.count; i++) {
        named |= errors.rules[i].point == point;
    }
    return named;
}

static void flood(void) {
    struct bhi_message message = {.type = BHI_MSG_LOG};
    message.log.level = 2;
    snprintf(message.log.text, sizeof message.log.text, "flood\nof lines");
    for (;;) {
        (void)bhi_channel_send(bhi_faults.channel, &message);
    }
}

void bhi_fault_hang(void) {
    for (;;) {
        nanosleep(&(const struct timespec){.tv_sec = 1}, NULL);
    }
}

static void garbage(void) {
    uint64_t state = 0x9e3779b97f4a7c15u;
    uint64_t *words = (uint64_t *)(void *)bhi_faults.progress->header;
    for (size_t i = 0; i < bhi_faults.progress->bytes / sizeof *words; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((volatile uint64_t *)words)[i] = state;
    }
    /* The garbage stays there for every reader. */
    bhi_progress_wake(bhi_faults.progress);
    bhi_fault_hang();
}

/* Closes its sockets, its doorbell, and everything else that it has open. */
static void close_all(void) {
    for (int fd = 3; fd < 256; fd++) {
        close(fd);
    }
}

/* Clears O_NONBLOCK on what it shares with the supervisor, so that the supervisor's own reads and
 * writes there would block. */
static void unblock(void) {
    int off = 0;
    if (ioctl(BHI_DOORBELL_DESCRIPTOR, FIONBIO, &off) != 0 ||
        ioctl(BHI_FDPASS_DESCRIPTOR, FIONBIO, &off) != 0) {
        abort();
    }
}

/* Never returns. |drains|: takes each ring back, so that the supervisor finds the doorbell empty
 * although epoll has reported it. */
static void ring(bool drains) {
    uint64_t count = 1;
    for (;;) {
        ssize_t done = write(BHI_DOORBELL_DESCRIPTOR, &count, sizeof count);
        if (drains) {
            done = read(BHI_DOORBELL_DESCRIPTOR, &count, sizeof count);
            count = 1;
        }
        (void)done;
    }
}

/* Takes memory that RLIMIT_DATA does not count: it is written and then made read-only. Aborts when
 * memory is refused; exits at 2 GiB. */
static void hoard(void) {
    enum { STEP = 16 << 20, STEPS = 128 };
    for (int i = 0; i < STEPS; i++) {
        void *at = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED || mprotect(at, STEP, PROT_READ) != 0) {
            abort();
        }
    }
    _exit(7);
}

/* Sends copies of all that it has open through its side channel, in one packet. */
static void hand_out(void) {
    enum { MOST = 128 };
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(MOST * sizeof(int))];
    } control = {.bytes = {0}};
    int fds[MOST];
    size_t count = 0;
    for (int fd = 0; fd < MOST; fd++) {
        if (fd != BHI_FDPASS_DESCRIPTOR && fcntl(fd, F_GETFL) >= 0) {
            fds[count++] = fd;
        }
    }
    struct iovec iov = {.iov_base = control.bytes, .iov_len = 1};
    const struct msghdr message = {.msg_iov = &iov,
                                   .msg_iovlen = 1,
                                   .msg_control = control.bytes,
                                   .msg_controllen = CMSG_SPACE(count * sizeof *fds)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof *fds);
    memcpy(CMSG_DATA(header), fds, count * sizeof *fds);
    if (sendmsg(BHI_FDPASS_DESCRIPTOR, &message, MSG_NOSIGNAL) < 0) {
        abort();
    }
}

/* The crash must be a plain one, without a sanitizer's report. */
__attribute__((no_sanitize("address", "undefined"))) static void act(enum action action) {
    char *none[] = {NULL};
    struct rlimit limit;
    volatile int *volatile nowhere = NULL; /* volatile, so that the compiler cannot see the NULL */
    switch (action) {
    case ACT_HOARD:
        hoard();
        break;
    case ACT_HAND_OUT:
        hand_out();
        break;
    case ACT_SEGV:
        *nowhere = 0;
        break;
    case ACT_ABORT:
        abort();
    case ACT_KILL:
        syscall(SYS_kill, getpid(), SIGKILL);
        break;
    case ACT_STOP:
        syscall(SYS_kill, getpid(), SIGSTOP);
        break;
    case ACT_SIGSYS:
        execve("/", none, none);
        break;
    case ACT_EXIT0:
        _exit(0);
    case ACT_EXIT7:
        _exit(7);
    case ACT_HANG:
        bhi_fault_hang();
    case ACT_SPIN:
        for (volatile int forever = 1; forever;) {
        }
        break;
    case ACT_FLOOD:
        if (bhi_faults.channel) {
            flood();
        }
        break;
    case ACT_GARBAGE:
        garbage();
        break;
    case ACT_CLOSE:
        close_all();
        break;
    case ACT_CLOSE_HANG: /* closes everything, and then never ends */
        close_all();
        bhi_fault_hang();
    case ACT_PAUSE:
        nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
        break;
    case ACT_UNLISTED: /* as a driver would that makes a new call */
        syscall(SYS_ioctl, BHI_FDPASS_DESCRIPTOR, 0x8910 /* SIOCGIFNAME */, -1L);
        break;
    case ACT_HANG_UP:
        close(BHI_FDPASS_DESCRIPTOR);
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
            close((int)limit.rlim_cur - 1); /* a GPU's worker has a second copy of it here */
        }
        break;
    case ACT_UNBLOCK:
        unblock();
        break;
    case ACT_RING:
        ring(false);
        break;
    case ACT_DRAIN:
        ring(true);
        break;
    case ACT_FAIL:
    case ACT_OOM_HOST:
    case ACT_OOM_DEVICE:
    case ACT_LOST:
        break;
    default:
        if (errors.target.pointer) {
            bhi_tamper((enum bhi_tamper)(action - ACT_TAMPER), &errors.target);
        }
        break;
    }
}

static bool is_fault(enum action action) {
    return action == ACT_FAIL || action == ACT_OOM_HOST || action == ACT_OOM_DEVICE ||
           action == ACT_LOST;
}

/* Returns the action that the plan has for this passage of |point|, or ACTIONS for none. */
static enum action planned(enum bhi_point point) {
    struct bhi_fault_plan *plan = errors.plan;
    enum action action;
    if (!plan || bhi_faults.tracer || atomic_load(&plan->armed) == 0 ||
        strcmp(plan->point, points[point].name) != 0 ||
        atomic_fetch_add(&plan->passed, 1) + 1 != plan->nth ||
        atomic_exchange(&plan->fired, 1) != 0) {
        return ACTIONS;
    }
    if (!parse_action(plan->what, &action)) {
        abort();
    }
    atomic_store(&plan->pid, (int32_t)syscall(SYS_getpid));
    return action;
}

/* Returns the failure that is due here, or ACTIONS for none. Other actions happen inside. */
static enum action pass(enum bhi_point point) {
    enum action fails = planned(point);
    if (fails != ACTIONS && !is_fault(fails)) {
        act(fails);
        fails = ACTIONS;
    }
    for (size_t i = 0; i < errors.count; i++) {
        struct rule *rule = &errors.rules[i];
        if ((rule->worker != ANY && rule->worker != bhi_faults.worker) || rule->point != point) {
            continue;
        }
        const unsigned passed = atomic_fetch_add(&rule->passed, 1) + 1;
        if (rule->nth != ANY && rule->nth != passed) {
            continue;
        }
        if (errors.notes) {
            atomic_fetch_add(&errors.notes->fired[i], 1);
        }
        if (is_fault(rule->action)) {
            fails = rule->action;
        } else {
            act(rule->action);
        }
    }
    return fails;
}

bool bhi_fault_point(enum bhi_point point) {
    bhi_faults.running |= point == BHI_AT_ready;
    return (points[point].starts || bhi_faults.running) && pass(point) != ACTIONS;
}

void bhi_fault_tamper(enum bhi_point point, int fd, void *pointer, size_t bytes) {
    errors.target = (struct bhi_tamper_target){fd, pointer, bytes};
    (void)bhi_fault_point(point);
    errors.target = (struct bhi_tamper_target){.fd = -1};
}

bool bhi_fault_call(enum bhi_point starting, enum bhi_point running) {
    const bool fails =
        bhi_faults.worker != 0 && pass(bhi_faults.running ? running : starting) != ACTIONS;
    if (fails) {
        errno = ENOMEM;
    }
    return fails;
}

int bhi_fault_vulkan(enum bhi_point starting, enum bhi_point running) {
    if (bhi_faults.worker == 0) {
        return 0;
    }
    switch (pass(bhi_faults.running ? running : starting)) {
    case ACT_OOM_HOST:
    case ACT_FAIL:
        return -1; /* VK_ERROR_OUT_OF_HOST_MEMORY */
    case ACT_OOM_DEVICE:
        return -2; /* VK_ERROR_OUT_OF_DEVICE_MEMORY */
    case ACT_LOST:
        return -4; /* VK_ERROR_DEVICE_LOST */
    default:
        return 0;
    }
}
