#include "base/detail.h"
#include "base/format.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bh_status bhi_why_status(const struct bhi_why *why) {
    return why->status ? why->status : bhi_reason_info(why->reason)->status;
}

static const char *text_of(const char *text) {
    return text ? text : "";
}

static int write_name(char *out, size_t capacity, const struct bhi_why *why) {
    if (why->indexed) {
        bhi_format(out, capacity, "%s[%llu]", text_of(why->name), (unsigned long long)why->index);
    } else {
        bhi_format(out, capacity, "%s", text_of(why->name));
    }
    bhi_text_line(out, capacity, out, strlen(out));
    return (int)strlen(out);
}

/* Writes what stands for the placeholder that |at| begins with. Returns the length of that. */
static int fill_in(char *out, size_t capacity, const char *at, const struct bhi_why *why,
                   size_t *out_skip) {
    char buffer[128];
    const unsigned long long number = at[1] == 'v' ? why->value : why->limit;
    *out_skip = strcspn(at, "}") + 1;
    const char *unit = memchr(at, ':', *out_skip);
    switch (unit ? unit[1] : at[1]) {
    case 'n': /* {name} */
        return write_name(out, capacity, why);
    case 't': /* {text} */
        return bhi_format(out, capacity, "%s", text_of(why->text));
    case 'e': /* {error} */
        return bhi_format(out, capacity, "%s", strerror_r(why->sys_errno, buffer, sizeof buffer));
    case 'h': /* {value:hex} */
        return bhi_format(out, capacity, "0x%llx", number);
    case 'M': /* {limit:MiB} */
        return bhi_format(out, capacity, "%llu", number >> 20);
    case 'm': /* {limit:ms} */
        return bhi_format(out, capacity, "%s", bhi_text_time(number, buffer));
    default:
        return bhi_format(out, capacity, "%llu", number);
    }
}

size_t bhi_sentence(char *out, size_t capacity, const struct bhi_why *why) {
    char error[128];
    const char *at = bh_reason_text(why->reason);
    bool told = false; /* errno, by {error} */
    int used = bhi_format(out, capacity, "%.200s%s%s", text_of(why->place), why->place ? ": " : "",
                          text_of(why->said));
    for (size_t skip; *at && !why->said; at += skip) {
        const size_t left = capacity - (size_t)used;
        skip = strcspn(at, "{[]");
        if (skip) {
            used += bhi_format(out + used, left, "%.*s", (int)skip, at);
        } else if (*at == '{') {
            told |= at[1] == 'e';
            used += fill_in(out + used, left, at, why, &skip);
        } else { /* what stands in [] is for a text */
            skip = *at == ']' || text_of(why->text)[0] ? 1 : strcspn(at, "]") + 1;
        }
    }
    if (why->sys_errno && why->reason != BH_REASON_NONE && !told && !why->said && !why->after) {
        used += bhi_format(out + used, capacity - (size_t)used, "%s%s", used ? ": " : "",
                           strerror_r(why->sys_errno, error, sizeof error));
    }
    /* It may quote a path or a name of any bytes. */
    bhi_text_sanitise(out, capacity, out, (size_t)used);
    return strlen(out);
}

/* Appends what to do. It is not cut: the sentence is. */
static void advise(bh_detail *detail, const char *joint, const char *advice) {
    size_t used = (size_t)detail->sentence + detail->sentence_length;
    const size_t size = sizeof detail->message, most = size - strlen(joint) - strlen(advice) - 1;
    if (used > most) { /* between two characters */
        for (used = most; ((uint8_t)detail->message[used] & 0xc0) == 0x80; used--) {
        }
        detail->sentence_length = (uint16_t)(used - detail->sentence);
    }
    bhi_format(detail->message + used, size - used, "%s%s", joint, advice);
    detail->advice = (uint16_t)(used + strlen(joint));
}

static void fill(bh_detail *detail, const char *call, const struct bhi_why *why) {
    char limit[BHI_LIMIT_TEXT], advice[BHI_REASON_ADVICE];
    const bool special = *text_of(why->advice);
    const char *given = special ? why->advice : bh_reason_advice(why->reason);
    const bh_subject kind = why->subject ? why->subject : bhi_reason_info(why->reason)->subject;
    *detail = (bh_detail){.status = bhi_why_status(why),
                          .reason = why->reason,
                          .subject = *text_of(why->name) ? kind : BH_SUBJECT_NONE,
                          .sys_errno = why->sys_errno,
                          .vk_result = why->vk_result,
                          .value = why->value,
                          .limit = why->limit};
    write_name(detail->subject_name, sizeof detail->subject_name, why);
    const int begin = bhi_format(detail->message, 256, "%s%s", call, *call ? ": " : "");
    detail->sentence = (uint16_t)begin;
    detail->sentence_length = (uint16_t)bhi_sentence(detail->message + begin,
                                                     sizeof detail->message - (size_t)begin, why);
    if (*given) {
        bhi_text_line(advice, sizeof advice, given, strlen(given));
        const char *joint =
            why->reason == BH_REASON_REFUSED ? "; to allow it: " : "; to correct it: ";
        advise(detail, special ? joint : "; ", advice);
    } else if (*bhi_limit_named(why->sys_errno, limit)) {
        advise(detail, "; ", limit + strlen("; "));
    }
}

