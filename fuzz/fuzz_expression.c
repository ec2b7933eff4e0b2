/* Any bytes as an expression over arrays of any types: it is refused with a reason, or becomes GLSL
 * of which the length is bounded. The first byte chooses types. */
#include "fuzz.h"
#include "templates/signature.h"

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
    bhi_form_fini(&form);
    return 0;
}
