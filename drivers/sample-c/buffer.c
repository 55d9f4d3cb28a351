// Owns buffers and the account of their memory. Does not own when queue work touches them.

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

#define ALIGNMENT 64
#define MEMORY_TYPE 0x7Eu  // Device-local and host-local, visible to both sides, cached by the host.
#define ACCESS_ANY 0x20u

struct Buffer {
    HaliteBuffer base;
    atomic_uint count;
    uint64_t device_id, byte_length;
    uint32_t memory_type, usage;
    Memory *memory;
    pthread_mutex_t lock;  // Guards `bytes`: host access and queue work may come from two threads.
    uint8_t *bytes;        // Null once given back.
};

static const HaliteBufferVtable vtable;

Memory *create_memory(uint64_t limit) {
    Memory *memory = calloc(1, sizeof *memory);
    if (!memory) return NULL;
    atomic_init(&memory->count, 1);
    pthread_mutex_init(&memory->lock, NULL);
    memory->limit = limit;
    return memory;
}

void release_memory(Memory *memory) {
    if (atomic_fetch_sub(&memory->count, 1) != 1) return;
    pthread_mutex_destroy(&memory->lock);
    free(memory);
}

static HaliteStatus *take(Memory *memory, uint64_t bytes) {
    HaliteStatus *failure = NULL;
    pthread_mutex_lock(&memory->lock);
    if (bytes > memory->limit - memory->used) {
        failure = make_status(CODE_RESOURCE_EXHAUSTED,
                              "%" PRIu64 " bytes asked of the sample device, %" PRIu64 " of its %" PRIu64
                              " bytes are in use; raise the limit with '?memory=BYTES'",
                              bytes, memory->used, memory->limit);
    } else {
        memory->used += bytes;
        memory->allocations++;
        if (memory->used > memory->peak) memory->peak = memory->used;
    }
    pthread_mutex_unlock(&memory->lock);
    return failure;
}

static void put_back(Memory *memory, uint64_t bytes) {
    pthread_mutex_lock(&memory->lock);
    memory->used -= bytes;
    pthread_mutex_unlock(&memory->lock);
}

HaliteStatus *create_buffer(
    uint64_t device_id, Memory *memory, const HaliteBufferParams *params, uint64_t byte_length, HaliteBuffer **out) {
    HaliteStatus *failure = take(memory, byte_length);
    if (failure) return failure;
    // Kernels may touch the last partial word, so the storage is padded.
    uint64_t padded = (byte_length + ALIGNMENT) & ~(uint64_t)(ALIGNMENT - 1);
    Buffer *buffer = calloc(1, sizeof *buffer);
    uint8_t *bytes = padded < byte_length || padded > SIZE_MAX ? NULL : aligned_alloc(ALIGNMENT, (size_t)padded);
    if (!buffer || !bytes) {
        free(buffer);
        free(bytes);
        put_back(memory, byte_length);
        return make_status(CODE_RESOURCE_EXHAUSTED, "the host has no %" PRIu64 " bytes for a buffer", byte_length);
    }
    atomic_init(&buffer->count, 1);
    buffer->base.vtable = &vtable;
    buffer->device_id = device_id;
    buffer->byte_length = byte_length;
    buffer->memory_type = params->memory_type | MEMORY_TYPE;
    buffer->usage = params->usage;
    buffer->memory = memory;
    atomic_fetch_add(&memory->count, 1);
    pthread_mutex_init(&buffer->lock, NULL);
    buffer->bytes = bytes;
    *out = &buffer->base;
    return NULL;
}

void give_back(HaliteBuffer *handle) {
    if (handle->vtable != &vtable) return;
    Buffer *buffer = (Buffer *)handle;
    pthread_mutex_lock(&buffer->lock);
    uint8_t *bytes = buffer->bytes;
    buffer->bytes = NULL;
    pthread_mutex_unlock(&buffer->lock);
    if (bytes) put_back(buffer->memory, buffer->byte_length);
    free(bytes);
}

static void retain(HaliteBuffer *buffer) { atomic_fetch_add(&((Buffer *)buffer)->count, 1); }

static void release(HaliteBuffer *handle) {
    Buffer *buffer = (Buffer *)handle;
    if (atomic_fetch_sub(&buffer->count, 1) != 1) return;
    give_back(handle);
    pthread_mutex_destroy(&buffer->lock);
    release_memory(buffer->memory);
    free(buffer);
}

static void info(HaliteBuffer *handle, HaliteBufferInfo *out) {
    Buffer *buffer = (Buffer *)handle;
    HaliteBufferInfo known = {
        .struct_size = out->struct_size,
        .memory_type = buffer->memory_type,
        .usage = buffer->usage,
        .access = ACCESS_ANY,
        .device_id = buffer->device_id,
        .byte_length = buffer->byte_length,
        .host_address = NULL,  // Memory may go before the handle does.
    };
    memcpy(out, &known, out->struct_size < sizeof known ? out->struct_size : sizeof known);
}

