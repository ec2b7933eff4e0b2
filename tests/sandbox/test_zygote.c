/* Warden and zygote from the host's side: starting, spawning, reporting, probing. */
#include "client.h"
#include "harness.h"
#include "layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIT(NAME) (1ull << BHI_LAYER_##NAME)

static void starts_and_goes_with_the_socket(void) {
    struct client client = {0};
    client_open(&client);
    BHT_STR_HAS(client.ready.library, "/");
    BHT_TRUE(client.ready.driver[0] != '\0');
    const uint64_t wanted =
        BIT(USERNS) | BIT(PIDNS) | BIT(NETNS) | BIT(IPCNS) | BIT(UTSNS) | BIT(MOUNTNS) | BIT(ROOT);
    BHT_EQ(client.ready.layers & wanted, wanted);
    client_close(&client);
}

static void probes_hold(void) {
    struct client client = {0};
    client_open(&client);
    for (uint32_t layer = 0; layer < BHI_LAYER_COUNT; layer++) {
        struct bhi_message message = {.type = BHI_MSG_PROBE};
        const struct bhi_layer_info *info = bhi_layer_info(layer);
        message.probe.layer = layer;
        client_send(&client, &message, NULL, 0);
        client_expect(&client, BHI_MSG_PROBED, &message);
        printf("  %-16s %u %s\n", info->name, message.probed.result, message.probed.text);
        BHT_EQ(message.probed.layer, layer);
        BHT_TRUE(message.probed.text[0] != '\0');
        if (layer == BHI_LAYER_MEMORY_CGROUP) {
            BHT_EQ(message.probed.result, 0); /* the host's to prove */
        } else if (message.probed.result != 1) {
            BHT_TRUE(!info->required && message.probed.result == 0);
        }
    }
    client_close(&client);
}

static void worker_starts(void) {
    struct client client = {0};
    struct guest guest = {0};
    client_open(&client);
    guest_open(&client, &guest, 1);
    struct bhi_message message = {.type = BHI_MSG_SHUTDOWN};
    BHT_EQ(bhi_channel_send(&guest.channel, &message), 0);
    guest_expect_exit(&client, &guest, CLD_EXITED, 0);
    guest_close(&guest);
    client_close(&client);
}

int main(int argc, char **argv) {
    static const struct bht_test tests[] = {
        BHT_TEST(starts_and_goes_with_the_socket),
        BHT_TEST_WITH(probes_hold, 60, 0),
        BHT_TEST(worker_starts),
    };
    return bht_main(argc, argv, tests, BHT_COUNT(tests));
}
