#include "supervisor/compile/template_complaint.h"
#include "base/detail.h"

bh_status bhi_template_fail(const struct bhi_complaint *complaint, const char *call,
                            bh_detail *detail) {
    return BHI_FAIL(detail, call, complaint->memory ? BH_REASON_MEMORY : BH_REASON_TEMPLATE,
                    .text = complaint->text);
}
