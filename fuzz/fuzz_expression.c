/* Any bytes as an expression over arrays of any types: it is refused with a reason, or becomes GLSL
 * of which the length is bounded. The first byte chooses types. */
#include "fuzz.h"
#include "templates/signature.h"
#include "templates/split.h"

#include <stdlib.h>
#include <string.h>

/* Whatever it reads is an input, whatever it assigns an output. Inputs have any of eight axes. */
static void take_parameters(struct bhi_form *form, struct bhi_variant *variant, uint8_t seed) {
    const struct bhi_expression *e = &form->expression;
    variant->axes = (uint8_t)(1 + seed % BHI_MAX_AXES);
    for (uint32_t i = 0; i < e->name_count && form->count + 2 <= BHI_MAX_PARAMETERS; i++) {
        for (int role = BHI_ROLE_IN; role <= BHI_ROLE_OUT; role++) {
            struct bhi_parameter *parameter = &form->parameters[form->count];
            const bool input = role == BHI_ROLE_IN;
            if (input ? !e->names[i].read : !e->names[i].assigned) {
                continue;
            }
            *parameter = (struct bhi_parameter){.dtype = BH_DTYPE_NONE};
            parameter->role = input && seed % 5 == 0 ? BHI_ROLE_PUSH : (enum bhi_role)role;
            strcpy(parameter->name, e->names[i].text);
            variant->has[form->count] = (uint8_t)(input ? seed * (form->count + 1) % 256 : 0);
            const uint32_t of =
                parameter->role == BHI_ROLE_PUSH ? BHI_DTYPE_COUNT : BHI_ELEMENT_COUNT;
            variant->dtypes[form->count] =
                (uint8_t)(input ? bhi_dtypes[(seed + 7 * i) % of] : BH_DTYPE_NONE);
            form->count++;
        }
    }
}

/* With reductions it is refused with a reason, or each kernel of its plan is an expression with at most one. */
static void plan(struct bhi_expression *expression) {
    const char *outputs[BHI_EXPRESSION_NAMES];
    char names[BHI_EXPRESSION_NAMES][BHI_NAME_BYTES];
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_split made;
    uint32_t count = 0;
    for (uint32_t i = 0; i < expression->name_count; i++) {
        if (expression->names[i].assigned) {
            outputs[count] = strcpy(names[count], expression->names[i].text);
            count++;
        }
    }
    const bool good = bhi_split_make(expression, outputs, count, &made, &complaint);
    FUZZ_CHECK(good || complaint.text[0] != 0);
    for (uint32_t i = 0; good && i < made.count; i++) {
        const struct bhi_kernel_form form = {.arguments = ", m, f", .keepdims = true, .parts = -7};
        struct bhi_expression kernel;
        struct bhi_pen pen = {0};
        bhi_kernel_stage_write(&made, &made.stages[i], &form, &pen);
        FUZZ_CHECK(pen.text);
        const bool parsed = bhi_expression_parse(pen.text, pen.length, &kernel, &complaint);
        /* Not every function takes so many arguments. */
        FUZZ_CHECK(parsed || strstr(complaint.text, "argument"));
        FUZZ_CHECK(!parsed || kernel.reduction_count == !!made.stages[i].reduction);
        if (parsed) {
            bhi_expression_fini(&kernel);
        }
        bhi_pen_fini(&pen);
    }
    if (good) {
        bhi_split_fini(&made);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct bhi_form form; /* large */
    struct bhi_variant variant = {0};
    struct bhi_complaint complaint = {.text = ""};
    struct bhi_pen pen = {0};
    struct bhi_constants push;
    if (size == 0) {
        return 0;
    }
    form = (struct bhi_form){.is_expression = true, .name = "fuzz"};
    /* A copy of exactly the size, so that a sanitizer sees a read past its end. */
    char *text = malloc(size);
    FUZZ_CHECK(text);
    memcpy(text, data + 1, size - 1);
    const bool parsed = bhi_expression_parse(text, size - 1, &form.expression, &complaint);
    free(text);
    FUZZ_CHECK(parsed || complaint.text[0] != 0);
    if (!parsed) {
        return 0;
    }
    take_parameters(&form, &variant, data[0]);
    const bool good = bhi_form_check(&form, &complaint) &&
                      bhi_form_infer(&form, &variant, &push, &complaint) &&
                      bhi_form_write(&form, &variant, &pen, &complaint);
    FUZZ_CHECK(good == (complaint.text[0] == 0));
    FUZZ_CHECK(!good || push.count <= BHI_PUSH_WORDS || push.count <= 1 + 2 * form.count);
    FUZZ_CHECK(pen.length < (4u << 20));
    for (uint32_t i = 0; good && i < form.count; i++) {
        /* Only arrays that are given can be small floats. */
        FUZZ_CHECK(bhi_dtype_is_known((bh_dtype)variant.dtypes[i]) ||
                   (bhi_dtype_is_float((bh_dtype)variant.dtypes[i]) &&
                    form.parameters[i].role == BHI_ROLE_IN));
    }
    bhi_pen_fini(&pen);
    if (form.expression.reduction_count) {
        plan(&form.expression);
    }
    bhi_form_fini(&form);
    return 0;
}
