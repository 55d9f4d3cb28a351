// The C interface between Halite and a driver library. Generated from plugin/src/abi.rs by `cargo xtask header`;
// do not edit. The contract is written there, and docs/how-to/writing-a-driver.md leads through a driver.
//
// * One symbol. A driver library exports `halite_driver_query_v1` of type `HaliteQueryFn`; nothing else is looked up.
//   It does no device work, starts no thread, and may be called any number of times.
// * Versions. The host passes the newest version it knows. The plug-in answers the version it will speak: at most that
//   one, or it fails with INCOMPATIBLE. While `HALITE_ABI_MAJOR` is 0, both sides must have the same version; from 1 on, the
//   same major number is enough.
// * Sizes. Structures that may grow begin with `struct_size`, the number of bytes that their maker knows. Fields are only
//   ever appended. A reader looks at a field only if `struct_size` reaches its end. Small value types without that field
//   (`HaliteStr`, `HaliteBytes`, `HaliteSpan`, …) are frozen.
// * Objects. A handle points to a structure whose first field is a pointer to its table of functions. Handles are
//   counted: `retain` and `release` may be called on any thread. A function that returns a handle gives the caller one
//   count. A handle passed as argument is borrowed for the call; whoever keeps it retains it. Children keep parents alive.
//   Your own objects come back as the very handles that you gave out; an object of somebody else may come under
//   another handle each time.
// * Tables live for ever and never change. Every function of a table is there, unless its description says that it may be
//   null.
// * Memory. The maker frees. Strings and arrays are borrowed for the call; who needs them longer copies them. Lists of unknown
//   length come through a visitor: a function that is called once per entry, on the same thread, before the call returns.
//   Bytes that are to be written (`target`) are initialised by whoever lends them.
// * Errors. A null `HaliteStatus` is success. Any other belongs to the receiver, which calls its `release` once. Out
//   parameters are untouched on failure.
// * Panics and exceptions never cross. A call that panicked answers INTERNAL, and its object answers
//   FAILED_PRECONDITION from then on.
// * Threads. Any function may be called on any thread, at the same time as any other, unless it says otherwise. Callbacks
//   must not block. No function blocks for longer than its time limit says; those without one return promptly.
// * Life. Libraries are never unloaded. The host table stays valid until the process ends.
// * Booleans are `uint8_t`, 0 or 1. Enumerations are `uint32_t`; unknown numbers are refused, never guessed.


#ifndef HALITE_DRIVER_H
#define HALITE_DRIVER_H

#include <stddef.h>
#include <stdint.h>
typedef struct HaliteStr HaliteStr;
typedef struct HaliteBytes HaliteBytes;
typedef struct HaliteBlob HaliteBlob;
typedef struct HalitePair HalitePair;
typedef struct HaliteStatus HaliteStatus;
typedef struct HaliteHost HaliteHost;
typedef struct HalitePlugin HalitePlugin;
typedef struct HaliteDriver HaliteDriver;
typedef struct HaliteDriverVtable HaliteDriverVtable;
typedef struct HaliteScoreItem HaliteScoreItem;
typedef struct HaliteInfoGroup HaliteInfoGroup;
typedef struct HaliteUnconfinedCode HaliteUnconfinedCode;
typedef struct HaliteExternalSupport HaliteExternalSupport;
typedef struct HaliteExternalMemory HaliteExternalMemory;
typedef struct HaliteDeviceInfo HaliteDeviceInfo;
typedef struct HaliteMemoryStats HaliteMemoryStats;
typedef struct HaliteCommandTime HaliteCommandTime;
typedef struct HaliteProfileSummary HaliteProfileSummary;
typedef struct HaliteBufferParams HaliteBufferParams;
typedef struct HaliteSemaphorePoint HaliteSemaphorePoint;
typedef struct HaliteFence HaliteFence;
typedef struct HaliteDevice HaliteDevice;
typedef struct HaliteDeviceVtable HaliteDeviceVtable;
typedef struct HaliteBuffer HaliteBuffer;
typedef struct HaliteBufferInfo HaliteBufferInfo;
typedef struct HaliteBufferVtable HaliteBufferVtable;
typedef struct HaliteCallback HaliteCallback;
typedef struct HaliteSemaphore HaliteSemaphore;
typedef struct HaliteSemaphoreVtable HaliteSemaphoreVtable;
typedef struct HaliteExecutableDesc HaliteExecutableDesc;
typedef struct HaliteFunctionInfo HaliteFunctionInfo;
typedef struct HaliteExecutable HaliteExecutable;
typedef struct HaliteExecutableVtable HaliteExecutableVtable;
typedef struct HaliteSpan HaliteSpan;
typedef struct HaliteBufferRef HaliteBufferRef;
typedef struct HaliteCommand HaliteCommand;
typedef struct HaliteCommandList HaliteCommandList;
typedef struct HaliteCommandBuffer HaliteCommandBuffer;
typedef struct HaliteCommandBufferVtable HaliteCommandBufferVtable;
typedef struct HaliteFile HaliteFile;
typedef struct HaliteFileVtable HaliteFileVtable;
typedef struct HaliteQueueOp HaliteQueueOp;


