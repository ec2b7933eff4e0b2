#include "supervisor/reactor/sentinel.h"
#include "base/exiting.h"
#include "base/fd.h"
#include "base/futex.h"
#include "ipc/fdpass.h"
#include "supervisor/reactor/spawn.h"
#include "supervisor/reactor/watch.h"
#include "supervisor/worker/exported.h"
#include "supervisor/worker/outbox.h"
#include "supervisor/worker/proc_status.h"
#include "supervisor/worker/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUDGET    5u /* sentinels lost within WINDOW_NS; then the device gets none any more */
#define WINDOW_NS (60ull * 1000000000)
#define RETRY_NS  (100ull * 1000000) /* pause after memory or descriptors were short */

/* -- what workers hand out ----------------------------------------------------------------------
 */

/* Takes the one descriptor that is in the side channel. Returns false if the worker broke the
 * protocol (*out_what) or if the host has no descriptor (NULL). */
static bool receive(struct bhi_worker *worker, uint64_t bytes, int *out_fd, const char **out_what) {
    struct bhi_fd_tag tag;
    int fds[BHI_FDPASS_MAX];
    size_t count = BHI_FDPASS_MAX;
    *out_what = NULL;
    const int length = bhi_fdpass_recv(worker->fdpass, &tag, sizeof tag, fds, &count, MSG_DONTWAIT);
    if (length == -EMFILE || length == -EMSGSIZE) {
        *out_what =
            length == -EMSGSIZE ? "it sent more than one descriptor with its abort words" : NULL;
        return false;
    }
    const bool good = length == (int)sizeof tag && count == 1 && tag.magic == BHI_WIRE_MAGIC &&
                      tag.type == BHI_MSG_WORDS && bhi_exported_is_memory(fds[0], bytes);
    for (size_t i = good ? 1 : 0; length >= 0 && i < count; i++) {
        close(fds[i]);
    }
    *out_fd = good ? fds[0] : -1;
    *out_what = good ? NULL : "it announced abort words, but sent no descriptor of such memory";
    return good;
}

const char *bhi_sentinel_take_words(struct bhi_worker *worker, const struct bhi_msg_words *words) {
    bh_context *context = worker->context;
    const char *what;
    int fd = -1;
    if (worker->kind != BHI_WORKER_DEVICE || worker->words.state != BHI_WORDS_NONE) {
        return "it announced abort words twice";
    }
    if (!receive(worker, words->bytes, &fd, &what)) {
        return what;
    }
    bhi_context_lock(context);
    worker->words = (struct bhi_words){.state = BHI_WORDS_KEPT, .fd = fd, .bytes = words->bytes};
    context->wake_reactor = true;
    bhi_context_settle_unlock(context);
    bhi_watch_side_channel(worker);
    return NULL;
}

void bhi_sentinel_hung_up(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    bhi_poller_unwatch(&context->poller, worker->fdpass);
    const bool exiting = bhi_is_exiting(&worker->place);
    bhi_context_lock(context);
    (void)bhi_life_step(&worker->core.life, BHI_LIFE_HANG_UP, bhi_now_ns());
    /* The words of a worker that lives on are not set: it could report as complete what they
     * stop. */
    if (exiting) {
        (void)bhi_life_step(&worker->core.life, BHI_LIFE_SEEN, bhi_now_ns());
        bhi_worker_end_words(worker);
    }
    bhi_context_say(context, BH_LOG_DEBUG, "worker %d has hung up%s", worker->core.pid,
                    exiting ? ": it is dying" : "");
    bhi_context_settle_unlock(context);
}

/* -- sentinels --------------------------------------------------------------------------------- */

/* Lock held. Returns NULL if there is none yet. */
static struct bhi_sentinel *find(const struct bhi_worker *worker) {
    BHI_LIST_FOR(struct bhi_sentinel, sentinel, &worker->zygote->sentinels, link) {
        if (sentinel->device_index == worker->device_index) {
            return sentinel;
        }
    }
    return NULL;
}

