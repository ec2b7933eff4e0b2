/* The Vulkan backend: one device, one queue, no isolation of its own. It runs in a worker (entry
 * points straight from the driver's library) and in tests (through the loader, with the validation
 * layer). One thread calls it. It knows nothing of lanes, sandboxes or supervisors: an error is a
 * struct bhi_error, and a crash is a crash.
 */
#ifndef BHI_WORKER_BACKEND_H
#define BHI_WORKER_BACKEND_H

#include "ipc/attach.h"
#include "ipc/commands.h"
#include "ipc/progress.h"
#include "ipc/wire.h"
#include "worker/error.h"
#include "worker/pci.h"
#include <bulkhead/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan.h>

struct bhi_backend;

struct bhi_backend_config {
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    uint32_t device_index;
    const struct bhi_pci
        *pci; /* the device that is there, whichever number it has; NULL: by number */
    /* Page that the device may write (struct bhi_markers), or NULL: then submissions are never
     * merged into one vkQueueSubmit. Page aligned, a whole page, shared read-write mapping. */
    struct bhi_markers *markers;
    /* Told when |seq| has to be compiled first, and when that is over, before anything of it runs:
     * not where that was all that it had to do, or failed. NULL: nobody is. */
    void (*compiling)(void *user, uint64_t seq, bool over);
    /* A line for the host's log, with a level of bh_context_options.log. NULL: nobody reads it. */
    void (*log)(void *user, uint32_t level, const char *line);
    void *user;
    uint32_t max_pipelines;    /* least recently used ones are destroyed beyond it; 0:
                                  BHI_WORKER_PIPELINES */
    const char *const *layers; /* instance layers to enable (tests); NULL-terminated or NULL */
};

/* Creates instance, device, queue. On failure *error says which call (status NO_DEVICE,
 * UNSUPPORTED, OUT_OF_*, VULKAN). Returns NULL then. */
struct bhi_backend *bhi_backend_create(const struct bhi_backend_config *config,
                                       struct bhi_error *error);
void bhi_backend_destroy(struct bhi_backend *backend);
/* All physical devices of the driver, as `device` messages (chosen = 1 on the backend's). Returns
 * how many were written. |backend| may be NULL: where none can be created, an instance is made for
 * the purpose. */
size_t bhi_backend_devices(const struct bhi_backend_config *config,
                           const struct bhi_backend *backend, struct bhi_msg_device *out,
                           size_t capacity);
/* The same without a backend, and where they are. A error, and 0, where no instance can be had. */
size_t bhi_backend_survey(const struct bhi_backend_config *config, struct bhi_msg_device *out,
                          struct bhi_pci *out_pci, size_t capacity, struct bhi_error *error);
/* One trivial dispatch, so that the driver has started every thread and JIT it will need. */
bool bhi_backend_warm_up(struct bhi_backend *backend, struct bhi_error *error);

/* Maps |fd| (verified, MAP_POPULATE) and imports it as a VkBuffer without a copy. Takes |fd| over,
 * also on failure. A buffer that could not be imported is remembered with its error, and every
 * command that names it fails with it. Attaching an id again replaces it. Not BHI_ATTACH_WRITE:
 * commands only read it, and it is mapped read-only; where the device does not import such a
 * mapping, what a command reads is copied into memory that is imported instead: before each run, or
 * once, where its content stays as it is. */
void bhi_backend_attach(struct bhi_backend *backend, uint64_t id, int fd, uint64_t size,
                        enum bhi_attach access);
/* Does the device share its own memory with other workers? */
bool bhi_backend_exports(const struct bhi_backend *backend);
/* Makes |size| zero bytes (at least one) in the device's own memory. Returns a descriptor of them
 * for other workers; -1: as above, commands that name it fail with the error. */
