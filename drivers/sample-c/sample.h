// What the files of the sample driver share. A device keeps memory and order, as the null driver does, but is written
// in plain C against halite/driver.h: the proof that a driver needs no Rust.

#ifndef HALITE_SAMPLE_C_H
#define HALITE_SAMPLE_C_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halite/driver.h"

#define DRIVER_NAME "sample-c"

// Status codes that this driver gives.
enum {
    CODE_INVALID_ARGUMENT = 3,
    CODE_DEADLINE_EXCEEDED = 4,
    CODE_NOT_FOUND = 5,
    CODE_RESOURCE_EXHAUSTED = 8,
    CODE_FAILED_PRECONDITION = 9,
    CODE_OUT_OF_RANGE = 11,
    CODE_UNIMPLEMENTED = 12,
    CODE_INTERNAL = 13,
    CODE_INCOMPATIBLE = 18,
};

// Bytes that copies through the host hold at a time.
#define CHUNK 65536

// status.c: failures. Both makers answer a constant "out of memory" status when there is no room for a better one.
HaliteStatus *make_status(uint32_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
HaliteStatus *clone_status(const HaliteStatus *status);
HaliteStatus *out_of_memory(void);
void release_status(HaliteStatus *status);
HaliteStr text(const char *terminated);
bool same_text(HaliteStr text, const char *terminated);

// The program's services; set by the query function before anything else runs.
extern const HaliteHost *host;

typedef struct Device Device;
typedef struct Buffer Buffer;
typedef struct CommandBuffer CommandBuffer;
typedef struct Operation Operation;

// The account of a device's memory. Outlives the device while buffers do.
typedef struct Memory {
    atomic_uint count;
    pthread_mutex_t lock;
    uint64_t limit, used, peak, allocations;
} Memory;

// buffer.c
Memory *create_memory(uint64_t limit);
void release_memory(Memory *memory);
HaliteStatus *create_buffer(
    uint64_t device_id, Memory *memory, const HaliteBufferParams *params, uint64_t byte_length, HaliteBuffer **out);
// Gives the memory back; the handle stays.
void give_back(HaliteBuffer *buffer);
// Each checks its range. Foreign handles are refused.
HaliteStatus *fill_span(HaliteSpan target, uint64_t pattern, uint32_t pattern_length);
HaliteStatus *write_span(HaliteSpan target, uint64_t offset, const void *source, size_t length);
HaliteStatus *read_span(HaliteSpan source, uint64_t offset, void *target, size_t length);
HaliteStatus *copy_span(HaliteSpan source, HaliteSpan target);

// semaphore.c
HaliteStatus *create_semaphore(uint64_t device_id, uint64_t initial, HaliteSemaphore **out);

// commands.c
HaliteStatus *create_command_buffer(uint64_t device_id, const HaliteCommandList *list, HaliteCommandBuffer **out);
HaliteStatus *run_commands(HaliteCommandBuffer *commands, const HaliteSpan *bindings, size_t binding_count);

// queue.c: operations run one after the other on the thread that makes them ready.
typedef struct Queue {
    atomic_uint count;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    Operation *first, *last;
    bool draining;
} Queue;

Queue *create_queue(void);
void release_queue(Queue *queue);
HaliteStatus *submit(Queue *queue, HaliteFence wait, HaliteFence signal, const HaliteQueueOp *op);
HaliteStatus *wait_until_idle(Queue *queue, uint64_t timeout_ns);
// The moment `timeout_ns` from now on the monotonic clock; false for "never".
bool deadline_after(uint64_t timeout_ns, struct timespec *out);
void init_monotonic_condition(pthread_cond_t *condition);

// device.c
HaliteStatus *open_device(uint64_t memory_limit, HaliteDevice **out);
void visit_device_info(void *context, void (*visit)(void *context, const HaliteDeviceInfo *info));

#endif  // HALITE_SAMPLE_C_H
