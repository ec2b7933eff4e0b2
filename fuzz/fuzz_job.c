/* Any bytes as a line of a batch: it is refused with a reason, or becomes a job whose text means
 * the same. */
#include "batch/job/job.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

/* What parses a job can make buffers; it never does. */
void bh_buffer_release(bh_buffer *buffer) {
    FUZZ_CHECK(!buffer);
}

static void check_id(const char *id) {
    const size_t length = strlen(id);
    FUZZ_CHECK(length > 0 && length <= BHI_JOB_ID);
    for (size_t i = 0; i < length; i++) {
        FUZZ_CHECK((unsigned char)id[i] >= 0x20 && id[i] != 0x7f);
    }
}

static void check_paths(char *const *paths, size_t count) {
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(paths[i][0] && strcmp(paths[i], "-") != 0);
    }
}

static void check_spec(const struct bhi_job_spec *spec) {
    check_id(spec->id);
    check_paths(&spec->kernel, 1);
    check_paths(spec->reads, spec->read_count);
    check_paths(spec->writes, spec->write_count);
    FUZZ_CHECK(spec->retries >= -1 && spec->retries <= BHI_JOB_RETRIES);
    FUZZ_CHECK(spec->priority >= -BHI_JOB_PRIORITY && spec->priority <= BHI_JOB_PRIORITY);
    FUZZ_CHECK(spec->depends_count <= BHI_JOB_DEPENDENCIES);
    for (size_t i = 0; i < spec->depends_count; i++) {
        check_id(spec->depends_on[i]);
        FUZZ_CHECK(strcmp(spec->depends_on[i], spec->id) != 0);
        for (size_t j = 0; j < i; j++) {
            FUZZ_CHECK(strcmp(spec->depends_on[i], spec->depends_on[j]) != 0);
        }
    }
}

/* It is parsed again when the job's turn comes, and when a batch is resumed. */
static void check_text(const struct bhi_job_spec *spec) {
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_job_spec again;
    /* Groups that were a number or a string are an array in it, which may be longer. */
    if (strlen(spec->text) > BHI_JOB_TEXT) {
        return;
    }
    FUZZ_CHECK(bhi_job_parse(spec->text, strlen(spec->text), &again, &complaint));
    FUZZ_CHECK(!strcmp(again.text, spec->text) && !strcmp(again.id, spec->id));
    FUZZ_CHECK(again.depends_count == spec->depends_count);
    FUZZ_CHECK(again.read_count == spec->read_count && again.write_count == spec->write_count);
    bhi_job_spec_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_job_spec spec;
    if (bhi_job_parse((const char *)data, size, &spec, &complaint)) {
        FUZZ_CHECK(complaint.text[0] == '\0');
        check_spec(&spec);
        check_text(&spec);
        bhi_job_spec_free(&spec);
    } else {
        FUZZ_CHECK(complaint.text[0] != '\0' && !spec.text && !spec.id && !spec.depends_on);
    }
    return 0;
}
