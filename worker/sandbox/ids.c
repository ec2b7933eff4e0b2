/* The ids that a worker has outside its user namespace.
 *
 *   an ordinary user's host    that user: no other id may be mapped
 *   root's host                an id that owns no files: BULKHEAD_WORKER_ID, else one from our own
 *                              range, else (if our namespace maps few ids) the highest mapped one
 *
 * Root's own id would work inside the sandbox. But a worker that escapes from the mount namespace
 * would then own root's files. */
#include "worker/sandbox/namespaces.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <unistd.h>

/* Each warden has its own: 1900000000 plus its pid, which is below 2^22. Neither systemd's list of
 * ids nor the tools that hand out ranges use numbers between 1879048192 and 2147483647. */
#define FIRST_ID 1900000000u

#define NOBODY  65534u /* owns files of unmapped users, and files on network file systems */
#define LAST_ID 4294967294u

/* Reads a uid_map or gid_map. Returns |wanted| if it is mapped, for 0 the highest mapped id, and 0
 * if there is none. */
static unsigned mapped(const char *path, unsigned wanted) {
    FILE *file = fopen(path, "re");
    unsigned inside;
    unsigned outside;
    unsigned count;
    unsigned found = 0;
    while (file && fscanf(file, "%u %u %u", &inside, &outside, &count) == 3) {
        if (wanted != 0 && wanted >= inside && wanted - inside < count) {
            found = wanted;
        } else if (wanted == 0 && count != 0 && inside + (count - 1) > found) {
            found = inside + (count - 1);
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

static bool mapped_in_both(unsigned id) {
    return mapped("/proc/self/uid_map", id) != 0 && mapped("/proc/self/gid_map", id) != 0;
}

static bool may_map(void) {
    cap_flag_value_t user = CAP_CLEAR;
    cap_flag_value_t group = CAP_CLEAR;
    cap_t now = cap_get_proc();
    const bool may = now && cap_get_flag(now, CAP_SETUID, CAP_EFFECTIVE, &user) == 0 &&
                     cap_get_flag(now, CAP_SETGID, CAP_EFFECTIVE, &group) == 0 && user == CAP_SET &&
                     group == CAP_SET;
    cap_free(now);
    return may;
}

/* Parses BULKHEAD_WORKER_ID. Returns 0, or -errno with |failure|. */
static int parse(const char *text, unsigned *out, struct bhi_error *failure) {
    char *end = NULL;
    errno = 0;
    const unsigned long id = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || id == 0 || id > LAST_ID) {
        return BHI_ERROR(failure, BH_REASON_WORKER_ID, text, .limit = LAST_ID, .sys_errno = EINVAL);
    }
    if (!mapped_in_both((unsigned)id)) {
        return BHI_ERROR(failure, BH_REASON_WORKER_ID, text, .limit = LAST_ID, .sys_errno = EINVAL);
    }
    *out = (unsigned)id;
    return 0;
}

int bhi_sandbox_ids_choose(struct bhi_sandbox_ids *ids, struct bhi_error *failure) {
    *ids = (struct bhi_sandbox_ids){.user = geteuid(), .group = getegid(), .own = true};
    if (ids->user != 0 || !may_map()) {
        return 0;
    }
    const char *wish = getenv("BULKHEAD_WORKER_ID");
    unsigned id = FIRST_ID + (unsigned)getpid();
    if (wish && wish[0] != '\0') {
        int r = parse(wish, &id, failure);
        if (r != 0) {
            return r;
        }
    } else if (!mapped_in_both(id)) {
        id = mapped("/proc/self/uid_map", 0);
        id -= id == NOBODY ? 1 : 0;
        if (id == 0 || !mapped_in_both(id)) {
            return 0; /* only root is mapped here; outside, it is the user who made the namespace */
        }
    }
    *ids = (struct bhi_sandbox_ids){.user = id, .group = id};
    return 0;
}

int bhi_sandbox_ids_take(const struct bhi_sandbox_ids *ids, struct bhi_error *failure) {
    if (ids->own) {
        return 0;
    }
    /* The capabilities over the namespace stay, because no id changes from 0. */
    if (setgroups(0, NULL) != 0 || setresgid(BHI_SANDBOX_ID, BHI_SANDBOX_ID, BHI_SANDBOX_ID) != 0 ||
        setresuid(BHI_SANDBOX_ID, BHI_SANDBOX_ID, BHI_SANDBOX_ID) != 0) {
        return BHI_ERROR(failure, BH_REASON_STEP, "become another user", .value = ids->user,
                         .sys_errno = errno);
    }
    return 0;
}
