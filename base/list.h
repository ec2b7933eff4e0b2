/* An intrusive doubly linked list. A node that is in no list points at itself. */
#ifndef BHI_BASE_LIST_H
#define BHI_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct bhi_list {
    struct bhi_list *prev, *next;
};

#define BHI_CONTAINER(node, type, member)                                                          \
    ((type *)(void *)((char *)(node) - offsetof(type, member)))

static inline void bhi_list_init(struct bhi_list *list) {
    list->prev = list->next = list;
}

static inline bool bhi_list_empty(const struct bhi_list *list) {
    return list->next == list;
}

static inline void bhi_list_insert_before(struct bhi_list *at, struct bhi_list *node) {
    node->prev = at->prev;
    node->next = at;
    at->prev->next = node;
    at->prev = node;
}

static inline void bhi_list_append(struct bhi_list *list, struct bhi_list *node) {
    bhi_list_insert_before(list, node);
}

static inline void bhi_list_remove(struct bhi_list *node) {
    node->prev->next = node->next;
    node->next->prev = node->prev;
    bhi_list_init(node);
}

/* Moves all of |from| to the end of |to|. */
static inline void bhi_list_splice(struct bhi_list *to, struct bhi_list *from) {
    if (bhi_list_empty(from)) {
        return;
    }
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    bhi_list_init(from);
}

#define BHI_LIST_EACH(node, list)                                                                  \
    for (struct bhi_list *node = (list)->next; node != (list); node = node->next)
/* The body may remove |node|. */
#define BHI_LIST_EACH_SAFE(node, list)                                                             \
    for (struct bhi_list *node = (list)->next, *node##_next = node->next; node != (list);          \
         node = node##_next, node##_next = node->next)
/* The same for the structs of |type| whose |member| is in the list. */
#define BHI_LIST_FOR(type, item, list, member)                                                     \
    for (type *item = BHI_CONTAINER((list)->next, type, member); &item->member != (list);          \
         item = BHI_CONTAINER(item->member.next, type, member))
#define BHI_LIST_FOR_SAFE(type, item, list, member)                                                \
    for (type *item = BHI_CONTAINER((list)->next, type, member), *item##_next;                     \
         &item->member != (list) &&                                                                \
         (item##_next = BHI_CONTAINER(item->member.next, type, member), true);                     \
         item = item##_next)

#endif
