/* Prints the page protocol.md from the tables in ipc/; the build folder has it in docs/. */
#include "base/status.h"
#include "ipc/commands.h"
#include "ipc/layers.h"
#include "ipc/progress.h"
#include "ipc/wire.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

static const char introduction[] =
    "<!-- Generated from ipc/*.def by ipc/protocol_page.c. -->\n"
    "# Protocol\n"
    "\n"
    "What passes between the supervisor (the host process), the zygote, the workers and the "
    "opener. It is declared\n"
    "once, in `ipc/*.def`. From there come the structs, the encoder, the decoder (which is the "
    "validator), this\n"
    "page, the tests in `tests/proto/` and the fuzz dictionary.\n"
    "\n"
    "| what | how | who trusts whom |\n"
    "|---|---|---|\n"
    "| control messages, worker | ZeroMQ stream, one connection for each worker | both check "
    "everything |\n"
    "| control messages, zygote | Unix seqpacket, with descriptors | the supervisor checks "
    "everything |\n"
    "| control messages, opener | the same; each answer on a socket of its own | both check "
    "everything |\n"
    "| lane | shared memory, sealed; the worker can only read it | the worker checks every record "
    "|\n"
    "| progress | shared memory that the worker writes | the supervisor copies each word once, "
    "then checks it |\n"
    "\n"
    "## Control messages\n"
    "A message is a header and its fields in order, little endian, without padding:\n"
    "\n"
    "| bytes | content |\n"
    "|---|---|\n";

static const char after_header[] =
    "\n"
    "Then follow the fields. `u32`, `u64` and `i32` are numbers in the range given. `bytes[n]` "
    "are n bytes.\n"
    "`text[n]` is a u32 length, at most n - 1, then that many bytes of valid UTF-8 without NUL and "
    "without\n"
    "control characters other than newline and tab. A field out of its range, a message that ends "
    "early and a\n"
    "byte left over are errors. So is a message that travels in the wrong direction, or that the "
    "state of its\n"
    "worker does not permit. A worker that sends any of these is killed: `PROTOCOL`.\n"
    "\n"
    "States: `spawning` (forked, has not shown its token), `held` (token accepted, starting its "
    "device),\n"
    "`running` (ready). `any` is any state.\n";

static void number(uint64_t value) {
    if (value == UINT64_MAX) {
        printf("2^64-1");
    } else if (value == UINT32_MAX) {
        printf("2^32-1");
    } else {
        printf("%" PRIu64, value);
    }
}

static void signed_range(const char *name, int64_t min, int64_t max, const char *doc) {
    printf("| `%s` | i32 | %" PRId64 "..%" PRId64 " | %s |\n", name, min, max, doc);
}

static void range(const char *type, const char *name, uint64_t min, uint64_t max, const char *doc) {
    printf("| `%s` | %s | ", name, type);
    number(min);
    if (min != max) {
        printf("..");
        number(max);
    }
    printf(" | %s |\n", doc);
}

static void row(const char *name, const char *type, unsigned size, const char *doc) {
    printf("| `%s` | %s[%u] | | %s |\n", name, type, size, doc);
}

static void states(uint32_t bits) {
    static const char *const names[] = {"spawning", "held", "running"};
    if (bits == BHI_WS_ANY) {
        printf("any");
        return;
    }
    const char *comma = "";
    for (unsigned i = 0; i < 3; i++) {
        if (bits & 1u << i) {
            printf("%s%s", comma, names[i]);
            comma = ", ";
        }
    }
}

static const char *const directions[] = {
    [BHI_W2S] = "worker to supervisor", [BHI_S2W] = "supervisor to worker",
    [BHI_S2Z] = "supervisor to zygote", [BHI_Z2S] = "zygote to supervisor",
    [BHI_S2O] = "supervisor to opener", [BHI_O2S] = "opener to supervisor",
};

static void message_head(uint32_t type, size_t field_count) {
    const struct bhi_message_info *m = bhi_message_info(type);
    printf("\n#### %s\n%c%s. Type %u, %s, permitted: ", m->name, toupper(m->doc[0]), m->doc + 1,
           type, directions[m->direction]);
    states(m->states);
    if (m->fds) {
        printf(", %u descriptor%s", m->fds, m->fds == 1 ? "" : "s");
    }
    printf(".\n");
    if (field_count) {
        printf("\n| field | type | range | |\n|---|---|---|---|\n");
    }
}

