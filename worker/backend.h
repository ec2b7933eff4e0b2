/* The backend: one device and its queues, without isolation of its own. There are two, for Vulkan
 * (worker/vulkan) and for CUDA (worker/cuda), behind one table of functions (backend/ops.h). It runs in
 * a worker (its entry points come straight from the driver's library) and in tests. Only one thread
 * calls it. It knows nothing of lanes, sandboxes or supervisors: it reports an error as a struct
 * bhi_error, and a crash of the driver ends the process. */
#ifndef BHI_WORKER_BACKEND_H
#define BHI_WORKER_BACKEND_H

#include "base/kernel_format.h"
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

struct bhi_backend;
struct bhi_backend_ops; /* backend/ops.h */

/* A function of the driver that finds its others: vkGetInstanceProcAddr, cuGetProcAddress. */
typedef void (*bhi_entry)(void);

/* What a backend calls. */
struct bhi_backend_calls {
    /* Called when the record |seq| has to be compiled first, and again when that is over, before
     * anything of it runs. The second call is missing if the record had nothing else to do, or
     * failed. NULL: no such calls. */
    void (*compiling)(void *user, uint64_t seq, bool over);
    /* Called again and again while a call of the backend waits for the device, and at least once
     * for each queue submission of records, if the device has a queue for copies: it may begin
     * copies. NULL: no such calls. */
    void (*meanwhile)(void *user);
    /* Gets a line for the host's log, with a level of bh_context_options.log. NULL: no log. */
    void (*log)(void *user, uint32_t level, const char *line);
    void *user;
};

struct bhi_backend_config {
    const struct bhi_backend_ops *ops; /* which backend */
    bhi_entry entry;
    uint32_t device_index;
    const struct bhi_pci
        *pci; /* which device to use, whatever number it has now; NULL: see the number */
    /* Page that the device may write (struct bhi_markers), or NULL: then submissions are never
     * merged into one for the device. Page aligned, a whole page, shared read-write mapping. */
    struct bhi_markers *markers;
    struct bhi_backend_calls calls;
    uint32_t max_pipelines;    /* kept; the least recently used go; 0: BHI_WORKER_PIPELINES */
    const char *const *layers; /* instance layers to enable (tests); NULL-terminated or NULL */
};

extern const struct bhi_backend_ops bhi_vulkan, bhi_cuda;

/* Creates instance, device and queue. On failure returns NULL, and *error says which call failed
 * (status NO_DEVICE, UNSUPPORTED, OUT_OF_*, VULKAN). */
struct bhi_backend *bhi_backend_create(const struct bhi_backend_config *config,
                                       struct bhi_error *error);
void bhi_backend_destroy(struct bhi_backend *backend);
/* Writes all physical devices of the driver as `device` messages (chosen = 1 on the backend's).
 * Returns how many it wrote. |backend| may be NULL, for where none can be created: then it makes an
 * instance for this call. */
size_t bhi_backend_devices(const struct bhi_backend_config *config,
                           const struct bhi_backend *backend, struct bhi_msg_device *out,
                           size_t capacity);
/* As bhi_backend_devices without a backend, and with the devices' PCI addresses. Returns 0 and
 * fills *error if it can create no instance. */
size_t bhi_backend_survey(const struct bhi_backend_config *config, struct bhi_msg_device *out,
                          struct bhi_pci *out_pci, size_t capacity, struct bhi_error *error);
/* Runs one trivial dispatch, so that the driver starts every thread and JIT that it will need. */
bool bhi_backend_warm_up(struct bhi_backend *backend, struct bhi_error *error);

/* Maps |fd| (verified, MAP_POPULATE) and imports it as a VkBuffer without a copy. Takes |fd| over,
 * also on failure. If the import fails, the error is kept, and every command that names the buffer
 * fails with it. Attaching an id again replaces the buffer. Without BHI_ATTACH_WRITE commands only
 * read the buffer, and it is mapped read-only. If the device cannot import a read-only mapping,
 * what a command reads is copied into memory that can be imported: before each run, or once if the
 * content never changes. */
void bhi_backend_attach(struct bhi_backend *backend, uint64_t id, int fd, uint64_t size,
                        enum bhi_attach access);
/* Does the device share its own memory with other workers? */
bool bhi_backend_exports(const struct bhi_backend *backend);
/* Makes |size| zero bytes (at least one) in the device's own memory. Returns a descriptor of them
 * for other workers, or -1: then, as above, commands that name the buffer fail with the error. */
int bhi_backend_make(struct bhi_backend *backend, uint64_t id, uint64_t size);
/* Returns true if the buffer could not be made because the device has no memory left. */
bool bhi_backend_is_full(const struct bhi_backend *backend, uint64_t id);
/* Overwrites a buffer that was made or imported with zeros. Returns false if that is impossible:
 * then commands that name it fail with the error, if it is there at all. */
bool bhi_backend_clear(struct bhi_backend *backend, uint64_t id);
/* Imports memory that another worker has made. Takes |fd| over. */
void bhi_backend_import(struct bhi_backend *backend, uint64_t id, int fd, uint64_t size);
/* Uses |fd| as the pipeline cache (cache_area.h): gives its content to the driver if it is from
 * this device; bhi_backend_cache_save later stores the driver's cache there. Takes |fd| over. If
 * the cache is missing or of no use, only compiling takes longer. */
