/* libbulkhead as a script: the API that the command-line program uses, without workers or devices,
 * answering what the environment says. So every status of status.def can be seen through the
 * program, and what it does with it.
 *
 *   SCRIPT_<CALL>=STATUS     context, stream, ready, buffer, kernel, prepare (its event),
 *                            reflect, inspect, submit, event, map (and read),
 *                            devices, doctor: what that call answers; default OK
 *   SCRIPT_TEMPLATE, SCRIPT_OUTPUT, SCRIPT_SOURCE=STATUS   what bh_template_... answer
 *   SCRIPT_FILE, SCRIPT_LOAD=STATUS   what bh_buffer_create answers of a file, how the load ends
 *   SCRIPT_FILE_HANG=1       bh_buffer_create of a file returns when the context is destroyed
 *   SCRIPT_GLSL_HANG=1       bh_kernel_create_source, bh_kernel_inspect return when the context is
 *                            destroyed
 *   SCRIPT_GLSL_LOG=TEXT     what the compiler says
 *   SCRIPT_LOAD_HANG=1       loads stay pending until they are cancelled
 *   SCRIPT_LOAD_UNTIL=PATH   loads stay pending, half done, until there is such a file
 *   SCRIPT_UNTIMED=N         of the Nth submission no device time is known; others: N * 0.1 ms
 *   SCRIPT_ADD=N             what the kernel copies gets N added to each byte
 *   SCRIPT_FAIL_AT=N         SCRIPT_EVENT holds for the Nth submission only (from 1)
 *   SCRIPT_HANG=1            events stay pending until they are cancelled
 *   SCRIPT_PREPARE_HANG=1    the compile's event stays pending until it is cancelled
 *   SCRIPT_BINDINGS=0.0:r:x,0.1:w:y   what the kernel binds (r, w, rw; u: uniform)
 *   SCRIPT_PUSH=8            its bytes of push constants
 *   SCRIPT_OPTIONS=1         the options of streams and of the compiler go to standard error
 *   SCRIPT_MESSAGE=TEXT      of verdicts and details */
#ifndef TESTS_CLI_SCRIPTED_SCRIPT_H
#define TESTS_CLI_SCRIPTED_SCRIPT_H

#include <bulkhead/bulkhead.h>
#include <bulkhead/file.h>
#include <pthread.h>

struct bh_context {
    int unused;
};
struct bh_stream {
    uint64_t submissions;
    char tenant[64];
};
struct bh_buffer {
    _Atomic unsigned references; /* more than the first */
    uint64_t size;
    uint8_t *bytes;
    bh_status content;
    bool from_file;
    bh_array_info array;
};
struct bh_kernel {
    char name[64];
};
struct bh_event {
    _Atomic unsigned references; /* more than the first */
    bool pending;
    const char *until; /* there is a file of this name; NULL: nothing of the kind */
    bh_verdict verdict;
};

extern pthread_mutex_t script_lock;   /* guards bh_event.pending and |script_closed| */
extern pthread_cond_t script_changed; /* one of the two has changed */
extern bool script_closed;            /* bh_context_destroy was called */

/* Returns the status that the environment variable |call| names, BH_OK if there is no such
 * variable. Writes a status other than BH_OK into |detail|, with script_message(). */
bh_status script_answer(const char *call, bh_detail *detail);

/* Memory of an object, cleared; |script_objects| counts those that there are. */
void *script_new(size_t size);
void script_free(void *object);
extern _Atomic long script_objects;
/* How often these were called; |loads|: for a file. */
extern struct script_counts {
    _Atomic int resets, trims, submissions, kernels, loads;
} script_counts;

/* Returns SCRIPT_MESSAGE. */
const char *script_message(void);

/* Returns after bh_context_destroy has been called. */
void script_wait_closed(void);

#endif
