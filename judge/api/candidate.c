#include "judge/api/candidate.h"

#include <stdlib.h>
#include <string.h>

#include "base/detail.h"
#include "request/run.h"

enum { MAX_CODE = 64 << 20 };

static bh_status take_code(const bh_judge_candidate *given, const char *call,
                           struct bhi_kernel_file *out, bh_detail *detail) {
    char *copy;
    out->size = given->size ? given->size : strnlen(given->code, MAX_CODE + 1u);
    if (!out->size || out->size > MAX_CODE) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "candidate.size",
                        .text = "must be from 1 byte to 64 MiB");
    }
    if (!(copy = malloc(out->size + 1))) {
        return BHI_FAIL(detail, call, BH_REASON_MEMORY);
    }
    memcpy(copy, given->code, out->size);
    copy[out->size] = '\0';
    out->code = copy;
    return BH_OK;
}

/* What the compiler would refuse must not be a candidate's verdict. */
static bh_status check_defines(const bh_judge_candidate *given, const char *call,
                               bh_detail *detail) {
    struct bhi_source copy = {.defines = NULL};
    struct bhi_complaint complaint = {.text = ""};
    bh_status status = BH_OK;
    for (uint32_t i = 0; i < given->define_count && status == BH_OK; i++) {
        const char *const name = given->defines[i].name;
        if (!name) {
            status = BHI_FAIL(detail, call, BH_REASON_NULL, "candidate.defines");
        } else if (!bhi_source_define(&copy, name, strlen(name), given->defines[i].value,
                                      &complaint)) {
            status = complaint.memory ? BHI_FAIL(detail, call, BH_REASON_MEMORY)
                                      : BHI_FAIL(detail, call, BH_REASON_ARGUMENT,
                                                 "candidate.defines", .text = complaint.text);
        }
    }
    bhi_source_free(&copy);
    return status;
}

static bh_status check_specs(const bh_judge_candidate *given, const char *call, bh_detail *detail) {
    for (uint32_t i = 0; i < given->specialization_count; i++) {
        const bh_specialization *one = &given->specializations[i];
        if (one->size != 1 && one->size != 2 && one->size != 4 && one->size != 8) {
            return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "candidate.specializations",
                            .text = "have 1, 2, 4 or 8 bytes");
        }
        for (uint32_t k = 0; k < i; k++) {
            if (given->specializations[k].constant_id == one->constant_id) {
                return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "candidate.specializations",
                                .text = "have distinct ids");
            }
        }
    }
    return BH_OK;
}

static bh_status take_defines(const bh_judge_candidate *given, const char *call,
                              struct bhi_kernel_file *out, bh_detail *detail) {
    const struct {
        const void *array;
        uint32_t count, most;
        const char *name;
    } arrays[] = {
        {given->defines, given->define_count, BHI_MAX_DEFINES, "candidate.defines"},
        {given->includes, given->include_count, BHI_MAX_INCLUDES, "candidate.includes"},
        {given->specializations, given->specialization_count, BHI_MAX_SPECS,
         "candidate.specializations"},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        if (arrays[i].count && !arrays[i].array) {
            return BHI_FAIL(detail, call, BH_REASON_NULL, arrays[i].name);
        }
        if (arrays[i].count > arrays[i].most) {
            return BHI_FAIL(detail, call, BH_REASON_OVER, arrays[i].name, .value = arrays[i].count,
                            .limit = arrays[i].most);
        }
    }
    for (uint32_t i = 0; i < given->include_count; i++) {
        if (!given->includes[i].name || !given->includes[i].text) {
            return BHI_FAIL(detail, call, BH_REASON_NULL, "candidate.includes");
        }
    }
    /* The library only reads them. */
    out->source = (struct bhi_source){.defines = (bh_source_define *)given->defines,
                                      .define_count = given->define_count,
                                      .includes = (bh_source_include *)given->includes,
                                      .include_count = given->include_count,
                                      .given = given->define_count || given->include_count};
    out->specs = given->specializations;
    out->spec_count = given->specialization_count;
    out->entry = given->entry;
    const bh_status status = check_defines(given, call, detail);
    return status == BH_OK ? check_specs(given, call, detail) : status;
}

bh_status bhi_judge_candidate_take(const bh_judge_candidate *given, const char *call,
                                   struct bhi_kernel_file *out, bh_detail *detail) {
    if (!given->path == !given->code) {
        return given->path ? BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "candidate.code",
                                      .text = "excludes path")
                           : BHI_FAIL(detail, call, BH_REASON_NULL, "candidate.path");
    }
    if ((unsigned)given->language > BH_LANGUAGE_CUDA) {
        return BHI_FAIL(detail, call, BH_REASON_UNKNOWN_VALUE, "candidate.language",
                        .value = given->language, .text = "language");
    }
    if (given->path && given->size) {
        return BHI_FAIL(detail, call, BH_REASON_ARGUMENT, "candidate.size", .text = "needs code");
    }
    out->language = (enum bhi_language)given->language;
    out->name = given->name;
    out->path = given->path ? given->path : given->name ? given->name : "candidate";
    if (given->path && !strcmp(given->path, "-")) {
        out->path = "./-"; /* a file of this name: standard input is the program's */
    }
    const bh_status status = take_defines(given, call, out, detail);
    return status != BH_OK || given->path ? status : take_code(given, call, out, detail);
}
