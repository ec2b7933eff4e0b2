/* Kernels, and how a puppet's workers are told them as spares. */
#ifndef BHT_SPARES_SCENE_H
#define BHT_SPARES_SCENE_H

#include "puppet.h"

#define KERNELS 8

/* Each test begins with no worker that can be started, and the puppet's stream served. */
extern struct spares_scene {
    bh_kernel *kernels[KERNELS];
    struct bhi_worker *serving;
} spares;

uint64_t spares_id_of(int kernel);
/* |tenant| launches a kernel so many times. */
void spares_use(const char *tenant, int kernel, int times);
/* Does launch it. |alone|: as bh_submit_info says. */
bh_event *spares_launch(bh_stream *stream, int kernel, bool alone);
void spares_turn(void);
void spares_turn_due(void);
/* The spare says how its lesson ended. Returns what is wrong with the answer, or NULL. */
const char *spares_answer(struct bhi_worker *worker, uint64_t kernel, uint32_t status);

#endif
