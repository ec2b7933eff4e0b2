#include "batch/slurm/probe_record.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/owner.h"
#include "batch/slurm/whole.h"

enum { MOST = 4096 };

static char *path_in(const char *state) {
    return bhi_whole_text("%s/" BHI_PROBE_FILE, state);
}

bool bhi_probe_record_save(const struct bhi_probe_record *record, const char *state,
                           struct bhi_complaint *complaint) {
    json_t *object =
        json_pack("{s:i, s:s, s:s, s:s, s:I, s:I}", "format", BHI_PROBE_FORMAT, "id", record->id,
                  "nonce", record->nonce, "asks", record->asks, "job", (json_int_t)record->job,
                  "submitted_ns", (json_int_t)record->submitted_ns);
    BHI_AUTO_FREE char *text = object ? json_dumps(object, 0) : NULL;
    BHI_AUTO_FREE char *path = path_in(state);
    json_decref(object);
    if (!text || !path) {
        return bhi_refuse(complaint, "out of memory");
    }
    return bhi_whole_write(path, text, strlen(text), 0600, complaint);
}

bool bhi_probe_record_load(struct bhi_probe_record *out_record, const char *state) {
    size_t size = 0;
    int error;
    BHI_AUTO_FREE char *path = path_in(state);
    BHI_AUTO_FREE char *text = path ? bhi_whole_read(path, MOST, &size, &error) : NULL;
    json_t *object = text ? json_loadb(text, size, 0, NULL) : NULL;
    uint64_t format;
    *out_record = (struct bhi_probe_record){.job = 0};
    const bool good =
        object && bhi_slurm_take_number(object, "format", BHI_PROBE_FORMAT, &format) &&
        format == BHI_PROBE_FORMAT &&
        bhi_slurm_take_digits(object, "id", out_record->id, BHI_ARRAY_ID) &&
        bhi_slurm_take_digits(object, "nonce", out_record->nonce, BHI_PROBE_NONCE) &&
        bhi_slurm_take_digits(object, "asks", out_record->asks, sizeof out_record->asks - 1) &&
        bhi_slurm_take_number(object, "job", UINT32_MAX, &out_record->job) &&
        bhi_slurm_take_number(object, "submitted_ns", INT64_MAX, &out_record->submitted_ns);
    json_decref(object);
    if (!good) {
        *out_record = (struct bhi_probe_record){.job = 0};
    }
    return good;
}

void bhi_probe_record_remove(const char *state) {
    BHI_AUTO_FREE char *path = path_in(state);
    if (path) {
        (void)unlink(path);
    }
}

void bhi_probe_record_comment(const struct bhi_probe_record *record, char out[BHI_PROBE_COMMENT]) {
    snprintf(out, BHI_PROBE_COMMENT, "bulkhead:%s:probe:%s", record->id, record->nonce);
}
