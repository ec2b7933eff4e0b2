/* Why something failed: the sentence about it, which is made here alone, from a reason of
 * base/reason.def, and the bh_detail of a caller. */
#ifndef BHI_BASE_DETAIL_H
#define BHI_BASE_DETAIL_H

#include <bulkhead/bulkhead.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BHI_SUBJECT_NAME  64u
#define BHI_REASON_TEXT   512u
#define BHI_REASON_ADVICE 200u

/* A reason, and what its sentence needs. Texts may be NULL, and of any bytes. */
struct bhi_why {
    bh_reason reason;
    const char *name; /* of the subject; "" is as NULL: nothing is named */
    uint64_t value, limit;
    const char *text;       /* what others say (a driver, a compiler), or a second name */
    const char *said;       /* a sentence that is made already, in place of the table's */
    const char *place;      /* such as a file's name: it stands before the sentence, with a colon */
    const char *advice;     /* what to do, in place of the table's */
    const bh_detail *after; /* a failure behind it: its sentence is {text}, or stands after |said|;
                               its advice, its errno and, without a |name|, its subject hold */
    uint64_t index;         /* with |indexed|: the subject is |name|[index] */
    bool indexed;
    bh_subject subject; /* NONE: the table's */
    bh_status status;   /* BH_OK: the table's */
    int sys_errno;      /* its text is appended, if there is a reason */
    int vk_result;
};

/* Fails a call, such as "bh_submit", for a reason: BHI_FAIL(detail, call, BH_REASON_OVER, "spares",
 * .value = spares, .limit = 64) returns the status, so that a function can end with it. The name
 * after the reason may be left out. |detail| may be NULL, and |call| be "". */
#define BHI_FAIL(detail, call, ...)                                                                \
    bhi_fail_why(detail, call, &(struct bhi_why){.reason = __VA_ARGS__})
bh_status bhi_fail_why(bh_detail *detail, const char *call, const struct bhi_why *why);

/* Returns from the function that has this line, with the status of a call that has failed. */
#define BHI_TRY(call)                                                                              \
    do {                                                                                           \
        const bh_status bhi_tried = (call);                                                        \
        if (bhi_tried != BH_OK) {                                                                  \
            return bhi_tried;                                                                      \
        }                                                                                          \
    } while (0)

/* Refuses an argument that is NULL. */
#define BHI_NEED(argument, call, detail)                                                           \
    BHI_TRY((argument) ? BH_OK : BHI_FAIL(detail, call, BH_REASON_NULL, #argument))

/* A text of a reason, made as printf does: BHI_FAIL(…, .text = BHI_SAY("is %d", n)). It lives until
 * the end of the block. */
#define BHI_SAY(...) bhi_say((char[BHI_REASON_TEXT]){0}, __VA_ARGS__)
const char *bhi_say(char out[BHI_REASON_TEXT], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes the sentence, without advice, as one line that may be shown. Returns its length. */
size_t bhi_sentence(char *out, size_t capacity, const struct bhi_why *why);
/* Returns the status of a call that fails for |why|. */
bh_status bhi_why_status(const struct bhi_why *why);

/* A reason as one process tells another. Copy it once, then check it. */
struct bhi_told {
    uint32_t reason, subject;
    int32_t sys_errno, vk_result;
    uint64_t value, limit;
    char name[BHI_SUBJECT_NAME];
    char text[BHI_REASON_TEXT];
    char advice[BHI_REASON_ADVICE];
};

void bhi_tell(struct bhi_told *out, const struct bhi_why *why);
/* The way back; it points into |told|. */
struct bhi_why bhi_told_why(const struct bhi_told *told, uint32_t status);
/* Checks what a worker has told with |status|, and cleans its texts. Returns false unless it is a
 * reason that a worker may give (bhi_reason_from_worker) and a subject that exists. |out| points
 * into |told|. */
bool bhi_told_read(struct bhi_told *told, uint32_t status, struct bhi_why *out);

/* "SIGSEGV" for 11. */
const char *bhi_signal_name(int signal);
/* Returns true if a sandboxed process cannot end itself by |signal|: the filters let it send itself
 * SIGABRT alone, and its own faults and writes cause those listed in detail.c. So somebody else, or
 * a limit of the host, has ended it. */
bool bhi_signal_is_foreign(int signal);

#endif
