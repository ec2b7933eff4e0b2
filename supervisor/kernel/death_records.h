/* Records of kernels that have killed workers: one for each tenant and kernel, limited in number. A
 * record expires some time after the last death. A kernel with enough deaths, one that has killed
 * the driver's compiler, or one that only ever passes its deadline, is held: no worker gets it. A
 * kernel that is only suspected, because its worker was given others, too, is on trial: it gets a
 * worker that was given no other (T2). The records of one tenant have no effect on another. No
 * lock, no clock, no I/O. */
#ifndef BHI_SUPERVISOR_KERNEL_DEATH_RECORDS_H
#define BHI_SUPERVISOR_KERNEL_DEATH_RECORDS_H

#include "base/list.h"
#include "base/map.h"
#include "supervisor/stream/stream.h"
#include <bulkhead/bulkhead.h>
#include <bulkhead/quarantine.h>

#define BHI_DEATH_RECORDS 1024u /* records, at most */

struct bhi_death_record {
    struct bhi_list age;    /* the longest without another death first */
    struct bhi_chain chain; /* by the beginning of its hash */
    char tenant[BHI_TENANT];
    uint8_t hash[32];
    char name[64]; /* its name at the last death */
    uint32_t deaths;
    uint64_t deadlines; /* launches in a row that passed their deadline */
    bool uncompilable;  /* it has killed the driver's compiler */
    bool trial;         /* it is on trial: its next worker is given no other */
    bh_status cause;    /* of the last death, as all below */
    int32_t signal;
    uint64_t origin;
    uint64_t first_ns, last_ns;
    char message[320];
};

struct bhi_death_records {
    uint32_t most_deaths;    /* a kernel with so many is held; 0: deaths hold none */
    uint64_t most_deadlines; /* likewise in a row; 0: they are not counted */
    uint64_t keep_ns;        /* after the last death; 0: there are no records */
    struct bhi_list ages;
    struct bhi_map map; /* by the beginning of their hashes */
    uint32_t count;
};

void bhi_death_records_init(struct bhi_death_records *death_records, uint32_t most_deaths,
                            uint64_t keep_ns);
void bhi_death_records_fini(struct bhi_death_records *death_records);
/* Records that the kernel of |verdict| has killed a worker of |tenant|; |compiling|: in the
 * driver's compiler. Returns true if the kernel is held now, and was not before. Records nothing if
 * out of memory. */
bool bhi_death_records_note(struct bhi_death_records *death_records, const char *tenant,
                            const bh_verdict *verdict, bool compiling, uint64_t now_ns);
/* Records that a launch of the kernel of |verdict| has passed its deadline. Returns true as above.
 */
bool bhi_death_records_late(struct bhi_death_records *death_records, const char *tenant,
                            const bh_verdict *verdict, uint64_t now_ns);
/* A launch has ended before its deadline: those that passed it before do not count any more. */
void bhi_death_records_in_time(struct bhi_death_records *death_records, const char *tenant,
                               const uint8_t hash[32]);
/* Puts the kernel of |verdict| on trial, because another one may have caused the failure. */
void bhi_death_records_try(struct bhi_death_records *death_records, const char *tenant,
                           const bh_verdict *verdict, uint64_t now_ns);
bool bhi_death_records_on_trial(struct bhi_death_records *death_records, const char *tenant,
                                const uint8_t hash[32], uint64_t now_ns);
/* Ends the trial: a worker that was given no other kernel has completed it, and lives. */
void bhi_death_records_tried(struct bhi_death_records *death_records, const char *tenant,
                             const uint8_t hash[32]);
/* Returns the record of a kernel that is held; NULL: it may run. */
const struct bhi_death_record *bhi_death_records_held(struct bhi_death_records *death_records,
                                                      const char *tenant, const uint8_t hash[32],
                                                      uint64_t now_ns);
/* Returns true if the kernel of a record is held for its deadlines, and for no death. */
bool bhi_death_records_only_late(const struct bhi_death_records *death_records,
                                 const struct bhi_death_record *record);
/* Returns when the record expires; BH_FOREVER: never. */
uint64_t bhi_death_records_expiry(const struct bhi_death_records *death_records,
                                  const struct bhi_death_record *record);
/* Forgets one, or all of |tenant| (NULL). */
void bhi_death_records_forget(struct bhi_death_records *death_records, const char *tenant,
                              const uint8_t hash[32]);
/* Lists the kernels that are held, the newest last, up to |capacity|. Returns how many there are.
 */
size_t bhi_death_records_list(struct bhi_death_records *death_records, bh_quarantined *out,
                              size_t capacity, uint64_t now_ns);

#endif
