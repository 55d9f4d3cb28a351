// Owns the device object and what it answers. Does not own memory, order or commands.

#include <stdlib.h>
#include <string.h>

#include "sample.h"

struct Device {
    HaliteDevice base;
    atomic_uint count;
    uint64_t id;
    Memory *memory;
    Queue *queue;
};

static Device *self(HaliteDevice *device) { return (Device *)device; }

static void retain(HaliteDevice *device) { atomic_fetch_add(&self(device)->count, 1); }

static void release(HaliteDevice *device) {
    if (atomic_fetch_sub(&self(device)->count, 1) != 1) return;
    release_memory(self(device)->memory);
    release_queue(self(device)->queue);
    free(device);
}

static uint64_t id(HaliteDevice *device) { return self(device)->id; }

void visit_device_info(void *context, void (*visit)(void *context, const HaliteDeviceInfo *info)) {
    const HalitePair properties[] = {{text("executes"), text("transfers only")}, {text("written_in"), text("C11")}};
    const HaliteScoreItem score = {-1000000, text("executes no device code")};
    const HaliteDeviceInfo info = {
        .struct_size = sizeof info,
        .kind = HALITE_DEVICE_OTHER,
        .driver = text(DRIVER_NAME),
        .path = text(""),
        .name = text("sample device"),
        .score = &score,
        .score_count = 1,
        .properties = properties,
        .property_count = sizeof properties / sizeof properties[0],
    };
    visit(context, &info);
}

static HaliteStatus *info(
    HaliteDevice *device, void *context, void (*visit)(void *context, const HaliteDeviceInfo *info)) {
    (void)device;
    visit_device_info(context, visit);
    return NULL;
}

static uint32_t queue_count(HaliteDevice *device) {
    (void)device;
    return 1;
}

// Modules ask for a device by a pattern in which '*' stands for any text and '?' for any character.
static bool matches(HaliteStr pattern, const char *name) {
    size_t p = 0, star = SIZE_MAX;
    const char *n = name, *from = name;
    while (*n) {
        char c = p < pattern.length ? pattern.data[p] : 0;
        if (c == '*') {
            star = p++;
            from = n;
        } else if (c && (c == '?' || c == *n)) {
            p++, n++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            n = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.length && pattern.data[p] == '*') p++;
    return p == pattern.length;
}

static uint8_t query_i64(HaliteDevice *device, HaliteStr category, HaliteStr key, int64_t *out) {
    (void)device;
    if (same_text(category, "hal.device.id"))
        *out = matches(key, DRIVER_NAME);
    else if (same_text(category, "hal.executable.format"))
        *out = 0;
    else
        return 0;
    return 1;
}

static void memory_stats(HaliteDevice *device, HaliteMemoryStats *out) {
    Memory *memory = self(device)->memory;
    pthread_mutex_lock(&memory->lock);
    HaliteMemoryStats known = {
        .struct_size = out->struct_size,
        .bytes_reserved = memory->used,
        .bytes_used = memory->used,
        .peak_bytes_reserved = memory->peak,
        .peak_bytes_used = memory->peak,
        .allocation_count = memory->allocations,
    };
    pthread_mutex_unlock(&memory->lock);
    memcpy(out, &known, out->struct_size < sizeof known ? out->struct_size : sizeof known);
}

static void trim(HaliteDevice *device) { (void)device; }

static HaliteStatus *allocate_buffer(
    HaliteDevice *device, const HaliteBufferParams *params, uint64_t byte_length, HaliteBuffer **out) {
    return create_buffer(self(device)->id, self(device)->memory, params, byte_length, out);
}

static HaliteStatus *make_semaphore(HaliteDevice *device, uint64_t initial, HaliteSemaphore **out) {
    return create_semaphore(self(device)->id, initial, out);
}

static HaliteStatus *create_executable(
    HaliteDevice *device, const HaliteExecutableDesc *desc, HaliteExecutable **out) {
    (void)device, (void)out;
    HaliteStatus *failure =
        make_status(CODE_INCOMPATIBLE, "executable '%.*s' has format '%.*s'; the sample device takes none",
                    (int)desc->label.length, desc->label.data, (int)desc->format.length, desc->format.data);
    // The code is ours, whatever comes of it.
    if (desc->data.release) desc->data.release(desc->data.context);
    return failure;
}

static HaliteStatus *make_command_buffer(
    HaliteDevice *device, const HaliteCommandList *list, HaliteCommandBuffer **out) {
    return create_command_buffer(self(device)->id, list, out);
}

static HaliteStatus *queue_submit(
    HaliteDevice *device, uint64_t affinity, HaliteFence wait, HaliteFence signal, const HaliteQueueOp *op) {
    (void)affinity;
    return submit(self(device)->queue, wait, signal, op);
}

// Memory is taken at once, not when the wait fence is reached.
static HaliteStatus *queue_alloca(HaliteDevice *device, uint64_t affinity, HaliteFence wait, HaliteFence signal,
                                  const HaliteBufferParams *params, uint64_t byte_length, HaliteBuffer **out) {
    HaliteBuffer *buffer = NULL;
    HaliteStatus *failure = allocate_buffer(device, params, byte_length, &buffer);
    if (failure) return failure;
    const HaliteQueueOp barrier = {.struct_size = sizeof barrier, .kind = HALITE_QUEUE_OP_BARRIER};
    failure = queue_submit(device, affinity, wait, signal, &barrier);
    if (failure)
        buffer->vtable->release(buffer);
    else
        *out = buffer;
    return failure;
}

static HaliteStatus *queue_flush(HaliteDevice *device, uint64_t affinity) {
    (void)device, (void)affinity;
    return NULL;
}

static HaliteStatus *wait_idle(HaliteDevice *device, uint64_t timeout_ns) {
    return wait_until_idle(self(device)->queue, timeout_ns);
}

static const HaliteDeviceVtable vtable = {
    .struct_size = sizeof vtable,
    .retain = retain,
    .release = release,
    .id = id,
    .info = info,
    .queue_count = queue_count,
    .query_i64 = query_i64,
    .memory_stats = memory_stats,
    .trim = trim,
    .allocate_buffer = allocate_buffer,
    .create_semaphore = make_semaphore,
    .create_executable = create_executable,
    .create_command_buffer = make_command_buffer,
    .queue_alloca = queue_alloca,
    .queue_submit = queue_submit,
    .queue_flush = queue_flush,
    .wait_idle = wait_idle,
};

HaliteStatus *open_device(uint64_t memory_limit, HaliteDevice **out) {
    Device *device = calloc(1, sizeof *device);
    Memory *memory = create_memory(memory_limit);
    Queue *queue = create_queue();
    if (!device || !memory || !queue) {
        free(device);
        if (memory) release_memory(memory);
        if (queue) release_queue(queue);
        return out_of_memory();
    }
    device->base.vtable = &vtable;
    atomic_init(&device->count, 1);
    device->id = host->next_device_id(host->context);
    device->memory = memory;
    device->queue = queue;
    *out = &device->base;
    return NULL;
}
