#include "worker/loader/closer.h"

#include "base/list.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct item {
    struct bhi_list node;
    int fd;
};

struct bhi_closer {
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct bhi_list items;
    bool stop;
};

static void *run(void *argument) {
    struct bhi_closer *closer = argument;
    pthread_mutex_lock(&closer->lock);
    for (;;) {
        while (bhi_list_empty(&closer->items) && !closer->stop) {
            pthread_cond_wait(&closer->changed, &closer->lock);
        }
        if (bhi_list_empty(&closer->items)) {
            break;
        }
        struct item *item = BHI_CONTAINER(closer->items.next, struct item, node);
        bhi_list_remove(&item->node);
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
    bhi_list_init(&closer->items);
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
    bhi_list_append(&closer->items, &item->node);
    pthread_cond_signal(&closer->changed);
    pthread_mutex_unlock(&closer->lock);
}
