/* A session that makes memory of the device (tests/system/fake_transfer.c shares its own): what it answers,
 * and that it runs nothing while it waits for a request. */
#include "fake_driver.h"
#include "fake_supervisor.h"

#include "ipc/fdpass.h"

#include <sys/mman.h>
#include <unistd.h>

#define BYTES 4096u

/* Receives the answer to a request for |id|: its descriptor, or -1. */
static int answer(enum bhi_message_type type, uint64_t id) {
    struct bhi_fd_tag tag;
    int fd = -1;
    size_t count = 1;
    BHT_EQ(bhi_fdpass_recv(fake.sockets[0], &tag, sizeof tag, &fd, &count, 0), (int)sizeof tag);
    BHT_EQ(tag.magic, BHI_WIRE_MAGIC);
    BHT_EQ(tag.type, type);
    BHT_EQ(tag.id, id);
    return count == 1 ? fd : -1;
}

static void set_up(void) {
    fake_driver_install(BHT_FAKE_COPIES);
    fake_open_ready();
    int words = answer(BHI_MSG_WORDS, 0);
    BHT_GE(words, 0);
    close(words);
}
BHT_AT_START(bht_around(set_up, NULL))

/* Asks for memory, and reads the answer. |refused|: the device has none. */
static int make(uint64_t id, bool last, bool refused, uint32_t patience_ms) {
    const struct bhi_message message = {
        .type = BHI_MSG_BUFFER_MAKE,
        .buffer_make = {.buffer = id, .size = BYTES, .last = last, .patience_ms = patience_ms}};
    rig_fail_call(refused ? "AllocateMemory" : NULL, 1, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    fake_send(&message, -1, 0);
    return answer(BHI_MSG_BUFFER_MAKE, id);
}

static void made(uint64_t id, bool last) {
    int fd = make(id, last, false, 0);
    BHT_GE(fd, 0);
    close(fd);
}

static void refused(uint64_t id, bool last) {
    (void)fake_rung(0);
    BHT_LT(make(id, last, true, 0), 0);
    BHT_TRUE(last || fake_rung(FAKE_PATIENCE_MS)); /* nobody may look otherwise */
}

static void clear(uint64_t id) {
    const struct bhi_message message = {.type = BHI_MSG_BUFFER_CLEAR,
                                        .buffer_clear = {.buffer = id}};
    fake_send(&message, -1, 0);
}

static void detach(uint64_t id, bool instead) {
    const struct bhi_message message = {.type = BHI_MSG_BUFFER_DETACH,
                                        .buffer_detach = {.buffer = id, .instead = instead}};
    fake_send(&message, -1, 0);
}

/* A record that needs no message but those that were sent. */
static void publish(uint64_t id, uint32_t value) {
    struct fake_record record = fake_fill(id, 0, BYTES, value);
    fake_publish(&record.record, 0);
}

static void expect(bh_status status) {
    struct bhi_result result;
    char text[BHI_ERROR_TEXT];
    fake_wait(fake.harvested + 1);
    fake_harvest(&result, text);
    if (result.status != (uint32_t)status) {
        BHT_FAIL("%s, not %s: %s", bh_status_name((bh_status)result.status), bh_status_name(status),
                 text);
    }
}

/* D6. Were it not held, it would run before the message that comes after it. */
TEST(records_wait_for_memory_that_was_refused) {
    refused(1, false);
    publish(1, 7);
    made(1, true);
    expect(BH_OK);
    publish(1, 8); /* and the next one waits for nothing */
    expect(BH_OK);
    refused(1, false);
    refused(2, false);
    made(1, true);
    publish(2, 7); /* one is still to come */
    detach(9, false);
    made(2, true);
    expect(BH_OK);
    refused(3, false);
    publish(3, 7);
    detach(3, true);
    expect(BH_BINDING_MISMATCH);
}

TEST(the_last_refusal_is_an_error_of_those_who_use_it) {
    made(1, true); /* nothing was to come */
    publish(1, 7);
    expect(BH_OK);
    refused(2, true);
    publish(2, 7);
    expect(BH_OUT_OF_DEVICE_MEMORY);
    publish(1, 7);
    expect(BH_OK);
    detach(1, true);
    made(1, false);
    publish(1, 7);
    expect(BH_OK);
}

TEST(memory_that_is_given_up_meanwhile_is_waited_for) {
    int fd = make(1, false, true, 1000);
    BHT_GE(fd, 0);
    close(fd);
    publish(1, 7);
    expect(BH_OK);
}

/* D2, D3. */
TEST(what_is_made_is_zero_shared_and_cleared) {
    int fd = make(1, false, false, 0);
    BHT_GE(fd, 0);
    const uint32_t *words = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    BHT_NE(words, MAP_FAILED);
    BHT_EQ(words[BYTES / 4 - 1], 0);
    const struct bhi_message import = {.type = BHI_MSG_BUFFER_IMPORT,
                                       .buffer_import = {.buffer = 2, .size = BYTES}};
    fake_send(&import, fd, 2);
    publish(2, 0x5a5a5a5a);
    expect(BH_OK);
    BHT_EQ(words[BYTES / 4 - 1], 0x5a5a5a5a);
    clear(1);
    BHT_LT(answer(BHI_MSG_BUFFER_CLEAR, 1), 0);
    BHT_EQ(words[0], 0);
    BHT_EQ(words[BYTES / 4 - 1], 0);
    publish(1, 3);
    expect(BH_OK);
    clear(7); /* it is not there: another one is to be made */
    BHT_LT(answer(BHI_MSG_BUFFER_MAKE, 7), 0);
    publish(7, 4);
    made(7, true);
    expect(BH_OK);
    munmap((void *)(uintptr_t)words, BYTES);
}
