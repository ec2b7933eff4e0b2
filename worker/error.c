#include "worker/error.h"
#include "base/text.h"

#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <string.h>

int bhi_error_why(struct bhi_error *error, const struct bhi_why *why) {
    *error = (struct bhi_error){
        .status = bhi_why_status(why), .command_index = BHI_NO_COMMAND, .executed = BH_EXECUTED_NO};
    bhi_tell(&error->told, why);
    return why->sys_errno ? -why->sys_errno : -EPROTO;
}

struct bhi_why bhi_error_as_why(const struct bhi_error *error) {
    return bhi_told_why(&error->told, error->status);
}

const char *bhi_error_line(const struct bhi_error *error) {
    static _Thread_local char line[BHI_ERROR_TEXT];
    const struct bhi_why why = bhi_error_as_why(error);
    bhi_text_line(line, sizeof line, line, bhi_sentence(line, sizeof line, &why));
    return line;
}

void bhi_error_message(const struct bhi_error *error, struct bhi_message *out) {
    const struct bhi_told *told = &error->told;
    *out = (struct bhi_message){.type = BHI_MSG_ZYGOTE_FAILED};
    struct bhi_msg_zygote_failed *to = &out->zygote_failed;
    to->status = (uint32_t)error->status;
    to->error = told->sys_errno;
    to->reason = told->reason;
    to->subject = told->subject;
    to->value = told->value;
    to->limit = told->limit;
    bhi_text_line(to->name, sizeof to->name, told->name, strlen(told->name));
    bhi_text_line(to->text, sizeof to->text, told->text, strlen(told->text));
    bhi_text_line(to->advice, sizeof to->advice, told->advice, strlen(told->advice));
}

void bhi_error_result(const struct bhi_error *error, struct bhi_result *result) {
    result->status = (uint32_t)error->status;
    result->vk_result = error->told.vk_result;
    result->command_index = error->command_index;
    result->executed = error->executed;
    result->bad_memory = error->bad_memory;
}

int bhi_error_refuse(struct bhi_error *error, enum bhi_refused refused, int sys_errno,
                     const char *what) {
    struct bhi_refusal why;
    const bool no_proc = refused == BHI_REFUSED_IDS && sys_errno == ENOENT;
    if (refused != BHI_REFUSED_NAMESPACES && sys_errno != EPERM && sys_errno != EACCES &&
        sys_errno != ENOSYS && !no_proc) {
        return BHI_ERROR(error, BH_REASON_STEP, what, .sys_errno = sys_errno);
    }
    bhi_refusal_find(refused, sys_errno, "", &why);
    return BHI_ERROR(error, BH_REASON_REFUSED, what, .text = why.cause, .advice = why.setting,
                     .sys_errno = sys_errno);
}
