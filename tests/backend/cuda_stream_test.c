/* The CUDA backend's stream: what joins it, what of it is blamed, staged, timed and marked, whatever the
 * driver's calls answer. */
#include "rig_cuda.h"

enum { ADD = 1 };

static struct bhi_cuda_backend *cuda(void) {
    return bhi_cuda_of(rig.backend);
}

static struct bhi_cuda_api *api(void) {
    return &cuda()->device.api;
}

static CUresult query_result, write_result;

static CUresult tell_query(CUstream a) {
    return query_result;
}
static CUresult tell_write(CUstream a, CUdeviceptr b, uint64_t c, unsigned d) {
    return write_result;
}

/* It may still run. */
TEST(a_stream_whose_state_is_unknown_is_lost) {
    static const CUresult results[] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY};
    for (size_t i = 0; i < BHT_COUNT(results); i++) {
        rig_open_usual();
        rig_make(3, 1024);
        api()->cuStreamQuery = tell_query;
        query_result = results[i];
        rig_begin();
        rig_fill(3, 0, 4, 1);
        BHT_TRUE(!rig_run());
        BHT_EQ(rig.results[0].status, BH_DEVICE_LOST);
        BHT_EQ(rig.results[0].executed, BH_EXECUTED_UNKNOWN);
    }
}

/* Of two records in a batch, the second is not marked. */
TEST(a_record_that_cannot_be_marked_does_not_run) {
    static const struct {
        CUresult result;
        bh_status status;
    } rows[] = {{CUDA_ERROR_UNKNOWN, BH_CUDA}, {CUDA_ERROR_LAUNCH_FAILED, BH_DEVICE_LOST}};
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        rig_open_usual();
        rig_make(3, 1024);
        uint32_t *to = rig_buffer(1, 1024);
        api()->cuStreamWriteValue64 = tell_write;
        write_result = rows[i].result;
        for (uint32_t k = 1; k <= 2; k++) {
            rig_begin();
            rig_fill(3, 0, 4, k);
        }
        BHT_EQ(rig_run(), rows[i].status == BH_CUDA);
        BHT_EQ(rig.results[0].status, BH_OK);
        BHT_EQ(rig.results[1].status, rows[i].status);
        BHT_EQ(rig.results[1].executed, BH_EXECUTED_NO);
        if (rows[i].status == BH_CUDA) {
            rig_begin();
            rig_copy(3, 0, 1, 0, 4);
            rig_run_ok();
            BHT_EQ(to[0], 1);
        }
    }
}

static CUresult (*real_write)(CUstream, CUdeviceptr, uint64_t, unsigned);
static CUresult (*real_wait)(CUstream);
static unsigned writes, writes_that_come;

