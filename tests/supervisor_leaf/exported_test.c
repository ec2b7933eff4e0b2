/* D2, B4: what a worker may hand out as device memory. */
#include "harness.h"
#include "supervisor/worker/exported.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A machine without a GPU has no dma-bufs: these two make one of an eventfd. */
static int dma_buf = -1;
static uint64_t dma_buf_size;

int __real_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out) {
    const int result = __real_fstatfs(fd, out);
    if (result == 0 && fd == dma_buf) {
        out->f_type = DMA_BUF_MAGIC;
    }
    return result;
}

int __real_statx(int folder, const char *path, int flags, unsigned mask, struct statx *out);
int __wrap_statx(int folder, const char *path, int flags, unsigned mask, struct statx *out);
int __wrap_statx(int folder, const char *path, int flags, unsigned mask, struct statx *out) {
    const int result = __real_statx(folder, path, flags, mask, out);
    if (result == 0 && folder == dma_buf) {
        BHT_EQ(out->stx_mode & S_IFMT, 0); /* as a dma-buf's */
        out->stx_size = dma_buf_size;
    }
    return result;
}

TEST(a_file_in_memory_that_is_long_enough) {
    const int fd = memfd_create("memory", MFD_CLOEXEC);
    BHT_EQ(ftruncate(fd, 4096), 0);
    BHT_TRUE(bhi_exported_is_memory(fd, 4096));
    BHT_TRUE(!bhi_exported_is_memory(fd, 4097));
    close(fd);
}

TEST(a_device_node) {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    BHT_TRUE(bhi_exported_is_memory(fd, 1 << 30)); /* its driver knows how much it stands for */
    close(fd);
}

TEST(a_dma_buf_that_is_long_enough) {
    dma_buf = eventfd(0, EFD_CLOEXEC);
    dma_buf_size = 65536;
    BHT_TRUE(bhi_exported_is_memory(dma_buf, 65536));
    BHT_TRUE(!bhi_exported_is_memory(dma_buf, 65537));
    close(dma_buf);
    dma_buf = -1;
}

TEST(other_anonymous_inodes_are_none) {
    const int event = eventfd(0, EFD_CLOEXEC), epoll = epoll_create1(EPOLL_CLOEXEC);
    BHT_TRUE(!bhi_exported_is_memory(event, 0));
    BHT_TRUE(!bhi_exported_is_memory(epoll, 0));
    close(event);
    close(epoll);
}

TEST(pipes_sockets_folders_and_closed_descriptors_are_none) {
    int pipes[2], sockets[2];
    BHT_EQ(pipe2(pipes, O_CLOEXEC), 0);
    BHT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    const int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    BHT_TRUE(!bhi_exported_is_memory(pipes[0], 0));
    BHT_TRUE(!bhi_exported_is_memory(sockets[0], 0));
    BHT_TRUE(!bhi_exported_is_memory(folder, 0));
    close(folder);
    BHT_TRUE(!bhi_exported_is_memory(folder, 0));
    for (int i = 0; i < 2; i++) {
        close(pipes[i]);
        close(sockets[i]);
    }
}