void bhi_backend_cache_attach(struct bhi_backend *backend, int fd, uint64_t room);
/* Stores what was compiled since the last call. Unless |idle|, it may leave this to a later call,
 * so that saving does not take too much of the time. */
void bhi_backend_cache_save(struct bhi_backend *backend, bool idle);
/* Does not wait: the supervisor detaches only buffers that no submission uses. Unknown ids are
 * ignored. */
void bhi_backend_detach(struct bhi_backend *backend, uint64_t id);

struct bhi_spec_constant {
    uint32_t constant_id;
    uint32_t size; /* 1, 2, 4 or 8 */
    uint64_t bits;
};

/* Copies code and constants. Nothing is parsed until the first use (bhi_backend_run with a dispatch
 * or a prepare). That runs SPIRV-Tools' validation and SPIRV-Cross' reflection, and makes layouts
 * and pipeline. A kernel that fails keeps its error for all later uses. */
void bhi_backend_kernel_create(struct bhi_backend *backend,
                               const struct bhi_msg_kernel_create *info, const void *code,
                               const struct bhi_spec_constant *constants, uint32_t constant_count);
void bhi_backend_kernel_destroy(struct bhi_backend *backend, uint64_t id);
/* Compiles a kernel, as its first use would, and runs nothing. Makes no call of config.compiling.
 * Returns false and *error if the kernel cannot be compiled; the device may be lost then. */
bool bhi_backend_learn(struct bhi_backend *backend, uint64_t id, struct bhi_error *error);
/* Returns each reflected kernel once, oldest first; false when there is none left. |bindings| has
 * room for 256. */
bool bhi_backend_next_reflection(struct bhi_backend *backend, struct bhi_msg_kernel_info *out,
                                 struct bhi_msg_kernel_binding *bindings);

/* Runs |count| checked records, in order, and blocks until the device has finished them. Up to 64
 * share one vkQueueSubmit, with markers between them: each record begins after the one before has
 * ended, so that the markers tell which one a death belongs to. Inside a record there are barriers
 * between commands that depend on each other through a buffer, and none between others. If the
 * commands of a record cannot be recorded, the record fails alone and none of its commands runs.
 * |results| and |errors| have |count| entries; started_ns, ended_ns, status, vk_result,
 * command_index and executed are filled in. Returns false when the device is lost: then the results
 * up to the loss are right, the others say DEVICE_LOST, and the backend can only be destroyed. */
bool bhi_backend_run(struct bhi_backend *backend, const struct bhi_lane_record *const *records,
                     size_t count, struct bhi_result *results, struct bhi_error *errors);

/* Copies beside other records, on a queue of their own, where the device has one. A record that has
 * nothing but copies, and not few bytes, can begin while bhi_backend_run waits, or while an earlier
 * such record has not ended. Results come in the order in which they began. */
/* Is |record| one of those? Others are for bhi_backend_run. */
bool bhi_backend_copies(const struct bhi_backend *backend, const struct bhi_lane_record *record);
/* Can one more begin? */
bool bhi_backend_copy_room(const struct bhi_backend *backend);
/* Can |record| begin now? It cannot if it depends on what runs. */
bool bhi_backend_copy_fits(const struct bhi_backend *backend, const struct bhi_lane_record *record);
/* Begins a record that fits. It must stay in memory until it has ended. Control messages must wait
 * until then, too, and so must bhi_backend_run. */
void bhi_backend_copy_begin(struct bhi_backend *backend, const struct bhi_lane_record *record);
/* Waits until the oldest record that has begun has ended, and fills in its result, as
 * bhi_backend_run does. Do not call it from config.meanwhile. */
bool bhi_backend_copy_end(struct bhi_backend *backend, struct bhi_result *result,
                          struct bhi_error *error);

/* Ends the record |seq| if it runs now or is about to: its guarded kernels return, its result is
 * DEADLINE, and the records that share its vkQueueSubmit go on. Any thread. */
void bhi_backend_abort(struct bhi_backend *backend, uint64_t seq);
/* Ends whatever runs, and whatever is started from now on, in the same way. Any thread. */
void bhi_backend_abort_all(struct bhi_backend *backend);
/* Do the two functions above work on this device? */
bool bhi_backend_aborts(const struct bhi_backend *backend);

/* Returns the memory of the abort words as a descriptor that a sentinel can import (sentinel.h), or
 * -1 if there is none. */
int bhi_backend_words(struct bhi_backend *backend, uint64_t *out_bytes);

/* Will |record| run without compiling anything first? Only such records should share a call of
 * bhi_backend_run: a compile delays the records before it, and a crash of the compiler would be
 * blamed on them too. */
bool bhi_backend_warm(const struct bhi_backend *backend, const struct bhi_lane_record *record);

/* What the backend has done and holds, for tests. */
struct bhi_backend_counts {
    uint64_t queue_submits;  /* calls of vkQueueSubmit for kernels */
    uint64_t copy_submits;   /* and for copies on their own queue */
    uint64_t joins;          /* how many of those for kernels waited for copies of that queue */
    uint64_t pipelines;      /* alive */
    uint64_t imported_bytes; /* of attached buffers */
};
void bhi_backend_counts(const struct bhi_backend *backend, struct bhi_backend_counts *out);

#endif
