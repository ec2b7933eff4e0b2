/* Histories of device memory against the supervisor's own code: random ones, drawn from a seed.
 * Streams of two tenants on two devices fill, copy and read buffers in device memory; their workers
 * (memory_worker.h) die at any point, lose their devices, and have no memory left. An oracle that
 * knows only what was asked for, and what each worker really did, says what each event may be and
 * what each buffer must contain:
 *
 *   D1  each write gives a buffer a new version, nothing else does; what is read is the version
 *       that was the newest when the reader was submitted
 *   D2  content that no unfinished submission was writing survives every death
 *   D3  a new buffer is zero, also if it gets what another one has left behind; that stays with its
 *       tenant and its device, and nobody else can write it (memory_worker.c)
 *   D4  no tenant can write what another one has; replicas have the version that was asked for, one
 *       for each version, tenant and device; what is written on another device moves there
 *       (memory_worker.c looks at what workers are given)
 *   D5  only what a dead worker had, or a lost device was writing, is poisoned, and what reads that
 *   C3  a dead worker's device may go on writing what it was writing, until its death is confirmed
 *       (memory_departed_write); that is read by nobody
 *
 * BULKHEAD_SEED=N plays one history, and tells of each step. */
#include "base/memfd.h"
#include "ipc/layers.h"
#include "memory_worker.h"
#include "supervisor/buffer/buffer.h"
#include "supervisor/buffer/pool.h"
#include "supervisor/context/context.h"

#include <stdio.h>

enum { BUFFERS = 4, OPS = 100, STEPS = 150, DEATHS = 10, INITIAL = -1, NOBODY = -1 };
enum { HISTORIES = 400, NIGHTLY_HISTORIES = 20000 };

enum kind { FILL, COPY, READ };

struct op {
    enum kind kind;
    int stream, src, dst; /* buffers; NOBODY: none */
    int version;          /* of |src|: the operation that wrote it, or INITIAL */
    uint32_t value;       /* FILL */
    bh_event *event;
    uint64_t id;
    bh_buffer *host;   /* READ: gets the bytes */
    bool through_copy; /* it reads a replica, or its buffer moves */
    uint32_t trouble;  /* deaths and failures before it was submitted */
    bool begun, good, hurt, checked;
};

struct home {
    bh_buffer *buffer; /* NULL: there is none */
    int stream, version;
    uint64_t number; /* bh_buffer_version */
    /* The newest version of which a tenant has a replica on a device, and what had gone wrong. */
    int replica[2][3];
    uint32_t replica_trouble[2][3];
};

struct world {
    struct home homes[BUFFERS];
    struct op ops[OPS];
    uint32_t op_count, deaths, trouble, departed;
    uint64_t random, seed;
    bool tells;
};

static uint64_t below(struct world *w, uint64_t end) {
    uint64_t z = w->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (z ^ z >> 31) % end;
}

#define TELL(w, ...)                                                                               \
    do {                                                                                           \
        if ((w)->tells) {                                                                          \
            printf("    " __VA_ARGS__);                                                            \
            printf("\n");                                                                          \
        }                                                                                          \
    } while (0)
#define BROKEN(w, rule, format, ...)                                                               \
    BHT_FAIL(rule ": seed %llu: " format, (unsigned long long)(w)->seed, __VA_ARGS__)

/* -- the oracle ------------------------------------------------------------------------------- */

static uint32_t value_of(const struct world *w, int version) {
    while (version != INITIAL && w->ops[version].kind == COPY) {
        version = w->ops[version].version;
    }
    return version == INITIAL ? 0 : w->ops[version].value;
}

static bh_event_state state_of(const struct world *w, int version) {
    return version == INITIAL ? BH_EVENT_READY : bh_event_query(w->ops[version].event);
}

static void check_bytes(struct world *w, const struct op *op, int number) {
    void *bytes = NULL;
    const uint32_t expected = value_of(w, op->version);
    BHT_EQ(bh_buffer_map(op->host, BH_MAP_READ, 0, &bytes, NULL), BH_OK);
    for (uint32_t i = 0; i < MEMORY_BYTES / 4; i++) {
        uint32_t word;
        memcpy(&word, (const char *)bytes + 4 * (size_t)i, sizeof word);
        if (word != expected) {
            BROKEN(w, "D2", "#%d reads %u of buffer %d; #%d left %u", number, word, op->src,
                   op->version, expected);
        }
    }
}

