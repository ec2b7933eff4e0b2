#include "request/like.h"
#include "base/format.h"

#include <stdio.h>
#include <string.h>

/* -- which input it is --------------------------------------------------------------------------
 */

/* Returns the length of the text before '=', for messages. */
static int given_as(const struct bhi_run_binding *binding) {
    const size_t length = strcspn(binding->text, "=");
    return length > 100 ? 100 : (int)length;
}

static bool refuse_unknown(const struct bhi_run_request *request, const char *like,
                           struct bhi_complaint *complaint) {
    char there[300] = "";
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *binding = &request->bindings[i];
        const size_t used = strlen(there);
        if (binding->in_path && used + 110 < sizeof there) {
            bhi_format(there + used, sizeof there - used, "%s%.*s", used ? ", " : "",
                       given_as(binding), binding->text);
        }
    }
    return bhi_refuse(complaint, "no binding is given as '%.100s'; the inputs are %s", like,
                      *there ? there : "none");
}

static bool find_like(struct bhi_run_request *request, struct bhi_run_binding *output,
                      struct bhi_complaint *complaint) {
    struct bhi_run_binding wanted = {.name = ""};
    const char *like = output->like;
    const size_t length = strlen(like);
    if (!length) {
        return bhi_refuse(complaint,
                          "like needs a binding: like:0 takes the type and shape of binding 0");
    }
    if (!bhi_binding_parse_place(&wanted, like, length, complaint)) {
        return false;
    }
    for (uint32_t i = 0; i < request->binding_count; i++) {
        const struct bhi_run_binding *one = &request->bindings[i];
        if (strcmp(one->name, wanted.name) != 0 || !bhi_slot_is(one->slot, wanted.slot)) {
            continue;
        }
        if (one == output) {
            return bhi_refuse(complaint, "like names the output itself: name an input");
        }
        if (!one->in_path) {
            return bhi_refuse(complaint,
                              "'%.100s' is an output, too: like takes the type and shape of an "
                              "input",
                              like);
        }
        output->like_index = i;
        return true;
    }
    return refuse_unknown(request, like, complaint);
}

bool bhi_run_find_likes(struct bhi_run_request *request, const char *dashes,
                        struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *output = &request->bindings[i];
        struct bhi_complaint inner;
        if (output->like && !find_like(request, output, &inner)) {
            return bhi_refuse(complaint, "%s%s %.200s: %.700s", dashes, output->option,
                              output->text, inner.text);
        }
    }
    return true;
}

/* -- its array ----------------------------------------------------------------------------------
 */

bool bhi_run_take_likes(struct bhi_run_request *request, const char *dashes,
                        struct bhi_complaint *complaint) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        struct bhi_run_binding *output = &request->bindings[i];
        if (!output->like) {
            continue;
        }
        const struct bhi_run_binding *input = &request->bindings[output->like_index];
        output->array = input->array;
        if (output->out_tensor && input->tensor) {
            output->array.dtype = input->tensor_dtype;
        }
        if (output->array.dtype == BH_DTYPE_NONE) {
            return bhi_refuse(complaint,
                              "%s%s %.200s: a .npy file cannot store the type of %s%s %.200s: "
                              "replace like by a type and a shape",
                              dashes, output->option, output->text, dashes, input->option,
                              input->text);
        }
    }
    return true;
}
