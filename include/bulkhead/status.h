/* Status codes, reasons and their subjects. Three tables, base/status.def, base/reason.def and
 * base/subject.def, have those of the API, of the protocol and of --json. The build generates
 * bulkhead/status_codes.h and bulkhead/reason_codes.h from them: in the build folder's
 * include/, and installed beside this file. */
#ifndef BULKHEAD_STATUS_H
#define BULKHEAD_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#include <bulkhead/reason_codes.h> /* typedef enum bh_reason { BH_REASON_NONE = 0, … } bh_reason;
                                      typedef enum bh_subject { … } bh_subject; */
#include <bulkhead/status_codes.h> /* typedef enum bh_status { BH_OK = 0, … } bh_status; */

/* What kind of failure a status is: what to fix, and whether submitting again can help. */
typedef enum bh_status_class {
    BH_STATUS_CLASS_NONE,    /* success, or nothing has happened yet */
    BH_STATUS_CLASS_CALLER,  /* an argument or a call is wrong: the same call fails again */
    BH_STATUS_CLASS_INPUT,   /* the kernel or the data was refused before it ran */
    BH_STATUS_CLASS_GUILTY,  /* the submission is the cause: a crash, a hang, a limit */
    BH_STATUS_CLASS_VICTIM,  /* cancelled, or lost by another failure: it can be submitted again */
    BH_STATUS_CLASS_ENVIRON, /* the machine cannot do it now */
} bh_status_class;

#if defined(__GNUC__)
/* The compiler warns where the result is not used. */
#define BH_MUST_USE __attribute__((warn_unused_result))
/* The library exports the function. */
#define BH_API __attribute__((visibility("default")))
#else
#define BH_MUST_USE
#define BH_API
#endif
/* Marks a function that the header defines; it calls an exported one. */
#define BH_INLINE static inline

/* Returns the name of |status|, such as "DEADLINE": a constant string, never NULL. */
BH_API const char *bh_status_name(bh_status status);
/* Returns what |status| means in one phrase: a constant string, never NULL. */
BH_API const char *bh_status_text(bh_status status);
/* Returns what the caller should do: a constant string, never NULL. */
BH_API const char *bh_status_advice(bh_status status);
/* Returns the class of |status|; BH_STATUS_CLASS_NONE for an unknown code. For a verdict use
 * bh_verdict_classify: the verdict of a dependent is VICTIM, whatever its status. */
BH_API bh_status_class bh_status_classify(bh_status status);

/* Returns the name of |reason|, such as "COMPILE_DEADLINE": a constant string, never NULL. */
BH_API const char *bh_reason_name(bh_reason reason);
/* Returns what |reason| means: the sentence that messages have for it, with {name}, {value},
 * {limit} and {text} where these stand. A constant string, never NULL. */
BH_API const char *bh_reason_text(bh_reason reason);
/* Returns what the caller should do about |reason|: a constant string, never NULL; empty: what the
 * message says, or else the advice of the status. */
BH_API const char *bh_reason_advice(bh_reason reason);
/* Returns the name of |subject|, such as "ARGUMENT": a constant string, never NULL. */
BH_API const char *bh_subject_name(bh_subject subject);

#ifdef __cplusplus
}
#endif
#endif
