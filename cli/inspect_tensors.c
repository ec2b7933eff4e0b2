/* `bulkhead inspect` of a .npy, .npz or .safetensors file: lists its arrays. */
#include <bulkhead/array.h>
#include <bulkhead/bulkhead.h>
#include <bulkhead/file.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/inspect_print.h"
#include "cli/mains.h"
#include "tool/complain.h"
#include "tool/exit_status.h"
#include "tool/interrupt.h"
#include "tool/json.h"
#include "tool/options.h"
#include "tool/session.h"
#include "tool/task.h"
#include "tool/text.h"

static const char command[] = "inspect";
static const size_t first_room = 256; /* for the first call; the second gets room for all */

/* Endings of array files. */
static const struct kind {
    const char *ending;
    bh_file_format format; /* RAW: not supported */
    const char *advice;
} kinds[] = {
    {".npy", BH_FILE_NPY, NULL},
    {".safetensors", BH_FILE_SAFETENSORS, NULL},
    {".npz", BH_FILE_NPZ, NULL},
    {".gguf", BH_FILE_RAW, "convert it to .safetensors"},
    {".pt", BH_FILE_RAW, "convert it to .safetensors"},
    {".pth", BH_FILE_RAW, "convert it to .safetensors"},
    {".onnx", BH_FILE_RAW, "convert it to .safetensors"},
};

struct listing {
    bh_context *context;
    bh_file_source source;
    bh_file_tensor *tensors; /* owned */
    size_t room, count;
    bh_status status;
    bh_detail detail;
};

static const struct kind *kind_of(const char *path) {
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t ending = strlen(kinds[i].ending);
        if (length > ending && !strcasecmp(path + length - ending, kinds[i].ending)) {
            return &kinds[i];
        }
    }
    return NULL;
}

bool bhi_inspect_is_array(const char *path) {
    return kind_of(path);
}

/* -- asking ---------------------------------------------------------------------------------- */

static void ask(void *argument) {
    struct listing *listing = argument;
    listing->tensors->struct_size = sizeof *listing->tensors;
    listing->status = bh_file_tensors(listing->context, &listing->source, listing->tensors,
                                      listing->room, &listing->count, &listing->detail);
}

static bool make_room(struct listing *listing, size_t room) {
    free(listing->tensors);
    listing->tensors = calloc(room, sizeof *listing->tensors);
    listing->room = listing->tensors ? room : 0;
    if (!listing->tensors) {
        bhi_complain(command, "out of memory for %zu tensors", room);
    }
    return listing->tensors;
}

/* Prints the message without the call and the path, which the argument shows. */
static int fail(struct listing *listing) {
    char *message = listing->detail.message;
    const char *path = listing->source.path, *why = bhi_text_without_call(message);
    const size_t length = strlen(path);
    if (!strncmp(why, path, length) && !strncmp(why + length, ": ", 2)) {
        why += length + 2;
    }
    memmove(message, why, strlen(why) + 1);
    return bhi_session_fail(command, path, listing->status, &listing->detail);
}

/* Lists the arrays, and again with more room if there were more. */
static int ask_all(struct listing *listing) {
    int exit_status = BHI_EXIT_READY;
    for (size_t room = first_room;; room = listing->count) {
        if (!make_room(listing, room)) {
            return BHI_EXIT_ENVIRON;
        }
        if (!bhi_task_run(command, &listing->context, ask, listing, &exit_status)) {
            return exit_status;
        }
        if (listing->status != BH_OK) {
            return fail(listing);
        }
        if (listing->count <= listing->room) {
            return BHI_EXIT_READY;
        }
    }
}

/* -- printing -------------------------------------------------------------------------------- */

static const char *type_of(const bh_file_tensor *tensor) {
    return tensor->dtype == BH_DTYPE_NONE ? tensor->type : bhi_print_type(tensor->dtype);
}

/* Writes the shape as --out takes it: "[2,3]". */
static void shape_text(const bh_file_tensor *tensor, char *out, size_t size) {
    size_t used = (size_t)snprintf(out, size, "[");
    for (uint32_t i = 0; i < tensor->rank; i++) {
        used +=
            (size_t)snprintf(out + used, size - used, "%s%" PRIu64, i ? "," : "", tensor->shape[i]);
    }
    snprintf(out + used, size - used, "]");
}

enum { SHAPE = 64 * 21 + 3 };

