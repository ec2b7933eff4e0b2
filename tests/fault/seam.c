#include "seam.h"
#include "base/step_point.h"
#include "harness.h"
#include "redirect.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct bht_fault fault;
    bool armed, fired;
    pthread_t thread;
    unsigned passed;
    char where[160];
} seam;

static struct {
    char name[32];
    unsigned nth, passed;
    bht_hook *hook;
} step;

static _Atomic size_t colliding;

void bht_collide(size_t bytes) {
    colliding = bytes;
}

void bht_collided(unsigned char *hash, size_t size) {
    memset(hash, 0x5a, colliding < size ? colliding : size);
}

void bht_arm(struct bht_fault fault) {
    pthread_mutex_lock(&lock);
    seam.fault = fault;
    seam.armed = true;
    seam.fired = false;
    seam.thread = pthread_self();
    seam.passed = 0;
    seam.where[0] = '\0';
    pthread_mutex_unlock(&lock);
}

bool bht_disarm(void) {
    pthread_mutex_lock(&lock);
    seam.armed = false;
    bool fired = seam.fired;
    pthread_mutex_unlock(&lock);
    return fired;
}

bool bht_fired(void) {
    pthread_mutex_lock(&lock);
    bool fired = seam.fired;
    pthread_mutex_unlock(&lock);
    return fired;
}

const char *bht_where(void) {
    static _Thread_local char where[sizeof seam.where];
    pthread_mutex_lock(&lock);
    snprintf(where, sizeof where, "%s", seam.where[0] ? seam.where : "nowhere");
    pthread_mutex_unlock(&lock);
    return where;
}

unsigned bht_passed(void) {
    pthread_mutex_lock(&lock);
    unsigned passed = seam.passed;
    pthread_mutex_unlock(&lock);
    return passed;
}

const char *bht_kind_name(int kind) {
    static const char *const names[BHT_KINDS] = {
        [BHT_ALLOCATION] = "allocation", [BHT_MAPPING] = "mapping", [BHT_DESCRIPTOR] = "descriptor",
        [BHT_PROCESS] = "process",       [BHT_SEND] = "send",
    };
    return names[kind];
}

bool bht_seam_fails(enum bht_kind kind, int error, const char *call, const char *file, int line) {
    pthread_mutex_lock(&lock);
    const struct bht_fault *fault = &seam.fault;
    bool ours =
        (pthread_equal(pthread_self(), seam.thread) != 0) == (fault->side == BHT_THIS_THREAD);
    bool fails = false;
    if (seam.armed && ours && fault->kind == (int)kind) {
        seam.passed++;
        fails = seam.passed == fault->nth || (fault->lasting && seam.passed > fault->nth);
        error = fault->error ? fault->error : error;
    }
    if (fails && !seam.fired) {
        seam.fired = true;
        const char *name = strstr(file, "/supervisor/");
        name = name ? name : strstr(file, "/ipc/");
        snprintf(seam.where, sizeof seam.where, "%s at %s:%d", call, name ? name + 1 : file, line);
    }
    pthread_mutex_unlock(&lock);
    if (fails) {
        errno = error;
    }
    return fails;
}

#undef pidfd_open
int bht_pidfd_open(pid_t pid, unsigned flags) {
    return BHT_SEAM(BHT_DESCRIPTOR, EMFILE, -1, pidfd_open, pid, flags);
}

void bht_at_step(const char *name, unsigned nth, bht_hook *hook) {
    pthread_mutex_lock(&lock);
    snprintf(step.name, sizeof step.name, "%s", name ? name : "");
    step.nth = nth;
    step.passed = 0;
    step.hook = hook;
    pthread_mutex_unlock(&lock);
}

unsigned bht_steps_passed(void) {
    pthread_mutex_lock(&lock);
    unsigned passed = step.passed;
    pthread_mutex_unlock(&lock);
    return passed;
}

void bhi_step_point(const char *name, void *object) {
    pthread_mutex_lock(&lock);
    bht_hook *hook = NULL;
    if (step.hook && strcmp(step.name, name) == 0 && ++step.passed == step.nth) {
        hook = step.hook;
    }
    pthread_mutex_unlock(&lock);
    if (hook) {
        hook(object);
    }
}
