/* The PCI address of a device: the only name of it that both Vulkan and the kernel's /proc know. */
#ifndef BHI_WORKER_PCI_H
#define BHI_WORKER_PCI_H

#include <stdbool.h>
#include <stdint.h>

struct bhi_pci {
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t function;
    bool known; /* false: the driver does not tell the address, and the rest is 0 */
};

static inline bool bhi_pci_equal(const struct bhi_pci *a, const struct bhi_pci *b) {
    return a->known && b->known && a->domain == b->domain && a->bus == b->bus &&
           a->device == b->device && a->function == b->function;
}

#endif