// Incompatible changes. 0 while the interface is young: then the minor version has to be equal as well.
#define HALITE_ABI_MAJOR 0

// Compatible additions.
#define HALITE_ABI_MINOR 4

// The version of this file: major in the upper half, minor in the lower.
#define HALITE_ABI_VERSION ((HALITE_ABI_MAJOR << 16) | HALITE_ABI_MINOR)

// A time limit that never passes.
#define HALITE_FOREVER UINT64_MAX

// Kind of device: a GPU with its own memory.
#define HALITE_DEVICE_DISCRETE_GPU 0

// Kind of device: a GPU that shares the host's memory.
#define HALITE_DEVICE_INTEGRATED_GPU 1

// Kind of device: a GPU seen through virtualization.
#define HALITE_DEVICE_VIRTUAL_GPU 2

// Kind of device: the host's processor.
#define HALITE_DEVICE_CPU 3

// Kind of device: something else.
#define HALITE_DEVICE_OTHER 4

// Kind of memory: a file descriptor that only the same driver of the same device understands.
#define HALITE_EXTERNAL_OPAQUE_FD 1

// Kind of memory: a file descriptor of Linux's dma-buf.
#define HALITE_EXTERNAL_DMA_BUF 2

// Kind of memory: that of the process.
#define HALITE_EXTERNAL_HOST 3

// Kind of memory: an `AHardwareBuffer` of the format `BLOB`.
#define HALITE_EXTERNAL_ANDROID_HARDWARE_BUFFER 4

// Kind of memory: a handle of Windows that only the same driver of the same device understands.
#define HALITE_EXTERNAL_OPAQUE_WIN32 5

// Kind of command: `target`, `pattern`, `pattern_length`.
#define HALITE_COMMAND_FILL 0

// Kind of command: `data`, `target`.
#define HALITE_COMMAND_UPDATE 1

// Kind of command: `source`, `target`.
#define HALITE_COMMAND_COPY 2

// Kind of command: `executable`, `function`, `constants`, `bindings`, `flags`, and `counts`, or `target` when `indirect_counts` is 1.
#define HALITE_COMMAND_DISPATCH 3

// Kind of command: no field.
#define HALITE_COMMAND_BARRIER 4

// Kind of command: `data` is the name.
#define HALITE_COMMAND_BEGIN_DEBUG_GROUP 5

// Kind of command: no field.
#define HALITE_COMMAND_END_DEBUG_GROUP 6

// Kind of operation: no field.
#define HALITE_QUEUE_OP_BARRIER 0

// Kind of operation: `target.buffer`.
#define HALITE_QUEUE_OP_DEALLOCA 1

// Kind of operation: `target`, `pattern`, `pattern_length`.
#define HALITE_QUEUE_OP_FILL 2

// Kind of operation: `data`, `target`.
#define HALITE_QUEUE_OP_UPDATE 3

// Kind of operation: `source`, `target`.
#define HALITE_QUEUE_OP_COPY 4

// Kind of operation: `file`, `file_offset`, `target`.
#define HALITE_QUEUE_OP_READ 5

