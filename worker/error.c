#include "worker/error.h"
#include "base/text.h"

#include <bulkhead/bulkhead.h>
#include <errno.h>
#include <string.h>

int bhi_error_why(struct bhi_error *error, const struct bhi_why *why) {
    struct bhi_told told;
    bhi_tell(&told, why);
    *error = (struct bhi_error){.status = bhi_why_status(why),
                                .reason = why->reason,
                                .subject = (bh_subject)told.subject,
                                .sys_errno = why->sys_errno,
                                .vk_result = why->vk_result,
                                .value = why->value,
                                .limit = why->limit,
                                .command_index = BHI_NO_COMMAND,
                                .executed = BH_EXECUTED_NO};
    memcpy(error->name, told.name, sizeof error->name);
    memcpy(error->text, told.text, sizeof error->text);
    memcpy(error->advice, told.advice, sizeof error->advice);
    return why->sys_errno ? -why->sys_errno : -EPROTO;
}

struct bhi_why bhi_error_as_why(const struct bhi_error *error) {
    return (struct bhi_why){.reason = error->reason,
                            .subject = error->subject,
                            .status = error->status,
                            .sys_errno = error->sys_errno,
                            .vk_result = error->vk_result,
                            .name = error->name,
                            .value = error->value,
                            .limit = error->limit,
                            .text = error->text,
                            .advice = error->advice};
}

const char *bhi_error_line(const struct bhi_error *error) {
    static _Thread_local char line[BHI_ERROR_TEXT];
    const struct bhi_why why = bhi_error_as_why(error);
    bhi_text_line(line, sizeof line, line, bhi_sentence(line, sizeof line, &why));
    return line;
}

void bhi_error_message(const struct bhi_error *error, struct bhi_message *out) {
    *out = (struct bhi_message){.type = BHI_MSG_ZYGOTE_FAILED};
    out->zygote_failed.status = (uint32_t)error->status;
    out->zygote_failed.error = error->sys_errno;
    out->zygote_failed.reason = error->reason;
    out->zygote_failed.subject = error->subject;
    out->zygote_failed.value = error->value;
    out->zygote_failed.limit = error->limit;
    bhi_text_line(out->zygote_failed.name, sizeof out->zygote_failed.name, error->name,
                  strlen(error->name));
    bhi_text_line(out->zygote_failed.text, sizeof out->zygote_failed.text, error->text,
                  strlen(error->text));
    bhi_text_line(out->zygote_failed.advice, sizeof out->zygote_failed.advice, error->advice,
                  strlen(error->advice));
}

void bhi_error_result(const struct bhi_error *error, struct bhi_result *result) {
    result->status = (uint32_t)error->status;
    result->vk_result = error->vk_result;
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
