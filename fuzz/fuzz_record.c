/* Any bytes as a lane record. What is accepted can be walked, and every part of it read. */
#include "fuzz.h"
#include "ipc/commands.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static unsigned sum(const void *bytes, size_t size) {
    unsigned total = 0;
    for (size_t i = 0; i < size; i++) {
        total += ((const uint8_t *)bytes)[i];
    }
    return total;
}

static unsigned walk(const struct bhi_lane_record *record) {
    const uint8_t *end = (const uint8_t *)record + record->size;
    uint32_t count = 0;
    unsigned total = 0;
    for (const struct bhi_cmd_header *c = bhi_record_first(record); c;
         c = bhi_record_next(record, c)) {
        FUZZ_CHECK((const uint8_t *)c + c->size <= end);
        total += sum(c, c->size);
        count++;
        if (c->type != BHI_CMD_DISPATCH) {
            continue;
        }
        const struct bhi_cmd_dispatch *d = (const void *)c;
        FUZZ_CHECK(c->size == bhi_cmd_dispatch_size(d->binding_count, d->push_size));
        FUZZ_CHECK((const uint8_t *)(bhi_cmd_bindings(d) + d->binding_count) <= end);
        FUZZ_CHECK(bhi_cmd_push(d) + d->push_size <= end);
        for (uint32_t i = 0; i < d->binding_count; i++) {
            const uint32_t access = bhi_cmd_bindings(d)[i].access; /* 4: it is optional */
            FUZZ_CHECK((access & 3) && access < 8 && bhi_cmd_bindings(d)[i].element < 256);
        }
        total += sum(bhi_cmd_push(d), d->push_size);
    }
    FUZZ_CHECK(count == record->command_count);
    return total;
}

static void check(const struct bhi_lane_record *record, size_t size) {
    char why[160];
    static volatile unsigned sink;
    int rc = bhi_record_check(record, size, why, sizeof why);
    FUZZ_CHECK(rc == 0 || rc == -EPROTO);
    FUZZ_CHECK(bhi_record_check(record, size, NULL, 0) == rc);
    fuzz_check_reason(why, rc != 0);
    if (rc == 0) {
        sink = walk(record);
    }
    (void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* In the ring a record is aligned and has a whole header: bhi_lane_peek sees to that. */
    if (size < sizeof(struct bhi_lane_record)) {
        return 0;
    }
    struct bhi_lane_record *record = malloc(size);
    memcpy(record, data, size);
    check(record, size);
    /* And with the size that it must have, which is hard to guess. */
    record->size = size;
    check(record, size);
    free(record);
    return 0;
}
