/* Status codes. One table for the API, the wire and --json: base/status.def, from which
 * <bulkhead/status_codes.h> is generated at build time.
 */
#ifndef BULKHEAD_STATUS_H
#define BULKHEAD_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#include <bulkhead/status_codes.h> /* typedef enum bh_status { BH_OK = 0, … } bh_status; */

/* Who has to act, and whether submitting again can help. */
typedef enum bh_status_class {
    BH_CLASS_NONE,    /* success, or nothing has happened yet */
    BH_CLASS_CALLER,  /* an argument or a call is wrong */
    BH_CLASS_INPUT,   /* the kernel or the data was refused before it ran */
    BH_CLASS_GUILTY,  /* the submission did it: a crash, a hang, a limit */
    BH_CLASS_VICTIM,  /* lost with something else; safe to submit again */
    BH_CLASS_ENVIRON, /* the machine cannot do it now */
} bh_status_class;

#if defined(__GNUC__)
#define BH_MUST_USE __attribute__((warn_unused_result))
#define BH_API      __attribute__((visibility("default")))
#else
#define BH_MUST_USE
#define BH_API
#endif
#define BH_INLINE static inline

/* Constant strings, never NULL, also for an unknown code. Thread: any. Do not block. */
BH_API const char *bh_status_name(bh_status status);   /* "DEADLINE" */
BH_API const char *bh_status_text(bh_status status);   /* what happened */
BH_API const char *bh_status_advice(bh_status status); /* what the caller should do */
BH_API bh_status_class bh_status_classify(bh_status status);

#ifdef __cplusplus
}
#endif
#endif