/* Fails for |why|, which has something behind it. */
static void fill_after(bh_detail *detail, const char *call, const struct bhi_why *why) {
    const bh_detail after = *why->after; /* it may be |detail| */
    const int length = after.sentence_length ? after.sentence_length : (int)strlen(after.message);
    const int end = after.sentence + length;
    char text[sizeof after.message], joint[32];
    struct bhi_why whole = *why;
    bhi_format(text, sizeof text, "%s%.*s", text_of(why->said), length,
               after.message + after.sentence);
    whole.text = text;
    whole.said = why->said ? text : NULL;
    whole.sys_errno = why->sys_errno ? why->sys_errno : after.sys_errno;
    if (!*text_of(whole.name) && after.subject != BH_SUBJECT_NONE) {
        whole.name = after.subject_name;
        whole.subject = after.subject;
    }
    fill(detail, call, &whole);
    if (after.advice) {
        bhi_format(joint, sizeof joint, "%.*s", after.advice - end, after.message + end);
        advise(detail, joint, after.message + after.advice);
    }
}

bh_status bhi_fail_why(bh_detail *detail, const char *call, const struct bhi_why *why) {
    const bh_status status = bhi_why_status(why);
    struct bhi_why lacks = *why;
    if (why->reason == BH_REASON_MEMORY && !why->sys_errno) {
        lacks.sys_errno = ENOMEM;
        why = &lacks;
    }
    if (detail && why->after) {
        fill_after(detail, call, why);
    } else if (detail) {
        fill(detail, call, why);
    }
    return status;
}

const char *bhi_say(char out[BHI_REASON_TEXT], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bhi_vformat(out, BHI_REASON_TEXT, format, arguments);
    va_end(arguments);
    return out;
}

void bhi_tell(struct bhi_told *out, const struct bhi_why *why) {
    *out = (struct bhi_told){.reason = why->reason,
                             .subject = why->subject ? why->subject
                                                     : bhi_reason_info(why->reason)->subject,
                             .sys_errno = why->sys_errno,
                             .vk_result = why->vk_result,
                             .value = why->value,
                             .limit = why->limit};
    write_name(out->name, sizeof out->name, why);
    bhi_text_sanitise(out->text, sizeof out->text, text_of(why->text), strlen(text_of(why->text)));
    bhi_text_line(out->advice, sizeof out->advice, text_of(why->advice),
                  strlen(text_of(why->advice)));
}

struct bhi_why bhi_told_why(const struct bhi_told *told, uint32_t status) {
    return (struct bhi_why){.reason = (bh_reason)told->reason,
                            .subject = (bh_subject)told->subject,
                            .status = (bh_status)status,
                            .sys_errno = told->sys_errno,
                            .vk_result = told->vk_result,
                            .name = told->name,
                            .value = told->value,
                            .limit = told->limit,
                            .text = told->text,
                            .advice = told->advice};
}

bool bhi_told_read(struct bhi_told *told, uint32_t status, struct bhi_why *out) {
    if (!bhi_reason_from_worker(told->reason, status) || !bhi_subject_exists(told->subject) ||
        told->sys_errno < 0 || told->sys_errno > 4095) {
        return false;
    }
    bhi_text_line(told->name, sizeof told->name, told->name, sizeof told->name);
    bhi_text_line(told->text, sizeof told->text, told->text, sizeof told->text);
    bhi_text_line(told->advice, sizeof told->advice, told->advice, sizeof told->advice);
    *out = bhi_told_why(told, status);
    return true;
}

const char *bhi_signal_name(int signal) {
    static const struct {
        int signal;
        const char *name;
    } names[] = {
        {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
        {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
        {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
        {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
        {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},   {SIGSTOP, "SIGSTOP"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].signal == signal) {
            return names[i].name;
        }
    }
    return "a signal";
}

bool bhi_signal_is_foreign(int signal) {
    switch (signal) {
    case 0:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGSYS:
    case SIGPIPE:
    case SIGXFSZ:
        return false;
    default:
        return true;
    }
}