int bhi_backend_make(struct bhi_backend *backend, uint64_t id, uint64_t size);
/* What another worker has made. Takes |fd| over. */
void bhi_backend_import(struct bhi_backend *backend, uint64_t id, int fd, uint64_t size);
/* A pipeline cache (cache_area.h): what is in |fd| is given to the driver if it is this device's,
 * and what the driver has is left there by bhi_backend_cache_save. Takes |fd| over. Without it, or
 * where it is of no use, compiling is as it was. */
void bhi_backend_cache_attach(struct bhi_backend *backend, int fd, uint64_t room);
/* Leaves there what has been compiled since the last time. Not |idle|: unless that would take too
 * much of the time; it is called again. */
void bhi_backend_cache_save(struct bhi_backend *backend, bool idle);
/* Waits for nothing: the supervisor detaches only what no submission uses. Unknown ids are fine. */
void bhi_backend_detach(struct bhi_backend *backend, uint64_t id);

struct bhi_spec_constant {
    uint32_t constant_id;
    uint32_t size; /* 1, 2, 4 or 8 */
    uint64_t bits;
};

/* Copies code and constants. Nothing is parsed until first use (bhi_backend_run with a dispatch or
 * a prepare): SPIRV-Tools validation, SPIRV-Cross reflection, layouts, pipeline. A kernel that
 * fails stays failed with its text. */
void bhi_backend_kernel_create(struct bhi_backend *backend,
                               const struct bhi_msg_kernel_create *info, const void *code,
                               const struct bhi_spec_constant *constants, uint32_t constant_count);
void bhi_backend_kernel_destroy(struct bhi_backend *backend, uint64_t id);
/* Called once for each kernel that was reflected since the last call, oldest first. Returns false
 * when there is none. |bindings| has room for 256. */
bool bhi_backend_next_reflection(struct bhi_backend *backend, struct bhi_msg_kernel_info *out,
                                 struct bhi_msg_kernel_binding *bindings);

/* Runs |count| checked records, in order, and blocks until the device has finished them. Up to 64
 * share one vkQueueSubmit, with markers between them: each record begins after the one before has
 * ended, so that the markers tell which one a death belongs to. Inside a record there are barriers
 * between commands that depend on each other through a buffer, and none between those that do not.
 * A record whose commands cannot be recorded fails alone and completely: none
 * of its commands runs. |results| and |errors| have |count| entries; started_ns, ended_ns, status,
 * vk_result, command_index, executed are filled in. Returns false when the device is lost: then
 * the results up to the loss are right, the rest say DEVICE_LOST, and the backend is only good for
 * destruction. */
bool bhi_backend_run(struct bhi_backend *backend, const struct bhi_lane_record *const *records,
                     size_t count, struct bhi_result *results, struct bhi_error *errors);

/* Has the record |seq| end, should it run now or be about to: its kernels return, as far as they
 * are guarded, its result is DEADLINE, and those that share its vkQueueSubmit go on. Any thread. */
void bhi_backend_abort(struct bhi_backend *backend, uint64_t seq);
/* The same for whatever runs, and whatever is run from now on. Any thread. */
void bhi_backend_abort_all(struct bhi_backend *backend);
/* Does that work on this device? */
bool bhi_backend_aborts(const struct bhi_backend *backend);

/* The memory of its abort words, as a descriptor that a sentinel can import (sentinel.h); -1: there
 * is none. */
int bhi_backend_words(struct bhi_backend *backend, uint64_t *out_bytes);

/* Will |record| run without compiling anything first? Only such records should share a call of
 * bhi_backend_run: a compile holds up those before it, and its crash would be theirs too. */
bool bhi_backend_warm(const struct bhi_backend *backend, const struct bhi_lane_record *record);

/* What it has done and holds, for tests. */
struct bhi_backend_counts {
    uint64_t queue_submits;  /* calls of vkQueueSubmit */
    uint64_t pipelines;      /* alive */
    uint64_t imported_bytes; /* of attached buffers */
};
void bhi_backend_counts(const struct bhi_backend *backend, struct bhi_backend_counts *out);

#endif