/* Names come last, so that long names do not move the other columns. No row is cut. */
static void print(const struct listing *listing) {
    char shape[SHAPE], name[sizeof listing->tensors->name * 4];
    int width[4] = {(int)strlen("type"), (int)strlen("shape"), (int)strlen("bytes"),
                    (int)strlen("offset")};
    uint64_t bytes = 0;
    for (size_t i = 0; i < listing->count; i++) {
        const bh_file_tensor *tensor = &listing->tensors[i];
        shape_text(tensor, shape, sizeof shape);
        const int length[4] = {(int)strlen(type_of(tensor)), (int)strlen(shape),
                               snprintf(NULL, 0, "%" PRIu64, tensor->bytes),
                               snprintf(NULL, 0, "%" PRIu64, tensor->offset)};
        for (int column = 0; column < 4; column++) {
            width[column] = length[column] > width[column] ? length[column] : width[column];
        }
        bytes += tensor->bytes;
    }
    printf("%s\n", bhi_text_clean(name, sizeof name, listing->source.path));
    printf("  %zu tensor%s, %" PRIu64 " bytes of data\n", listing->count,
           listing->count == 1 ? "" : "s", bytes);
    if (!listing->count) {
        return;
    }
    const bool named = listing->source.format != BH_FILE_NPY;
    printf("  %-*s  %-*s  %*s  %*s%s\n", width[0], "type", width[1], "shape", width[2], "bytes",
           width[3], "offset", named ? "  name" : "");
    for (size_t i = 0; i < listing->count; i++) {
        const bh_file_tensor *tensor = &listing->tensors[i];
        shape_text(tensor, shape, sizeof shape);
        printf("  %-*s  %-*s  %*" PRIu64 "  %*" PRIu64 "%s%s\n", width[0], type_of(tensor),
               width[1], shape, width[2], tensor->bytes, width[3], tensor->offset,
               named ? "  " : "", bhi_text_clean(name, sizeof name, tensor->name));
    }
}

static void print_json(const struct listing *listing) {
    json_t *tensors = json_array();
    for (size_t i = 0; i < listing->count; i++) {
        const bh_file_tensor *tensor = &listing->tensors[i];
        json_t *shape = json_array();
        for (uint32_t axis = 0; axis < tensor->rank; axis++) {
            json_array_append_new(shape, bhi_json_number(tensor->shape[axis]));
        }
        json_array_append_new(
            tensors, json_pack("{s:o, s:o, s:o, s:I, s:I}", "name",
                               *tensor->name ? bhi_json_text(tensor->name) : json_null(), "type",
                               bhi_json_text(type_of(tensor)), "shape", shape, "bytes",
                               (json_int_t)tensor->bytes, "offset", (json_int_t)tensor->offset));
    }
    bhi_json_print(json_pack("{s:o, s:s, s:o}", "file", bhi_json_text(listing->source.path),
                             "format", kind_of(listing->source.path)->ending + 1, "tensors",
                             tensors));
}

/* -- the command ----------------------------------------------------------------------------- */

static bool check(const struct bhi_args *args, const struct kind *kind) {
    const char *path = args->operands[0];
    if (kind->format == BH_FILE_RAW) {
        bhi_complain(command, "FILE %s: a %s file is not read; %s", path, kind->ending,
                     kind->advice);
        return false;
    }
    for (size_t i = 0; i < args->item_count; i++) {
        const enum bhi_option_id id = args->items[i].option;
        const struct bhi_option *option = &bhi_options[id];
        if (id == BHI_INSPECT_JSON || id == BHI_INSPECT_VERBOSE) {
            continue;
        }
        bhi_complain(command, "%s%s is for kernels; %s is a file of arrays",
                     bhi_option_dashes(option), option->name, path);
        return false;
    }
    return true;
}

int bhi_inspect_tensors(const struct bhi_args *args) {
    const struct kind *kind = kind_of(args->operands[0]);
    if (!check(args, kind)) {
        return BHI_EXIT_USAGE;
    }
    int exit_status = BHI_EXIT_READY;
    struct listing listing = {0};
    listing.source = (bh_file_source){.struct_size = sizeof(bh_file_source)};
    listing.source.path = args->operands[0];
    listing.source.format = kind->format;
    listing.source.header_timeout_ns = BH_FOREVER; /* only a signal ends the wait */
    listing.context =
        bhi_session_open(command, bhi_args_has(args, BHI_INSPECT_VERBOSE), NULL, &exit_status);
    if (listing.context && (exit_status = ask_all(&listing)) == BHI_EXIT_READY) {
        if (bhi_args_has(args, BHI_INSPECT_JSON)) {
            print_json(&listing);
        } else {
            print(&listing);
        }
    }
    bhi_complain_cancelled(command, exit_status, "");
    bh_context_destroy(listing.context);
    free(listing.tensors);
    return exit_status;
}