// Kind of operation: `source`, `file`, `file_offset`.
#define HALITE_QUEUE_OP_WRITE 6

// Kind of operation: `command_buffer`, `bindings`.
#define HALITE_QUEUE_OP_EXECUTE 7

// Kind of operation: `target.buffer`. Memory that is shared with others comes back from them.
#define HALITE_QUEUE_OP_ACQUIRE 8

// Kind of operation: `target.buffer`. Memory that is shared with others goes to them.
#define HALITE_QUEUE_OP_RELEASE 9

// UTF-8 text, not terminated. Null is the empty text.
typedef struct HaliteStr {
    const char *data;
    size_t length;
} HaliteStr;

// A name and a value.
typedef struct HalitePair {
    struct HaliteStr name;
    struct HaliteStr value;
} HalitePair;

// A failure. Readable as it stands; freed through `release`, which may be null for one that is never freed.
typedef struct HaliteStatus {
    uint32_t struct_size;
    // One of the status codes 1 to 18, such as 3 for INVALID_ARGUMENT.
    uint32_t code;
    // What was asked, what exists, what to do next.
    struct HaliteStr message;
    // What outer layers added, innermost first.
    const struct HaliteStr *annotations;
    size_t annotation_count;
    // Machine-readable facts, such as `vk.result`.
    const struct HalitePair *details;
    size_t detail_count;
    void (*release)(struct HaliteStatus *status);
} HaliteStatus;

// What a driver may ask of the program.
typedef struct HaliteHost {
    uint32_t struct_size;
    // Newest version that the host speaks.
    uint32_t abi_version;
    void *context;
    // Writes a line to the program's log. Levels: 1 error, 2 warning, 3 information, 4 debug, 5 trace.
    void (*log)(void *context, uint32_t level, struct HaliteStr target, struct HaliteStr message);
    // The most talkative level that is listened to; 0 is none.
    uint32_t (*log_level)(void *context);
    // A number that no other device of this process has.
    uint64_t (*next_device_id)(void *context);
} HaliteHost;

// Points for or against a device, and why.
typedef struct HaliteScoreItem {
    int64_t points;
    struct HaliteStr reason;
} HaliteScoreItem;

// Facts of one subject, such as limits.
typedef struct HaliteInfoGroup {
    struct HaliteStr title;
    const struct HalitePair *entries;
    size_t entry_count;
} HaliteInfoGroup;

// Formats of executables whose code nothing keeps within its bounds on a device. A device that nobody named is opened with
// `option=refuse`.
typedef struct HaliteUnconfinedCode {
    const struct HaliteStr *formats;
    size_t format_count;
    // What such code can do, as a clause.
    struct HaliteStr reason;
    // Name of the device option that decides.
    struct HaliteStr option;
    // Its value that allows the code.
    struct HaliteStr allow;
    // Its value that refuses the code.
    struct HaliteStr refuse;
    // 1 when the device takes the code where the option is not given.
    uint8_t default_allows;
    uint8_t reserved[7];
} HaliteUnconfinedCode;

// What a device does with one kind of memory that is shared with others.
typedef struct HaliteExternalSupport {
    // One of `HALITE_EXTERNAL_*`.
    uint32_t kind;
    // 1 when the device takes such memory.
    uint8_t import;
    // 1 when it makes memory that can be given away as such.
    uint8_t export_;
    uint16_t reserved;
    // What addresses and sizes of memory of the process are multiples of; 1 for other kinds.
    uint64_t alignment;
} HaliteExternalSupport;

// A device as enumeration sees it.
typedef struct HaliteDeviceInfo {
    uint32_t struct_size;
    // One of `HALITE_DEVICE_*`.
    uint32_t kind;
    struct HaliteStr driver;
    // Stable path within the driver; empty for an only device.
    struct HaliteStr path;
    struct HaliteStr name;
    // Why it cannot be opened with default options; `data` is null when it can.
    struct HaliteStr unusable;
    // Target triple; `data` is null when none fits.
    struct HaliteStr target;
    // Record of the device as JSON; `data` is null when there is none.
    struct HaliteStr capabilities;
    const struct HaliteStr *executable_formats;
    size_t executable_format_count;
    const struct HaliteScoreItem *score;
    size_t score_count;
    const struct HalitePair *properties;
    size_t property_count;
    const struct HaliteInfoGroup *groups;
    size_t group_count;
    const struct HaliteUnconfinedCode *unconfined;
    size_t unconfined_count;
    // Memory that it shares with others, by kind.
    const struct HaliteExternalSupport *external;
    size_t external_count;
} HaliteDeviceInfo;

