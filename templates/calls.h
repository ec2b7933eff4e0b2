/* Emits calls of functions as GLSL statements. */
#ifndef BHI_TEMPLATES_CALLS_H
#define BHI_TEMPLATES_CALLS_H

#include "templates/values.h"

bool bhi_emit_call(struct bhi_emitter *emitter, int function, const struct bhi_value *arguments,
                   struct bhi_value *out_value);

#endif