static CUresult some_writes(CUstream a, CUdeviceptr b, uint64_t c, unsigned d) {
    return writes++ < writes_that_come ? real_write(a, b, c, d) : CUDA_SUCCESS;
}
static CUresult fault_at_end(CUstream a) {
    BHT_EQ(real_wait(a), CUDA_SUCCESS);
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* E11: of three on the stream the first is done, the second has faulted and the third waits. */
TEST(who_waits_on_the_stream_has_not_faulted) {
    rig_make(3, 1024);
    real_write = api()->cuStreamWriteValue64;
    real_wait = api()->cuStreamSynchronize;
    api()->cuStreamWriteValue64 = some_writes;
    api()->cuStreamQuery = fault_at_end;
    writes_that_come = 1;
    for (uint32_t i = 0; i < 3; i++) {
        rig_begin();
        rig_fill(3, 0, 4, i);
    }
    BHT_TRUE(!rig_run());
    BHT_EQ(writes, 2);
    BHT_EQ(rig.results[0].status, BH_OK);
    BHT_EQ(rig.results[1].status, BH_DEVICE_FAULT);
    BHT_EQ(rig.results[1].executed, BH_EXECUTED_UNKNOWN);
    BHT_EQ(rig.results[2].status, BH_DEVICE_LOST);
    BHT_EQ(rig.results[2].executed, BH_EXECUTED_NO);
}

static unsigned launches;
static CUresult count_launch(CUfunction a, unsigned b, unsigned c, unsigned d, unsigned e,
                             unsigned f, unsigned g, unsigned h, CUstream i, void **j, void **k) {
    launches++;
    return CUDA_SUCCESS;
}

/* One that cannot join waits for those on the stream, and they have faulted. */
TEST(nothing_is_launched_after_a_fault) {
    rig_add_kernel(ADD);
    rig_buffer(1, 1024);
    rig_make(2, 1024);
    rig_make(3, 1024);
    rig_begin();
    rig_prepare(ADD);
    rig_run_ok();
    real_wait = api()->cuStreamSynchronize;
    api()->cuStreamQuery = fault_at_end;
    api()->cuLaunchKernel = count_launch;
    rig_begin();
    rig_fill(3, 0, 4, 1);
    rig_begin();
    rig_add(ADD, 1, 2, 1);
    BHT_TRUE(!rig_run());
    BHT_EQ(rig.results[0].status, BH_DEVICE_FAULT);
    BHT_EQ(rig.results[1].status, BH_DEVICE_LOST);
    BHT_EQ(rig.results[1].executed, BH_EXECUTED_NO);
    BHT_EQ(launches, 0);
}

static CUresult no_copy_back(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return CUDA_ERROR_UNKNOWN;
}
static CUresult no_second_fill(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    return value == 2 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
static CUresult no_upload(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    return CUDA_ERROR_UNKNOWN;
}
static CUresult no_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return CUDA_ERROR_UNKNOWN;
}

/* Which call, which command, and whether any of it has run. */
TEST(what_cannot_be_enqueued) {
    enum { FLUSH, SECOND_FILL, UPLOAD, COPY, DOWNLOAD, LAUNCH_UPLOAD, ROWS };
    static const struct {
        uint32_t command, executed;
        const char *text;
    } rows[] = {
        [FLUSH] = {BHI_NO_COMMAND, BH_EXECUTED_UNKNOWN, "cuMemcpyDtoHAsync: CUDA_ERROR_UNKNOWN"},
        [SECOND_FILL] = {1, BH_EXECUTED_UNKNOWN, "cuMemsetD32Async: CUDA_ERROR_UNKNOWN"},
        [UPLOAD] = {0, BH_EXECUTED_NO, "cuMemcpyHtoDAsync: CUDA_ERROR_UNKNOWN"},
        [COPY] = {0, BH_EXECUTED_NO, "cuMemcpyDtoDAsync: CUDA_ERROR_UNKNOWN"},
        [DOWNLOAD] = {0, BH_EXECUTED_NO, "cuMemcpyDtoHAsync: CUDA_ERROR_UNKNOWN"},
        [LAUNCH_UPLOAD] = {0, BH_EXECUTED_NO, "cuMemcpyHtoDAsync: CUDA_ERROR_UNKNOWN"},
    };
    for (int i = 0; i < ROWS; i++) {
        rig_open_usual();
        uint32_t *host = rig_buffer(1, 1024);
        host[0] = 9;
        rig_make(3, 1024);
        rig_make(4, 1024);
        rig_increment_kernel(2);
        const struct bhi_cuda_api good = *api();
        api()->cuMemcpyDtoHAsync = no_copy_back;
        api()->cuMemcpyHtoDAsync = no_upload;
        api()->cuMemcpyDtoDAsync = no_copy;
        api()->cuMemsetD32Async = i == SECOND_FILL ? no_second_fill : good.cuMemsetD32Async;
        rig_begin();
        switch (i) {
        case FLUSH:
            rig_fill(1, 0, 4, 1);
            break;
        case SECOND_FILL:
            rig_fill(3, 0, 4, 1);
            rig_fill(3, 0, 4, 2);
            break;
        case UPLOAD:
            rig_copy(1, 0, 3, 0, 4);
            break;
        case COPY:
            rig_copy(4, 0, 3, 0, 4);
            break;
        case DOWNLOAD:
            rig_copy(3, 0, 1, 0, 4);
            break;
        case LAUNCH_UPLOAD:
            rig_increment(2, 1);
            break;
        }
        BHT_TRUE(rig_run());
        BHT_EQ(rig.results[0].status, BH_CUDA);
        BHT_EQ(rig.results[0].command_index, rows[i].command);
        BHT_EQ(rig.results[0].executed, rows[i].executed);
        if (!strstr(bhi_error_line(&rig.errors[0]), rows[i].text)) {
            BHT_FAIL("%s", bhi_error_line(&rig.errors[0]));
        }
        BHT_EQ(host[0], 9);
        *api() = good; /* and the next one is good */
        rig_begin();
        rig_increment(2, 1);
        rig_run_ok();
        BHT_EQ(host[0], 10);
    }
}

static size_t uploaded;
static CUresult (*real_upload)(CUdeviceptr, const void *, size_t, CUstream);
static CUresult count_upload(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    uploaded += bytes;
    return real_upload(to, from, bytes, stream);
}

/* Staged ranges in any order: the stage is one range, and what lies between is what the host has. No more
 * is uploaded than that. */
TEST(stages_grow_to_both_sides) {
    static const struct {
        uint32_t fills[3][2]; /* words: from, how many */
        size_t uploaded;
    } rows[] = {
        {{{100, 4}, {50, 4}, {200, 4}}, (46 + 96) * 4},
        {{{50, 4}, {100, 4}, {60, 4}}, 46 * 4},
        {{{100, 4}, {98, 4}, {102, 4}}, 0},
        {{{0, 256}, {10, 4}, {250, 6}}, 0},
        {{{10, 4}, {14, 4}, {6, 4}}, 0},
        {{{200, 8}, {0, 8}, {100, 8}}, 192 * 4},
    };
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        uint32_t *host = rig_buffer(1, 1024), wanted[256];
        for (uint32_t k = 0; k < 256; k++) {
            host[k] = wanted[k] = 1000 + k;
        }
        real_upload = i == 0 ? api()->cuMemcpyHtoDAsync : real_upload;
        api()->cuMemcpyHtoDAsync = count_upload;
        uploaded = 0;
        rig_begin();
        for (uint32_t k = 0; k < 3; k++) {
            rig_fill(1, rows[i].fills[k][0] * 4, rows[i].fills[k][1] * 4, k);
            for (uint32_t w = 0; w < rows[i].fills[k][1]; w++) {
                wanted[rows[i].fills[k][0] + w] = k;
            }
        }
        rig_run_ok();
        BHT_EQ(memcmp(host, wanted, sizeof wanted), 0);
        BHT_EQ(uploaded, rows[i].uploaded);
    }
}

