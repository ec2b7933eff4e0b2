#include "spares_scene.h"

#include "supervisor/context/context.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/reactor/lessons.h"

struct spares_scene spares;

static void set_up(void) {
    puppet.context->settings.spare_kernels = 16;
    puppet.zygote->state = BHI_ZYGOTE_STARTING;
    for (uint32_t i = 0; i < KERNELS; i++) {
        const uint32_t code[] = {0x07230203, i, 0, 0, 0};
        const bh_kernel_options options = {.struct_size = sizeof options,
                                           .name = (char[]){(char)('a' + i), 0}};
        BHT_EQ(bh_kernel_create_spirv(puppet.context, code, sizeof code, &options,
                                      &spares.kernels[i], NULL),
               BH_OK);
    }
    spares.serving = puppet_serving();
}

BHT_AT_START(puppet_around(set_up, NULL))

uint64_t spares_id_of(int kernel) {
    return spares.kernels[kernel]->body->id;
}

void spares_use(const char *tenant, int kernel, int times) {
    bhi_context_lock(puppet.context);
    for (int i = 0; i < times; i++) {
        struct bhi_used_kernel used = {.body = spares.kernels[kernel]->body,
                                       .id = spares_id_of(kernel),
                                       .compile_ns = 3600 * UINT64_C(1000000000)};
        memcpy(used.hash, spares.kernels[kernel]->body->hash, sizeof used.hash);
        memcpy(used.name, spares.kernels[kernel]->name, sizeof used.name);
        puppet.context->spares_due |=
            bhi_usage_note(puppet.context->usages, puppet.stream->device, tenant, &used);
    }
    bhi_context_unlock(puppet.context);
}

bh_event *spares_launch(bh_stream *stream, int kernel, bool alone) {
    const bh_command command = fx_dispatch(spares.kernels[kernel], NULL, 0);
    const bh_submit_info info = {
        .struct_size = sizeof info, .commands = &command, .command_count = 1, .alone = alone};
    return fx_submit(stream, &info);
}

void spares_turn(void) {
    (void)bhi_assignment_turn(puppet.context);
}

void spares_turn_due(void) {
    bhi_context_lock(puppet.context);
    puppet.context->spares_due = true;
    bhi_context_unlock(puppet.context);
    spares_turn();
}

const char *spares_answer(struct bhi_worker *worker, uint64_t kernel, uint32_t status) {
    const struct bhi_msg_learned learned = {.kernel = kernel, .status = status};
    bhi_context_lock(puppet.context);
    const char *wrong = bhi_lesson_learned(worker, &learned);
    bhi_context_pump_unlock(puppet.context);
    return wrong;
}
