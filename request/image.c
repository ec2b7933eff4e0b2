#include "request/image.h"

#include <string.h>

#include "base/format.h"
#include "base/selector.h"
#include "tool/text.h"

enum { POINTER = 8, MOST_ALIGNED = 16 };

static const struct bhi_run_binding *find_named(const struct bhi_run_request *request) {
    for (uint32_t i = 0; i < request->binding_count; i++) {
        if (request->bindings[i].name[0]) {
            return &request->bindings[i];
        }
    }
    return NULL;
}

void bhi_run_note_language(struct bhi_run_request *request, enum bhi_language language) {
    request->compiled = language == BHI_LANGUAGE_CUDA;
    request->image = bhi_language_is_cuda(language);
    if (request->image && request->entry) {
        bhi_text_clean(request->kernel_name, sizeof request->kernel_name, request->entry);
    }
}

/* What is wrong, and with which option; the first row counts. */
struct fault {
    bool is;
    const char *option, *why;
};

static bool refuse_first(const struct fault *faults, size_t count, const char *dashes,
                         struct bhi_complaint *complaint) {
    const char *quote = *dashes ? "" : "\"";
    for (size_t i = 0; i < count; i++) {
        if (faults[i].is) {
            return bhi_refuse(complaint, "%s%s%s%s%s", quote, dashes, faults[i].option, quote,
                              faults[i].why);
        }
    }
    return true;
}

bool bhi_run_check_image(const struct bhi_run_request *request, const char *device,
                         const char *dashes, struct bhi_complaint *complaint) {
    const bool image = request->image;
    const struct fault faults[] = {
        {!image && request->block[0], "block", " is for CUDA kernels; this one has its own"},
        {!image && request->has_shared, "shared", " is for CUDA kernels; this one has its own"},
        {image && !device, "device",
         " cuda is missing: it is for CUDA, and the default device is not"},
        {image && !request->entry && !request->compiled, "entry",
         " is missing: an image for CUDA can have several kernels, and none is the default (in "
         "CUDA C++, extern \"C\" keeps the name)"},
        {image && !request->block[0], "block",
         " X[,Y[,Z]] is missing: a CUDA kernel does not say how many threads a block has"},
        {image && request->trusted, "trusted",
         " is not for CUDA kernels: they have no guard to leave out"},
        {image && request->spec_count, "spec",
         " is not for CUDA kernels: they have no specialization constants"},
        {image && request->push_text_count, "push",
         ": the parameters of a CUDA kernel have no names: give the values in their order, as "
         "TYPE:VALUE,..."},
    };
    const struct bhi_run_binding *named = image ? find_named(request) : NULL;
    if (!refuse_first(faults, sizeof faults / sizeof *faults, dashes, complaint)) {
        return false;
    }
    return !named || bhi_refuse(complaint,
                                "%s%s %.200s: the parameters of a CUDA kernel have no names: 0 is "
                                "the first, 1 the second",
                                dashes, named->option, named->text);
}

bool bhi_run_check_driver(const struct bhi_run_request *request, const char *selector,
                          const char *dashes, struct bhi_complaint *complaint) {
    if (bhi_selector_is_cuda(selector) == request->image) {
        return true;
    }
    return bhi_refuse(complaint, "%s cannot run it: %s", selector,
                      !request->image
                          ? "a CUDA device needs CUDA C++ (.cu), PTX, a cubin or a fatbin"
                      : *dashes ? "it is for CUDA, use --device cuda"
                                : "it is for CUDA, use \"device\": \"cuda\"");
}

static bool match_binding(const struct bhi_run_binding *given, const bh_kernel_info *info,
                          struct bhi_complaint *complaint) {
    const struct bhi_slot slot = given->slot;
    if (info->binding_count == 0) {
        return bhi_refuse(complaint, "--%s %.200s: the kernel has no parameters", given->option,
                          given->text);
    }
    if (slot.set || slot.element || slot.binding >= info->binding_count) {
        return bhi_refuse(
            complaint, "--%s %.200s: the kernel has no parameter %s; it has %u, from 0 on",
            given->option, given->text, bhi_slot_describe(slot, false).text, info->binding_count);
    }
    const uint32_t bytes = info->bindings[slot.binding].count;
    return bytes == POINTER ||
           bhi_refuse(
               complaint,
               "--%s %.200s: parameter %u has %u byte%s and is no pointer: give its value in "
               "--push",
               given->option, given->text, slot.binding, bytes, bytes == 1 ? "" : "s");
}

bool bhi_run_match_parameters(const struct bhi_run_request *request, const bh_kernel_info *info,
                              struct bhi_complaint *complaint) {
    char list[300] = "";
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < request->binding_count; i++) {
        if (!match_binding(&request->bindings[i], info, complaint)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < info->binding_count; i++) {
        const uint32_t bytes = info->bindings[i].count, lowest = bytes & -bytes;
        const uint32_t aligned = lowest < MOST_ALIGNED ? lowest : MOST_ALIGNED;
        const size_t used = strlen(list);
        if (bytes == 0 || bhi_run_request_find(request, (struct bhi_slot){0, i, 0})) {
            continue;
        }
        wanted = (wanted + aligned - 1) / aligned * aligned + bytes;
        bhi_format(list + used, sizeof list - used, "%s%u (%u byte%s)", used ? ", " : "", i, bytes,
                   bytes == 1 ? "" : "s");
    }
    wanted = (wanted + 3) / 4 * 4; /* rounded up as --push does */
    if (request->push.size == wanted) {
        return true;
    }
    if (!wanted) {
        return bhi_refuse(complaint, "--push: the kernel has no parameters that are not bound");
    }
    return bhi_refuse(complaint,
                      "--push: %u bytes given, these parameters are not bound and take %u: %s; a "
                      "pointer needs --in, --out or --inout",
                      request->push.size, wanted, list);
}
