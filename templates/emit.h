/* GLSL from an expression: each operation becomes a statement that assigns a variable of its own.
 *
 * Arithmetic of 8 and 16 bits is done in 32 and cut after each operation, halves are computed as
 * floats and rounded after each: bit for bit what NumPy does, with nothing but storage of such
 * types asked of the device. Variables are `precise`, so that no driver makes one operation of two.
 */
#ifndef BHI_TEMPLATES_EMIT_H
#define BHI_TEMPLATES_EMIT_H

#include "templates/values.h"

/* The functions that |helpers| ask for. */
void bhi_emit_helpers(struct bhi_pen *pen, uint32_t helpers);

/* All statements. |inputs|: of each name, the value that it has at first (only those that are read
 * count); |outputs|: of each name, the value that it has at the end. */
bool bhi_emit_statements(struct bhi_emitter *emitter, const struct bhi_value *inputs,
                         struct bhi_value *outputs);

#endif
