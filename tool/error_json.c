#include "tool/error_json.h"

#include "tool/exit_status.h"
#include "tool/json.h"

json_t *bhi_error_object(bh_status code, bh_reason reason, bh_subject subject, const char *name,
                         const char *message, const struct bhi_ending *ending) {
    json_t *error = json_object();
    json_object_set_new(error, "code", json_string(bh_status_name(code)));
    bhi_json_why(error, reason, subject, name);
    BHI_JSON_ADD(error, {"message", bhi_json_text(message)},
                 {"file", bhi_json_text_or_null(ending->file)},
                 {"line", bhi_json_known(ending->line)},
                 {"log", ending->log ? json_string(ending->log) : json_null()});
    return error;
}

int bhi_error_json(bool wanted, int (*work)(const struct bhi_args *args),
                   const struct bhi_args *args) {
    struct bhi_ending ending = {.status = BH_OK};
    bhi_ending_watch(wanted ? &ending : NULL);
    const int exit_status = work(args);
    if (wanted && exit_status != BHI_EXIT_READY && ending.message[0] && !ending.answered) {
        /* One line: bulkhead chaos prints its object on the last one. */
        json_t *object = json_pack("{s:o}", "error",
                                   bhi_error_object(bhi_ending_code(&ending, exit_status),
                                                    ending.reason, ending.subject,
                                                    ending.subject_name, ending.message, &ending));
        json_dumpf(object, stdout, JSON_COMPACT);
        fputc('\n', stdout);
        json_decref(object);
    }
    bhi_ending_fini(&ending);
    return exit_status;
}
