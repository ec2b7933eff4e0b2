/* Any bytes as a control message, in every direction and state. What decodes encodes to the same
 * bytes, and travels in one direction only. */
#include "fuzz.h"
#include "ipc/wire.h"
#include <errno.h>
#include <string.h>

static const enum bhi_direction directions[] = {BHI_W2S, BHI_S2W, BHI_S2Z,
                                                BHI_Z2S, BHI_S2O, BHI_O2S};
static const uint32_t states[] = {BHI_WS_ANY, BHI_WS_SPAWNING, BHI_WS_HELD, BHI_WS_RUNNING, 0};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned decoded = 0, malformed = 0;
    for (size_t d = 0; d < sizeof directions / sizeof directions[0]; d++) {
        for (size_t s = 0; s < sizeof states / sizeof states[0]; s++) {
            static struct bhi_message out, zero;
            uint8_t again[BHI_WIRE_MAX];
            char why[160];
            memset(&out, 0xee, sizeof out);
            int rc = bhi_wire_decode(data, size, directions[d], states[s], &out, why, sizeof why);
            FUZZ_CHECK(rc == 0 || rc == -EBADMSG || rc == -EPROTO);
            fuzz_check_reason(why, rc != 0);
            malformed += rc == -EBADMSG;
            if (rc) {
                FUZZ_CHECK(memcmp(&out, &zero, sizeof out) == 0);
                continue;
            }
            const struct bhi_message_info *info = bhi_message_info((uint32_t)out.type);
            FUZZ_CHECK(info && info->direction == directions[d] && (info->states & states[s]));
            decoded |= 1u << d;
            FUZZ_CHECK(bhi_wire_encode(&out, again, sizeof again) == (int)size);
            FUZZ_CHECK(memcmp(again, data, size) == 0);
        }
    }
    FUZZ_CHECK((decoded & (decoded - 1)) == 0);
    /* Malformed is malformed, whoever looks at it. */
    FUZZ_CHECK(malformed == 0 || malformed == sizeof directions / sizeof directions[0] *
                                                  sizeof states / sizeof states[0]);
    return 0;
}
