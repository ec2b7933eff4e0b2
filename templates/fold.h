/* Weak numbers: those written in the expression, and what is computed from them alone. */
#ifndef BHI_TEMPLATES_FOLD_H
#define BHI_TEMPLATES_FOLD_H

#include "templates/values.h"

/* Operations on weak numbers, as Python does them. */
bool bhi_fold_unary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                    struct bhi_value *out_value);
bool bhi_fold_binary(struct bhi_emitter *emitter, int op, const struct bhi_value *a,
                     const struct bhi_value *b, struct bhi_value *out_value);

#endif
