#include "supervisor/compile/template_complaint.h"
#include "base/detail.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

bh_status bhi_template_fail(const struct bhi_complaint *complaint, const char *call,
                            bh_detail *detail) {
    const bool memory = !strcmp(complaint->text, BHI_OUT_OF_MEMORY);
    return bhi_fail(detail, memory ? BH_NO_MEMORY : BH_INVALID_ARGUMENT, memory ? ENOMEM : 0,
                    "%s: %.400s", call, complaint->text);
}
