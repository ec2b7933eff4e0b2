/* Emits operators as GLSL statements. */
#ifndef BHI_TEMPLATES_OPERATORS_H
#define BHI_TEMPLATES_OPERATORS_H

#include "templates/values.h"

bool bhi_emit_unary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                    struct bhi_value *out_value);
bool bhi_emit_binary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                     const struct bhi_value *b, struct bhi_value *out_value);
bool bhi_emit_choose(struct bhi_emitter *emitter, const struct bhi_value *condition,
                     const struct bhi_value *a, const struct bhi_value *b,
                     struct bhi_value *out_value);

#endif
