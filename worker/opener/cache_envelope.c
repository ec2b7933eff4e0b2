#include "worker/opener/cache_envelope.h"

#include <sodium.h>
#include <string.h>

#define VERSION    2u
#define AT_VERSION 8u
#define AT_HEADER  12u
#define AT_PAYLOAD 16u
#define AT_OWNER   24u
#define AT_SUM     56u
#define SUM        32u

static const uint8_t magic[8] = {'B', 'H', 'C', 'A', 'C', 'H', 'E', '\n'};

static void put(uint8_t *at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t get(const uint8_t *at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

/* The checksum covers the header before it, and the payload. */
static void compute_sum(uint8_t out[SUM], const uint8_t *header, const void *payload,
                        size_t payload_bytes) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, SUM);
    crypto_generichash_update(&state, header, AT_SUM);
    crypto_generichash_update(&state, payload, payload_bytes);
    crypto_generichash_final(&state, out, SUM);
}

void bhi_envelope_seal(uint8_t header[BHI_ENVELOPE_HEADER],
                       const uint8_t identity[BHI_ENVELOPE_IDENTITY], const void *payload,
                       size_t payload_bytes) {
    memcpy(header, magic, sizeof magic);
    put(header + AT_VERSION, VERSION, 4);
    put(header + AT_HEADER, BHI_ENVELOPE_HEADER, 4);
    put(header + AT_PAYLOAD, payload_bytes, 8);
    memcpy(header + AT_OWNER, identity, BHI_ENVELOPE_IDENTITY);
    compute_sum(header + AT_SUM, header, payload, payload_bytes);
}

const char *bhi_envelope_check(const uint8_t *file, size_t size,
                               const uint8_t identity[BHI_ENVELOPE_IDENTITY], size_t *out_bytes) {
    *out_bytes = 0;
    if (size < BHI_ENVELOPE_HEADER) {
        return "it is shorter than its header";
    }
    if (memcmp(file, magic, sizeof magic) != 0) {
        return "it is not a pipeline cache";
    }
    if (get(file + AT_VERSION, 4) != VERSION || get(file + AT_HEADER, 4) != BHI_ENVELOPE_HEADER) {
        return "another version of bulkhead wrote it";
    }
    const size_t bytes = size - BHI_ENVELOPE_HEADER;
    if (get(file + AT_PAYLOAD, 8) != bytes) {
        return "its size is not the one in its header";
    }
    if (memcmp(file + AT_OWNER, identity, BHI_ENVELOPE_IDENTITY) != 0) {
        return "it belongs to another tenant, device, driver or kernel";
    }
    uint8_t sum[SUM];
    compute_sum(sum, file, file + BHI_ENVELOPE_HEADER, bytes);
    if (memcmp(sum, file + AT_SUM, SUM) != 0) {
        return "its content has changed since it was written";
    }
    *out_bytes = bytes;
    return NULL;
}