/* Lock held. Returns NULL if out of memory. */
static struct bhi_sentinel *find_or_make(const struct bhi_worker *worker) {
    struct bhi_sentinel *sentinel = find(worker);
    if (!sentinel && (sentinel = calloc(1, sizeof *sentinel))) {
        sentinel->device_index = worker->device_index;
        bhi_restart_init(&sentinel->restart, BUDGET, WINDOW_NS, bhi_now_ns());
        bhi_list_append(&worker->zygote->sentinels, &sentinel->link);
    }
    return sentinel;
}

/* Lock held. Returns the sentinel that serves |worker| and reads messages, or NULL. */
static struct bhi_worker *process_of(const struct bhi_worker *worker) {
    const struct bhi_sentinel *sentinel = find(worker);
    struct bhi_worker *process = sentinel ? sentinel->process : NULL;
    return process && bhi_worker_served(process) && bhi_life_is_alive(&process->core.life) ? process
                                                                                           : NULL;
}

static bool has_words(const struct bhi_worker *worker) {
    return worker->words.state != BHI_WORDS_NONE && worker->words.state != BHI_WORDS_REFUSED;
}

/* -- requests -----------------------------------------------------------------------------------
 */

static bool send_import(struct bhi_sentinel *sentinel, struct bhi_worker *worker) {
    struct bhi_outgoing *outgoing = bhi_outgoing_new(BHI_MSG_IMPORT);
    if (!outgoing) {
        return false;
    }
    outgoing->fd = fcntl(worker->words.fd, F_DUPFD_CLOEXEC, 0);
    if (outgoing->fd < 0) {
        (void)bhi_outgoing_drop(outgoing);
        return false;
    }
    outgoing->message.import.worker = worker->id;
    outgoing->message.import.bytes = worker->words.bytes;
    bhi_outbox_add(sentinel->process, outgoing);
    worker->words.state = BHI_WORDS_ASKED;
    worker->words.import_seq = ++sentinel->requests;
    return true;
}

static bool send_set(struct bhi_sentinel *sentinel, struct bhi_worker *worker) {
    struct bhi_outgoing *outgoing = bhi_outgoing_new(BHI_MSG_SET);
    if (!outgoing) {
        return false;
    }
    outgoing->message.set.worker = worker->id;
    bhi_outbox_add(sentinel->process, outgoing);
    worker->words.set_seq = ++sentinel->requests;
    return true;
}

/* Lock held. Queues the requests about |worker| that its sentinel must get. Returns false if there
 * was no memory or descriptor. */
static bool ask(struct bhi_sentinel *sentinel, struct bhi_worker *worker) {
    if (worker->words.state == BHI_WORDS_KEPT && !send_import(sentinel, worker)) {
        return false;
    }
    return !worker->words.set_requested || worker->words.set_seq || send_set(sentinel, worker);
}

/* Lock held. */
static struct bhi_worker *find_worker(const struct bhi_worker *sentinel, uint64_t id) {
    BHI_LIST_FOR(struct bhi_worker, worker, &sentinel->context->workers, link) {
        if (worker->id == id && worker->zygote == sentinel->zygote &&
            worker->device_index == sentinel->device_index && worker->kind == BHI_WORKER_DEVICE) {
            return worker;
        }
    }
    return NULL;
}

const char *bhi_sentinel_imported(struct bhi_worker *sentinel,
                                  const struct bhi_msg_imported *answer) {
    bh_context *context = sentinel->context;
    if (sentinel->kind != BHI_WORKER_SENTINEL) {
        return "it sent a message that only a sentinel may send";
    }
    bhi_context_lock(context);
    struct bhi_worker *worker =
        find_worker(sentinel, answer->worker); /* NULL: the worker has died since */
    const bool asked = !worker || worker->words.state == BHI_WORDS_ASKED;
    if (worker && asked) {
        worker->words.state = answer->vk_result == 0 ? BHI_WORDS_HELD : BHI_WORDS_REFUSED;
    }
    if (worker && asked && answer->vk_result != 0) {
        bhi_context_say(
            context, BH_LOG_WARNING,
            "the sentinel of %s:%u cannot import the abort words of worker %d (VkResult %d): if "
            "that worker dies in a kernel, the device may stall for seconds",
            sentinel->zygote->driver, sentinel->device_index, worker->core.pid, answer->vk_result);
    } else if (worker && asked) {
        bhi_context_say(context, BH_LOG_DEBUG,
                        "the sentinel of %s:%u has imported the abort words of worker %d",
                        sentinel->zygote->driver, sentinel->device_index, worker->core.pid);
    }
    bhi_context_settle_unlock(context);
    return asked ? NULL : "it answered an import that nobody had requested";
}