static void messages(enum bhi_direction direction) {
    printf("\n### %c%s\n", directions[direction][0] - 'a' + 'A', directions[direction] + 1);
#define ROW_U32(name, min, max, doc)  range("u32", #name, min, max, doc);
#define ROW_U64(name, min, max, doc)  range("u64", #name, min, max, doc);
#define ROW_I32(name, min, max, doc)  signed_range(#name, min, max, doc);
#define ROW_BLOB(name, length, doc)   row(#name, "bytes", length, doc);
#define ROW_TEXT(name, capacity, doc) row(#name, "text", capacity, doc);
#define ONE(name, limit, ...)         +1
#define BHI_MESSAGE(name, NAME, type, way, permitted, fds, doc)                                    \
    if (bhi_message_info(type)->direction == direction) {                                          \
        message_head(type, 0 BHI_FIELDS_##NAME(ONE, ONE, ONE, ONE, ONE));                          \
        BHI_FIELDS_##NAME(ROW_U32, ROW_U64, ROW_I32, ROW_BLOB, ROW_TEXT)                           \
    }
#include "ipc/messages.def"
}

static void lane(void) {
    printf("\n## Lane\n"
           "A ring of %u bytes in shared memory, which the supervisor writes. A record is one "
           "submission, the unit of\n"
           "failure; it is never larger than half of the ring. Records and commands are 8-byte "
           "aligned, little endian.\n"
           "\n"
           "| record | type | |\n"
           "|---|---|---|\n"
           "| `size` | u64 | bytes, this header included, a multiple of 8 |\n"
           "| `seq` | u64 | 1, 2, 3, … in each lane |\n"
           "| `command_count` | u32 | at least 1 |\n"
           "| `control_seq` | u32 | how many control messages, modulo 2^32, must be handled first "
           "|\n"
           "| `flags` | u64 | 1: the result says how long the device was busy with it; 2: it "
           "shares no "
           "queue submission; for tests of hosts ([chaos](chaos.md#faults-of-the-library)), 4: the "
           "device is lost with it, 8: there is no device memory for it, from bit 4 on: by how "
           "many ms it is late |\n"
           "\n"
           "Each command begins with `type` (u16), `reserved` (u16, 0) and `size` (u32, of the "
           "whole command).\n",
           BHI_LANE_CAPACITY);
#define CMD_U64(name, min, max, doc) range("u64", #name, min, max, doc);
#define CMD_U32(name, min, max, doc) range("u32", #name, min, max, doc);
#define BHI_COMMAND(name, NAME, type, doc)                                                         \
    printf("\n### %s\n%c%s. Type %d.\n\n| field | type | range | |\n|---|---|---|---|\n", #name,   \
           toupper(doc[0]), &doc[1], type);                                                        \
    BHI_COMMAND_FIELDS_##NAME(CMD_U64, CMD_U32)
#include "ipc/commands.def"
    printf("\nAfter a dispatch: `binding_count` bindings, each `buffer`, `offset`, `size` (u64), "
           "`set` (u32, 0..31),\n"
           "`binding` (u32, 0..65535), `access` (u32, 1 read, 2 write, 3 both), `element` (u32, "
           "0..255, of an\n"
           "array of buffers); then the push constants (a multiple of 4), padded with zeros to a "
           "multiple of 8.\n");
}

static void progress(void) {
    printf(
        "\n## Progress\n"
        "Shared memory that the worker writes: a page with counters, a page with markers that "
        "the device writes,\n"
        "results (%u submissions in flight at most), and %u slots of %zu bytes for submissions "
        "that "
        "failed: reason and subject\n"
        "(u32), errno and VkResult (i32), value and limit (u64), and the texts name, text and "
        "advice. "
        "The supervisor makes\n"
        "the sentence. A reason that does not belong to the status of the result is a protocol "
        "violation.\n"
        "A submission is complete once its result is written and `completed_seq` has reached "
        "it: from then on its\n"
        "verdict stands, whatever becomes of the worker.\n"
        "\n"
        "A result has `device_ns` (u64, 0: not known) if the record asks for it. A value over "
        "the time "
        "between the start\n"
        "and the end of the submission, as the supervisor knows them, is a protocol violation.\n"
        "It has `bad_memory` (u64) if its status is `VULKAN` or `CUDA` and the device memory of "
        "that buffer "
        "cannot be imported;\n"
        "else 0. With any other status, or a buffer that the worker was not told to import, it is "
        "a protocol violation.\n"
        "\n"
        "Start-up steps, in order: ",
        BHI_PROGRESS_RESULTS, BHI_ERROR_SLOTS, sizeof(struct bhi_error_slot));
    for (uint32_t i = 0; i < BHI_STEP_COUNT; i++) {
        printf("%s%s", i ? ", " : "", bhi_step_name(i));
    }
    printf(".\n");
}

static void statuses(void) {
    static const char *const classes[] = {
        [BH_STATUS_CLASS_NONE] = "none",     [BH_STATUS_CLASS_CALLER] = "caller",
        [BH_STATUS_CLASS_INPUT] = "input",   [BH_STATUS_CLASS_GUILTY] = "guilty",
        [BH_STATUS_CLASS_VICTIM] = "victim", [BH_STATUS_CLASS_ENVIRON] = "environment",
    };
    printf("\n## Statuses\n"
           "Codes from 32 on say why a submission failed. A worker may report those marked with ●. "
           "The supervisor\n"
           "determines the others itself.\n"
           "\n"
           "| code | name | class | worker | what happened | what to do |\n"
           "|---|---|---|---|---|---|\n");
#define BH_STATUS(NAME, value, CLASS, text, advice)                                                \
    printf("| %d | `%s` | %s | %s | %s | %s |\n", value, #NAME, classes[BH_STATUS_CLASS_##CLASS],  \
           bhi_status_from_worker(value) ? "●" : "", text, advice);
#include "base/status.def"
#undef BH_STATUS
}

static void layers(void) {
    printf("\n## Sandbox layers\n"
           "| bit | name | | takes away | where it is absent |\n"
           "|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < BHI_LAYER_COUNT; i++) {
        const struct bhi_layer_info *l = bhi_layer_info(i);
        printf("| %u | %s | %s | %s | %s |\n", i, l->name, l->required ? "required" : "optional",
               l->what, l->advice);
    }
}

int main(void) {
    fputs(introduction, stdout);
    printf("| 0..3 | magic 0x%08x |\n", BHI_WIRE_MAGIC);
    printf("| 4..5 | type |\n");
    printf("| 6..7 | version, %u |\n", BHI_WIRE_VERSION);
    printf("| 8..11 | length of the fields that follow; the whole is at most %u bytes |\n",
           BHI_WIRE_MAX);
    fputs(after_header, stdout);
    messages(BHI_W2S);
    messages(BHI_S2W);
    messages(BHI_S2Z);
    messages(BHI_Z2S);
    messages(BHI_S2O);
    messages(BHI_O2S);
    lane();
    progress();
    statuses();
    layers();
    return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
