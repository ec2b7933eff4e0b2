/* Kernels that have ended workers: one record for each tenant and kernel, bounded, each forgotten
 * when it has ended none for a while. A kernel that has ended enough of them is held, and so is one
 * that the driver's compiler has died of: it is not to be given to a worker again. One that is only
 * suspected, because its worker had been given others, is tried: it gets a worker that has not
 * (T2). What one tenant's workers did is nothing to another's. No lock, no clock, no I/O. */
#ifndef BHI_SUPERVISOR_KERNEL_DEATH_RECORDS_H
#define BHI_SUPERVISOR_KERNEL_DEATH_RECORDS_H

#include "base/list.h"
#include "base/map.h"
#include "supervisor/stream/stream.h"
#include <bulkhead/bulkhead.h>

#define BHI_DEATH_RECORDS 1024u /* records, at most */

struct bhi_death_record {
    struct bhi_list age;    /* the longest without another death first */
    struct bhi_chain chain; /* by the beginning of its hash */
    char tenant[BHI_TENANT];
    uint8_t hash[32];
    char name[64]; /* as it was called the last time */
    uint32_t deaths;
    bool uncompilable; /* the driver's compiler died of it */
    bool trial;      /* it may have been another's doing: its next worker is to be given no other */
    bh_status cause; /* of the last one, and so on */
    int32_t signal;
    uint64_t origin;
    uint64_t first_ns, last_ns;
    char message[320];
};

struct bhi_death_records {
    uint32_t most_deaths; /* it is held with so many; 0: never for those */
    uint64_t keep_ns;     /* after its last death; 0: nothing is remembered */
    struct bhi_list ages;
    struct bhi_map map; /* by the beginning of their hashes */
    uint32_t count;
};

void bhi_death_records_init(struct bhi_death_records *death_records, uint32_t most_deaths,
                            uint64_t keep_ns);
void bhi_death_records_fini(struct bhi_death_records *death_records);
/* A worker of |tenant| has died of the kernel, as |verdict| says; |compiling|: in the driver's
 * compiler. True: it is held from now on, and was not before. Where there is no memory it is not
 * remembered. */
bool bhi_death_records_note(struct bhi_death_records *death_records, const char *tenant,
                            const bh_verdict *verdict, bool compiling, uint64_t now_ns);
/* What the kernel ended with may have been another's doing: it is tried. */
void bhi_death_records_try(struct bhi_death_records *death_records, const char *tenant,
                           const bh_verdict *verdict, uint64_t now_ns);
bool bhi_death_records_on_trial(struct bhi_death_records *death_records, const char *tenant,
                                const uint8_t hash[32], uint64_t now_ns);
/* A worker that was given no other has done with it, and lives: its trial is over. */
void bhi_death_records_tried(struct bhi_death_records *death_records, const char *tenant,
                             const uint8_t hash[32]);
/* NULL: it may run. */
const struct bhi_death_record *bhi_death_records_held(struct bhi_death_records *death_records,
                                                      const char *tenant, const uint8_t hash[32],
                                                      uint64_t now_ns);
/* When it is forgotten: BH_FOREVER, never. */
uint64_t bhi_death_records_expiry(const struct bhi_death_records *death_records,
                                  const struct bhi_death_record *record);
/* Forgets one, or all of |tenant| (NULL). */
void bhi_death_records_forget(struct bhi_death_records *death_records, const char *tenant,
                              const uint8_t hash[32]);
/* Those that are held, the newest last; up to |capacity|. Returns how many there are. */
size_t bhi_death_records_list(struct bhi_death_records *death_records, bh_quarantined *out,
                              size_t capacity, uint64_t now_ns);

#endif
