/* How a worker may use a buffer (buffer_attach.access). */
#ifndef BHI_IPC_ATTACH_H
#define BHI_IPC_ATTACH_H

enum bhi_attach {
    BHI_ATTACH_READ,     /* it may only read; its descriptor allows nothing else */
    BHI_ATTACH_WRITE,    /* it may read and write */
    BHI_ATTACH_CONSTANT, /* it may only read, and no process writes while it is attached */
};

#endif