// Memory that a device holds for its buffers, in bytes. The caller sets `struct_size`.
typedef struct HaliteMemoryStats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t bytes_reserved;
    uint64_t bytes_used;
    uint64_t peak_bytes_reserved;
    uint64_t peak_bytes_used;
    uint64_t allocation_count;
} HaliteMemoryStats;

// What a buffer is asked to be. Bits are IREE's.
typedef struct HaliteBufferParams {
    uint32_t memory_type;
    uint32_t usage;
    // Set of queues; all bits mean any.
    uint64_t affinity;
} HaliteBufferParams;

// Facts of a buffer that never change. The caller sets `struct_size`.
typedef struct HaliteBufferInfo {
    uint32_t struct_size;
    uint32_t memory_type;
    uint32_t usage;
    uint32_t access;
    uint64_t device_id;
    uint64_t byte_length;
    // Address of the first byte where the host can reach it as long as the buffer lives, or null.
    void *host_address;
} HaliteBufferInfo;

// Borrowed bytes.
typedef struct HaliteBytes {
    const uint8_t *data;
    size_t length;
} HaliteBytes;

typedef struct HaliteBufferVtable {
    uint32_t struct_size;
    uint32_t reserved;
    void (*retain)(struct HaliteBuffer *buffer);
    void (*release)(struct HaliteBuffer *buffer);
    void (*info)(struct HaliteBuffer *buffer, struct HaliteBufferInfo *out_info);
    // Copies `length` bytes at `offset` to the host; blocks until they are there.
    struct HaliteStatus *(*read)(struct HaliteBuffer *buffer, uint64_t offset, uint8_t *target, size_t length);
    // Copies bytes from the host; blocks until they are there.
    struct HaliteStatus *(*write)(struct HaliteBuffer *buffer, uint64_t offset, struct HaliteBytes source);
} HaliteBufferVtable;

// A buffer of a device.
typedef struct HaliteBuffer {
    const struct HaliteBufferVtable *vtable;
} HaliteBuffer;

// Called once: `call` with null when the value is reached, or with the failure, which it then owns; or `drop`, when neither
// will happen. Never both, never twice.
typedef struct HaliteCallback {
    void *context;
    void (*call)(void *context, struct HaliteStatus *failure);
    void (*drop)(void *context);
} HaliteCallback;

typedef struct HaliteSemaphoreVtable {
    uint32_t struct_size;
    uint32_t reserved;
    void (*retain)(struct HaliteSemaphore *semaphore);
    void (*release)(struct HaliteSemaphore *semaphore);
    uint64_t (*device_id)(struct HaliteSemaphore *semaphore);
    struct HaliteStatus *(*query)(struct HaliteSemaphore *semaphore, uint64_t *out_value);
    struct HaliteStatus *(*signal)(struct HaliteSemaphore *semaphore, uint64_t value);
    // Takes the failure over.
    void (*fail)(struct HaliteSemaphore *semaphore, struct HaliteStatus *failure);
    struct HaliteStatus *(*wait)(struct HaliteSemaphore *semaphore, uint64_t value, uint64_t timeout_ns);
    // May call back before it returns.
    void (*on_reached)(struct HaliteSemaphore *semaphore, uint64_t value, struct HaliteCallback callback);
} HaliteSemaphoreVtable;

// A timeline semaphore: of the device, of the program, or of another driver.
typedef struct HaliteSemaphore {
    const struct HaliteSemaphoreVtable *vtable;
} HaliteSemaphore;

// Bytes that change hands: the receiver calls `release(context)` exactly once when it needs them no more, also when the
// call that brought them fails. `release` may be null: then nothing is to be done and the bytes live for ever.
typedef struct HaliteBlob {
    const uint8_t *data;
    size_t length;
    void *context;
    void (*release)(void *context);
} HaliteBlob;

