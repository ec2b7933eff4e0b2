/* The processes of Bulkhead below a host, as an administrator finds them in /proc: by their titles and
 * by who started whom. */
#ifndef BHI_CHAOS_HOST_TARGET_H
#define BHI_CHAOS_HOST_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/complaint.h"

enum bhi_target_kind {
    BHI_TARGET_WORKER,
    BHI_TARGET_SPARE,
    BHI_TARGET_COMPILER,
    BHI_TARGET_LOADER,
    BHI_TARGET_SENTINEL,
    BHI_TARGET_ZYGOTE,
    BHI_TARGET_WARDEN,
    BHI_TARGET_OPENER,
    BHI_TARGET_KINDS
};

struct bhi_target {
    enum bhi_target_kind kind;
    pid_t pid, host; /* |host|: the process whose context it serves */
    char state;      /* as in /proc/PID/stat */
    char stream[64]; /* that a worker serves; otherwise empty */
};

struct bhi_targets {
    struct bhi_target *items; /* owned; in the order of their pids */
    size_t count;
};

extern const char *const bhi_target_names[BHI_TARGET_KINDS + 1]; /* ends with NULL */
/* Parses a list such as "worker,zygote" into a set of bits, 1 << kind. */
bool bhi_target_parse(const char *list, uint32_t *out_set, struct bhi_complaint *complaint);
/* Finds those below |root|; |root| is its host, or starts it. False: /proc cannot be read, or there is
 * no memory. */
bool bhi_targets_find(pid_t root, struct bhi_targets *out_targets);
void bhi_targets_free(struct bhi_targets *targets);
/* Returns a pidfd of |target|. -1: it has ended, or its pid is another process now. */
int bhi_target_hold(pid_t root, const struct bhi_target *target);

#endif
