/* Kernels, and how a puppet's workers are told them as spares. */
#ifndef BHT_SPARES_SCENE_H
#define BHT_SPARES_SCENE_H

#include "puppet.h"

#define KERNELS 8

extern struct spares_scene {
    struct puppet p;
    bh_kernel *kernels[KERNELS];
} spares;

/* No worker can be started. The puppet's stream is served, by the worker that is returned. */
struct bhi_worker *spares_open(void);
void spares_close(void);
uint64_t spares_id_of(int kernel);
/* |tenant| launches a kernel so many times. */
void spares_use(const char *tenant, int kernel, int times);
void spares_turn(void);
void spares_turn_due(void);
/* The spare says how its lesson ended. Returns what is wrong with the answer, or NULL. */
const char *spares_answer(struct bhi_worker *worker, uint64_t kernel, uint32_t status);

#endif