// What an executable is made from.
typedef struct HaliteExecutableDesc {
    uint32_t struct_size;
    uint32_t reserved;
    struct HaliteStr format;
    // The code; changes hands.
    struct HaliteBlob data;
    const uint32_t *constants;
    size_t constant_count;
    struct HaliteStr label;
    // Subgroup sizes that the code may assume; none when the module does not say.
    const uint32_t *subgroup_sizes;
    size_t subgroup_size_count;
} HaliteExecutableDesc;

// Facts about one function of an executable.
typedef struct HaliteFunctionInfo {
    uint32_t struct_size;
    uint32_t binding_count;
    uint32_t constant_count;
    // Invocations per workgroup; zeros when the format leaves it open.
    uint32_t workgroup_size[3];
    struct HaliteStr name;
} HaliteFunctionInfo;

typedef struct HaliteExecutableVtable {
    uint32_t struct_size;
    uint32_t reserved;
    void (*retain)(struct HaliteExecutable *executable);
    void (*release)(struct HaliteExecutable *executable);
    uint64_t (*device_id)(struct HaliteExecutable *executable);
    // Visits the functions in order.
    struct HaliteStatus *(*functions)(struct HaliteExecutable *executable,
                                      void *context,
                                      void (*visit)(void *context, const struct HaliteFunctionInfo *function));
    // Waits until these functions can be dispatched at once, but no longer than `timeout_ns`; tells how many of them can.
    // Null where code is ready once the executable exists.
    struct HaliteStatus *(*wait_built)(struct HaliteExecutable *executable,
                                       const uint32_t *functions,
                                       size_t function_count,
                                       uint64_t timeout_ns,
                                       size_t *out_built);
} HaliteExecutableVtable;

// Device code.
typedef struct HaliteExecutable {
    const struct HaliteExecutableVtable *vtable;
} HaliteExecutable;

// A byte range that a command touches. With a null buffer it lies in slot `slot` of the binding table given at execution,
// and `offset` counts from the entry's offset. A length of all ones reaches to the end.
typedef struct HaliteBufferRef {
    struct HaliteBuffer *buffer;
    uint64_t offset;
    uint64_t length;
    uint32_t slot;
    uint32_t reserved;
} HaliteBufferRef;

// One recorded command. All commands of a list have the same `struct_size`, which is also their distance.
typedef struct HaliteCommand {
    uint32_t struct_size;
    // One of `HALITE_COMMAND_*`; its description tells the fields that count.
    uint32_t kind;
    struct HaliteBufferRef target;
    struct HaliteBufferRef source;
    uint64_t pattern;
    uint32_t pattern_length;
    uint32_t function;
    uint32_t counts[3];
    uint32_t indirect_counts;
    uint64_t flags;
    struct HaliteExecutable *executable;
    struct HaliteBytes data;
    const uint32_t *constants;
    size_t constant_count;
    const struct HaliteBufferRef *bindings;
    size_t binding_count;
} HaliteCommand;

// A recording.
typedef struct HaliteCommandList {
    uint32_t struct_size;
    uint32_t mode;
    uint32_t categories;
    uint32_t binding_capacity;
    uint64_t affinity;
    const struct HaliteCommand *commands;
    size_t command_count;
} HaliteCommandList;

typedef struct HaliteCommandBufferVtable {
    uint32_t struct_size;
    uint32_t reserved;
    void (*retain)(struct HaliteCommandBuffer *command_buffer);
    void (*release)(struct HaliteCommandBuffer *command_buffer);
    uint64_t (*device_id)(struct HaliteCommandBuffer *command_buffer);
} HaliteCommandBufferVtable;

// A recording that the driver has accepted.
typedef struct HaliteCommandBuffer {
    const struct HaliteCommandBufferVtable *vtable;
} HaliteCommandBuffer;

// A semaphore and the payload that counts as reached.
typedef struct HaliteSemaphorePoint {
    struct HaliteSemaphore *semaphore;
    uint64_t value;
} HaliteSemaphorePoint;

