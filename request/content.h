/* Moves the content of a binding's buffer to and from files, wherever the buffer's memory is. What
 * goes to a file is copied first, in pieces; what is read goes to host memory directly.
 *
 * Each returns false on failure. If the library refused something, *out_detail says what. If the
 * file was the reason, the status of *out_detail is BH_OK and |complaint| says what is wrong. */
#ifndef BHI_REQUEST_CONTENT_H
#define BHI_REQUEST_CONTENT_H

#include "request/binding.h"

/* Reads binding->in from behind its header to the end into the buffer, and closes it. */
bool bhi_content_fill(struct bhi_run_binding *binding, bh_detail *out_detail,
                      struct bhi_complaint *complaint);
/* Writes header and content to binding->out, and seals it. The content must be complete. */
bool bhi_content_save(struct bhi_run_binding *binding, bh_detail *out_detail,
                      struct bhi_complaint *complaint);
/* Fills in the array of a binding whose buffer was loaded from a file: --inout saves an array of
 * the same type and shape. Refuses a dtype for which no .npy file can be written, unless the
 * binding is a tensor, which is only read. */
bool bhi_run_take_array(struct bhi_run_binding *binding, struct bhi_complaint *complaint);

#endif
