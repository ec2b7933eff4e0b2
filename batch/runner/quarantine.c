#include "batch/runner/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/links.h"
#include "batch/journal/host.h"
#include "tool/clock.h"
#include "tool/json.h"
#include "tool/outfile.h"
#include "tool/place.h"

enum { NAME = 2 * sizeof((bh_verdict *)0)->kernel_hash + 1 };

/* Returns false if the kernel is not known. */
static bool name_of(const bh_verdict *verdict, char out[NAME]) {
    sodium_bin2hex(out, NAME, verdict->kernel_hash, sizeof verdict->kernel_hash);
    return !sodium_is_zero(verdict->kernel_hash, sizeof verdict->kernel_hash);
}

bool bhi_quarantine_open(const char *path, struct bhi_quarantine *out_quarantine,
                         struct bhi_complaint *complaint) {
    struct stat status;
    char link[NAME_MAX + 1];
    *out_quarantine = (struct bhi_quarantine){.folder = -1};
    const int folder = bhi_links_make_folder(path, geteuid(), link, sizeof link);
    if (link[0]) {
        bhi_refuse(complaint,
                   "on the way to it, %.200s is a link of another user in a folder that everybody "
                   "can write: it is not followed",
                   link);
    } else if (folder < 0) {
        bhi_refuse(complaint, "it cannot be made: %s", strerror(-folder));
    } else if (fstat(folder, &status) != 0) {
        bhi_refuse(complaint, "it cannot be opened: %s", strerror(errno));
    } else if (bhi_place_is_ours(&status, path, complaint)) {
        out_quarantine->folder = folder;
        return true;
    }
    if (folder >= 0) {
        close(folder);
    }
    return false;
}

bool bhi_quarantine_has(const struct bhi_quarantine *quarantine, const bh_verdict *verdict) {
    char name[NAME];
    struct stat status;
    return name_of(verdict, name) &&
           fstatat(quarantine->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode);
}

static char *describe(const bh_verdict *verdict, const char *job) {
    char host[BHI_HOST_NAME];
    json_t *object =
        BHI_JSON({"kernel", bhi_json_text(verdict->kernel_name)},
                 {"code", json_string(bh_status_name(verdict->status))},
                 {"message", bhi_json_text(verdict->message)}, {"job", bhi_json_text(job)},
                 {"host", json_string(bhi_host_machine(host))},
                 {"time", bhi_json_ms(bhi_clock_calendar_ns())});
    char *text = json_dumps(object, JSON_REAL_PRECISION(15));
    json_decref(object);
    return text;
}

void bhi_quarantine_put(struct bhi_quarantine *quarantine, const bh_verdict *verdict,
                        const char *job) {
    char name[NAME];
    if (!name_of(verdict, name)) {
        return;
    }
    const bool has = bhi_quarantine_has(quarantine, verdict);
    char *text = has ? NULL : describe(verdict, job);
    if (has) { /* whoever put it there may have been killed before its name was durable */
        if (!bhi_folder_fsync(quarantine->folder)) {
            quarantine->failed = !bhi_refuse(&quarantine->why, "fsync: %s", strerror(errno));
        }
    } else if (!text) {
        quarantine->failed = !bhi_refuse(&quarantine->why, "out of memory");
    } else if (!bhi_outfile_put(quarantine->folder, name, text, strlen(text), 0600,
                                &quarantine->why)) {
        quarantine->failed = true;
    }
    free(text);
}

void bhi_quarantine_close(struct bhi_quarantine *quarantine) {
    if (quarantine->folder >= 0) {
        close(quarantine->folder);
    }
    quarantine->folder = -1;
}