// A set of semaphore points: reached when all are. Semaphores may be the program's or another driver's.
typedef struct HaliteFence {
    const struct HaliteSemaphorePoint *points;
    size_t count;
} HaliteFence;

// A byte range of a buffer; a null buffer is an empty slot.
typedef struct HaliteSpan {
    struct HaliteBuffer *buffer;
    uint64_t offset;
    uint64_t length;
} HaliteSpan;

typedef struct HaliteFileVtable {
    uint32_t struct_size;
    uint32_t reserved;
    void (*retain)(struct HaliteFile *file);
    void (*release)(struct HaliteFile *file);
    // 1 when it may be written.
    uint8_t (*writable)(struct HaliteFile *file);
    struct HaliteStatus *(*byte_length)(struct HaliteFile *file, uint64_t *out_length);
    // The file's bytes where they are in memory already, as long as the handle is kept; null where they are not.
    struct HaliteBytes (*memory)(struct HaliteFile *file);
    struct HaliteStatus *(*read_at)(struct HaliteFile *file, uint64_t offset, uint8_t *target, size_t length);
    struct HaliteStatus *(*write_at)(struct HaliteFile *file, uint64_t offset, struct HaliteBytes source);
} HaliteFileVtable;

// A file that the program holds open. Offsets are absolute; calls may overlap.
typedef struct HaliteFile {
    const struct HaliteFileVtable *vtable;
} HaliteFile;

// One operation on a queue. All it names is borrowed for the call: keep it by retaining it, copy `data`.
typedef struct HaliteQueueOp {
    uint32_t struct_size;
    // One of `HALITE_QUEUE_OP_*`; its description tells the fields that count.
    uint32_t kind;
    struct HaliteSpan target;
    struct HaliteSpan source;
    uint64_t pattern;
    uint32_t pattern_length;
    uint32_t reserved;
    struct HaliteBytes data;
    struct HaliteFile *file;
    uint64_t file_offset;
    struct HaliteCommandBuffer *command_buffer;
    // The binding table: slot n is entry n.
    const struct HaliteSpan *bindings;
    size_t binding_count;
} HaliteQueueOp;

// When one command ran, once, while a profile was taken.
typedef struct HaliteCommandTime {
    uint32_t struct_size;
    // One of `HALITE_COMMAND_FILL`, `_UPDATE`, `_COPY` and `_DISPATCH`.
    uint32_t kind;
    // Name of a dispatch's entry point; empty for others.
    struct HaliteStr name;
    // Name of the innermost debug group; empty outside of all, and for queue operations.
    struct HaliteStr group;
    // The place among the commands of the group that do work, or of the recording outside of all groups.
    uint32_t index;
    uint32_t queue;
    // Workgroups of a dispatch; zeros for others, and where only the device knows them.
    uint32_t workgroups[3];
    uint32_t reserved;
    // Bytes that a transfer writes; 0 for a dispatch, and where they are not known.
    uint64_t bytes;
    // Number of the queue operation since profiling began. What one operation executed comes in order.
    uint64_t run;
    // Nanoseconds of the device's clock since the first command of the profile began.
    uint64_t start_ns;
    uint64_t end_ns;
} HaliteCommandTime;

// What else a profile tells. The caller sets `struct_size`.
typedef struct HaliteProfileSummary {
    uint32_t struct_size;
    uint32_t reserved;
    // Commands that ran and were not measured.
    uint64_t lost;
    // Nanoseconds between two values of the device's clock.
    double resolution_ns;
} HaliteProfileSummary;

// Memory that is shared with others. All of it that is passed is borrowed for the call, but for `bytes`; what a function
// gives is the receiver's.
typedef struct HaliteExternalMemory {
    uint32_t struct_size;
    // One of `HALITE_EXTERNAL_*`.
    uint32_t kind;
    // A descriptor, or a handle or an address as a number; 0 for memory of the process.
    uint64_t handle;
    // All bytes of the memory.
    uint64_t size;
    // Index of the Vulkan memory type; all ones when it is not known.
    uint32_t memory_type;
    // 1 when the memory was allocated for one buffer alone.
    uint8_t dedicated;
    uint8_t reserved[3];
    // Memory of the process; it changes hands.
    struct HaliteBlob bytes;
} HaliteExternalMemory;

