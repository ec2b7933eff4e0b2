#include "spares_scene.h"

#include "supervisor/context/context.h"
#include "supervisor/kernel/kernel.h"
#include "supervisor/kernel/usage.h"
#include "supervisor/reactor/assignment.h"
#include "supervisor/reactor/lessons.h"

struct spares_scene spares;

struct bhi_worker *spares_open(void) {
    puppet_open(&spares.p);
    spares.p.context->settings.spare_kernels = 16;
    spares.p.zygote->state = BHI_ZYGOTE_STARTING;
    for (uint32_t i = 0; i < KERNELS; i++) {
        const uint32_t code[] = {0x07230203, i, 0, 0, 0};
        const bh_kernel_options options = {.struct_size = sizeof options,
                                           .name = (char[]){(char)('a' + i), 0}};
        BHT_EQ(bh_kernel_create_spirv(spares.p.context, code, sizeof code, &options,
                                      &spares.kernels[i], NULL),
               BH_OK);
    }
    return puppet_serving(&spares.p);
}

void spares_close(void) {
    for (int i = 0; i < KERNELS; i++) {
        bh_kernel_release(spares.kernels[i]);
    }
    puppet_close(&spares.p);
}

uint64_t spares_id_of(int kernel) {
    return spares.kernels[kernel]->body->id;
}

void spares_use(const char *tenant, int kernel, int times) {
    bhi_context_lock(spares.p.context);
    for (int i = 0; i < times; i++) {
        struct bhi_used_kernel used = {.body = spares.kernels[kernel]->body,
                                       .id = spares_id_of(kernel),
                                       .compile_ns = 3600 * UINT64_C(1000000000)};
        memcpy(used.hash, spares.kernels[kernel]->body->hash, sizeof used.hash);
        memcpy(used.name, spares.kernels[kernel]->name, sizeof used.name);
        spares.p.context->spares_due |=
            bhi_usage_note(spares.p.context->usages, spares.p.stream->device, tenant, &used);
    }
    bhi_context_unlock(spares.p.context);
}

void spares_turn(void) {
    (void)bhi_assignment_turn(spares.p.context);
}

void spares_turn_due(void) {
    bhi_context_lock(spares.p.context);
    spares.p.context->spares_due = true;
    bhi_context_unlock(spares.p.context);
    spares_turn();
}

const char *spares_answer(struct bhi_worker *worker, uint64_t kernel, uint32_t status) {
    const struct bhi_msg_learned learned = {.kernel = kernel, .status = status};
    bhi_context_lock(spares.p.context);
    const char *wrong = bhi_lesson_learned(worker, &learned);
    bhi_context_pump_unlock(spares.p.context);
    return wrong;
}
