#include "worker/loader/closer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct item {
    struct item *next;
    int fd;
};

struct bhi_closer {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct item *first, **end;
    bool stop;
};

static void *run(void *argument) {
    struct bhi_closer *closer = argument;
    pthread_mutex_lock(&closer->lock);
    for (;;) {
        while (!closer->first && !closer->stop) {
            pthread_cond_wait(&closer->changed, &closer->lock);
        }
        struct item *item = closer->first;
        if (!item) {
            break;
        }
        closer->first = item->next;
        if (!closer->first) {
            closer->end = &closer->first;
        }
        pthread_mutex_unlock(&closer->lock);
        close(item->fd);
        free(item);
        pthread_mutex_lock(&closer->lock);
    }
    pthread_mutex_unlock(&closer->lock);
    return NULL;
}

struct bhi_closer *bhi_closer_create(void) {
    struct bhi_closer *closer = calloc(1, sizeof *closer);
    if (!closer) {
        return NULL;
    }
    closer->end = &closer->first;
    pthread_mutex_init(&closer->lock, NULL);
    pthread_cond_init(&closer->changed, NULL);
    const int error = pthread_create(&closer->thread, NULL, run, closer);
    if (error != 0) {
        pthread_cond_destroy(&closer->changed);
        pthread_mutex_destroy(&closer->lock);
        free(closer);
        errno = error;
        return NULL;
    }
    return closer;
}

void bhi_closer_destroy(struct bhi_closer *closer) {
    if (!closer) {
        return;
    }
    pthread_mutex_lock(&closer->lock);
    closer->stop = true;
    pthread_cond_signal(&closer->changed);
    pthread_mutex_unlock(&closer->lock);
    pthread_join(closer->thread, NULL);
    pthread_cond_destroy(&closer->changed);
    pthread_mutex_destroy(&closer->lock);
    free(closer);
}

void bhi_closer_give(struct bhi_closer *closer, int fd) {
    struct item *item = malloc(sizeof *item);
    if (!item) {
        return;
    }
    *item = (struct item){.fd = fd};
    pthread_mutex_lock(&closer->lock);
    *closer->end = item;
    closer->end = &item->next;
    pthread_cond_signal(&closer->changed);
    pthread_mutex_unlock(&closer->lock);
}
