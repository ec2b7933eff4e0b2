#include "base/detail.h"
#include "supervisor/context/context.h"
#include "supervisor/stream/stream.h"
#include "supervisor/stream/tenant.h"

BH_API bh_status bh_stream_reset(bh_stream *stream, bh_detail *detail) {
    BHI_NEED_LIVE(stream, "bh_stream_reset", detail);
    BHI_TRY(bhi_context_check(stream->context, "bh_stream_reset", detail));
    bh_context *context = stream->context;
    bhi_context_lock(context);
    (void)bhi_stream_reset(&stream->core);
    bhi_tenant_forgive(context, stream->owner);
    bhi_context_pump_unlock(context);
    return BH_OK;
}
