/* A runner that has come to its end has settled everything, however it came there: it is looked at
 * before it frees what it has. Link with --wrap=bhi_runner_end_threads. */
#include "harness.h"

#include "batch/runner/input_cache.h"
#include "batch/runner/kernel_cache.h"
#include "batch/runner/state.h"

BHT_WRAP(void, bhi_runner_end_threads, struct bhi_runner *runner) {
    const struct bhi_work_list *const lists[] = {
        &runner->to_stage, &runner->to_compile, &runner->to_write, &runner->to_place,
        &runner->over,     &runner->thirsty,    &runner->deferred};
    size_t kernels = 0;
    __real_bhi_runner_end_threads(runner);
    BHT_EQ(runner->thread_count, 0);
    for (size_t i = 0; i < BHT_COUNT(lists); i++) {
        BHT_EQ(lists[i]->count, 0);
    }
    for (int i = 0; i < BHI_WORK_STAGES; i++) {
        BHT_EQ(runner->at[i], 0);
    }
    for (uint32_t i = 0; i < runner->stream_count; i++) {
        BHT_EQ(runner->streams[i].assigned, 0);
        BHT_EQ(runner->streams[i].in_flight, 0);
        BHT_EQ(runner->streams[i].staged.count, 0);
    }
    BHI_LIST_FOR(const struct bhi_kernel_entry, entry, &runner->kernels, node) {
        BHT_EQ(entry->users, 0);
        BHT_EQ(entry->parked.count, 0);
        BHT_NE(entry->state, BHI_KERNEL_MAKING);
        kernels++;
    }
    BHT_EQ(runner->kernel_count, kernels);
    BHT_TRUE(!runner->solo_running);
    /* What is left belongs to inputs, which nobody uses any more. */
    BHT_EQ(runner->holders, 0);
    bhi_inputs_drop_unused(runner);
    BHT_EQ(runner->input_count, 0);
    BHT_EQ(runner->bytes, 0);
}
