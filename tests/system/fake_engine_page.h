/* The page through which a test and fake_engine.c see each other: the file "engine"
 * beside the driver's library. */
#ifndef BHT_FAKE_ENGINE_PAGE_H
#define BHT_FAKE_ENGINE_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define FAKE_ENGINE_BYTES 4096

struct fake_engine {
    _Atomic uint32_t held;    /* the test writes it: 1: nothing new is begun, */
    _Atomic uint32_t steps;   /* but so many */
    _Atomic uint32_t lost;    /* 1: so is the device */
    _Atomic uint64_t waiting; /* the number of what waits because of that, from 1 in each process */
    _Atomic uint64_t done;    /* queue submissions that are done, of all processes */
};

#endif
