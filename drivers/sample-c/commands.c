// Owns accepted recordings and how each command is carried out. Does not own when an execution starts, or what the
// program's validation layer has checked already: ranges, owners, counts.

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

// A recorded command with bytes of its own. Dispatches are never recorded: the driver makes no executables.
typedef struct Command {
    uint32_t kind, pattern_length;
    HaliteBufferRef target, source;
    uint64_t pattern;
    uint8_t *data;
    size_t length;
} Command;

struct CommandBuffer {
    HaliteCommandBuffer base;
    atomic_uint count;
    uint64_t device_id;
    uint32_t binding_capacity;
    size_t command_count;
    Command commands[];
};

static void retain(HaliteCommandBuffer *commands) { atomic_fetch_add(&((CommandBuffer *)commands)->count, 1); }

static void retain_buffer(HaliteBuffer *buffer) {
    if (buffer) buffer->vtable->retain(buffer);
}

static void release_buffer(HaliteBuffer *buffer) {
    if (buffer) buffer->vtable->release(buffer);
}

static void release(HaliteCommandBuffer *handle) {
    CommandBuffer *list = (CommandBuffer *)handle;
    if (atomic_fetch_sub(&list->count, 1) != 1) return;
    for (size_t i = 0; i < list->command_count; i++) {
        release_buffer(list->commands[i].target.buffer);
        release_buffer(list->commands[i].source.buffer);
        free(list->commands[i].data);
    }
    free(list);
}

static uint64_t device_id(HaliteCommandBuffer *commands) { return ((CommandBuffer *)commands)->device_id; }

static const HaliteCommandBufferVtable vtable = {
    .struct_size = sizeof vtable,
    .retain = retain,
    .release = release,
    .device_id = device_id,
};

static HaliteStatus *keep(Command *to, const HaliteCommand *from) {
    to->kind = from->kind;
    switch (from->kind) {
        case HALITE_COMMAND_FILL:
            to->pattern = from->pattern;
            to->pattern_length = from->pattern_length;
            break;
        case HALITE_COMMAND_UPDATE:
            to->data = malloc(from->data.length + 1);
            if (!to->data) return out_of_memory();
            if (from->data.length) memcpy(to->data, from->data.data, from->data.length);
            to->length = from->data.length;
            break;
        case HALITE_COMMAND_COPY:
            to->source = from->source;
            retain_buffer(to->source.buffer);
            break;
        case HALITE_COMMAND_BARRIER:
        case HALITE_COMMAND_BEGIN_DEBUG_GROUP:
        case HALITE_COMMAND_END_DEBUG_GROUP:
            return NULL;
        default:
            return make_status(CODE_UNIMPLEMENTED, "the sample device knows no command of kind %" PRIu32, from->kind);
    }
    to->target = from->target;
    retain_buffer(to->target.buffer);
    return NULL;
}

HaliteStatus *create_command_buffer(uint64_t device, const HaliteCommandList *list, HaliteCommandBuffer **out) {
    if (list->command_count > (SIZE_MAX - sizeof(CommandBuffer)) / sizeof(Command)) return out_of_memory();
    CommandBuffer *made = calloc(1, sizeof *made + list->command_count * sizeof(Command));
    if (!made) return out_of_memory();
    made->base.vtable = &vtable;
    atomic_init(&made->count, 1);
    made->device_id = device;
    made->binding_capacity = list->binding_capacity;
    const char *at = (const char *)list->commands;
    for (size_t i = 0; i < list->command_count; i++) {
        const HaliteCommand *command = (const HaliteCommand *)at;
        HaliteStatus *failure = keep(&made->commands[i], command);
        made->command_count = i + 1;
        if (failure) {
            release(&made->base);
            return failure;
        }
        at += command->struct_size;  // A newer program's commands may be longer.
    }
    *out = &made->base;
    return NULL;
}

// The bytes that a reference means in this execution. No bytes of an empty slot are fine.
static HaliteStatus *resolve(HaliteBufferRef ref, const HaliteSpan *bindings, size_t count, HaliteSpan *out) {
    HaliteSpan base = {ref.buffer, 0, UINT64_MAX};
    if (!ref.buffer) {
        if (ref.slot < count) base = bindings[ref.slot];
        if (!base.buffer && ref.length)
            return make_status(CODE_INVALID_ARGUMENT, "slot %" PRIu32 " is empty", ref.slot);
        if (!base.buffer) base.length = 0;
    } else {
        HaliteBufferInfo info = {.struct_size = sizeof info};
        ref.buffer->vtable->info(ref.buffer, &info);
        base.length = info.byte_length;
    }
    bool fits = ref.offset <= base.length;
    uint64_t length = ref.length == UINT64_MAX && fits ? base.length - ref.offset : ref.length;
    if (length && (!fits || length > base.length - ref.offset))
        return make_status(CODE_OUT_OF_RANGE,
                           "%" PRIu64 " bytes at offset %" PRIu64 " lie outside of a range of %" PRIu64 " bytes",
                           length, ref.offset, base.length);
    *out = (HaliteSpan){base.buffer, base.offset + (fits ? ref.offset : 0), length};
    return NULL;
}

static HaliteStatus *run(const Command *command, const HaliteSpan *bindings, size_t count) {
    HaliteSpan target, source;
    if (command->kind != HALITE_COMMAND_FILL && command->kind != HALITE_COMMAND_UPDATE &&
        command->kind != HALITE_COMMAND_COPY)
        return NULL;
    HaliteStatus *failure = resolve(command->target, bindings, count, &target);
    if (failure) return failure;
    switch (command->kind) {
        case HALITE_COMMAND_FILL:
            return fill_span(target, command->pattern, command->pattern_length);
        case HALITE_COMMAND_UPDATE:
            return write_span(target, 0, command->data, command->length);
        default:
            failure = resolve(command->source, bindings, count, &source);
            return failure ? failure : copy_span(source, target);
    }
}

HaliteStatus *run_commands(HaliteCommandBuffer *handle, const HaliteSpan *bindings, size_t binding_count) {
    if (handle->vtable != &vtable)
        return make_status(CODE_INVALID_ARGUMENT, "the command buffer was made by another driver");
    CommandBuffer *list = (CommandBuffer *)handle;
    for (size_t i = 0; i < list->command_count; i++) {
        HaliteStatus *failure = run(&list->commands[i], bindings, binding_count);
        if (failure) return failure;
    }
    return NULL;
}
