/* Pipeline caches, between workers that are structs and an opener that this is: what a dead worker
 * has left is stored or not, and what a new one gets. */
#include "base/fd.h"
#include "base/memfd.h"
#include "ipc/cache_area.h"
#include "puppet.h"
#include "supervisor/context/payload.h"
#include "supervisor/file/opener.h"
#include "supervisor/kernel/cache_queue.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/reactor/pipeline_cache.h"
#include "supervisor/submit/introduce.h"
#include "supervisor/worker/outbox.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CODE 7u

/* -- the opener ---------------------------------------------------------------------------------
 */

/* What it answers, and what it was asked. */
static struct {
    bh_status status;
    int error;
    uint64_t bytes;
    _Atomic int loads, stores;
    uint8_t stored[32]; /* the identity of the last */
} opener;

BHT_WRAP(bh_status, bhi_opener_cache, bh_context *context, const struct bhi_cache_call *what,
         uint64_t deadline_ns, struct bhi_msg_cache_done *out, bh_detail *detail) {
    BHT_TRUE(context == puppet.context);
    BHT_STR_EQ(what->folder, "/folder");
    BHT_LE(deadline_ns, bhi_now_ns() + UINT64_C(5000000000));
    BHT_GE(what->area, 0);
    BHT_EQ(what->room, BHI_CACHE_ROOM);
    atomic_fetch_add(what->store ? &opener.stores : &opener.loads, 1);
    if (what->store) {
        memcpy(opener.stored, what->identity, sizeof opener.stored);
    }
    *out = (struct bhi_msg_cache_done){.error = opener.error, .bytes = opener.bytes};
    *detail = (bh_detail){.message = "no answer"};
    return opener.status;
}

static void start(void) {
    memset(&opener, 0, sizeof opener);
    BHT_EQ(bhi_pipeline_cache_start(puppet.context, "/folder"), 0);
}

/* As the reactor does it of each worker that it buries. */
static void drop_areas(void) {
    BHI_LIST_FOR_SAFE(struct bhi_worker, worker, &puppet.context->workers, link) {
        bhi_fd_close(&worker->cache.area);
    }
}

BHT_AT_START(puppet_around(start, drop_areas))

/* All that was asked for is done. */
static void finish(void) {
    bhi_pipeline_cache_stop(puppet.context);
}

/* A worker whose first code was that of its cache. */
static struct bhi_worker *make_worker(uint8_t identity) {
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    memset(worker->cache.identity, identity, sizeof worker->cache.identity);
    worker->cache.code = CODE;
    return worker;
}

/* -- what is stored -----------------------------------------------------------------------------
 */

static void bury(struct bhi_worker *worker, bool orderly) {
    if (worker->cache.area < 0) {
        worker->cache.area = bhi_memfd_create("area", BHI_CACHE_AREA_HEADER, 0);
    }
    worker->cache.state = BHI_CACHE_READY;
    bhi_context_lock(puppet.context);
    bhi_pipeline_cache_buried(worker, orderly);
    bhi_context_pump_unlock(puppet.context);
    BHT_EQ(worker->cache.area, -1);
    BHT_EQ(worker->cache.state, BHI_CACHE_NONE);
}

