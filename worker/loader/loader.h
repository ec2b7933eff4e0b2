/* The loader: what a worker is that has no device. It is given files, open for reading, and
 * buffers; it parses the headers of the first and reads ranges of them into the second. It sees
 * neither paths nor anything else of the file system.
 *
 * A file is only ever read with pread: one that shrinks ends early, and that is an error, never a
 * SIGBUS. It must be the file that the supervisor opened, unchanged, before the first byte is read
 * and after the last one: what was written meanwhile would otherwise pass for what was there.
 *
 * One thread calls it. Several read; all of them are at rest before a result is given. One more
 * closes files, which may hang.
 */
#ifndef BHI_WORKER_LOADER_LOADER_H
#define BHI_WORKER_LOADER_LOADER_H

#include "ipc/commands.h"
#include "ipc/progress.h"
#include "ipc/wire.h"
#include "worker/backend.h"

struct bhi_loader;

/* Starts its threads. NULL: |error| says why. */
struct bhi_loader *bhi_loader_create(struct bhi_progress *progress, struct bhi_error *error);
void bhi_loader_destroy(struct bhi_loader *loader);

/* Takes |fd| over, also where it fails: what uses the id fails then. */
void bhi_loader_attach(struct bhi_loader *loader, uint64_t buffer, int fd, uint64_t size);
void bhi_loader_detach(struct bhi_loader *loader, uint64_t buffer);
/* |socket|: where the open file waits. It stays there, for another loader. */
void bhi_loader_attach_file(struct bhi_loader *loader, const struct bhi_msg_file_attach *file,
                            int socket);
void bhi_loader_detach_file(struct bhi_loader *loader, uint64_t file);

/* Runs a checked record. A file's error is LOAD_FAILED, with errno where there is one in
 * result->vk_result, and the text says at which offset. */
void bhi_loader_run(struct bhi_loader *loader, const struct bhi_lane_record *record,
                    struct bhi_result *result, struct bhi_error *error);

#endif
