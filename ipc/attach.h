/* What a worker is told of a buffer that it is given (buffer_attach.access). */
#ifndef BHI_IPC_ATTACH_H
#define BHI_IPC_ATTACH_H

enum bhi_attach {
    BHI_ATTACH_READ,     /* it only reads it: the descriptor lets it do nothing else */
    BHI_ATTACH_WRITE,    /* it reads and writes it */
    BHI_ATTACH_CONSTANT, /* it only reads it, and nobody writes it while it is attached like that */
};

#endif
