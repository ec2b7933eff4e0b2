/* Translates an expression to GLSL: each operation becomes a statement that assigns a new variable.
 *
 * Arithmetic of 8 and 16 bits is done in 32 bits and cut after each operation. Halves are computed
 * as floats and rounded after each operation. Results are then bit for bit NumPy's, and the device
 * needs only storage of these types. Variables are `precise`, so that no driver combines two
 * operations into one.
 */
#ifndef BHI_TEMPLATES_EMIT_H
#define BHI_TEMPLATES_EMIT_H

#include "templates/values.h"

/* Writes the helper functions whose bits are set in |helpers|. */
void bhi_emit_helpers(struct bhi_pen *pen, uint32_t helpers);

/* Writes the functions TYPE_bits(float) and TYPE_value(uint) of a float of 8 or 16 bits. */
void bhi_emit_small_float(struct bhi_pen *pen, bh_dtype dtype);

/* Writes the statement of main that the helpers need. */
void bhi_emit_zero(struct bhi_pen *pen, uint32_t helpers);

/* Writes all statements. |inputs| has the initial value of each name that is read. |outputs| gets
 * the final value of each name. */
bool bhi_emit_statements(struct bhi_emitter *emitter, const struct bhi_value *inputs,
                         struct bhi_value *outputs);

#endif
