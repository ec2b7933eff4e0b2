/* The content of a binding's buffer, to and from files, wherever the buffer's memory is. Buffers in
 * host memory have a pointer, and nothing is copied; those on a device are copied in pieces.
 *
 * Each returns false when it fails. Then *out_detail says what the library refused; its status is
 * BH_OK where it was the file, and |complaint| says what. */
#ifndef BHI_REQUEST_CONTENT_H
#define BHI_REQUEST_CONTENT_H

#include "request/binding.h"

/* Reads binding->in, whose header has been read, to its end into the buffer, and closes it. */
bool bhi_content_fill(struct bhi_run_binding *binding, bh_detail *out_detail,
                      struct bhi_complaint *complaint);
/* Writes header and content to binding->out, and seals it. The content has been waited for. */
bool bhi_content_save(struct bhi_run_binding *binding, bh_detail *out_detail,
                      struct bhi_complaint *complaint);

#endif