// Locks the buffer and answers its bytes at `offset`, or fails with the buffer unlocked.
static HaliteStatus *open_range(HaliteBuffer *handle, uint64_t offset, uint64_t length, uint8_t **out) {
    if (!handle || handle->vtable != &vtable)
        return make_status(CODE_INVALID_ARGUMENT, "the buffer was made by another driver than '" DRIVER_NAME "'");
    Buffer *buffer = (Buffer *)handle;
    if (offset > buffer->byte_length || length > buffer->byte_length - offset)
        return make_status(CODE_OUT_OF_RANGE,
                           "%" PRIu64 " bytes at offset %" PRIu64 " lie outside of a buffer of %" PRIu64 " bytes",
                           length, offset, buffer->byte_length);
    pthread_mutex_lock(&buffer->lock);
    if (!buffer->bytes && length) {
        pthread_mutex_unlock(&buffer->lock);
        return make_status(CODE_FAILED_PRECONDITION,
                           "the buffer's memory was given back by dealloca; only its handle is left");
    }
    *out = buffer->bytes ? buffer->bytes + offset : NULL;
    return NULL;
}

static void close_range(HaliteBuffer *handle) { pthread_mutex_unlock(&((Buffer *)handle)->lock); }

static HaliteStatus *read(HaliteBuffer *buffer, uint64_t offset, uint8_t *target, size_t length) {
    uint8_t *bytes;
    HaliteStatus *failure = open_range(buffer, offset, length, &bytes);
    if (failure) return failure;
    if (length) memcpy(target, bytes, length);
    close_range(buffer);
    return NULL;
}

static HaliteStatus *write(HaliteBuffer *buffer, uint64_t offset, HaliteBytes source) {
    uint8_t *bytes;
    HaliteStatus *failure = open_range(buffer, offset, source.length, &bytes);
    if (failure) return failure;
    if (source.length) memcpy(bytes, source.data, source.length);
    close_range(buffer);
    return NULL;
}

static const HaliteBufferVtable vtable = {
    .struct_size = sizeof vtable,
    .retain = retain,
    .release = release,
    .info = info,
    .read = read,
    .write = write,
};

static HaliteStatus *check_part(HaliteSpan span, uint64_t offset, uint64_t length) {
    if (offset <= span.length && length <= span.length - offset && span.offset <= UINT64_MAX - offset) return NULL;
    return make_status(CODE_OUT_OF_RANGE,
                       "%" PRIu64 " bytes at offset %" PRIu64 " lie outside of a range of %" PRIu64 " bytes", length,
                       offset, span.length);
}

HaliteStatus *write_span(HaliteSpan target, uint64_t offset, const void *source, size_t length) {
    HaliteStatus *failure = check_part(target, offset, length);
    if (failure || !length) return failure;
    return write(target.buffer, target.offset + offset, (HaliteBytes){source, length});
}

HaliteStatus *read_span(HaliteSpan source, uint64_t offset, void *target, size_t length) {
    HaliteStatus *failure = check_part(source, offset, length);
    if (failure || !length) return failure;
    return read(source.buffer, source.offset + offset, target, length);
}

HaliteStatus *fill_span(HaliteSpan target, uint64_t pattern, uint32_t pattern_length) {
    if (!target.length) return NULL;
    if (pattern_length < 1 || pattern_length > 8)
        return make_status(CODE_INVALID_ARGUMENT, "fill patterns have 1 to 8 bytes, not %" PRIu32, pattern_length);
    uint8_t *bytes;
    HaliteStatus *failure = open_range(target.buffer, target.offset, target.length, &bytes);
    if (failure) return failure;
    for (uint64_t i = 0; i < target.length; i++) bytes[i] = (uint8_t)(pattern >> 8 * (i % pattern_length));
    close_range(target.buffer);
    return NULL;
}

// Holds one buffer's lock at a time, so that copies in opposite directions cannot block each other.
HaliteStatus *copy_span(HaliteSpan source, HaliteSpan target) {
    if (source.length != target.length)
        return make_status(CODE_INVALID_ARGUMENT, "copy of %" PRIu64 " bytes to %" PRIu64 " bytes", source.length,
                           target.length);
    uint8_t chunk[4096];
    for (uint64_t done = 0; done < source.length;) {
        size_t step = source.length - done < sizeof chunk ? (size_t)(source.length - done) : sizeof chunk;
        HaliteStatus *failure = read_span(source, done, chunk, step);
        if (!failure) failure = write_span(target, done, chunk, step);
        if (failure) return failure;
        done += step;
    }
    return NULL;
}
