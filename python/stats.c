/* Context._stats: what bh_context_stats reports. Python gives it its form. */
#include "python/native.h"

#include <bulkhead/stats.h>
#include <stddef.h>
#include <stdlib.h>

static PyObject *histogram(const bh_histogram *from) {
    return Py_BuildValue("{sdsN}", "sum", (double)from->sum_ns / 1e9, "counts",
                         bhi_py_numbers(from->counts, BH_BUCKETS));
}

static PyObject *work(const bh_work_stats *from) {
    return Py_BuildValue(
        "{sisIsNsNsKsKsKsKsNsKsKsKsNsN}", "scope", (int)from->scope, "number", from->number,
        "tenant", bhi_py_text(from->tenant), "stream", bhi_py_text(from->stream), "queued",
        from->queued, "in_flight", from->in_flight, "device_bytes", from->device_bytes,
        "context_bytes", from->context_bytes, "ended", bhi_py_numbers(from->ended, BH_STATUSES),
        "dependents", from->dependents, "deaths", from->deaths, "restarts", from->restarts, "wait",
        histogram(&from->wait), "run", histogram(&from->run));
}

#define FIELD(name) {#name, offsetof(bh_stats, name)}
static const struct {
    const char *name;
    size_t offset;
} fields[] = {
    FIELD(workers_started),
    FIELD(zygotes_lost),
    FIELD(streams),
    FIELD(streams_unavailable),
    FIELD(loads),
    FIELD(load_bytes),
    FIELD(loads_ready),
    FIELD(loads_poisoned),
    FIELD(compiles),
    FIELD(host_bytes),
    FIELD(device_bytes),
    FIELD(pool_bytes),
    FIELD(pool_blocks),
    FIELD(pool_hits),
    FIELD(pool_misses),
    FIELD(pool_evictions),
    FIELD(pool_zeroed_bytes),
    FIELD(device_pool_bytes),
    FIELD(device_pool_blocks),
    FIELD(device_pool_hits),
    FIELD(kernels),
    FIELD(kernel_bytes),
    FIELD(kernels_shared),
    FIELD(kernels_introduced),
    FIELD(kernels_evicted),
    FIELD(kernels_told),
};

/* (numbers by name, of processes one for each kind and state, deaths by status) */
static PyObject *whole(const bh_stats *stats) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < BHI_PY_COUNT(fields); i++) {
        const uint64_t *number = (const uint64_t *)((const char *)stats + fields[i].offset);
        PyObject *value = PyLong_FromUnsignedLongLong(*number);
        if (!value || PyDict_SetItemString(dict, fields[i].name, value) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(value);
    }
    return Py_BuildValue(
        "(NNN)", dict,
        bhi_py_numbers(&stats->processes[0][0], BH_PROCESS_KINDS * BH_PROCESS_STATES),
        bhi_py_numbers(stats->deaths, BH_STATUSES));
}

PyObject *bhi_py_stats(bh_context *context) {
    bh_stats stats = {.struct_size = sizeof stats};
    bh_work_stats *rows = NULL;
    size_t room = 0, count = 64;
    bh_detail detail;
    bh_status status = BH_OK;
    while (status == BH_OK && count > room) { /* more may have come meanwhile */
        free(rows);
        room = count + count / 8;
        rows = calloc(room, sizeof *rows);
        if (!rows) {
            return PyErr_NoMemory();
        }
        rows->struct_size = sizeof *rows;
        /* It waits for nobody. Without the GIL another thread could close the context meanwhile. */
        status = bh_context_stats(context, &stats, rows, room, &count, &detail);
    }
    PyObject *list = status == BH_OK ? PyList_New(0) : bhi_py_fail(status, &detail);
    for (size_t i = 0; list && i < count; i++) {
        bhi_py_append(&list, work(&rows[i]));
    }
    free(rows);
    return list ? Py_BuildValue("(NN)", whole(&stats), list) : NULL;
}