/* What has ended ended as it should. */
static void check_op(struct world *w, int number) {
    struct op *op = &w->ops[number];
    const bh_event_state state = bh_event_query(op->event);
    if (op->checked || state == BH_EVENT_PENDING) {
        return;
    }
    op->checked = true;
    const bool needs_good = op->kind == FILL || state_of(w, op->version) == BH_EVENT_READY;
    if (state == BH_EVENT_READY && (!op->good || !needs_good)) {
        BROKEN(w, "D5", "#%d is READY, and %s", number,
               op->good ? "what it reads is not" : "no worker has finished it");
    }
    const bool excused = op->hurt || !needs_good || (op->through_copy && w->trouble > op->trouble);
    if (state == BH_EVENT_POISONED && !excused) {
        const bh_verdict verdict = fx_verdict(op->event);
        BROKEN(w, "D5", "#%d is POISONED (%s) by event %llu, and nothing has happened to it",
               number, bh_status_name(verdict.status), (unsigned long long)verdict.origin);
    }
    if (state == BH_EVENT_READY && op->kind == READ) {
        check_bytes(w, op, number);
    }
    bh_buffer_release(op->host); /* others get its memory again, as far as they may */
    op->host = NULL;
}

static void check_all(struct world *w) {
    for (uint32_t i = 0; i < w->op_count; i++) {
        check_op(w, (int)i);
    }
}

/* -- the host --------------------------------------------------------------------------------- */

static void create(struct world *w, int b) {
    struct home *home = &w->homes[b];
    *home = (struct home){.stream = (int)below(w, MEMORY_STREAMS), .version = INITIAL};
    for (int i = 0; i < 6; i++) {
        home->replica[i / 3][i % 3] = INT32_MIN;
    }
    home->buffer = memory_create(home->stream, MEMORY_BYTES);
    TELL(w, "create buffer %d for %s", b, memory_owners[home->stream].name);
}

static bool is_tenants(const struct home *home, int s) {
    return memory_owners[home->stream].tenant_number == memory_owners[s].tenant_number;
}

static bool may_use(const struct home *home, int s) {
    return home->stream == s ||
           (is_tenants(home, s) && memory_owners[home->stream].device == memory_owners[s].device);
}

/* One replica a version, tenant and device. |grown|: device memory was made for it; |unclear|: it
 * may have been made or not. */
static void check_replica(struct world *w, struct op *op, int b, bool grown, bool unclear) {
    struct home *home = &w->homes[b];
    int *have =
        &home->replica[memory_owners[op->stream].tenant_number][memory_owners[op->stream].device];
    uint32_t *when = &home->replica_trouble[memory_owners[op->stream].tenant_number]
                                           [memory_owners[op->stream].device];
    if (!unclear && grown && *have == home->version && *when == w->trouble) {
        BROKEN(w, "D4", "a second replica of #%d is made of buffer %d", home->version, b);
    }
    if (unclear) {
        *have = home->version;
        *when = UINT32_MAX;
    } else if (*have == home->version &&
               !(grown &&
                 *when == UINT32_MAX)) { /* what has spoilt it since is not known to all yet */
        const uint32_t then = *when == UINT32_MAX ? 0 : *when;
        op->trouble = then < op->trouble ? then : op->trouble;
    } else {
        *have = home->version;
        *when = w->trouble;
    }
}

static bool has_replica(const struct world *w, const struct op *op, int b) {
    const struct home *home = &w->homes[b];
    return home->replica[memory_owners[op->stream].tenant_number]
                        [memory_owners[op->stream].device] == home->version;
}

