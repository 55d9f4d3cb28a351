// Owns timeline semaphores on the host. Does not own who signals them.

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "sample.h"

typedef struct Timepoint {
    struct Timepoint *next;
    uint64_t value;
    HaliteCallback callback;
} Timepoint;

typedef struct Semaphore {
    HaliteSemaphore base;
    atomic_uint count;
    uint64_t device_id;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t value;
    HaliteStatus *failure;
    Timepoint *timepoints;  // By rising value.
} Semaphore;

void init_monotonic_condition(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool deadline_after(uint64_t timeout_ns, struct timespec *out) {
    const uint64_t second = 1000000000;
    if (timeout_ns == HALITE_FOREVER) return false;
    clock_gettime(CLOCK_MONOTONIC, out);
    uint64_t nanoseconds = (uint64_t)out->tv_nsec + timeout_ns % second;
    // A century is as good as any longer time, and fits every time_t.
    uint64_t seconds = timeout_ns / second;
    out->tv_sec += (time_t)(seconds < 3000000000u ? seconds : 3000000000u) + (time_t)(nanoseconds / second);
    out->tv_nsec = (long)(nanoseconds % second);
    return true;
}

static void retain(HaliteSemaphore *semaphore) { atomic_fetch_add(&((Semaphore *)semaphore)->count, 1); }

static void release(HaliteSemaphore *handle) {
    Semaphore *semaphore = (Semaphore *)handle;
    if (atomic_fetch_sub(&semaphore->count, 1) != 1) return;
    for (Timepoint *next, *t = semaphore->timepoints; t; t = next) {
        next = t->next;
        if (t->callback.drop) t->callback.drop(t->callback.context);
        free(t);
    }
    release_status(semaphore->failure);
    pthread_cond_destroy(&semaphore->changed);
    pthread_mutex_destroy(&semaphore->lock);
    free(semaphore);
}

static uint64_t device_id(HaliteSemaphore *semaphore) { return ((Semaphore *)semaphore)->device_id; }

static HaliteStatus *query(HaliteSemaphore *handle, uint64_t *out) {
    Semaphore *semaphore = (Semaphore *)handle;
    pthread_mutex_lock(&semaphore->lock);
    HaliteStatus *failure = semaphore->failure ? clone_status(semaphore->failure) : NULL;
    if (!failure) *out = semaphore->value;
    pthread_mutex_unlock(&semaphore->lock);
    return failure;
}

// Calls and frees a list; each callback gets a failure of its own.
static void call_all(Timepoint *list, const HaliteStatus *failure) {
    for (Timepoint *next; list; list = next) {
        next = list->next;
        list->callback.call(list->callback.context, failure ? clone_status(failure) : NULL);
        free(list);
    }
}

static HaliteStatus *signal_value(HaliteSemaphore *handle, uint64_t value) {
    Semaphore *semaphore = (Semaphore *)handle;
    HaliteStatus *failure = NULL;
    Timepoint *ready = NULL;
    pthread_mutex_lock(&semaphore->lock);
    if (semaphore->failure) {
        failure = clone_status(semaphore->failure);
    } else if (value <= semaphore->value) {
        failure = make_status(CODE_INVALID_ARGUMENT,
                              "semaphore values only grow: tried to signal %" PRIu64 ", present value is %" PRIu64,
                              value, semaphore->value);
    } else {
        semaphore->value = value;
        Timepoint **end = &semaphore->timepoints;
        while (*end && (*end)->value <= value) end = &(*end)->next;
        if (end != &semaphore->timepoints) {
            ready = semaphore->timepoints;
            semaphore->timepoints = *end;
            *end = NULL;
        }
    }
    pthread_cond_broadcast(&semaphore->changed);
    pthread_mutex_unlock(&semaphore->lock);
    call_all(ready, NULL);
    return failure;
}

static void fail(HaliteSemaphore *handle, HaliteStatus *failure) {
    Semaphore *semaphore = (Semaphore *)handle;
    HaliteStatus *told = clone_status(failure);
    Timepoint *all = NULL;
    pthread_mutex_lock(&semaphore->lock);
    if (semaphore->failure) {
        release_status(failure);
    } else {
        semaphore->failure = failure;
        all = semaphore->timepoints;
        semaphore->timepoints = NULL;
    }
    pthread_cond_broadcast(&semaphore->changed);
    pthread_mutex_unlock(&semaphore->lock);
    call_all(all, told);
    release_status(told);
}

static HaliteStatus *wait_value(HaliteSemaphore *handle, uint64_t value, uint64_t timeout_ns) {
    Semaphore *semaphore = (Semaphore *)handle;
    struct timespec deadline;
    bool limited = deadline_after(timeout_ns, &deadline);
    int late = 0;
    pthread_mutex_lock(&semaphore->lock);
    while (!semaphore->failure && semaphore->value < value && late != ETIMEDOUT)
        late = limited ? pthread_cond_timedwait(&semaphore->changed, &semaphore->lock, &deadline)
                       : pthread_cond_wait(&semaphore->changed, &semaphore->lock);
    HaliteStatus *failure = NULL;
    if (semaphore->failure)
        failure = clone_status(semaphore->failure);
    else if (semaphore->value < value)
        failure = make_status(CODE_DEADLINE_EXCEEDED, "the deadline of the wait has passed");
    pthread_mutex_unlock(&semaphore->lock);
    return failure;
}

static void on_reached(HaliteSemaphore *handle, uint64_t value, HaliteCallback callback) {
    Semaphore *semaphore = (Semaphore *)handle;
    Timepoint *timepoint = malloc(sizeof *timepoint);
    HaliteStatus *failure = NULL;
    pthread_mutex_lock(&semaphore->lock);
    bool wait = !semaphore->failure && semaphore->value < value;
    if (wait && timepoint) {
        Timepoint **at = &semaphore->timepoints;
        while (*at && (*at)->value <= value) at = &(*at)->next;
        *timepoint = (Timepoint){.next = *at, .value = value, .callback = callback};
        *at = timepoint;
        timepoint = NULL;
    } else {
        failure = wait ? out_of_memory() : semaphore->failure ? clone_status(semaphore->failure) : NULL;
        wait = false;
    }
    pthread_mutex_unlock(&semaphore->lock);
    free(timepoint);
    if (!wait) callback.call(callback.context, failure);
}

static const HaliteSemaphoreVtable vtable = {
    .struct_size = sizeof vtable,
    .retain = retain,
    .release = release,
    .device_id = device_id,
    .query = query,
    .signal = signal_value,
    .fail = fail,
    .wait = wait_value,
    .on_reached = on_reached,
};

HaliteStatus *create_semaphore(uint64_t device, uint64_t initial, HaliteSemaphore **out) {
    Semaphore *semaphore = calloc(1, sizeof *semaphore);
    if (!semaphore) return out_of_memory();
    semaphore->base.vtable = &vtable;
    atomic_init(&semaphore->count, 1);
    semaphore->device_id = device;
    semaphore->value = initial;
    pthread_mutex_init(&semaphore->lock, NULL);
    init_monotonic_condition(&semaphore->changed);
    *out = &semaphore->base;
    return NULL;
}
