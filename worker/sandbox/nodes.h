/* Which device node belongs to which of a driver's devices. Where there are several, a worker opens
 * that of its own device alone (BHI_PATH_NODE, landlock.c).
 *
 * Vulkan numbers the devices as it likes, but tells their PCI addresses; the kernel's part of the
 * driver tells, in a file for each address, which minor number it has. */
#ifndef BHI_WORKER_SANDBOX_NODES_H
#define BHI_WORKER_SANDBOX_NODES_H

#include "worker/pci.h"
#include "worker/sandbox/driver.h"
#include <stddef.h>

#define BHI_NODES_MOST 64
#define BHI_NODE_PATH  64
#define BHI_NODES_WHY  160

struct bhi_nodes {
    unsigned count; /* nodes of this machine */
    char paths[BHI_NODES_MOST][BHI_NODE_PATH];
    unsigned devices; /* of the driver; 0: nobody has asked it */
    struct {
        struct bhi_pci pci;
        char path[BHI_NODE_PATH]; /* its node; "": not known, a worker has them all */
    } of[BHI_NODES_MOST];
    char why[BHI_NODES_WHY]; /* the first reason for which one is not known */
};

/* The nodes that are here, of those of which |driver| says that each device has one. */
void bhi_nodes_list(struct bhi_nodes *nodes, const struct bhi_driver *driver);
/* The minor number of the device at |pci|: what |folder|'s file for it says. Returns 0, or -errno:
 * -ENOENT where there is none, -EBADMSG where it is not as we know it. */
int bhi_nodes_minor(const char *folder, const struct bhi_pci *pci, unsigned *out_minor);
/* Finds of[i].path for the |devices| addresses that are there, with the folder in which the files
 * are. */
void bhi_nodes_match(struct bhi_nodes *nodes, const char *folder);
/* The |index|th device has no node of its own, because of |why|. */
void bhi_nodes_forget(struct bhi_nodes *nodes, unsigned index, const char *why);
/* The node and the address of the |index|th device, NULL where it is not known. */
const char *bhi_nodes_path(const struct bhi_nodes *nodes, unsigned index);
const struct bhi_pci *bhi_nodes_pci(const struct bhi_nodes *nodes, unsigned index);

#endif