typedef struct HaliteDeviceVtable {
    uint32_t struct_size;
    uint32_t reserved;
    void (*retain)(struct HaliteDevice *device);
    void (*release)(struct HaliteDevice *device);
    // The identity that the driver took from `next_device_id` of the host; never 0.
    uint64_t (*id)(struct HaliteDevice *device);
    // Visits the device's info once.
    struct HaliteStatus *(*info)(struct HaliteDevice *device,
                                 void *context,
                                 void (*visit)(void *context, const struct HaliteDeviceInfo *info));
    // Number of queues, 1 at least.
    uint32_t (*queue_count)(struct HaliteDevice *device);
    // Answers a module's query: 1 and the value, or 0 when the key is not known.
    uint8_t (*query_i64)(struct HaliteDevice *device,
                         struct HaliteStr category,
                         struct HaliteStr key,
                         int64_t *out_value);
    void (*memory_stats)(struct HaliteDevice *device, struct HaliteMemoryStats *out_stats);
    void (*trim)(struct HaliteDevice *device);
    struct HaliteStatus *(*allocate_buffer)(struct HaliteDevice *device,
                                            const struct HaliteBufferParams *params,
                                            uint64_t byte_length,
                                            struct HaliteBuffer **out_buffer);
    struct HaliteStatus *(*create_semaphore)(struct HaliteDevice *device,
                                             uint64_t initial,
                                             struct HaliteSemaphore **out_semaphore);
    // Takes the code in `desc->data` over, whatever comes of it.
    struct HaliteStatus *(*create_executable)(struct HaliteDevice *device,
                                              const struct HaliteExecutableDesc *desc,
                                              struct HaliteExecutable **out_executable);
    // Accepts a finished recording. What the recording names is borrowed for the call: keep it by retaining it.
    struct HaliteStatus *(*create_command_buffer)(struct HaliteDevice *device,
                                                  const struct HaliteCommandList *list,
                                                  struct HaliteCommandBuffer **out_command_buffer);
    struct HaliteStatus *(*queue_alloca)(struct HaliteDevice *device,
                                         uint64_t affinity,
                                         struct HaliteFence wait,
                                         struct HaliteFence signal,
                                         const struct HaliteBufferParams *params,
                                         uint64_t byte_length,
                                         struct HaliteBuffer **out_buffer);
    // Enqueues an operation: it starts when `wait` is reached and ends by signalling `signal` or failing it.
    struct HaliteStatus *(*queue_submit)(struct HaliteDevice *device,
                                         uint64_t affinity,
                                         struct HaliteFence wait,
                                         struct HaliteFence signal,
                                         const struct HaliteQueueOp *op);
    struct HaliteStatus *(*queue_flush)(struct HaliteDevice *device, uint64_t affinity);
    // Waits until all queues are idle; DEADLINE_EXCEEDED after `timeout_ns`.
    struct HaliteStatus *(*wait_idle)(struct HaliteDevice *device, uint64_t timeout_ns);
    // Begins to measure commands; FAILED_PRECONDITION while a profile is taken. Null where the device cannot, and then
    // `stop_profiling` is null, too.
    struct HaliteStatus *(*start_profiling)(struct HaliteDevice *device);
    // Waits until the work that was accepted during the profile has finished, ends the profile, and visits its times.
    // DEADLINE_EXCEEDED after `timeout_ns`: then the profile goes on.
    struct HaliteStatus *(*stop_profiling)(struct HaliteDevice *device,
                                           uint64_t timeout_ns,
                                           void *context,
                                           void (*visit)(void *context, const struct HaliteCommandTime *time),
                                           struct HaliteProfileSummary *out_summary);
    // Makes a buffer over memory from elsewhere. What it holds is seen from the next `HALITE_QUEUE_OP_ACQUIRE` on. Takes `bytes`
    // over, whatever comes of it. Null where the device has no such memory.
    struct HaliteStatus *(*import_buffer)(struct HaliteDevice *device,
                                          const struct HaliteBufferParams *params,
                                          const struct HaliteExternalMemory *memory,
                                          struct HaliteBuffer **out_buffer);
    // Allocates a buffer whose memory can be given away as this kind. Null where the device has no such memory.
    struct HaliteStatus *(*allocate_exportable)(struct HaliteDevice *device,
                                                const struct HaliteBufferParams *params,
                                                uint64_t byte_length,
                                                uint32_t kind,
                                                struct HaliteBuffer **out_buffer);
    // The memory of such a buffer, for others. The caller sets `struct_size`. Null where the device has no such memory.
    struct HaliteStatus *(*export_buffer)(struct HaliteDevice *device,
                                          struct HaliteBuffer *buffer,
                                          uint32_t kind,
                                          struct HaliteExternalMemory *out_memory);
} HaliteDeviceVtable;

