#include "batch/job/request.h"
#include "batch/job/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool bhi_job_request_parse(const char *text, const char *folder, bool reads_includes,
                           struct bhi_job_request *out_request, struct bhi_complaint *complaint) {
    json_t *object = bhi_job_object_load(text, strlen(text), complaint);
    out_request->error = object ? 0 : ENOMEM; /* it was parsed when it was added */
    const bool good =
        object && bhi_job_object_parse(object, folder, reads_includes, out_request, complaint);
    json_decref(object);
    return good;
}

void bhi_job_request_free(struct bhi_job_request *request) {
    bhi_run_request_free(&request->run);
    for (size_t i = 0; i < request->text_count; i++)
        free(request->texts[i]);
    free(request->texts);
    free(request->eval);
    json_decref(request->object);
    *request = (struct bhi_job_request){0};
}
