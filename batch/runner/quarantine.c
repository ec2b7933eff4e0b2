#include "batch/runner/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "batch/journal/host.h"
#include "tool/clock.h"
#include "tool/json.h"
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
    *out_quarantine = (struct bhi_quarantine){.folder = -1};
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return bhi_refuse(complaint, "it cannot be made: %s", strerror(errno));
    }
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || fstat(folder, &status) != 0) {
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
    json_t *object = json_object();
    json_object_set_new(object, "kernel", bhi_json_text(verdict->kernel_name));
    json_object_set_new(object, "code", json_string(bh_status_name(verdict->status)));
    json_object_set_new(object, "message", bhi_json_text(verdict->message));
    json_object_set_new(object, "job", bhi_json_text(job));
    json_object_set_new(object, "host", json_string(bhi_host_machine(host)));
    json_object_set_new(object, "time", bhi_json_ms(bhi_clock_calendar_ns()));
    char *text = json_dumps(object, JSON_REAL_PRECISION(15));
    json_decref(object);
    return text;
}

/* The name is ours alone: of this machine, process and moment. */
static bool write_temporary(int folder, const char *name, const char *text) {
    const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    bool good = dprintf(fd, "%s\n", text) == (int)strlen(text) + 1 && fsync(fd) == 0;
    const int error = errno;
    if (close(fd) != 0 || !good) {
        errno = good ? errno : error;
        good = false;
    }
    return good;
}

/* A file system without hard links gets a rename, which replaces an entry by an equal one. */
static bool publish(int folder, const char *temporary, const char *name) {
    return linkat(folder, temporary, folder, name, 0) == 0 || errno == EEXIST ||
           renameat(folder, temporary, folder, name) == 0;
}

void bhi_quarantine_put(struct bhi_quarantine *quarantine, const bh_verdict *verdict,
                        const char *job) {
    char name[NAME], host[BHI_HOST_NAME], temporary[BHI_HOST_NAME + 64];
    if (!name_of(verdict, name) || bhi_quarantine_has(quarantine, verdict)) {
        return;
    }
    char *text = describe(verdict, job);
    snprintf(temporary, sizeof temporary, ".%s.%ld.%llu", bhi_host_name(host), (long)getpid(),
             (unsigned long long)bhi_clock_calendar_ns());
    errno = ENOMEM;
    if (!text || !write_temporary(quarantine->folder, temporary, text) ||
        !publish(quarantine->folder, temporary, name)) {
        quarantine->failed = true;
        bhi_refuse(&quarantine->why, "%s", strerror(errno));
    }
    (void)unlinkat(quarantine->folder, temporary, 0);
    free(text);
}

void bhi_quarantine_close(struct bhi_quarantine *quarantine) {
    if (quarantine->folder >= 0) {
        close(quarantine->folder);
    }
    quarantine->folder = -1;
}
