/* Which device node belongs to which of a driver's devices. If a driver has several devices, a
 * worker may open only the node of its own (BHI_PATH_NODE, landlock.c).
 *
 * Vulkan numbers the devices in an order of its own, but tells their PCI addresses. The kernel's
 * part of the driver has a file for each address, which tells the minor number of the node. */
#ifndef BHI_WORKER_SANDBOX_NODES_H
#define BHI_WORKER_SANDBOX_NODES_H

#include "worker/pci.h"
#include "worker/sandbox/driver.h"
#include <stddef.h>

#define BHI_NODES_MOST 64
#define BHI_NODE_PATH  64
#define BHI_NODES_WHY  160

struct bhi_nodes {
    unsigned count; /* nodes on this machine */
    char paths[BHI_NODES_MOST][BHI_NODE_PATH];
    unsigned devices; /* devices of the driver; 0: the driver was not asked */
    struct {
        struct bhi_pci pci;
        char path[BHI_NODE_PATH]; /* the device's node; "": unknown, so a worker gets all nodes */
    } of[BHI_NODES_MOST];
    char why[BHI_NODES_WHY]; /* why the first unknown node is unknown */
};

/* Lists the nodes of this machine that match the BHI_PATH_NODE paths of |driver|. */
void bhi_nodes_list(struct bhi_nodes *nodes, const struct bhi_driver *driver);
/* Reads the minor number of the device at |pci| from its file in |folder|. Returns 0 or -errno:
 * -ENOENT if there is no file, -EBADMSG if its content is not as expected. */
int bhi_nodes_minor(const char *folder, const struct bhi_pci *pci, unsigned *out_minor);
/* Finds of[i].path for the first |devices| addresses, from the files in |folder|. */
void bhi_nodes_match(struct bhi_nodes *nodes, const char *folder);
/* Makes the |index|th device one without a node of its own, because of |why|. */
void bhi_nodes_forget(struct bhi_nodes *nodes, unsigned index, const char *why);
/* Return the node and the address of the |index|th device, NULL if unknown. */
const char *bhi_nodes_path(const struct bhi_nodes *nodes, unsigned index);
const struct bhi_pci *bhi_nodes_pci(const struct bhi_nodes *nodes, unsigned index);

#endif