static void submit(struct world *w, enum kind kind) {
    if (w->op_count == OPS) {
        return;
    }
    const int number = (int)w->op_count;
    struct op *op = &w->ops[number];
    *op = (struct op){
        .kind = kind, .stream = (int)below(w, MEMORY_STREAMS), .src = NOBODY, .dst = NOBODY};
    op->value = (uint32_t)number + 1;
    op->trouble = w->trouble;
    bh_buffer *src = NULL, *dst;
    if (kind != FILL) {
        op->src = (int)below(w, BUFFERS);
        src = w->homes[op->src].buffer;
    }
    if (kind != READ) {
        op->dst = (int)below(w, BUFFERS);
        dst = w->homes[op->dst].buffer;
    } else {
        dst = op->host = fx_buffer(puppet.context, MEMORY_BYTES);
    }
    const bh_command fill = {.type = BH_COMMAND_FILL,
                             .fill = {.dst = dst, .size = BH_WHOLE_SIZE, .value = op->value}},
                     copy = {.type = BH_COMMAND_COPY,
                             .copy = {.src = src, .dst = dst, .size = BH_WHOLE_SIZE}};
    if (op->src == op->dst || (kind != FILL && !src) || !dst) {
        bh_buffer_release(op->host);
        return;
    }
    const bool copied = op->src != NOBODY && !may_use(&w->homes[op->src], op->stream);
    const bool refused = op->dst != NOBODY && !is_tenants(&w->homes[op->dst], op->stream);
    const bool moved = !refused && op->dst != NOBODY && !may_use(&w->homes[op->dst], op->stream);
    const uint64_t before = puppet.context->device_memory;
    op->version = op->src == NOBODY ? op->version : w->homes[op->src].version;
    op->through_copy = copied || moved;
    const bh_submit_info info = {.struct_size = sizeof info,
                                 .commands = kind == FILL ? &fill : &copy,
                                 .command_count = 1,
                                 .deadline_ns = BH_FOREVER};
    bh_detail detail = {0};
    const bh_status status = bh_submit(memory.streams[op->stream], &info, &op->event, &detail);
    if (status != (refused ? BH_INVALID_ARGUMENT : BH_OK)) {
        BROKEN(w, "D4", "a submission of %s is answered %s: %s", memory_owners[op->stream].name,
               bh_status_name(status), detail.message);
    }
    const bool grown = puppet.context->device_memory > before;
    /* None is made of what is poisoned. What a move has left may be as much as what was made. */
    if (copied) {
        const bool has_one = has_replica(w, op, op->src);
        check_replica(w, op, op->src, grown && !moved, refused || (!grown && !has_one));
    }
    if (moved) { /* a replica becomes its place, unless that has to be made */
        check_replica(w, op, op->dst, grown && !copied, false);
        w->homes[op->dst].stream = op->stream;
    }
    if (refused) {
        return;
    }
    op->id = bh_event_id(op->event);
    w->op_count++;
    TELL(w, "#%d on %s, event %llu%s: %s buffer %d to %d", number, memory_owners[op->stream].name,
         (unsigned long long)op->id, moved ? ", which moves it" : "",
         kind == FILL   ? "fill"
         : kind == COPY ? "copy"
                        : "read",
         op->src, op->dst);
    for (int b = 0; b < BUFFERS; b++) {
        struct home *home = &w->homes[b];
        if (!home->buffer) {
            continue;
        }
        const uint64_t version = bh_buffer_version(home->buffer);
        if (b == op->dst ? version <= home->number : version != home->number) {
            BROKEN(w, "D1", "#%d: buffer %d has version %llu, after %llu", number, b,
                   (unsigned long long)version, (unsigned long long)home->number);
        }
        home->number = version;
    }
    if (op->dst != NOBODY) {
        w->homes[op->dst].version = number;
    }
}

/* -- the workers ------------------------------------------------------------------------------ */

static struct op *op_of(struct world *w, uint64_t event) {
    for (uint32_t i = 0; i < w->op_count; i++) {
        if (w->ops[i].id == event) {
            return &w->ops[i];
        }
    }
    return NULL;
}

static void run(struct world *w, int s, enum memory_end end) {
    struct memory_worker *worker = &memory.workers[s];
    if (!memory_worker_has_work(worker)) {
        return;
    }
    const bool denies = end == MEMORY_DIES_DENYING || (end == MEMORY_LIVES && below(w, 20) == 0);
    worker->device_full = denies ? 1 + (uint32_t)below(w, 2) : 0;
    worker->cannot_clear = denies || below(w, 20) == 0;
    const struct memory_done done = memory_worker_run(worker, end);
    struct op *op = op_of(w, done.event);
    TELL(w, "%s runs event %llu, end %d%s", memory_owners[s].name, (unsigned long long)done.event,
         (int)end, done.good ? ", good" : "");
    w->trouble += end != MEMORY_LIVES || (!done.good && !done.skipped);
    w->deaths += end != MEMORY_LIVES;
    if (op) {
        op->good |= done.good;
        op->hurt |= done.begun && !done.good;
    }
}

/* A dying worker may be confirmed dead much later; until then it counts (D3). */
static void bury(struct world *w, int s) {
    struct memory_worker *worker = &memory.workers[s];
    if (worker->worker && worker->dead) {
        TELL(w, "%s's %sworker is buried", worker->owner->name,
             s < MEMORY_STREAMS ? "" : "departed ");
        memory_departed_write();
        memory_worker_bury(worker);
    }
}

static void depart(struct world *w, int s) {
    struct memory_worker *worker = &memory.workers[s];
    if (worker->worker && worker->dead && memory_worker_depart(worker)) {
        TELL(w, "%s goes on without its dead worker", memory_owners[s].name);
        w->departed++;
    }
}