// An open device.
typedef struct HaliteDevice {
    const struct HaliteDeviceVtable *vtable;
} HaliteDevice;

typedef struct HaliteDriverVtable {
    uint32_t struct_size;
    uint32_t reserved;
    // Short name that device URIs begin with: 1 to 64 of a-z, 0-9, '-' and '_'. Lives for ever.
    struct HaliteStr (*name)(struct HaliteDriver *driver);
    // One line for people. Lives for ever.
    struct HaliteStr (*description)(struct HaliteDriver *driver);
    // Visits the options that `open` and `enumerate` understand: name and meaning.
    struct HaliteStatus *(*options)(struct HaliteDriver *driver,
                                    void *context,
                                    void (*visit)(void *context, const struct HalitePair *option));
    // Visits the devices that exist now, best first. UNAVAILABLE when the system has no support at all.
    struct HaliteStatus *(*enumerate)(struct HaliteDriver *driver,
                                      const struct HalitePair *options,
                                      size_t option_count,
                                      void *context,
                                      void (*visit)(void *context, const struct HaliteDeviceInfo *info));
    // Opens the device with this path; the best usable one when the path is empty.
    struct HaliteStatus *(*open)(struct HaliteDriver *driver,
                                 struct HaliteStr path,
                                 const struct HalitePair *options,
                                 size_t option_count,
                                 struct HaliteDevice **out_device);
    // Visits the path of a device that `enumerate` leaves out but a user named, by its path or a part of its name. May be
    // null: then there are no such devices.
    struct HaliteStatus *(*find_unlisted)(struct HaliteDriver *driver,
                                          struct HaliteStr name,
                                          const struct HalitePair *options,
                                          size_t option_count,
                                          void *context,
                                          void (*visit)(void *context, struct HaliteStr path));
    // Visits what the driver tells about itself for listings; the group `workarounds` has the faults of underlying
    // drivers that it steers around. May be null.
    struct HaliteStatus *(*tables)(struct HaliteDriver *driver,
                                   void *context,
                                   void (*visit)(void *context, const struct HaliteInfoGroup *table));
} HaliteDriverVtable;

// A driver. Never released.
typedef struct HaliteDriver {
    const struct HaliteDriverVtable *vtable;
} HaliteDriver;

// What a driver library answers. The caller sets `struct_size` and zeroes the rest.
typedef struct HalitePlugin {
    uint32_t struct_size;
    // The version that the plug-in will speak.
    uint32_t abi_version;
    // The driver; lives for ever.
    struct HaliteDriver *driver;
    // Version of the plug-in, for people. Lives for ever.
    struct HaliteStr version;
    // What it was built from and with, for bug reports. Lives for ever.
    struct HaliteStr build;
} HalitePlugin;

// Type of the exported function: `host` stays valid for ever, `max_version` is the newest version the host speaks.
typedef struct HaliteStatus *(*HaliteQueryFn)(const struct HaliteHost *host,
                                              uint32_t max_version,
                                              struct HalitePlugin *out_plugin);

#endif  /* HALITE_DRIVER_H */

#ifdef __cplusplus
extern "C" {
#endif

/// The one function that a driver library exports.
#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
HaliteStatus *halite_driver_query_v1(const HaliteHost *host, uint32_t max_version, HalitePlugin *out_plugin);

#ifdef __cplusplus
}  // extern "C"
#endif
