#include "judge/time/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bhi_base_open(const struct bhi_court *court, struct bhi_base *out,
                   struct bhi_judge_outcome *outcome) {
    *out = (struct bhi_base){0};
    return bhi_court_timed_stream(court, &out->stream, outcome);
}

/* GLSL that declares the bindings of the dispatch and does nothing. They must be used somewhere, or
 * the compiler leaves them out. */
static char *write_source(const bh_command *of) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out) {
        return NULL;
    }
    fprintf(out, "#version 450\nlayout(local_size_x = 1) in;\n");
    for (uint32_t i = 0; i < of->dispatch.binding_count; i++) {
        const bh_binding *binding = &of->dispatch.bindings[i];
        fprintf(out, "layout(set = %u, binding = %u) %sbuffer B%u { uint w%u[]; };\n", binding->set,
                binding->binding, binding->access == BH_ACCESS_READ ? "readonly " : "", i, i);
    }
    fprintf(out, "void main() {\n    if (gl_NumWorkGroups.x == 1u) return;\n    uint sum = 0u;\n");
    for (uint32_t i = 0; i < of->dispatch.binding_count; i++) {
        fprintf(out,
                of->dispatch.bindings[i].access == BH_ACCESS_READ ? "    sum += w%u[0];\n"
                                                                  : "    w%u[0] = sum;\n",
                i);
    }
    fprintf(out, "}\n");
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static bool make_kernel(struct bhi_base *base, struct bhi_court *court, char *source,
                        struct bhi_judge_outcome *outcome) {
    const struct bhi_kernel_file file = {.path = "empty.comp",
                                         .code = source,
                                         .size = strlen(source),
                                         .deadline_ns = court->task->compile_deadline_ns};
    bhi_judged_kernel_free(&base->kernel);
    free(base->source);
    base->source = source;
    return bhi_judged_kernel_make(&file, false, court->context, &base->kernel, outcome);
}

bool bhi_base_command(struct bhi_base *base, struct bhi_court *court, const bh_command *of,
                      bh_command *out, struct bhi_judge_outcome *outcome) {
    char *source = write_source(of);
    if (!source) {
        return bhi_judge_outcome_memory(outcome);
    }
    if (base->kernel.kernel && !strcmp(base->source, source)) {
        free(source);
    } else if (!make_kernel(base, court, source, outcome)) {
        return false;
    }
    *out = *of;
    out->dispatch.kernel = base->kernel.kernel;
    out->dispatch.groups[0] = out->dispatch.groups[1] = out->dispatch.groups[2] = 1;
    out->dispatch.push_size = 0;
    return true;
}

void bhi_base_close(struct bhi_base *base) {
    bh_stream_release(base->stream);
    bhi_judged_kernel_free(&base->kernel);
    free(base->source);
    *base = (struct bhi_base){0};
}