static void start(struct world *w, int s) {
    bhi_context_lock(puppet.context);
    const bool wanted = memory.streams[s]->core.state == BHI_STREAM_WANTING;
    bhi_context_unlock(puppet.context);
    if (!memory.workers[s].worker && wanted) {
        TELL(w, "%s gets a worker", memory_owners[s].name);
        memory_worker_begin(s);
    }
}

static void step(struct world *w) {
    const int s = (int)below(w, MEMORY_STREAMS), b = (int)below(w, BUFFERS);
    memory_departed_write();
    switch (below(w, 18)) {
    case 0:
        if (!w->homes[b].buffer) {
            create(w, b);
        } else if (below(w, 2)) { /* in use or not */
            TELL(w, "release buffer %d", b);
            bh_buffer_release(w->homes[b].buffer);
            w->homes[b].buffer = NULL;
            if (below(w, 4)) {
                create(w, b);
            }
        }
        break;
    case 1:
    case 2:
        submit(w, FILL);
        break;
    case 3:
    case 4:
        submit(w, COPY);
        break;
    case 5:
    case 6:
        submit(w, READ);
        break;
    case 7:
        if (w->deaths < DEATHS) {
            run(w, s, (enum memory_end)below(w, MEMORY_ENDS));
        }
        break;
    case 8:
        below(w, 2) ? bury(w, s) : depart(w, s);
        break;
    case 9:
        start(w, s);
        break;
    case 16:
        depart(w, s);
        break;
    case 17:
        bury(w, MEMORY_STREAMS + (int)below(w, MEMORY_DEPARTED));
        break;
    case 10:
        if (below(w, 8) == 0) { /* replicas go with it */
            BHT_EQ(bh_context_trim(puppet.context, 0, NULL), BH_OK);
            w->trouble++;
        }
        break;
    case 11:
        if (memory.workers[s].worker && memory.workers[s].dead == false) {
            memory_worker_harvest(&memory.workers[s]);
        }
        break;
    default:
        run(w, s, MEMORY_LIVES);
        break;
    }
    check_all(w);
}

/* Until nothing is left to be done. */
static void settle(struct world *w) {
    for (int round = 0; round < 400; round++) {
        memory_departed_write();
        for (int s = 0; s < MEMORY_STREAMS; s++) {
            bury(w, s);
            bury(w, MEMORY_STREAMS + s);
            start(w, s);
            run(w, s, MEMORY_LIVES);
            if (memory.workers[s].worker) {
                memory_worker_harvest(&memory.workers[s]);
            }
        }
        check_all(w);
    }
    for (uint32_t i = 0; i < w->op_count; i++) {
        if (!w->ops[i].checked) {
            static char text[4096];
            (void)bh_context_describe(puppet.context, text, sizeof text);
            TELL(w, "%s", text);
            BROKEN(w, "E9", "#%u has never ended", i);
        }
    }
}

/* Each buffer still has what was left in it. */
static void look_at_all(struct world *w) {
    for (int b = 0; b < BUFFERS && w->op_count < OPS; b++) {
        const uint32_t before = w->op_count;
        while (w->homes[b].buffer && w->op_count < OPS &&
               (w->op_count == before || w->ops[w->op_count - 1].src != b)) {
            submit(w, READ);
        }
    }
    settle(w);
}

/* *out_hits: how many buffers got what another one had left behind. */
static void play(uint64_t seed, uint64_t *out_hits, uint64_t *out_departed) {
    static struct world world;
    struct world *w = &world;
    puppet_again();
    *w = (struct world){.seed = seed, .random = seed, .tells = getenv("BULKHEAD_SEED")};
    puppet.context->device_pool->limit = (1 + below(w, 8)) * bhi_page_round(1);
    for (int i = 0; i < STEPS; i++) {
        step(w);
    }
    settle(w);
    look_at_all(w);
    *out_hits += puppet.context->device_pool->stats.hits;
    *out_departed += w->departed;
}

TEST(histories) {
    const char *one = getenv("BULKHEAD_SEED");
    const uint64_t count = bht_nightly() ? NIGHTLY_HISTORIES : HISTORIES;
    uint64_t hits = 0, departed = 0;
    if (one) {
        play(strtoull(one, NULL, 10), &hits, &departed);
        return;
    }
    for (uint64_t seed = 1; seed <= count; seed++) {
        play(seed, &hits, &departed);
    }
    BHT_GE(hits, 2 * count);
    BHT_GE(departed, count / 4);
}