static CUresult (*real_create)(CUevent *, unsigned);
static unsigned events;
static CUevent first, last;
static CUresult elapsed_result;

static CUresult count_event(CUevent *event, unsigned flags) {
    events++;
    return real_create(event, flags);
}
static CUresult no_event(CUevent *event, unsigned flags) {
    return CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult tell_elapsed(float *ms, CUevent a, CUevent b) {
    BHT_TRUE(a && b);
    first = a;
    last = b;
    *ms = 1e-5f;
    return elapsed_result;
}

static uint64_t timed_ns(void) {
    rig_begin();
    rig.records[0]->flags = BHI_RECORD_TIMED;
    rig_fill(3, 0, 4, 7);
    rig_run_ok();
    return rig.results[0].device_ns;
}

TEST(times_on_the_device_are_from_its_events) {
    rig_open_usual();
    rig_make(3, 1024);
    for (int end = 0; end < 2; end++) { /* of the first work */
        BHT_EQ(api()->cuEventDestroy(cuda()->events[0][end]), CUDA_SUCCESS);
        cuda()->events[0][end] = NULL;
    }
    real_create = api()->cuEventCreate;
    api()->cuEventElapsedTime = tell_elapsed;
    api()->cuEventCreate = no_event;
    BHT_EQ(timed_ns(), 0);
    api()->cuEventCreate = count_event;
    BHT_NE(timed_ns(), 0);
    BHT_EQ(first, cuda()->events[0][0]);
    BHT_EQ(last, cuda()->events[0][1]);
    elapsed_result = CUDA_ERROR_NOT_READY;
    BHT_EQ(timed_ns(), 0);
    BHT_EQ(events, 2); /* the same again */
}

TEST(more_timed_records_than_a_batch_has_room_for) {
    rig_make(3, 1024);
    for (uint32_t i = 0; i < RIG_RECORDS; i++) {
        rig_begin();
        rig.records[i]->flags = BHI_RECORD_TIMED;
        rig_fill(3, 0, 4, i);
    }
    rig_run_ok();
    for (uint32_t i = 0; i < RIG_RECORDS; i++) {
        BHT_NE(rig.results[i].device_ns, 0);
    }
}

static CUresult (*real_fill)(CUdeviceptr, unsigned, size_t, CUstream);
static uint32_t marked_started, marked_completed;
static CUresult look_at_markers(CUdeviceptr a, unsigned b, size_t c, CUstream d) {
    marked_started = atomic_load(&rig.markers->started);
    marked_completed = atomic_load(&rig.markers->completed);
    return real_fill(a, b, c, d);
}

TEST(what_runs_is_not_marked_as_done) {
    rig_make(3, 1024);
    real_fill = api()->cuMemsetD32Async;
    api()->cuMemsetD32Async = look_at_markers;
    rig_begin();
    rig_fill(3, 0, 4, 7);
    rig_run_ok();
    BHT_EQ(marked_completed + 1, marked_started);
}

/* A record is warm if all that it launches has run. */
TEST(warm_records) {
    static const struct {
        bool prepares, warm;
    } rows[] = {{true, false}, {false, false}, {false, true}, {true, false}};
    rig_add_kernel(ADD);
    rig_buffer(1, 1024);
    rig_make(2, 1024);
    rig_begin();
    rig_add(ADD, 1, 2, 1);
    BHT_TRUE(!bhi_cuda_warm(rig.backend, rig.records[0]));
    rig.record_count = 0;
    for (size_t i = 0; i < BHT_COUNT(rows); i++) {
        rig_begin();
        if (rows[i].prepares) {
            rig_prepare(ADD);
        } else {
            rig_add(ADD, 1, 2, 1);
        }
        BHT_EQ(bhi_cuda_warm(rig.backend, rig.records[0]), rows[i].warm);
        rig_run_ok();
    }
}
