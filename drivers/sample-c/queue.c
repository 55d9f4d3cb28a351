// Owns the order of queue work: an operation starts when its wait fence is reached. Does not own what it does.
//
// Work runs on the thread that makes it ready. One thread at a time drains the queue, so operations run one after the
// other in the order in which they became ready, and a chain of operations that wait for each other does not recurse.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

struct Operation {
    Operation *next;
    Queue *queue;
    atomic_size_t pending;             // Wait points that are not settled, and the submission itself.
    _Atomic(HaliteStatus *) failure;   // The first failure of a wait point.
    HaliteQueueOp op;                  // Owns what it names: retained handles, copied bytes and bindings.
    size_t signal_count;
    HaliteSemaphorePoint signal[];
};

Queue *create_queue(void) {
    Queue *queue = calloc(1, sizeof *queue);
    if (!queue) return NULL;
    atomic_init(&queue->count, 1);
    pthread_mutex_init(&queue->lock, NULL);
    init_monotonic_condition(&queue->idle);
    return queue;
}

void release_queue(Queue *queue) {
    if (atomic_fetch_sub(&queue->count, 1) != 1) return;
    pthread_cond_destroy(&queue->idle);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

static void free_operation(Operation *operation) {
    HaliteQueueOp *op = &operation->op;
    for (size_t i = 0; i < op->binding_count; i++)
        if (op->bindings[i].buffer) op->bindings[i].buffer->vtable->release(op->bindings[i].buffer);
    if (op->target.buffer) op->target.buffer->vtable->release(op->target.buffer);
    if (op->source.buffer) op->source.buffer->vtable->release(op->source.buffer);
    if (op->file) op->file->vtable->release(op->file);
    if (op->command_buffer) op->command_buffer->vtable->release(op->command_buffer);
    for (size_t i = 0; i < operation->signal_count; i++)
        operation->signal[i].semaphore->vtable->release(operation->signal[i].semaphore);
    free((void *)op->data.data);
    free((void *)op->bindings);
    release_queue(operation->queue);
    free(operation);
}

static HaliteStatus *transfer(const HaliteQueueOp *op, HaliteSpan span, bool reading) {
    uint8_t *chunk = malloc(CHUNK);
    if (!chunk) return out_of_memory();
    HaliteStatus *failure = NULL;
    for (uint64_t done = 0; !failure && done < span.length;) {
        size_t step = span.length - done < CHUNK ? (size_t)(span.length - done) : CHUNK;
        if (op->file_offset > UINT64_MAX - done) {
            failure = make_status(CODE_OUT_OF_RANGE, "file offset overflows");
        } else if (reading) {
            failure = op->file->vtable->read_at(op->file, op->file_offset + done, chunk, step);
            if (!failure) failure = write_span(span, done, chunk, step);
        } else {
            failure = read_span(span, done, chunk, step);
            if (!failure)
                failure = op->file->vtable->write_at(op->file, op->file_offset + done, (HaliteBytes){chunk, step});
        }
        done += step;
    }
    free(chunk);
    return failure;
}

static HaliteStatus *execute(const HaliteQueueOp *op) {
    switch (op->kind) {
        case HALITE_QUEUE_OP_BARRIER: return NULL;
        // No memory is shared with others.
        case HALITE_QUEUE_OP_ACQUIRE: return NULL;
        case HALITE_QUEUE_OP_RELEASE: return NULL;
        case HALITE_QUEUE_OP_DEALLOCA: give_back(op->target.buffer); return NULL;
        case HALITE_QUEUE_OP_FILL: return fill_span(op->target, op->pattern, op->pattern_length);
        case HALITE_QUEUE_OP_UPDATE: return write_span(op->target, 0, op->data.data, op->data.length);
        case HALITE_QUEUE_OP_COPY: return copy_span(op->source, op->target);
        case HALITE_QUEUE_OP_READ: return transfer(op, op->target, true);
        case HALITE_QUEUE_OP_WRITE: return transfer(op, op->source, false);
        default: return run_commands(op->command_buffer, op->bindings, op->binding_count);
    }
}

// Raises a semaphore unless it is there already, also when another thread is faster.
static HaliteStatus *raise_point(HaliteSemaphorePoint point) {
    const HaliteSemaphoreVtable *table = point.semaphore->vtable;
    uint64_t value = 0;
    HaliteStatus *failure = table->query(point.semaphore, &value);
    if (failure || value >= point.value) return failure;
    failure = table->signal(point.semaphore, point.value);
    if (!failure) return NULL;
    HaliteStatus *lost = table->query(point.semaphore, &value);
    bool there = !lost && value >= point.value;
    release_status(lost);
    if (!there) return failure;
    release_status(failure);
    return NULL;
}

static void run(Operation *operation) {
    HaliteStatus *failure = atomic_exchange(&operation->failure, NULL);
    if (!failure) failure = execute(&operation->op);
    for (size_t i = 0; i < operation->signal_count; i++) {
        HaliteSemaphorePoint point = operation->signal[i];
        // A semaphore that cannot be raised has failed or was raised by somebody else: its waiters know.
        if (failure)
            point.semaphore->vtable->fail(point.semaphore, clone_status(failure));
        else
            release_status(raise_point(point));
    }
    release_status(failure);
    free_operation(operation);
}

// Runs what is ready, unless another call, maybe one further up this thread's stack, is at it.
static void drain(Queue *queue) {
    pthread_mutex_lock(&queue->lock);
    if (!queue->draining) {
        queue->draining = true;
        while (queue->first) {
            Operation *operation = queue->first;
            queue->first = operation->next;
            if (!queue->first) queue->last = NULL;
            pthread_mutex_unlock(&queue->lock);
            run(operation);
            pthread_mutex_lock(&queue->lock);
        }
        queue->draining = false;
        pthread_cond_broadcast(&queue->idle);
    }
    pthread_mutex_unlock(&queue->lock);
}

// One wait point, or the submission, is settled. The last one makes the operation ready.
static void settle(Operation *operation, HaliteStatus *failure) {
    HaliteStatus *none = NULL;
    if (failure && !atomic_compare_exchange_strong(&operation->failure, &none, failure)) release_status(failure);
    if (atomic_fetch_sub(&operation->pending, 1) != 1) return;
    Queue *queue = operation->queue;
    atomic_fetch_add(&queue->count, 1);  // The operation's own count goes with it.
    pthread_mutex_lock(&queue->lock);
    if (queue->last)
        queue->last->next = operation;
    else
        queue->first = operation;
    queue->last = operation;
    pthread_mutex_unlock(&queue->lock);
    drain(queue);
    release_queue(queue);
}

static void reached(void *context, HaliteStatus *failure) { settle(context, failure); }

// The semaphore went away: nobody will ever signal it.
static void dropped(void *context) {
    settle(context, make_status(CODE_FAILED_PRECONDITION, "a semaphore that work waits for was dropped"));
}

static HaliteSpan keep_span(HaliteSpan span) {
    if (span.buffer) span.buffer->vtable->retain(span.buffer);
    return span;
}

// Copies what the operation names; a failure leaves what was copied so far to be freed.
static HaliteStatus *keep(HaliteQueueOp *to, const HaliteQueueOp *from) {
    to->kind = from->kind;
    to->pattern = from->pattern;
    to->pattern_length = from->pattern_length;
    to->file_offset = from->file_offset;
    to->target = keep_span(from->target);
    to->source = keep_span(from->source);
    if (from->file) from->file->vtable->retain(to->file = from->file);
    if (from->command_buffer) from->command_buffer->vtable->retain(to->command_buffer = from->command_buffer);
    if (from->data.length) {
        uint8_t *data = malloc(from->data.length);
        if (!data) return out_of_memory();
        to->data = (HaliteBytes){memcpy(data, from->data.data, from->data.length), from->data.length};
    }
    if (from->binding_count) {
        HaliteSpan *bindings = calloc(from->binding_count, sizeof *bindings);
        if (!bindings) return out_of_memory();
        for (size_t i = 0; i < from->binding_count; i++) bindings[i] = keep_span(from->bindings[i]);
        to->bindings = bindings;
        to->binding_count = from->binding_count;
    }
    return NULL;
}

HaliteStatus *submit(Queue *queue, HaliteFence wait, HaliteFence signal, const HaliteQueueOp *op) {
    if (op->kind > HALITE_QUEUE_OP_RELEASE)
        return make_status(CODE_UNIMPLEMENTED, "the sample device knows no queue operation of kind %u", op->kind);
    Operation *operation = calloc(1, sizeof *operation + signal.count * sizeof signal.points[0]);
    if (!operation) return out_of_memory();
    operation->queue = queue;
    atomic_fetch_add(&queue->count, 1);
    HaliteStatus *failure = keep(&operation->op, op);
    if (failure) {
        free_operation(operation);
        return failure;
    }
    for (; operation->signal_count < signal.count; operation->signal_count++) {
        HaliteSemaphorePoint point = signal.points[operation->signal_count];
        point.semaphore->vtable->retain(point.semaphore);
        operation->signal[operation->signal_count] = point;
    }
    atomic_init(&operation->pending, wait.count + 1);
    for (size_t i = 0; i < wait.count; i++) {
        HaliteCallback callback = {.context = operation, .call = reached, .drop = dropped};
        wait.points[i].semaphore->vtable->on_reached(wait.points[i].semaphore, wait.points[i].value, callback);
    }
    settle(operation, NULL);
    return NULL;
}

HaliteStatus *wait_until_idle(Queue *queue, uint64_t timeout_ns) {
    struct timespec deadline;
    bool limited = deadline_after(timeout_ns, &deadline);
    int late = 0;
    pthread_mutex_lock(&queue->lock);
    while ((queue->draining || queue->first) && late != ETIMEDOUT)
        late = limited ? pthread_cond_timedwait(&queue->idle, &queue->lock, &deadline)
                       : pthread_cond_wait(&queue->idle, &queue->lock);
    bool busy = queue->draining || queue->first;
    pthread_mutex_unlock(&queue->lock);
    return busy ? make_status(CODE_DEADLINE_EXCEEDED, "the sample device is still at work") : NULL;
}