const char *bhi_sentinel_words_set(struct bhi_worker *sentinel,
                                   const struct bhi_msg_words_set *answer) {
    bh_context *context = sentinel->context;
    if (sentinel->kind != BHI_WORKER_SENTINEL) {
        return "it sent a message that only a sentinel may send";
    }
    bhi_context_lock(context);
    struct bhi_worker *worker = find_worker(sentinel, answer->worker);
    const bool asked = !worker || (worker->words.set_seq && !worker->words.set_ns);
    if (worker && asked && answer->vk_result == 0) {
        worker->words.set_ns = bhi_now_ns();
        bhi_context_say(context, BH_LOG_DEBUG,
                        "the abort words of worker %d were set after %.1f ms", worker->core.pid,
                        (double)(worker->words.set_ns - worker->words.wanted_ns) / 1e6);
    }
    bhi_context_settle_unlock(context);
    return asked ? NULL : "it set abort words that it was not asked to set";
}

/* -- deaths -------------------------------------------------------------------------------------
 */

/* Lock held. The sentinel answers in order, so it died of the oldest request without an answer. */
static struct bhi_worker *culprit_of(const struct bhi_worker *process) {
    struct bhi_worker *culprit = NULL;
    uint64_t oldest = UINT64_MAX;
    BHI_LIST_FOR(struct bhi_worker, worker, &process->context->workers, link) {
        const struct bhi_words *words = &worker->words;
        const uint64_t import = words->state == BHI_WORDS_ASKED ? words->import_seq : UINT64_MAX;
        const uint64_t set = words->set_seq && !words->set_ns ? words->set_seq : UINT64_MAX;
        if (worker->zygote == process->zygote && worker->device_index == process->device_index &&
            bhi_earlier_ns(import, set) < oldest) {
            oldest = bhi_earlier_ns(import, set);
            culprit = worker;
        }
    }
    return culprit;
}

/* Lock held. The next sentinel has to import all memory again, except the memory of which this one
 * died. */
static void process_gone(struct bhi_worker *process) {
    bh_context *context = process->context;
    struct bhi_sentinel *sentinel = find(process);
    if (!sentinel || sentinel->process != process) {
        return;
    }
    sentinel->process = NULL;
    const bool killed = process->core.life.kill != BHI_KILL_NONE ||
                        process->zygote->state == BHI_ZYGOTE_LOST || context->closed;
    struct bhi_worker *culprit =
        killed && process->core.life.kill != BHI_KILL_PROTOCOL ? NULL : culprit_of(process);
    if (culprit) {
        culprit->words.state = BHI_WORDS_REFUSED;
        bhi_context_say(context, BH_LOG_WARNING,
                        "the sentinel of %s:%u died of the abort words of worker %d: they are not "
                        "imported again",
                        process->zygote->driver, process->device_index, culprit->core.pid);
    }
    BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
        if (worker->zygote == process->zygote && worker->device_index == process->device_index &&
            has_words(worker)) {
            worker->words.state = BHI_WORDS_KEPT;
            worker->words.set_seq = worker->words.set_ns ? worker->words.set_seq : 0;
        }
    }
    if (!context->closed && process->zygote->state != BHI_ZYGOTE_LOST) {
        sentinel->budget_spent = bhi_restart_lost(&sentinel->restart, false, bhi_now_ns());
        if (sentinel->budget_spent) {
            bhi_context_say(context, BH_LOG_ERROR,
                            "the sentinels of %s:%u die too often: no more are started",
                            process->zygote->driver, process->device_index);
        }
    }
    sentinel->was_ready = false;
    context->wake_reactor = true;
}

