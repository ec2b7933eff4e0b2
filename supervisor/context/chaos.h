/* Chaos in the shipped library: faults that bh_context_options.chaos asks for, so that a host can be
 * tested with what no driver does on demand (docs/chaos.md).
 *
 * Which submission gets which fault is drawn here. It happens where the real fault comes from: in the
 * worker (worker/session/session.c), in the zygote, and where a submission waits for a worker. */
#ifndef BHI_SUPERVISOR_CONTEXT_CHAOS_H
#define BHI_SUPERVISOR_CONTEXT_CHAOS_H

#include <bulkhead/detail.h>
#include <stdbool.h>
#include <stdint.h>

enum bhi_chaos_fault {
    BHI_CHAOS_DEVICE_LOST,
    BHI_CHAOS_OUT_OF_MEMORY,
    BHI_CHAOS_UNAVAILABLE,
    BHI_CHAOS_LATE,
    BHI_CHAOS_SPAWN,
    BHI_CHAOS_SLOW_LOAD,
    BHI_CHAOS_NONE
};

struct bhi_chaos {
    const char *from; /* the option or variable that asked for it; NULL: there is none */
    uint64_t seed;
    uint32_t shares[BHI_CHAOS_NONE]; /* of a million */
    uint32_t lasts_ms[BHI_CHAOS_NONE];
    uint64_t spawns, loads; /* lock: how many were drawn for */
};

/* Reads |text|, or $BULKHEAD_CHAOS instead if |environment| and it is set. NULL, or without a share:
 * no chaos. Returns BH_OK or BH_INVALID_ARGUMENT: nothing of such a text is honoured. */
bh_status bhi_chaos_parse(struct bhi_chaos *out, const char *text, bool environment,
                          const char *call, bh_detail *detail);
/* What the |number|th submission on the stream |name| gets; the next load; whether the next process is
 * not started. The same seed gives the same answers. Lock held. */
enum bhi_chaos_fault bhi_chaos_submission(const struct bhi_chaos *chaos, const char *name,
                                          uint64_t number);
enum bhi_chaos_fault bhi_chaos_load(struct bhi_chaos *chaos);
bool bhi_chaos_spawn(struct bhi_chaos *chaos);

const char *bhi_chaos_name(enum bhi_chaos_fault fault);
/* The status with which a submission may end because of |fault|. */
bh_status bhi_chaos_status(enum bhi_chaos_fault fault);
/* The flags of its lane record that make the worker do it. */
uint64_t bhi_chaos_flags(const struct bhi_chaos *chaos, enum bhi_chaos_fault fault);

#endif
