/* How a worker may use a buffer (buffer_attach.access): read, read and write, or read a constant.
 */
#ifndef BHI_IPC_ATTACH_H
#define BHI_IPC_ATTACH_H

enum bhi_attach {
    BHI_ATTACH_READ,     /* it only reads it: the descriptor lets it do nothing else */
    BHI_ATTACH_WRITE,    /* it reads and writes it */
    BHI_ATTACH_CONSTANT, /* it only reads it, and nobody writes it while it is attached like that */
};

#endif