void bhi_sentinel_worker_gone(struct bhi_worker *worker) {
    if (worker->kind == BHI_WORKER_SENTINEL) {
        process_gone(worker);
        return;
    }
    /* The supervisor may not have noticed the worker's end before. */
    bhi_worker_end_words(worker);
    const bool known = worker->words.state != BHI_WORDS_KEPT || worker->words.set_requested;
    struct bhi_worker *process = has_words(worker) && known ? process_of(worker) : NULL;
    if (!process) {
        return;
    }
    struct bhi_outgoing *outgoing = bhi_outgoing_new(BHI_MSG_FORGET);
    if (!ask(find(worker), worker) || !outgoing) {
        /* The sentinel would keep the memory for ever. Its successor does not import it. */
        bhi_core_worker_kill(&process->core, BHI_KILL_RETIRED, 0,
                             "out of memory to send it a death");
    }
    if (outgoing) {
        outgoing->message.forget.worker = worker->id;
        bhi_outbox_add(process, outgoing);
    }
}

/* -- a turn -------------------------------------------------------------------------------------
 */

/* Lock held. Returns true if |worker|'s device needs a sentinel to be started. */
static bool wants_process(struct bhi_worker *worker, uint64_t now_ns, uint64_t *look_again) {
    if (worker->context->closed || worker->zygote->state != BHI_ZYGOTE_READY) {
        return false;
    }
    const struct bhi_sentinel *sentinel = find_or_make(worker);
    if (!sentinel) {
        *look_again = bhi_earlier_ns(*look_again, now_ns + RETRY_NS);
        return false;
    }
    if (sentinel->process || sentinel->budget_spent) {
        return false;
    }
    if (sentinel->restart.not_before_ns > now_ns) {
        *look_again = bhi_earlier_ns(*look_again, sentinel->restart.not_before_ns);
        return false;
    }
    return true;
}

/* Lock not held. |worker| is referenced. */
static void start(struct bhi_worker *worker) {
    bh_context *context = worker->context;
    bh_detail detail = {0};
    struct bhi_worker *process =
        bhi_worker_spawn(context, worker->zygote, worker->device, worker->device_index,
                         worker->memory_limit, 0, 0, BHI_WORKER_SENTINEL, &detail);
    bhi_context_lock(context);
    struct bhi_sentinel *sentinel = find(worker);
    sentinel->process = process;
    if (!process) {
        sentinel->budget_spent = bhi_restart_lost(&sentinel->restart, false, bhi_now_ns());
        bhi_context_say(context, BH_LOG_WARNING, "no sentinel for %s:%u: %s",
                        worker->zygote->driver, worker->device_index, detail.message);
    }
    bhi_context_settle_unlock(context);
}

uint64_t bhi_sentinel_turn(struct bh_context *context) {
    for (;;) {
        uint64_t now_ns = bhi_now_ns(), look_again = BH_FOREVER;
        struct bhi_worker *first = NULL;
        bhi_context_lock(context);
        BHI_LIST_FOR(struct bhi_worker, worker, &context->workers, link) {
            if (!has_words(worker)) {
                continue;
            }
            if (!first && wants_process(worker, now_ns, &look_again)) {
                first = worker;
                bhi_worker_retain(first);
            }
            if (!process_of(worker)) {
                continue;
            }
            struct bhi_sentinel *sentinel = find(worker);
            if (!sentinel->was_ready) {
                sentinel->was_ready = true;
                bhi_restart_served(&sentinel->restart, now_ns);
            }
            if (!ask(sentinel, worker)) {
                look_again = bhi_earlier_ns(look_again, now_ns + RETRY_NS);
            }
        }
        bhi_context_settle_unlock(context);
        if (!first) {
            return look_again;
        }
        start(first);
        bhi_worker_release(first);
    }
}

bool bhi_sentinel_is_busy(struct bh_context *context) {
    BHI_LIST_FOR(const struct bhi_worker, worker, &context->workers, link) {
        if (has_words(worker) && worker->words.set_requested && !worker->words.set_ns &&
            process_of(worker)) {
            return true;
        }
    }
    return false;
}
