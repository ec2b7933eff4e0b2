/* The loader is a worker without a device. It gets files, open for reading, and buffers. It parses
 * the headers of the files and reads ranges of them into the buffers. It sees no paths and nothing
 * else of the file system.
 *
 * It reads a file only with pread: if the file shrinks, a read ends early, which is an error and
 * never a SIGBUS. Before the first byte is read, and again after the last one, it checks that the
 * file is unchanged since the supervisor opened it. Otherwise bytes that were written meanwhile
 * would pass for the file's content.
 *
 * One thread calls it. Several threads read; all of them are idle before a result is given. One
 * more thread closes files, which may hang. */
#ifndef BHI_WORKER_LOADER_LOADER_H
#define BHI_WORKER_LOADER_LOADER_H

#include "ipc/commands.h"
#include "ipc/progress.h"
#include "ipc/wire.h"
#include "worker/backend.h"

struct bhi_loader;

/* Starts the threads. Returns NULL on failure; |error| says why. */
struct bhi_loader *bhi_loader_create(struct bhi_progress *progress, struct bhi_error *error);
void bhi_loader_destroy(struct bhi_loader *loader);

/* Takes |fd| over, also on failure: then every use of the id fails. */
void bhi_loader_attach(struct bhi_loader *loader, uint64_t buffer, int fd, uint64_t size);
void bhi_loader_detach(struct bhi_loader *loader, uint64_t buffer);
/* |socket| is where the open file waits. The file stays there, for another loader. */
void bhi_loader_attach_file(struct bhi_loader *loader, const struct bhi_msg_file_attach *file,
                            int socket);
void bhi_loader_detach_file(struct bhi_loader *loader, uint64_t file);

/* Runs a checked record. An error of a file is LOAD_FAILED. Its text gives the offset;
 * result->vk_result is errno if there is one. */
void bhi_loader_run(struct bhi_loader *loader, const struct bhi_lane_record *record,
                    struct bhi_result *result, struct bhi_error *error);

#endif
