/* Fills in a request, one value at a time. A command line and a job of a batch are parsed
 * separately; from here on they are handled alike. The request borrows texts. A complaint names
 * neither option nor key. After a refusal the request must still be freed; request->error is the
 * errno if a system call was the reason. */
#ifndef BHI_REQUEST_FILL_H
#define BHI_REQUEST_FILL_H

#include "request/run.h"

/* Takes a text. */
typedef bool bhi_run_text(struct bhi_run_request *request, const char *text,
                          struct bhi_complaint *complaint);
/* Takes NAME=VALUE: |length| bytes of |name|, and |value|, which is NULL if there is no '='. */
typedef bool bhi_run_pair(struct bhi_run_request *request, const char *name, size_t length,
                          const char *value, struct bhi_complaint *complaint);

bhi_run_text bhi_run_set_entry, bhi_run_set_language, bhi_run_set_compile_options,
    bhi_run_set_groups, bhi_run_set_block, bhi_run_set_shared, bhi_run_add_push,
    bhi_run_add_include, bhi_run_set_deadline, bhi_run_set_compile_deadline, bhi_run_set_grace,
    bhi_run_set_tenant, bhi_run_set_repeat, bhi_run_set_memory_limit, bhi_run_set_memory,
    bhi_run_set_device, bhi_run_set_cache_dir;
bhi_run_pair bhi_run_add_in, bhi_run_add_out, bhi_run_add_inout, bhi_run_add_constant,
    bhi_run_add_define;

/* Adds a binding that has only option and text so far. Returns NULL if it is refused. */
struct bhi_run_binding *bhi_run_add_binding(struct bhi_run_request *request, const char *option,
                                            const char *name, size_t length, const char *files,
                                            struct bhi_complaint *complaint);
/* Keeps binding->error for the request if the binding was refused. Returns |good|. */
bool bhi_run_end_binding(struct bhi_run_request *request, const struct bhi_run_binding *binding,
                         bool good);

#endif