/* Only what was compiled of one kernel, on a worker that has ended through no fault of its own. */
TEST(what_a_worker_has_left_is_stored_or_not) {
    static const struct {
        bool orderly;
        struct bhi_past past;
        bool stored;
    } cases[] = {
        {true, {.code = CODE}, true},
        {true, {.code = CODE, .used = true}, true},
        {false, {.code = CODE}, false},
        {true, {.code = CODE, .mixed = true}, false}, /* another kernel; or it had loaded one */
        {true, {.code = CODE + 1}, false},
        {true, {.code = 0}, false},
        {true, {.code = CODE, .kept = BHI_APART_NOT + 1}, false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        puppet_again();
        struct bhi_worker *worker = make_worker((uint8_t)(i + 1));
        worker->core.past = cases[i].past;
        bury(worker, cases[i].orderly);
        finish();
        if (opener.stores != cases[i].stored) {
            BHT_FAIL("case %zu is %sstored", i, opener.stores ? "" : "not ");
        }
        BHT_EQ(opener.stored[31], cases[i].stored ? i + 1 : 0);
    }
}

/* -- what is loaded -----------------------------------------------------------------------------
 */

static enum bhi_cache_state state_of(const struct bhi_worker *worker) {
    bhi_context_lock(puppet.context);
    const enum bhi_cache_state state = worker->cache.state;
    bhi_context_unlock(puppet.context);
    return state;
}

/* A worker of this identity asks for its cache, and gets what there is. */
static struct bhi_worker *load(uint8_t identity) {
    struct bhi_worker *worker = make_worker(identity);
    struct bhi_cache_job job = {.worker = worker, .area = -1};
    memcpy(job.identity, worker->cache.identity, sizeof job.identity);
    worker->cache.state = BHI_CACHE_WAITING;
    bhi_worker_retain(worker);
    BHT_TRUE(bhi_cache_queue_push(puppet.context->cache_queue, BHI_CACHE_LOAD, &job));
    WAIT_UNTIL(state_of(worker) != BHI_CACHE_WAITING, 20 * BHT_WAIT_SECOND_MS);
    return worker;
}

/* It is told of its area, which is open. */
static bool has_attach(struct bhi_worker *worker) {
    bhi_context_lock(puppet.context);
    const bool has = !bhi_list_empty(&worker->outbox);
    if (has) {
        const struct bhi_outgoing *outgoing =
            BHI_CONTAINER(worker->outbox.next, struct bhi_outgoing, link);
        BHT_EQ(outgoing->message.type, BHI_MSG_CACHE_ATTACH);
        BHT_EQ(outgoing->message.cache_attach.room, BHI_CACHE_ROOM);
        BHT_NE(outgoing->message.cache_attach.cache, 0);
        BHT_EQ(bhi_memfd_verify(outgoing->fd, BHI_CACHE_AREA_HEADER + BHI_CACHE_ROOM, 0), 0);
        BHT_EQ(bhi_memfd_verify(worker->cache.area, BHI_CACHE_AREA_HEADER + BHI_CACHE_ROOM, 0), 0);
    }
    bhi_context_unlock(puppet.context);
    return has;
}

/* In any case it gets an area for what it compiles, unless the folder is silent; what it loads is
 * somebody else's. */
TEST(what_a_worker_gets) {
    static const struct {
        bh_status status;
        int error;
        uint64_t bytes;
        bool ready, loaded;
    } cases[] = {
        {BH_OK, 0, 5, true, true},
        {BH_OK, 0, 0, true, false},
        {BH_OK, EIO, 5, true, false},
        {BH_OK, 0, BHI_CACHE_ROOM, true, true},
        {BH_OK, 0, BHI_CACHE_ROOM + 1, true, false},
        {BH_TIMEOUT, 0, 5, false, false},
    };
    for (size_t i = 0; i < BHT_COUNT(cases); i++) {
        puppet_again();
        opener.status = cases[i].status;
        opener.error = cases[i].error;
        opener.bytes = cases[i].bytes;
        struct bhi_worker *worker = load(1);
        if (worker->cache.state != (cases[i].ready ? BHI_CACHE_READY : BHI_CACHE_NONE) ||
            worker->cache.loaded != cases[i].loaded ||
            (worker->cache.area >= 0) != cases[i].ready || has_attach(worker) != cases[i].ready) {
            BHT_FAIL("case %zu", i);
        }
        BHT_EQ(worker->core.past.mixed, cases[i].loaded); /* T2: it has a past */
        BHT_EQ(worker->core.past.code, cases[i].loaded ? CODE : 0);
        BHT_EQ(opener.loads, 1);
        finish();
    }
}

/* A folder that has not answered is not asked again for a while: a worker begins at once, without. */
TEST(a_silent_folder_is_left_alone) {
    opener.status = BH_TIMEOUT;
    load(1);
    BHT_EQ(opener.loads, 1);
    opener.status = BH_OK;
    opener.bytes = 5;
    struct bhi_worker *worker = load(2);
    BHT_EQ(opener.loads, 1);
    BHT_EQ(worker->cache.state, BHI_CACHE_NONE);
    BHT_LT(worker->cache.area, 0);
    const uint64_t silent_ns = atomic_load(&puppet.context->pipeline_cache->silent_until_ns);
    BHT_WITHIN(silent_ns - bhi_now_ns(), 1, UINT64_C(60000000000));
    atomic_store(&puppet.context->pipeline_cache->silent_until_ns, 0);
    worker = load(3);
    BHT_EQ(opener.loads, 2);
    BHT_TRUE(worker->cache.loaded);
    /* Nor to store. */
    atomic_store(&puppet.context->pipeline_cache->silent_until_ns, silent_ns);
    worker = make_worker(4);
    worker->core.past.code = CODE;
    bury(worker, true);
    finish();
    BHT_EQ(opener.stores, 0);
}

/* A store that is not answered silences the folder, too. */
TEST(a_store_that_is_not_answered_silences_the_folder) {
    opener.status = BH_TIMEOUT;
    for (uint8_t i = 0; i < 2; i++) {
        struct bhi_worker *worker = make_worker(i);
        worker->core.past.code = CODE;
        bury(worker, true);
    }
    finish();
    BHT_EQ(opener.stores, 1);
}

/* A file whose reader died of itself is not read again; sixteen of them are remembered. */
TEST(a_file_whose_reader_died_is_not_read_again) {
    opener.bytes = 5;
    BHT_TRUE(load(0)->cache.loaded); /* none is distrusted, whatever it is called */
    for (uint8_t i = 1; i <= BHI_DISTRUSTED + 1; i++) {
        const int loads = opener.loads;
        struct bhi_worker *worker = load(i);
        BHT_TRUE(worker->cache.loaded);
        bury(worker, false);
        worker = load(i);
        BHT_TRUE(!worker->cache.loaded);
        BHT_EQ(worker->cache.state, BHI_CACHE_READY); /* its own is stored in its place */
        BHT_EQ(opener.loads, loads + 1);
    }
    BHT_TRUE(load(1)->cache.loaded); /* the oldest is forgotten */
    BHT_TRUE(!load(2)->cache.loaded);
    BHT_TRUE(!load(BHI_DISTRUSTED)->cache.loaded);
    /* Neither one that has ended in order, nor one that had loaded nothing, is to blame for a file. */
    struct bhi_worker *worker = load(100);
    bury(worker, true);
    BHT_TRUE(load(100)->cache.loaded);
    worker = make_worker(101);
    bury(worker, false);
    BHT_TRUE(load(101)->cache.loaded);
    finish();
}

/* -- what it asks for ---------------------------------------------------------------------------- */

enum differs { NOTHING, VENDOR, DEVICE, DRIVER, API, UUID, CACHE_UUID, TENANT, KERNEL, DIFFERS };

/* A worker that is about to run one kernel asks for its cache. */
static struct bhi_worker *ask(enum differs what) {
    static const char *const tenants[] = {"ann", "bob"};
    struct bhi_kernel_body body = {.id = 9, .hash = {what == KERNEL}};
    struct bh_kernel kernel = {.body = &body};
    struct bh_kernel *kernels[] = {&kernel};
    struct bhi_payload payload = {.kernels = kernels, .kernel_count = 1};
    struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
    worker->devices = calloc(1, sizeof *worker->devices); /* released with it */
    BHT_TRUE(worker->devices);
    worker->device_count = worker->device_capacity = 1;
    worker->devices[0] = (struct bhi_msg_device){.chosen = 1,
                                                 .vendor_id = what == VENDOR,
                                                 .device_id = what == DEVICE,
                                                 .driver_version = what == DRIVER,
                                                 .api_version = what == API,
                                                 .uuid = {what == UUID},
                                                 .cache_uuid = {what == CACHE_UUID}};
    strcpy(puppet.stream->tenant, tenants[what == TENANT]);
    bhi_context_lock(puppet.context);
    worker->core.stream = &puppet.stream->core;
    (void)bhi_introduce_cache(worker, &payload.submission, BHI_APART_NOT);
    worker->core.stream = NULL;
    BHT_EQ(worker->cache.code, bhi_kernel_body_code(&body));
    bhi_context_pump_unlock(puppet.context);
    return worker;
}

/* What the driver makes of a kernel is no other's, and no other tenant's, device's or driver's (T1, T8).
 * Those of a tenant and its device have their beginning in common. */
TEST(whose_cache_it_is) {
    uint8_t identities[DIFFERS + 1][32];
    for (int i = 0; i <= DIFFERS; i++) {
        memcpy(identities[i], ask((enum differs)(i % DIFFERS))->cache.identity, 32);
        for (int k = 0; k < i; k++) {
            const bool same = i == DIFFERS && k == NOTHING;
            const bool akin =
                same || (k == NOTHING && i == KERNEL) || (k == KERNEL && i == DIFFERS);
            BHT_EQ(memcmp(identities[i], identities[k], 32) == 0, same);
            BHT_EQ(memcmp(identities[i], identities[k], 8) == 0, akin);
        }
    }
    finish();
    BHT_EQ(opener.loads, DIFFERS + 1);
}

/* Nothing is loaded for whom that would be of no use, or would give a past. */
TEST(who_asks_for_no_cache) {
    enum { LOADS, LOADER, SPARE, AGAIN, CLOSED, USED, TWO, APART, WAYS };
    for (int way = LOADS; way < WAYS; way++) {
        struct bhi_kernel_body body = {.id = 9};
        struct bh_kernel kernel = {.body = &body};
        struct bh_kernel *kernels[] = {&kernel, &kernel};
        puppet_again();
        struct bhi_payload payload = {.kernels = kernels, .kernel_count = way == TWO ? 2 : 1};
        struct bhi_worker *worker = puppet_worker(BHI_RUNNING);
        worker->devices = calloc(1, sizeof *worker->devices); /* released with it */
        BHT_TRUE(worker->devices);
        worker->devices[0].chosen = worker->device_count = worker->device_capacity = 1;
        bhi_context_lock(puppet.context);
        worker->kind = way == LOADER ? BHI_WORKER_LOADER : BHI_WORKER_DEVICE;
        worker->core.stream = way == SPARE ? NULL : &puppet.stream->core;
        worker->cache.requested = way == AGAIN;
        worker->core.past.code = way == USED ? CODE : 0;
        puppet.context->closed = way == CLOSED;
        const bool waits = bhi_introduce_cache(worker, &payload.submission,
                                               way == APART ? BHI_APART_ALL : BHI_APART_NOT);
        puppet.context->closed = false;
        BHT_EQ(waits, way == LOADS);
        payload.kernel_count = 0; /* copies do not wait for it */
        BHT_TRUE(!bhi_introduce_cache(worker, &payload.submission, BHI_APART_NOT));
        worker->core.stream = NULL;
        worker->kind = BHI_WORKER_DEVICE;
        bhi_context_pump_unlock(puppet.context);
        finish();
        BHT_EQ(opener.loads, way == LOADS);
    }
}

/* It has died before it was served: nobody is asked, and nothing is left behind. */
TEST(a_worker_that_is_buried_gets_nothing) {
    struct bhi_worker *worker = make_worker(1);
    struct bhi_cache_job job = {.worker = worker, .area = -1};
    bhi_worker_retain(worker);
    bhi_worker_retain(worker);
    puppet_killed(worker, SIGKILL);
    BHT_TRUE(bhi_cache_queue_push(puppet.context->cache_queue, BHI_CACHE_LOAD, &job));
    finish();
    BHT_EQ(opener.loads, 0);
    BHT_LT(worker->cache.area, 0);
    bhi_worker_release(worker);
}
