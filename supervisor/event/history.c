/* The journal of a host, in the format of chaos histories (chaos/history). Only numbers, names from tables
 * and hashes are written, so nothing is escaped. */
#include "base/detail.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/futex.h"
#include "supervisor/event/event.h"

#include <bulkhead/history.h>
#include <bulkhead/version.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DIGEST = 16 };

struct bh_history {
    int fd; /* appended to: a line is one write, which others cannot come between */
    uint64_t began_ns;
    _Atomic int error; /* errno of the first line that could not be written; 0: all were */
};

static void write_line(struct bh_history *history, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void write_line(struct bh_history *history, const char *format, ...) {
    char line[1024];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    errno = ENOSPC; /* of a write that was cut off */
    int none = 0;
    if (length < 0 || (size_t)length >= sizeof line ||
        write(history->fd, line, (size_t)length) != length) {
        (void)atomic_compare_exchange_strong(&history->error, &none, errno);
    }
}

static unsigned long long since(const struct bh_history *history, uint64_t ns) {
    return ns > history->began_ns ? ns - history->began_ns : 0;
}

static unsigned long long now(const struct bh_history *history) {
    return since(history, bhi_now_ns());
}

static const char *digest_of(const void *data, size_t size, char out[2 * DIGEST + 1]) {
    unsigned char digest[DIGEST];
    crypto_generichash(digest, sizeof digest, data, size, NULL, 0);
    return sodium_bin2hex(out, 2 * DIGEST + 1, digest, sizeof digest);
}

BH_API bh_status bh_history_create(const char *path, uint64_t patience_ns, bh_history **out_history,
                                   bh_detail *detail) {
    static const char CALL[] = "bh_history_create";
    BHI_NEED(out_history, CALL, detail);
    *out_history = NULL;
    BHI_NEED(path, CALL, detail);
    BHI_NEED(patience_ns, CALL, detail);
    BHI_AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        return BHI_FAIL(detail, CALL, BH_REASON_SYSTEM_CALL, "open", .sys_errno = errno);
    }
    struct bh_history *history = sodium_init() < 0 ? NULL : malloc(sizeof *history);
    if (!history) {
        return BHI_FAIL(detail, CALL, BH_REASON_MEMORY);
    }
    *history = (struct bh_history){.fd = bhi_fd_steal(&fd), .began_ns = bhi_now_ns()};
    write_line(history,
               "{\"bulkhead_chaos\":1,\"version\":\"%d.%d.%d\",\"seed\":0,\"duration_ns\":0,"
               "\"faults_asked\":0,\"streams\":1,\"faults\":[],\"rate\":0.0,\"outside\":true,"
               "\"accelerator\":false,\"patience_ns\":\"%llu\",\"recovery_ns\":1,\"device\":\"\","
               "\"driver\":\"\"}\n",
               BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH,
               (unsigned long long)patience_ns);
    *out_history = history;
    return BH_OK;
}

BH_API void bh_history_attempted(bh_history *history, uint64_t request, bh_event *event, bool once,
                                 const void *expected, size_t size) {
    char hex[2 * DIGEST + 1];
    if (history) {
        write_line(history,
                   "{\"kind\":\"attempt\",\"at_ns\":%llu,\"op\":%llu,\"request\":%llu,\"once\":%s,"
                   "\"expects\":%s,\"expected\":\"%s\"}\n",
                   now(history), (unsigned long long)bh_event_id(event),
                   (unsigned long long)request, once ? "true" : "false",
                   expected ? "true" : "false", digest_of(expected, expected ? size : 0, hex));
    }
}

BH_API void bh_history_ended(bh_history *history, bh_event *event) {
    static const char *const states[] = {"pending", "ready", "poisoned"},
                             *const executed[] = {"no", "unknown", "yes"},
                             *const blames[] = {"none", "suspected", "certain"};
    bh_verdict verdict = {.struct_size = sizeof verdict};
    if (!history) {
        return;
    }
    const bool over = bh_event_verdict(event, &verdict) == BH_OK;
    const int state = !over                     ? BH_EVENT_PENDING
                      : verdict.status == BH_OK ? BH_EVENT_READY
                                                : BH_EVENT_POISONED;
    write_line(
        history,
        "{\"kind\":\"end\",\"at_ns\":%llu,\"op\":%llu,\"lost\":false,\"state\":\"%s\","
        "\"status\":\"%s\",\"executed\":\"%s\",\"signal\":%d,\"worker_pid\":%d,\"origin\":%llu,"
        "\"hops\":%u,\"submitted_ns\":%llu,\"started_ns\":%llu,\"ended_ns\":%llu,"
        "\"blame\":\"%s\",\"changed\":false}\n",
        now(history), (unsigned long long)bh_event_id(event), states[state],
        bh_status_name(over ? verdict.status : BH_PENDING), executed[verdict.executed],
        verdict.signal, verdict.worker_pid, (unsigned long long)verdict.origin, verdict.hops,
        since(history, verdict.submitted_ns), since(history, verdict.started_ns),
        since(history, verdict.ended_ns), blames[verdict.blame]);
}

BH_API void bh_history_used(bh_history *history, bh_event *event, const void *data, size_t size) {
    char hex[2 * DIGEST + 1];
    if (history) {
        write_line(history,
                   "{\"kind\":\"result\",\"at_ns\":%llu,\"op\":%llu,\"status\":\"%s\","
                   "\"digest\":\"%s\"}\n",
                   now(history), (unsigned long long)bh_event_id(event), bh_status_name(BH_OK),
                   digest_of(data, data ? size : 0, hex));
    }
}

BH_API void bh_history_answered(bh_history *history, uint64_t request, bool good) {
    if (history) {
        write_line(history, "{\"kind\":\"answer\",\"at_ns\":%llu,\"request\":%llu,\"good\":%s}\n",
                   now(history), (unsigned long long)request, good ? "true" : "false");
    }
}

BH_API void bh_history_rested(bh_history *history) {
    DIR *folder = history ? opendir("/proc/self/fd") : NULL;
    unsigned count = 0;
    while (folder && readdir(folder)) {
        count++;
    }
    if (folder) {
        closedir(folder);
        write_line(
            history,
            "{\"kind\":\"sample\",\"at_ns\":%llu,\"descriptors\":%u,\"processes\":0,\"files\":0,"
            "\"rss_bytes\":0,\"idle\":true}\n",
            now(history), count);
    }
}

BH_API bh_status bh_history_finish(bh_history *history, bh_detail *detail) {
    static const char CALL[] = "bh_history_finish";
    BHI_NEED(history, CALL, detail);
    if (!atomic_load(&history->error)) {
        write_line(history, "{\"kind\":\"complete\"}\n");
    }
    int error = atomic_load(&history->error);
    error = close(history->fd) != 0 && !error ? errno : error;
    free(history);
    return error ? BHI_FAIL(detail, CALL, BH_REASON_SYSTEM_CALL, "write", .sys_errno = error)
                 : BH_OK;
}
