#include "core/core.h"
#include "supervisor/context/context.h"

void bhi_context_pump_unlock(bh_context *context) {
    bhi_core_pump(&context->core);
    bhi_context_settle_unlock(context);
}
