/* What stands around the C that pages show (compile_c). */
#include <bulkhead/bulkhead.h>
#include <bulkhead/device.h>
#include <bulkhead/file.h>
#include <bulkhead/history.h>
#include <bulkhead/quarantine.h>
#include <bulkhead/template.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

struct job {
    bh_status status;
};

extern bh_context *context;
extern bh_stream *stream;
extern bh_kernel *kernel;
extern bh_event *event, **events;
extern size_t count;
extern struct job *job;
extern bh_detail detail;
extern bh_queue *queue;
extern bh_submit_info info;
extern bh_template_options options;
extern const char *text;
extern int loop;
extern bh_history *history;
extern uint64_t request;
extern const void *expected;
extern size_t size;
extern bool once, good;

void go_on(struct job *job, bh_status status);
