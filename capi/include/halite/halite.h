// The C interface of Halite: run machine-learning models on any Vulkan device, and on processors. Generated from capi/src by
// `cargo xtask header`; do not edit. docs/tutorials/getting-started-c.md begins with a program; halite.hpp wraps this for C++17.
//
// * Handles. A handle that a function gives through an `out` parameter is yours. Free it once, with the `_free`
//   function of its type. Freeing NULL does nothing. You may free handles in any order: an object keeps alive what it
//   depends on. On failure an `out` parameter is set to NULL.
// * Borrowed pointers. A text, array or handle that a function returns, or writes into a structure, belongs to the
//   handle that you asked. It lives as long as that handle. The library borrows what you pass for the duration of the
//   call, unless a `release` function comes with it.
// * Errors. A function that can fail returns NULL on success, and otherwise an error that is yours. Read it
//   (`halite_error_get_kind`, `halite_error_message`), then free it (`halite_error_free`). Functions that return no error
//   accept NULL handles, and return 0 or NULL for them.
// * Sizes. A structure with a `struct_size` begins with its size in bytes; initialize it with its `_INIT` macro. New
//   fields are only appended. So a library accepts structures of older and newer headers. It refuses a field that it does
//   not know only if the field is not zero. Structures without `struct_size` never change.
// * Texts are UTF-8 and end with a zero byte. Paths are the system's bytes, on Windows UTF-8.
// * Threads. You may call any function on any thread. Several threads may use a handle at the same time, but nobody
//   may free it while it is in use. A builder, compiler or state that is busy makes other threads wait.
// * Callbacks. The library reports progress one call at a time, on any thread, and never after the function that was
//   given the callback has returned. It calls a `release` function once, on any thread, also when the call that brought it
//   fails. Callbacks must return; they must not jump out or throw.
// * Panics. No panic crosses the interface. A panic is a fault of Halite, and arrives as an error of the kind
//   `HALITE_ERROR_OTHER`.
// * Processes. The library has threads and open devices. In a child of `fork` the objects of its parent give the error
//   `HALITE_ERROR_INVALID_INPUT`, and freeing them gives nothing back. The child may open devices of its own as far as the driver
//   lets it; `exec` has no such limit. The library cannot be unloaded.
// * Enumerations are `uint32_t`. The library refuses numbers that it does not know.
//


#ifndef HALITE_HALITE_H
#define HALITE_HALITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How functions come from the library. Define HALITE_STATIC where it is linked statically on Windows.
#if defined(_WIN32) && !defined(HALITE_STATIC)
#define HALITE_API __declspec(dllimport)
#else
#define HALITE_API
#endif

// An error that nobody takes is a leak, and a failure that nobody sees.
#if defined(__GNUC__)
#define HALITE_CHECK __attribute__((warn_unused_result))
#else
#define HALITE_CHECK
#endif

// A structure with its size and zeros: what HALITE_..._INIT are made of.
#ifdef __cplusplus
#define HALITE_INIT(type) ([] { type halite_value_of_zeros{}; halite_value_of_zeros.struct_size = sizeof(type); return halite_value_of_zeros; }())
#else
#define HALITE_INIT(type) { .struct_size = sizeof(type) }
#endif

#define HALITE_RUN_OPTIONS_INIT HALITE_INIT(halite_run_options)
#define HALITE_SOURCE_INIT HALITE_INIT(halite_source)
#define HALITE_DEVICE_INFO_INIT HALITE_INIT(halite_device_info)
#define HALITE_DEVICE_STATS_INIT HALITE_INIT(halite_device_stats)
#define HALITE_VULKAN_DEVICE_INIT HALITE_INIT(halite_vulkan_device)
#define HALITE_EXTERNAL_MEMORY_INIT HALITE_INIT(halite_external_memory)
#define HALITE_MEMORY_SUPPORT_INIT HALITE_INIT(halite_memory_support)
#define HALITE_SIGNATURE_INFO_INIT HALITE_INIT(halite_signature_info)
#define HALITE_VALUE_INFO_INIT HALITE_INIT(halite_value_info)
#define HALITE_GENERATOR_OPTIONS_INIT HALITE_INIT(halite_generator_options)
#define HALITE_GENERATION_INIT HALITE_INIT(halite_generation)


/// Incompatible changes of this interface. 0 while it is young: then a change of the minor number may be incompatible, too.
#define HALITE_C_ABI_MAJOR 0

/// Compatible additions to this interface.
#define HALITE_C_ABI_MINOR 9

/// No token.
#define HALITE_NO_TOKEN 4294967295

/// Bytes that the library made. They never change. A zero byte lies behind them, so that texts can be used as texts of C.
typedef struct halite_blob halite_blob;

/// Stops work from any thread, in all of its stages. Once set, it stays set.
typedef struct halite_cancel_token halite_cancel_token;

/// A module that was made from a model.
typedef struct halite_compiled halite_compiled;

/// Compiles models to modules. Without a target a module runs on every Vulkan 1.1 device. `halite_compiler_compile` reports the
/// first wrong argument of these functions. You may call it many times.
typedef struct halite_compiler halite_compiler;

/// An open device, for programs that share one among sessions or put tensors on it. It closes when its last handle is gone, and the
/// sessions and tensors on it.
typedef struct halite_device halite_device;

/// The devices that drivers found, and the drivers that found none. Never changes.
typedef struct halite_device_list halite_device_list;

/// The drivers that find devices: those in the library, and plug-ins if you ask for them. Wherever a function takes
/// drivers, NULL stands for those in the library.
typedef struct halite_drivers halite_drivers;

/// A language model that makes vectors of texts, from a GGUF file. Texts with similar meanings have vectors that point in similar
/// directions. Any thread may use it.
typedef struct halite_embedder halite_embedder;

/// A failure: what went wrong, where, and what to do about it. It belongs to whoever receives it, and never changes.
typedef struct halite_error halite_error;

/// A function of a session, for models and modules that have several, and for profiles, prewarming and state. Keeps
/// the session alive.
typedef struct halite_function halite_function;

/// A language model that writes text, from a GGUF file: its session, tokenizer and chat template. Any thread may use it. Sequences
/// share its weights; each has caches of its own.
typedef struct halite_generator halite_generator;

/// Memory that others also use. Either the device has it, as after it was imported or created, or the others do, between
/// `halite_memory_release` and `halite_memory_acquire`. Calls with its tensors fail while the others have it.
typedef struct halite_memory halite_memory;

/// A model that was read, to be compiled ahead of time for other devices. A session reads and compiles its model by itself.
typedef struct halite_model halite_model;

/// The results of a call, by name and by place. They lie on the device until they are read.
typedef struct halite_outputs halite_outputs;

/// A call whose work may still be in progress.
typedef struct halite_pending halite_pending;

/// Where the time of one call went, from host to host.
typedef struct halite_profile halite_profile;

/// Chooses the tokens of a sequence, one after the other. One call at a time uses it; others wait.
typedef struct halite_sampler halite_sampler;

/// A sequence of tokens, with caches on the device of what the model computed of them. One call at a time uses it; others wait. A
/// call that fails leaves the tokens as they were before it.
typedef struct halite_sequence halite_sequence;

/// A model or module, ready to run on its devices. Any thread may use it, and many may run it at the same time. When it is freed,
/// and the functions, states and results made from it, all memory is freed.
typedef struct halite_session halite_session;

/// Collects the settings of a session. Only the model is required. Nothing is read or opened before
/// `halite_session_builder_build`, which also reports the first wrong argument of these functions.
typedef struct halite_session_builder halite_session_builder;

/// The inputs and outputs of a function. It belongs to the session, function or model that you asked, and never changes.
typedef struct halite_signature halite_signature;

/// The state of a sequence: tensors that each call reads and replaces, such as the caches of a decoder or the memory of a recurrent
/// network. They stay on the device. One call uses it at a time; others wait. A call that fails leaves the state as the device left
/// it: reset it, or load it again.
typedef struct halite_state halite_state;

/// A dense row-major array of numbers, on the host or on a device. Its elements never change. Results of a session stay on its
/// device until somebody reads them, so feeding one into the next call copies nothing.
typedef struct halite_tensor halite_tensor;

/// Tokens that the library made: numbers of parts of texts. They never change.
typedef struct halite_tokens halite_tokens;

/// An argument or a result of a function, of any kind. Never changes. Most are tensors, which functions also take and give
/// without it.
typedef struct halite_value halite_value;

/// What Halite would enable on a physical device, for programs that create the device.
typedef struct halite_vulkan_wanted halite_vulkan_wanted;

/// What kind of failure an error is: one of `HALITE_ERROR_…`. Newer libraries may have more.
typedef uint32_t halite_error_kind;

/// Receives a line of the log: its level (1 error, 2 warning, 3 information, 4 debug, 5 trace), its origin, and the text.
/// The library calls it on any thread, on several at the same time. What the library does inside such a call is not logged.
typedef void (*halite_log_fn)(void *context, uint32_t level, const char *target, const char *message);

/// A property in words.
typedef struct {
    /// Its name.
    const char *name;
    /// Its value.
    const char *value;
} halite_property;

/// What kind of hardware a device is: one of `HALITE_DEVICE_…`.
typedef uint32_t halite_device_kind;

/// What is known of a device. Begin with `HALITE_DEVICE_INFO_INIT`.
typedef struct {
    /// `sizeof(halite_device_info)`.
    size_t struct_size;
    /// The URI that opens exactly this device.
    const char *uri;
    /// Its display name.
    const char *name;
    /// Name of its driver.
    const char *driver;
    /// The target that kernels are chosen by, such as `cpu-llvmpipe-linux`; NULL where the driver tells none.
    const char *target;
    /// Why it cannot be used; NULL when it can.
    const char *unusable;
    /// Properties in words.
    const halite_property *properties;
    /// Number of them.
    size_t property_count;
    /// What kind of hardware it is.
    halite_device_kind kind;
} halite_device_info;

/// Memory that a device holds for tensors, weights and programs, in bytes, what went through tensors between host and device, and how
/// often its driver wrote recordings of work in its own form. It does so once for given sizes and buffers, and for calls that grow step
/// by step while the device works for the call before; work that is recorded for one execution does not count. Begin with `HALITE_DEVICE_STATS_INIT`.
typedef struct {
    /// `sizeof(halite_device_stats)`.
    size_t struct_size;
    /// Taken from the system now.
    uint64_t reserved;
    /// In use now.
    uint64_t used;
    /// Largest `reserved` so far.
    uint64_t peak_reserved;
    /// Largest `used` so far.
    uint64_t peak_used;
    /// Number of allocations made from the system so far.
    uint64_t allocations;
    /// Tensors that were copied to the device since this handle's device was opened.
    uint64_t uploads;
    /// Their bytes.
    uint64_t uploaded_bytes;
    /// Tensors that were copied to the host.
    uint64_t downloads;
    /// Their bytes.
    uint64_t downloaded_bytes;
    /// Executions of recordings, since interface 0.6 like the fields that follow.
    uint64_t recordings_executed;
    /// Executions that waited for the recording to be written.
    uint64_t recordings_written;
    /// Recordings that were written ahead.
    uint64_t recordings_written_ahead;
    /// Recordings among these that were executed.
    uint64_t recordings_found_ahead;
} halite_device_stats;

/// A queue of a Vulkan device.
typedef struct {
    /// The `VkQueue`.
    void *queue;
    /// Its family.
    uint32_t family;
} halite_vulkan_queue;

/// Locks or unlocks the queue with this place in the list of queues, for the calling thread. A thread that holds the lock must not
/// call this library, which would wait for it.
typedef void (*halite_vulkan_queue_fn)(void *context, size_t queue);

/// Ends what the library has borrowed for longer than a call. Called once, on any thread.
typedef void (*halite_release_fn)(void *context);

/// A Vulkan device of the program's. Begin with `HALITE_VULKAN_DEVICE_INIT`. What is pointed to, except Vulkan's own objects, is
/// read during the call.
typedef struct {
    /// `sizeof(halite_vulkan_device)`.
    size_t struct_size;
    /// `vkGetInstanceProcAddr` of the loader, or of the driver, that the instance comes from.
    const void *get_instance_proc_addr;
    /// The `VkInstance`.
    void *instance;
    /// The `VkPhysicalDevice`.
    void *physical_device;
    /// What the instance was made for: `VkApplicationInfo::apiVersion`, at least Vulkan 1.1.
    uint32_t api_version;
    /// The `VkDevice`. `halite_vulkan_wanted_create` takes NULL: there is none yet.
    void *device;
    /// The queues that Halite may use, 1 to 8 of one family that computes.
    const halite_vulkan_queue *queues;
    /// Their number.
    size_t queue_count;
    /// Extensions that were enabled when the device was created, of those that are wanted.
    const char *const *extensions;
    /// Their number.
    size_t extension_count;
    /// Features that were enabled, of those that are wanted, by the names of Vulkan's fields: `shaderFloat16`. What is not
    /// named is not used.
    const char *const *features;
    /// Their number.
    size_t feature_count;
    /// Called before Halite uses a queue, on any thread. NULL when no other thread uses these queues while Halite's device
    /// lives.
    halite_vulkan_queue_fn lock;
    /// Called on the same thread after that. NULL exactly when `lock` is.
    halite_vulkan_queue_fn unlock;
    /// Called when Halite does not use the Vulkan objects any more, also when the call fails; may be NULL. Device and instance
    /// have to live until then.
    halite_release_fn release;
    /// Handed to `lock`, `unlock` and `release`.
    void *context;
} halite_vulkan_device;

/// The type of a tensor's elements: one of `HALITE_ELEMENT_…`, as compiled modules carry it. The lowest byte is the width in bits.
typedef uint32_t halite_element_type;

/// What memory from elsewhere is known by: one of `HALITE_MEMORY_…`.
typedef uint32_t halite_memory_kind;

/// What a device does with memory of one kind. Begin with `HALITE_MEMORY_SUPPORT_INIT`.
typedef struct {
    /// `sizeof(halite_memory_support)`.
    size_t struct_size;
    /// What addresses of memory of the process, and its sizes, are multiples of; 1 for other kinds.
    uint64_t alignment;
    /// Whether the device takes such memory.
    bool can_import;
    /// Whether it makes memory that can be given away as such.
    bool can_export;
} halite_memory_support;

/// Memory from elsewhere, or for others. Begin with `HALITE_EXTERNAL_MEMORY_INIT`.
typedef struct {
    /// `sizeof(halite_external_memory)`.
    size_t struct_size;
    /// What it is known by.
    halite_memory_kind kind;
    /// The descriptor, of kinds that have one.
    int32_t fd;
    /// The `HANDLE`, the `AHardwareBuffer *`, or the first byte of memory of the process.
    void *handle;
    /// All of its bytes, as it was allocated.
    uint64_t size;
    /// Whether `memory_type` is set.
    bool has_memory_type;
    /// Whether it was allocated for one buffer alone (`VkMemoryDedicatedAllocateInfo`).
    bool is_dedicated;
    /// Index of the Vulkan memory type that it was allocated from, for opaque handles. Where it is not set, it is the type that the
    /// device takes for buffers of its own.
    uint32_t memory_type;
    /// Called with `context` when memory of the process is not used any more, also when the call fails; other kinds have none.
    halite_release_fn release;
    /// Handed to `release`.
    void *context;
} halite_external_memory;

/// What kind of value a value is: one of `HALITE_VALUE_…`.
typedef uint32_t halite_value_kind;

/// A function as a whole. Begin with `HALITE_SIGNATURE_INFO_INIT`.
typedef struct {
    /// `sizeof(halite_signature_info)`.
    size_t struct_size;
    /// Its name within its module.
    const char *name;
    /// The module that it belongs to; empty for functions of models.
    const char *module;
    /// The signature as text: `main('picture' f32[1,1,16,16]) -> ('probabilities' f32[1,10])`.
    const char *text;
    /// Number of inputs.
    size_t input_count;
    /// Number of outputs.
    size_t output_count;
    /// Number of inputs that are state.
    size_t state_count;
} halite_signature_info;

/// What kind of dimension a dimension is: one of `HALITE_DIMENSION_…`.
typedef uint32_t halite_dimension_kind;

/// A dimension of an input or output.
typedef struct {
    /// Its name, if it has one; otherwise NULL.
    const char *name;
    /// Its size, or the most that it can be; otherwise 0.
    size_t size;
    /// What kind of dimension it is.
    halite_dimension_kind kind;
} halite_dimension;

/// An input or output. Begin with `HALITE_VALUE_INFO_INIT`.
typedef struct {
    /// `sizeof(halite_value_info)`.
    size_t struct_size;
    /// Its name: the model's own; for modules of other compilers what they left of it, or `input0`, `output0`, ….
    const char *name;
    /// The value as text: `'picture' f32[1,1,16,16]`.
    const char *text;
    /// The dimensions of a tensor.
    const halite_dimension *dimensions;
    /// Number of dimensions.
    size_t rank;
    /// Whether the number of dimensions is known.
    bool has_rank;
    /// Whether it may be left out.
    bool is_optional;
    /// `HALITE_VALUE_TENSOR`, `HALITE_VALUE_LIST` (a list of tensors), or `HALITE_VALUE_OTHER`, which the text names.
    halite_value_kind kind;
    /// Type of a tensor's elements; 0 where it is not known.
    halite_element_type element_type;
} halite_value_info;

/// An input of a call: a tensor, or a value of another kind; without both it is left out, which optional inputs allow. A tensor
/// on the host is copied to the device.
typedef struct {
    /// Its name; NULL for the next one by place. Inputs by place come first.
    const char *name;
    /// A tensor, or NULL.
    const halite_tensor *tensor;
    /// Another value, or NULL.
    const halite_value *value;
} halite_input;

/// A stage of the way from a file to results: one of `HALITE_STAGE_…`.
typedef uint32_t halite_stage;

/// How far a piece of work is.
typedef struct {
    /// Bytes of this structure that the library knows.
    size_t struct_size;
    /// What is being done.
    halite_stage stage;
    /// The same as text: `choosing kernels for hopper-h200-linux`. Valid until the callback returns.
    const char *detail;
    /// Steps of the stage that are done: nodes, pipelines, bytes.
    uint64_t done;
    /// Steps of the stage. A stage may come again, with steps of its own.
    uint64_t total;
} halite_progress;

/// Receives the progress of a piece of work: one call at a time, on any thread, never after the function has returned that was
/// given it. It should return soon, and must not use the session that reports the progress: that would wait for itself.
typedef void (*halite_progress_fn)(void *context, const halite_progress *progress);

/// Limits one piece of work (a call, building a session, a compilation), and lets you stop and watch it. Begin with
/// `HALITE_RUN_OPTIONS_INIT`. Stopped work fails with `HALITE_ERROR_DEADLINE_EXCEEDED` or `HALITE_ERROR_CANCELLED`.
/// What a device has begun runs to its end, without anybody waiting.
typedef struct {
    /// `sizeof(halite_run_options)`.
    size_t struct_size;
    /// Gives up this many nanoseconds after the work begins; 0 is no limit.
    uint64_t timeout_ns;
    /// Stops when this is set; may be NULL.
    const halite_cancel_token *cancel;
    /// Receives the progress; may be NULL.
    halite_progress_fn progress;
    /// Handed to `progress`.
    void *progress_context;
} halite_run_options;

/// Reads the next bytes into `target`: returns how many, at most `capacity`; 0 at the end; a negative number when it failed.
typedef int64_t (*halite_read_fn)(void *context, uint8_t *target, size_t capacity);

/// Where a model or module comes from: a file (`path`), memory (`data` and `size`), or a reader (`read`). Exactly one of them is
/// set. Begin with `HALITE_SOURCE_INIT`.
typedef struct {
    /// `sizeof(halite_source)`.
    size_t struct_size;
    /// A file. Required for a model whose weights are in files beside it.
    const char *path;
    /// Bytes. Without `release` they are copied; with it they are borrowed until it is called, and must not change.
    const uint8_t *data;
    /// Number of bytes.
    size_t size;
    /// Reads all that there is, when the session is built or the model opened, on the thread that does it.
    halite_read_fn read;
    /// Ends the borrowing of `data`, or the reader; may be NULL.
    halite_release_fn release;
    /// Handed to `read` and `release`.
    void *context;
    /// A name for messages, where there is no file that has one; may be NULL.
    const char *name;
} halite_source;

/// How files come into memory: one of `HALITE_LOAD_…`.
typedef uint32_t halite_load_mode;

/// Which floats a model computes with inside: one of `HALITE_PRECISION_…`.
typedef uint32_t halite_precision;

/// How caches hold keys or values: one of `HALITE_CACHE_…`.
typedef uint32_t halite_cache_type;

/// Where the next token of a sequence is chosen: one of `HALITE_CHOOSE_ON_…`.
typedef uint32_t halite_choose_on;

/// The settings of a generator. Begin with `HALITE_GENERATOR_OPTIONS_INIT`.
typedef struct {
    /// `sizeof(halite_generator_options)`.
    size_t struct_size;
    /// How many tokens a sequence has room for, prompt and answer. 0 is 4096, or the model's training length if that is less.
    size_t context;
    /// How caches hold keys.
    halite_cache_type keys;
    /// How caches hold values.
    halite_cache_type values;
    /// Whether you will call `halite_sequence_score`.
    bool scoring;
    /// The tokenizer's file, for models without a tokenizer. NULL looks for one beside the model.
    const char *tokenizer;
    /// Where tokens are chosen by `halite_sequence_generate` and `halite_generator_step`.
    halite_choose_on choose_on;
    /// The largest number of sequences that take a step together in `halite_generator_step`. 0 is 1: each sequence alone.
    size_t batch;
} halite_generator_options;

/// A message of a conversation.
typedef struct {
    /// The speaker: `system`, `user`, `assistant`.
    const char *role;
    /// What is said.
    const char *content;
} halite_message;

/// A piece of what a model writes.
typedef struct {
    /// Bytes of this structure that the library knows.
    size_t struct_size;
    /// The text that is certain now: empty while bytes of a character are missing, or while it may be the beginning of a text that
    /// ends the answer. Valid until the callback returns.
    const char *text;
    /// Its bytes, without the zero behind them.
    size_t text_size;
    /// The token that was written; `HALITE_NO_TOKEN` where text that was held back comes in the end.
    uint32_t token;
} halite_piece;

/// Receives each piece of text at once, on the thread that called. Returns whether the model should continue. It must not use the
/// sequence that writes: that would wait for itself.
typedef bool (*halite_piece_fn)(void *context, const halite_piece *piece);

/// How a model continues a text. Begin with `HALITE_GENERATION_INIT`, which always takes the most likely token, as long as the
/// context has room; `halite_generation_sampling` has Halite's own choices. The steps of the choice go in this order: penalty,
/// `top_k`, `top_p`,
/// `min_p`, temperature.
typedef struct {
    /// `sizeof(halite_generation)`.
    size_t struct_size;
    /// Most tokens that are written; 0 is no limit.
    size_t most;
    /// Texts that end the answer; the callback does not receive them. May be NULL.
    const char *const *stops;
    /// Number of these texts.
    size_t stop_count;
    /// Receives each piece of text; may be NULL.
    halite_piece_fn told;
    /// Handed to `told`.
    void *context;
    /// The seed of random numbers: the same seed gives the same choices.
    uint64_t seed;
    /// How many of the most likely tokens count; 0 for all.
    size_t top_k;
    /// How many of the last tokens `repeat_penalty` is for.
    size_t repeat_last;
    /// Divides logits; 0 takes the most likely token.
    float temperature;
    /// Keeps the most likely tokens that together have this share of the probability; 0 and 1 keep all.
    float top_p;
    /// The least probability of a token, as a share of the most likely token's; 0 keeps all.
    float min_p;
    /// Divides the logits of recent tokens, or multiplies them if they are negative; 0 and 1 change nothing.
    float repeat_penalty;
    /// Whether the model continues after the token that ends a text; then it is a token like others.
    bool ignore_end;
    /// A JSON schema as text: what is written is one JSON value that follows it, and then ends. May be NULL. Schemas that no value
    /// follows, and keywords that are not supported, are errors.
    const char *json_schema;
} halite_generation;

/// Why a model stopped writing: one of `HALITE_STOP_…`.
typedef uint32_t halite_stop;

/// A sequence that takes a step, and the outcome.
typedef struct {
    /// The sequence.
    halite_sequence *sequence;
    /// What chooses its tokens.
    halite_sampler *sampler;
    /// Output: the new token; `HALITE_NO_TOKEN` if there is none.
    uint32_t token;
    /// Output: why there is no token; 0 if there is one.
    halite_stop stop;
} halite_writer;

/// A file, device, driver, function, input or output that was named does not exist.
#define HALITE_ERROR_NOT_FOUND 1

/// The caller gave something wrong: an input of another shape or type, NULL, contradicting options.
#define HALITE_ERROR_INVALID_INPUT 2

/// The model or module is damaged, or contradicts its format.
#define HALITE_ERROR_INVALID_MODEL 3

/// The model is right, and something in it is not supported, here or on this device.
#define HALITE_ERROR_UNSUPPORTED 4

/// No device can be used. The text lists the devices that the library tried.
#define HALITE_ERROR_NO_DEVICE 5

/// The host or the device ran out of memory, or a limit was reached.
#define HALITE_ERROR_OUT_OF_MEMORY 6

/// The time limit passed. The text says in which stage.
#define HALITE_ERROR_DEADLINE_EXCEEDED 7

/// A cancel token was set; the text says in which stage.
#define HALITE_ERROR_CANCELLED 8

/// The device stopped working. Its sessions cannot be used any more; open the device again.
#define HALITE_ERROR_DEVICE_LOST 9

/// The system refused an access.
#define HALITE_ERROR_PERMISSION_DENIED 10

/// A file could not be read or written.
#define HALITE_ERROR_IO 11

/// Anything else, such as a fault of a driver or of Halite.
#define HALITE_ERROR_OTHER 12

/// Anything else; the detail names it.
#define HALITE_STAGE_OTHER 0

/// A file is read and decoded.
#define HALITE_STAGE_READING 1

/// A model becomes a graph.
#define HALITE_STAGE_IMPORTING 2

/// The graph is rewritten to do less work.
#define HALITE_STAGE_OPTIMIZING 3

/// Constants and the order of the work are decided.
#define HALITE_STAGE_PLANNING 4

/// Kernels are chosen for a device.
#define HALITE_STAGE_CHOOSING_KERNELS 5

/// A module is written.
#define HALITE_STAGE_WRITING 6

/// Weights are copied to the device.
#define HALITE_STAGE_LOADING_WEIGHTS 7

/// The device's driver compiles kernels.
#define HALITE_STAGE_BUILDING_PIPELINES 8

/// Mapped: pages are read when they are first touched. The file must not change while anything made from it lives.
#define HALITE_LOAD_MAP 0

/// Read at once into memory. Later changes of the file do not matter.
#define HALITE_LOAD_PRELOAD 1

/// Something else.
#define HALITE_DEVICE_OTHER 0

/// A GPU with memory of its own.
#define HALITE_DEVICE_DISCRETE_GPU 1

/// A GPU that shares the host's memory.
#define HALITE_DEVICE_INTEGRATED_GPU 2

/// A GPU seen through virtualization.
#define HALITE_DEVICE_VIRTUAL_GPU 3

/// The host's processor, also behind a GPU's interface.
#define HALITE_DEVICE_CPU 4

/// Truth values, a byte each.
#define HALITE_ELEMENT_BOOL 318767112

/// Integers of 8 bits, with a sign unless the module says otherwise.
#define HALITE_ELEMENT_I8 268435464

/// Integers of 16 bits.
#define HALITE_ELEMENT_I16 268435472

/// Integers of 32 bits.
#define HALITE_ELEMENT_I32 268435488

/// Integers of 64 bits.
#define HALITE_ELEMENT_I64 268435520

/// Integers of 8 bits without a sign.
#define HALITE_ELEMENT_U8 301989896

/// Integers of 16 bits without a sign.
#define HALITE_ELEMENT_U16 301989904

/// Integers of 32 bits without a sign.
#define HALITE_ELEMENT_U32 301989920

/// Integers of 64 bits without a sign.
#define HALITE_ELEMENT_U64 301989952

/// Floats of 16 bits (IEEE 754).
#define HALITE_ELEMENT_F16 553648144

/// Floats of 32 bits.
#define HALITE_ELEMENT_F32 553648160

/// Floats of 64 bits.
#define HALITE_ELEMENT_F64 553648192

/// Floats of 16 bits with the exponent of 32-bit ones (bfloat16).
#define HALITE_ELEMENT_BF16 570425360

/// A file descriptor that only the same driver of the same device understands, such as another Vulkan device or CUDA: compare
/// `halite_device_get_uuids`.
#define HALITE_MEMORY_OPAQUE_FD 1

/// A file descriptor of Linux's dma-buf, which cameras, decoders and other devices understand.
#define HALITE_MEMORY_DMA_BUF 2

/// Memory of the process. The device reads it where it lies, and does not write to it.
#define HALITE_MEMORY_HOST 3

/// Android's `AHardwareBuffer`, of the format `BLOB`.
#define HALITE_MEMORY_ANDROID_HARDWARE_BUFFER 4

/// A `HANDLE` of Windows that only the same driver of the same device understands, such as Direct3D or CUDA.
#define HALITE_MEMORY_OPAQUE_WIN32 5

/// Nothing: an optional argument that was left out.
#define HALITE_VALUE_NULL 0

/// A tensor.
#define HALITE_VALUE_TENSOR 1

/// A list.
#define HALITE_VALUE_LIST 2

/// An integer of 32 bits, or less.
#define HALITE_VALUE_I32 3

/// An integer of 64 bits, or an index.
#define HALITE_VALUE_I64 4

/// A float of 32 bits.
#define HALITE_VALUE_F32 5

/// A float of 64 bits.
#define HALITE_VALUE_F64 6

/// Anything else that a module gives, such as a buffer or a fence: it can be handed to the next call.
#define HALITE_VALUE_OTHER 7

/// Open.
#define HALITE_DIMENSION_OPEN 0

/// Known: `size`.
#define HALITE_DIMENSION_FIXED 1

/// Open, the same wherever the `name` is.
#define HALITE_DIMENSION_NAMED 2

/// Open, and at most `size`.
#define HALITE_DIMENSION_AT_MOST 3

/// Those of the model.
#define HALITE_PRECISION_MODEL 0

/// 16 bits where kernels support them. Inputs and outputs keep their types.
#define HALITE_PRECISION_F16 1

/// 16-bit floats.
#define HALITE_CACHE_F16 0

/// Blocks of 32 elements: 8 bits for each, and a scale.
#define HALITE_CACHE_Q8_0 1

/// Blocks of 32 elements: 4 bits for each, and a scale.
#define HALITE_CACHE_Q4_0 2

/// On the device, if it is a GPU; otherwise on the host.
#define HALITE_CHOOSE_ON_AUTO 0

/// On the host.
#define HALITE_CHOOSE_ON_HOST 1

/// On the device, where it can: it takes the most likely token, or draws among the most likely 64 at most, without a penalty.
/// The host does the rest.
#define HALITE_CHOOSE_ON_DEVICE 2

/// The model ended its answer.
#define HALITE_STOP_END 1

/// The limit of tokens was reached.
#define HALITE_STOP_LENGTH 2

/// The context is full.
#define HALITE_STOP_CONTEXT 3

/// The callback stopped it.
#define HALITE_STOP_CALLER 4

/// One of the texts that end an answer appeared.
#define HALITE_STOP_TEXT 5

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// The version of the library, such as `0.1.0`. The text is valid until the process ends.
HALITE_API const char *halite_version(void);

/// The version of the interface that the library has: major in the upper half, minor in the lower. Compare it with
/// `HALITE_C_ABI_MAJOR` and `HALITE_C_ABI_MINOR` of the header where a program loads the library by itself.
HALITE_API
uint32_t halite_abi_version(void);

/// The kind of failure. Programs should decide by it; texts are for people. 0 for NULL.
HALITE_API halite_error_kind halite_error_get_kind(const halite_error *error);

/// The name of the status code that modules and IREE's tools know it by, such as `INVALID_ARGUMENT`.
HALITE_API const char *halite_error_code_name(const halite_error *error);

/// What went wrong, without the context.
HALITE_API const char *halite_error_message(const halite_error *error);

/// The whole error as one text: code, message, context.
HALITE_API const char *halite_error_text(const halite_error *error);

/// What the library was doing, from the innermost step outwards: line `index`, or NULL after the last.
HALITE_API const char *halite_error_context(const halite_error *error, size_t index);

/// Frees an error.
HALITE_API void halite_error_free(halite_error *error);

/// Sets the function that receives the log, up to a level; NULL ends that. The earlier function is not called any more when this
/// returns. Without such a function nothing is written anywhere.
///
/// Fails inside such a function, and in a program that has its own logger for Rust's crate `log`.
HALITE_API
HALITE_CHECK
halite_error *halite_log_set(halite_log_fn function,
                             void *context,
                             uint32_t level);

/// The bytes.
HALITE_API const uint8_t *halite_blob_data(const halite_blob *blob);

/// Number of bytes, without the zero byte behind them.
HALITE_API size_t halite_blob_size(const halite_blob *blob);

/// Frees bytes.
HALITE_API void halite_blob_free(halite_blob *blob);

/// A token that is not set.
HALITE_API halite_cancel_token *halite_cancel_token_create(void);

/// Stops the work that has the token.
HALITE_API void halite_cancel_token_cancel(const halite_cancel_token *token);

/// Whether it was set.
HALITE_API bool halite_cancel_token_is_cancelled(const halite_cancel_token *token);

/// Frees a token. Work that has it continues, and cannot be stopped any more.
HALITE_API void halite_cancel_token_free(halite_cancel_token *token);

/// The drivers in the library; with `plugins` also those in libraries of their own, which are looked for in the folders of the
/// environment variable `HALITE_DRIVER_PATH` and beside the program. A plug-in is loaded when its driver is asked for.
HALITE_API
HALITE_CHECK
halite_error *halite_drivers_create(bool plugins,
                                    halite_drivers **out);

/// Sets an option for the devices that are opened with these drivers. An option in a URI wins over it.
HALITE_API
HALITE_CHECK
halite_error *halite_drivers_set_option(halite_drivers *drivers,
                                        const char *name,
                                        const char *value);

/// Frees drivers. Devices that were opened with them stay open.
HALITE_API void halite_drivers_free(halite_drivers *drivers);

/// Lists the devices of all drivers. A driver that finds none is no failure: see `halite_device_list_unavailable`.
HALITE_API
HALITE_CHECK
halite_error *halite_device_list_create(const halite_drivers *drivers,
                                        halite_device_list **out);

/// Number of devices.
HALITE_API size_t halite_device_list_count(const halite_device_list *list);

/// What is known of a device. The texts belong to the list.
HALITE_API
HALITE_CHECK
halite_error *halite_device_list_get(const halite_device_list *list,
                                     size_t index,
                                     halite_device_info *info);

/// Driver number `index` of those that have no devices, and the reason. Returns false after the last.
HALITE_API
bool halite_device_list_unavailable(const halite_device_list *list,
                                    size_t index,
                                    const char **driver,
                                    const char **why);

/// Frees a list.
HALITE_API void halite_device_list_free(halite_device_list *list);

/// Opens a device by URI: a driver (`vulkan`), or one of its devices by path, index or part of the name (`vulkan://0`,
/// `vulkan://llvmpipe`), with options (`?validation=core`).
HALITE_API
HALITE_CHECK
halite_error *halite_device_open(const halite_drivers *drivers,
                                 const char *uri,
                                 halite_device **out);

/// What is known of a device. The texts belong to the handle.
HALITE_API
HALITE_CHECK
halite_error *halite_device_get_info(const halite_device *device,
                                     halite_device_info *info);

/// How much memory a device holds, how much it has moved, and how often recordings were written.
HALITE_API
HALITE_CHECK
halite_error *halite_device_get_stats(const halite_device *device,
                                      halite_device_stats *stats);

/// Returns unused memory to the system.
HALITE_API void halite_device_trim(const halite_device *device);

/// Whether both are the same open device.
HALITE_API bool halite_device_is_same(const halite_device *a, const halite_device *b);

/// Frees a handle to a device.
HALITE_API void halite_device_free(halite_device *device);

/// A device on the program's own Vulkan device and queues, which it shares with the program. `drivers` has the options. Tensors
/// are Halite's own. Freeing the device waits for its work; objects that are left keep it until they are freed, too, and then
/// `release` is called.
HALITE_API
HALITE_CHECK
halite_error *halite_device_import_vulkan(const halite_drivers *drivers,
                                          const halite_vulkan_device *device,
                                          halite_device **out);

/// What Halite would enable on a physical device with the options of `drivers`: all of it optional. `device` names
/// `get_instance_proc_addr`, `instance`, `physical_device` and `api_version`; its `release` is not called.
HALITE_API
HALITE_CHECK
halite_error *halite_vulkan_wanted_create(const halite_drivers *drivers,
                                          const halite_vulkan_device *device,
                                          halite_vulkan_wanted **out);

/// An extension of the device that Halite would enable; NULL after the last.
HALITE_API const char *halite_vulkan_wanted_extension(const halite_vulkan_wanted *wanted, size_t index);

/// A feature that Halite would enable, by the name of Vulkan's field; NULL after the last.
HALITE_API const char *halite_vulkan_wanted_feature(const halite_vulkan_wanted *wanted, size_t index);

/// The queue family that Halite would use.
HALITE_API uint32_t halite_vulkan_wanted_queue_family(const halite_vulkan_wanted *wanted);

/// Frees the list.
HALITE_API void halite_vulkan_wanted_free(halite_vulkan_wanted *wanted);

/// A tensor on the host with a copy of these bytes: its elements, in the byte order of the machine.
HALITE_API
HALITE_CHECK
halite_error *halite_tensor_create(halite_element_type element,
                                   const size_t *shape,
                                   size_t rank,
                                   const void *data,
                                   size_t size,
                                   halite_tensor **out);

/// A tensor on the host of these bytes, which are not copied: they are borrowed, and must not change, until `release(context)` is
/// called. That happens when the last tensor and the last call that reads them is gone, at once when this fails.
HALITE_API
HALITE_CHECK
halite_error *halite_tensor_borrow(halite_element_type element,
                                   const size_t *shape,
                                   size_t rank,
                                   const void *data,
                                   size_t size,
                                   halite_release_fn release,
                                   void *context,
                                   halite_tensor **out);

/// A tensor on the host that is full of zeros.
HALITE_API
HALITE_CHECK
halite_error *halite_tensor_zeros(halite_element_type element,
                                  const size_t *shape,
                                  size_t rank,
                                  halite_tensor **out);

/// The type of the elements; 0 for NULL.
HALITE_API halite_element_type halite_tensor_element_type(const halite_tensor *tensor);

/// Number of dimensions.
HALITE_API size_t halite_tensor_rank(const halite_tensor *tensor);

/// The dimensions, outermost first: `halite_tensor_rank` numbers.
HALITE_API const size_t *halite_tensor_shape(const halite_tensor *tensor);

/// Bytes of all elements.
HALITE_API size_t halite_tensor_size(const halite_tensor *tensor);

/// Whether the elements lie on a device.
HALITE_API bool halite_tensor_is_on_device(const halite_tensor *tensor);

/// A handle to the device that the elements lie on. Fails for a tensor on the host.
HALITE_API HALITE_CHECK halite_error *halite_tensor_device(const halite_tensor *tensor, halite_device **out);

/// The tensor on a device. A tensor that is already there is not copied.
HALITE_API
HALITE_CHECK
halite_error *halite_tensor_to_device(const halite_tensor *tensor,
                                      const halite_device *device,
                                      halite_tensor **out);

/// The tensor on the host. A tensor that is already there is not copied.
HALITE_API HALITE_CHECK halite_error *halite_tensor_to_host(const halite_tensor *tensor, halite_tensor **out);

/// The same elements in another shape; nothing is copied.
HALITE_API
HALITE_CHECK
halite_error *halite_tensor_reshape(const halite_tensor *tensor,
                                    const size_t *shape,
                                    size_t rank,
                                    halite_tensor **out);

/// Copies the elements into memory of `halite_tensor_size` bytes, from the device if they are there, which blocks.
HALITE_API
HALITE_CHECK
halite_error *halite_tensor_read(const halite_tensor *tensor,
                                 void *target,
                                 size_t size);

/// The same with a check of what is expected: fails where the elements have another type, or are not as many. Integers without a
/// sign, as modules have them, are read either way.
HALITE_API
HALITE_CHECK
halite_error *halite_tensor_read_as(const halite_tensor *tensor,
                                    halite_element_type element,
                                    void *target,
                                    size_t count);

/// The elements of a tensor on the host, where they lie: `halite_tensor_size` bytes that live as long as the tensor. NULL for a
/// tensor on a device: `halite_tensor_read` and `halite_tensor_to_host` copy it.
HALITE_API
const void *halite_tensor_data(const halite_tensor *tensor);

/// Frees a tensor. Its elements stay as long as another tensor or a running call uses them.
HALITE_API void halite_tensor_free(halite_tensor *tensor);

/// What a device does with memory of a kind: nothing, where both answers are false.
HALITE_API
HALITE_CHECK
halite_error *halite_device_get_memory_support(const halite_device *device,
                                               halite_memory_kind kind,
                                               halite_memory_support *support);

/// Vulkan's UUIDs of a device and of its driver (`deviceUUID` and `driverUUID`), 16 bytes each; either pointer may be NULL. Opaque
/// handles have a meaning only between parts that have both in common. CUDA tells the first as `cuDeviceGetUuid`. Fails for devices
/// that have none.
HALITE_API
HALITE_CHECK
halite_error *halite_device_get_uuids(const halite_device *device,
                                      uint8_t *device_uuid,
                                      uint8_t *driver_uuid);

/// Takes memory from elsewhere, for a device, which has it then. The handle stays yours, whatever comes of the call: the device gets a
/// duplicate of a descriptor or a `HANDLE`, and a reference to an `AHardwareBuffer`. Memory of the process is borrowed until `release` is
/// called, and nobody may change it while a call uses it.
HALITE_API
HALITE_CHECK
halite_error *halite_memory_import(const halite_device *device,
                                   const halite_external_memory *memory,
                                   halite_memory **out);

/// Makes memory of at least `size` bytes on a device, to be given away as this kind. What it holds is not defined.
HALITE_API
HALITE_CHECK
halite_error *halite_memory_create(const halite_device *device,
                                   halite_memory_kind kind,
                                   size_t size,
                                   halite_memory **out);

/// A handle of memory that `halite_memory_create` made, for others. It is yours: close it, or give it to an API that takes it over. Each
/// call gives a new one. The memory lives as long as either side uses it.
HALITE_API
HALITE_CHECK
halite_error *halite_memory_export(const halite_memory *memory,
                                   halite_memory_kind kind,
                                   halite_external_memory *exported);

/// Bytes that tensors can lie in.
HALITE_API size_t halite_memory_size(const halite_memory *memory);

/// A tensor of the bytes from `offset` on, a multiple of 256, in the byte order of the machine. Nothing is copied: while a call uses the
/// tensor, nobody may change them. It keeps the memory.
HALITE_API
HALITE_CHECK
halite_error *halite_memory_tensor(const halite_memory *memory,
                                   halite_element_type element,
                                   const size_t *shape,
                                   size_t rank,
                                   size_t offset,
                                   halite_tensor **out);

/// Copies a tensor to the bytes from `offset` on, a multiple of 4, and waits for that. From the same device, nothing goes through the
/// host.
HALITE_API
HALITE_CHECK
halite_error *halite_memory_write(const halite_memory *memory,
                                  size_t offset,
                                  const halite_tensor *tensor);

/// Takes the memory back from the others, who must have finished; calls that begin afterwards see what they wrote. Does nothing where the
/// device has it.
HALITE_API
HALITE_CHECK
halite_error *halite_memory_acquire(const halite_memory *memory);

/// Gives the memory to the others, who see what calls that have returned wrote, and may write. Waits for the device. Does nothing where
/// they have it.
HALITE_API
HALITE_CHECK
halite_error *halite_memory_release(const halite_memory *memory);

/// Frees a handle to memory. The memory stays as long as a tensor of it, or a call that uses one, is there.
HALITE_API void halite_memory_free(halite_memory *memory);

/// A value that is an integer of 32 bits.
HALITE_API halite_value *halite_value_i32(int32_t number);

/// A value that is an integer of 64 bits.
HALITE_API halite_value *halite_value_i64(int64_t number);

/// A value that is a float of 32 bits.
HALITE_API halite_value *halite_value_f32(float number);

/// A value that is a float of 64 bits.
HALITE_API halite_value *halite_value_f64(double number);

/// A value that is a tensor, for lists.
HALITE_API HALITE_CHECK halite_error *halite_value_tensor(const halite_tensor *tensor, halite_value **out);

/// A value that is a list of these values, which the caller keeps.
HALITE_API
HALITE_CHECK
halite_error *halite_value_list(const halite_value *const *values,
                                size_t count,
                                halite_value **out);

/// What kind of value it is.
HALITE_API halite_value_kind halite_value_get_kind(const halite_value *value);

/// The tensor that it is.
HALITE_API HALITE_CHECK halite_error *halite_value_as_tensor(const halite_value *value, halite_tensor **out);

/// The integer that it is, of 32 or 64 bits.
HALITE_API HALITE_CHECK halite_error *halite_value_as_integer(const halite_value *value, int64_t *out);

/// The float that it is, of 32 or 64 bits.
HALITE_API HALITE_CHECK halite_error *halite_value_as_float(const halite_value *value, double *out);

/// Number of values in a list; 0 for a value that is not a list.
HALITE_API size_t halite_value_count(const halite_value *value);

/// A value of the list that it is.
HALITE_API
HALITE_CHECK
halite_error *halite_value_at(const halite_value *value,
                              size_t index,
                              halite_value **out);

/// Frees a value.
HALITE_API void halite_value_free(halite_value *value);

/// Number of results.
HALITE_API size_t halite_outputs_count(const halite_outputs *outputs);

/// The name of a result; NULL after the last.
HALITE_API const char *halite_outputs_name(const halite_outputs *outputs, size_t index);

/// The tensor with a name.
HALITE_API
HALITE_CHECK
halite_error *halite_outputs_tensor(const halite_outputs *outputs,
                                    const char *name,
                                    halite_tensor **out);

/// The tensor at a place.
HALITE_API
HALITE_CHECK
halite_error *halite_outputs_tensor_at(const halite_outputs *outputs,
                                       size_t index,
                                       halite_tensor **out);

/// The result at a place, of whatever kind.
HALITE_API
HALITE_CHECK
halite_error *halite_outputs_value_at(const halite_outputs *outputs,
                                      size_t index,
                                      halite_value **out);

/// Frees results. Tensors that were taken from them stay valid.
HALITE_API void halite_outputs_free(halite_outputs *outputs);

/// What a function is called, and how much it takes and gives.
HALITE_API
HALITE_CHECK
halite_error *halite_signature_get(const halite_signature *signature,
                                   halite_signature_info *info);

/// An input of a function, by its place.
HALITE_API
HALITE_CHECK
halite_error *halite_signature_input(const halite_signature *signature,
                                     size_t index,
                                     halite_value_info *info);

/// An output of a function, by its place.
HALITE_API
HALITE_CHECK
halite_error *halite_signature_output(const halite_signature *signature,
                                      size_t index,
                                      halite_value_info *info);

/// Pair number `index` of an input that is state and the output that replaces it. Returns false after the last.
HALITE_API
bool halite_signature_state(const halite_signature *signature,
                            size_t index,
                            const char **input,
                            const char **output);

/// Opens a model or module from a file, with default settings. `halite_session_builder_create` has the others.
/// `device` is a URI such as `vulkan`; NULL is the best device that can run it.
HALITE_API
HALITE_CHECK
halite_error *halite_session_open(const char *path,
                                  const char *device,
                                  halite_session **out);

/// Number of functions: `main` of an ONNX model, the methods of an ExecuTorch program, what a module exports.
HALITE_API size_t halite_session_function_count(const halite_session *session);

/// The signature of a function, by its index; NULL after the last. It belongs to the session.
HALITE_API const halite_signature *halite_session_signature(const halite_session *session, size_t index);

/// A function: by `name`, or by `module.name`. NULL is the one that `halite_session_run` runs: the only one of the module, the
/// first one of a model.
HALITE_API
HALITE_CHECK
halite_error *halite_session_function(const halite_session *session,
                                      const char *name,
                                      halite_function **out);

/// Runs the default function and waits for its results, which stay on the device until they are read. Sizes of a model that were
/// not seen before are compiled first.
HALITE_API
HALITE_CHECK
halite_error *halite_session_run(const halite_session *session,
                                 const halite_input *inputs,
                                 size_t input_count,
                                 const halite_run_options *options,
                                 halite_outputs **out);

/// A new state of the default function; see `halite_function_state`.
HALITE_API HALITE_CHECK halite_error *halite_session_state(const halite_session *session, halite_state **out);

/// Number of devices; 0 for a module that uses none.
HALITE_API size_t halite_session_device_count(const halite_session *session);

/// A handle to a device of the session. Inputs and results lie on the first, number 0.
HALITE_API
HALITE_CHECK
halite_error *halite_session_device(const halite_session *session,
                                    size_t index,
                                    halite_device **out);

/// How many compiled versions of a model are loaded, each for other sizes. A module is one.
HALITE_API size_t halite_session_loaded_versions(const halite_session *session);

/// Frees a session. Functions, states and results made from it keep what they need.
HALITE_API void halite_session_free(halite_session *session);

/// A builder with nothing in it.
HALITE_API halite_session_builder *halite_session_builder_create(void);

/// The model or module that the session runs, from a file. The library finds the format by its content: ONNX, an ExecuTorch
/// program (`.pte`), a module (`.vmfb`), ….
HALITE_API
void halite_session_builder_model_path(halite_session_builder *builder,
                                       const char *path);

/// The model or module that the session runs, from wherever it is.
HALITE_API void halite_session_builder_model(halite_session_builder *builder, const halite_source *source);

/// Adds a module that later ones, and the main one, may import from.
HALITE_API void halite_session_builder_import(halite_session_builder *builder, const halite_source *source);

/// The device, by URI. Given several times, a module for several devices sees them in this order. Without any, the best device that
/// can run the model or module is opened, a GPU before a processor; machine code in a module does not run then.
HALITE_API
void halite_session_builder_device(halite_session_builder *builder,
                                   const char *uri);

/// A device that is open, which several sessions may share.
HALITE_API
void halite_session_builder_open_device(halite_session_builder *builder,
                                        const halite_device *device);

/// The drivers that devices are looked for with.
HALITE_API
void halite_session_builder_drivers(halite_session_builder *builder,
                                    const halite_drivers *drivers);

/// Adds a parameter archive (`.irpa`, `.safetensors`, `.gguf`) whose entries modules find under `scope`, which may be empty.
HALITE_API
void halite_session_builder_parameters(halite_session_builder *builder,
                                       const char *scope,
                                       const char *path,
                                       halite_load_mode mode);

/// How files of models and modules come into memory; by default they are mapped.
HALITE_API void halite_session_builder_load_mode(halite_session_builder *builder, halite_load_mode mode);

/// Keeps compiled models and pipelines for the next process in this folder. It must be new, empty, or an earlier cache.
/// `limit` is the largest size in bytes; 0 is 4 GiB. The default is a folder among this user's caches.
HALITE_API
void halite_session_builder_cache(halite_session_builder *builder,
                                  const char *folder,
                                  uint64_t limit);

/// Keeps nothing for the next process.
HALITE_API void halite_session_builder_no_cache(halite_session_builder *builder);

/// Which floats a model computes with inside; by default its own.
HALITE_API void halite_session_builder_precision(halite_session_builder *builder, halite_precision number);

/// Chooses kernels by the measurements of a file, or with NULL only by those that ship with Halite. Without this, this user's own
/// measurements go first.
HALITE_API
void halite_session_builder_tuning(halite_session_builder *builder,
                                   const char *path);

/// The size of an open dimension of a model, by its name. When all of them have sizes, the model is compiled when the session is
/// built, and takes no other sizes.
HALITE_API
void halite_session_builder_dimension(halite_session_builder *builder,
                                      const char *name,
                                      size_t size);

/// The bounds of an open dimension of a model, by its name: the model is compiled for all sizes from `least` to `most` when the
/// session is built, and takes no other sizes.
HALITE_API
void halite_session_builder_bound(halite_session_builder *builder,
                                  const char *name,
                                  size_t least,
                                  size_t most);

/// The shape of an input of a model.
HALITE_API
void halite_session_builder_shape(halite_session_builder *builder,
                                  const char *input,
                                  const size_t *shape,
                                  size_t rank);

/// Values of an input that decides sizes. The model accepts no other values.
HALITE_API
void halite_session_builder_value(halite_session_builder *builder,
                                  const char *input,
                                  const halite_tensor *tensor);

/// The seed of random numbers that the model's operators draw; 0 unless this says otherwise.
HALITE_API void halite_session_builder_seed(halite_session_builder *builder, uint64_t seed);

/// Most compiled versions of a model that stay loaded, which have weights on the device together; 32 unless this says otherwise.
HALITE_API
void halite_session_builder_max_loaded_versions(halite_session_builder *builder,
                                                size_t count);

/// Most bytes of host memory that the host code of modules may hold for itself.
HALITE_API void halite_session_builder_program_memory(halite_session_builder *builder, uint64_t bytes);

/// Most bytes of memory that buffers take on each device that the session opens.
HALITE_API void halite_session_builder_device_memory(halite_session_builder *builder, uint64_t bytes);

/// For a model or module that you do not trust. The session limits what it can do and use: no machine code, no
/// files but the model's own, nothing kept in this user's caches; building, and each call, end after 60 s; 1 GiB of host
/// memory, 4 GiB on the device. Other functions of the builder, and the options of a call, override these limits. A device that
/// is open has to have been opened with `untrusted=on`.
HALITE_API
void halite_session_builder_untrusted(halite_session_builder *builder);

/// Names state of a model: inputs and the outputs that replace them, such as `past_*` and `present_*`. May be called again.
/// Without it, pairs are found by their names, types and sizes.
HALITE_API
void halite_session_builder_state(halite_session_builder *builder,
                                  const char *input,
                                  const char *output);

/// Only inputs that `halite_session_builder_state` names are state.
HALITE_API void halite_session_builder_without_state(halite_session_builder *builder);

/// Reads the model or modules, opens devices, compiles what has no open sizes, loads weights, and begins to build pipelines. The
/// options limit and report the building itself. The builder is empty afterwards, and you still have to free it.
HALITE_API
HALITE_CHECK
halite_error *halite_session_builder_build(halite_session_builder *builder,
                                           const halite_run_options *options,
                                           halite_session **out);

/// Frees a builder and its settings.
HALITE_API void halite_session_builder_free(halite_session_builder *builder);

/// Its signature. It belongs to the function.
HALITE_API const halite_signature *halite_function_signature(const halite_function *function);

/// Runs it and waits for the results, which stay on the device until they are read.
HALITE_API
HALITE_CHECK
halite_error *halite_function_run(const halite_function *function,
                                  const halite_input *inputs,
                                  size_t input_count,
                                  const halite_run_options *options,
                                  halite_outputs **out);

/// Starts it and returns while the device works. The options are for what happens before it returns: sizes of a model that were
/// not seen before are compiled first.
HALITE_API
HALITE_CHECK
halite_error *halite_function_start(const halite_function *function,
                                    const halite_input *inputs,
                                    size_t input_count,
                                    const halite_run_options *options,
                                    halite_pending **out);

/// Compiles and loads what inputs like these need, builds all pipelines, and runs a model once with them, so that the first call
/// is as fast as the others. Without inputs (`input_count` 0) zeros are taken, where the function states all sizes.
HALITE_API
HALITE_CHECK
halite_error *halite_function_prewarm(const halite_function *function,
                                      const halite_input *inputs,
                                      size_t input_count,
                                      const halite_run_options *options);

/// Runs it once and measures where the time goes. `outputs` may be NULL. The first call of a function also waits for its pipelines:
/// profile it after a call, or after `halite_function_prewarm`.
HALITE_API
HALITE_CHECK
halite_error *halite_function_profile(const halite_function *function,
                                      const halite_input *inputs,
                                      size_t input_count,
                                      const halite_run_options *options,
                                      halite_outputs **outputs,
                                      halite_profile **out);

/// A new state: tensors that live on the device between the calls of a sequence, such as the caches of a decoder. They begin as
/// zeros. Each state is a sequence of its own; all share the weights of the session. Fails if the function has no state.
HALITE_API
HALITE_CHECK
halite_error *halite_function_state(const halite_function *function,
                                    halite_state **out);

/// Frees a handle to a function.
HALITE_API void halite_function_free(halite_function *function);

/// Whether the call has finished, with results or a failure. Then waiting does not block.
HALITE_API bool halite_pending_is_done(const halite_pending *pending);

/// Waits for the results. If the options end a wait, the call continues: wait again, or free it. Every wait gives the same
/// results.
HALITE_API
HALITE_CHECK
halite_error *halite_pending_wait(const halite_pending *pending,
                                  const halite_run_options *options,
                                  halite_outputs **out);

/// Frees a call. Its work runs to its end, and its results are lost.
HALITE_API void halite_pending_free(halite_pending *pending);

/// Runs the function on this state and waits. Inputs and results are those that are not state.
HALITE_API
HALITE_CHECK
halite_error *halite_state_run(halite_state *state,
                               const halite_input *inputs,
                               size_t input_count,
                               const halite_run_options *options,
                               halite_outputs **out);

/// Resets the state to its beginning, and frees its memory.
HALITE_API HALITE_CHECK halite_error *halite_state_reset(halite_state *state);

/// A second state with a copy of the tensors. From then on both are independent.
HALITE_API HALITE_CHECK halite_error *halite_state_fork(halite_state *state, halite_state **out);

/// Number of its tensors.
HALITE_API size_t halite_state_count(const halite_state *state);

/// The name of a tensor, which is that of the input; NULL after the last.
HALITE_API const char *halite_state_name(const halite_state *state, size_t index);

/// Bytes that its tensors take on the device. Those that no call has used yet take none.
HALITE_API size_t halite_state_size(const halite_state *state);

/// A copy of a tensor as it is now, on the device. NULL, and no error, if it does not exist yet because no call has decided its
/// sizes.
HALITE_API
HALITE_CHECK
halite_error *halite_state_tensor(halite_state *state,
                                  const char *name,
                                  halite_tensor **out);

/// Replaces a tensor, by a copy of this one.
HALITE_API
HALITE_CHECK
halite_error *halite_state_set(halite_state *state,
                               const char *name,
                               const halite_tensor *tensor);

/// The state as bytes, which `halite_state_load` takes: a safetensors file with the tensors by their names.
HALITE_API HALITE_CHECK halite_error *halite_state_save(halite_state *state, halite_blob **out);

/// Restores a state that `halite_state_save` made, of the same function. The bytes are copied. If it does not fit, nothing is
/// changed.
HALITE_API
HALITE_CHECK
halite_error *halite_state_load(halite_state *state,
                                const void *data,
                                size_t size);

/// Frees a state.
HALITE_API void halite_state_free(halite_state *state);

/// The tokens.
HALITE_API const uint32_t *halite_tokens_data(const halite_tokens *tokens);

/// Number of tokens.
HALITE_API size_t halite_tokens_count(const halite_tokens *tokens);

/// Frees tokens.
HALITE_API void halite_tokens_free(halite_tokens *tokens);

/// Reads a language model (a GGUF file, or a decoder in another format) and builds all that writing text with it takes;
/// otherwise as `halite_session_builder_build`.
HALITE_API
HALITE_CHECK
halite_error *halite_session_builder_generator(halite_session_builder *builder,
                                               const halite_generator_options *wanted,
                                               const halite_run_options *options,
                                               halite_generator **out);

/// The session of the model.
HALITE_API
HALITE_CHECK
halite_error *halite_generator_session(const halite_generator *generator,
                                       halite_session **out);

/// How many tokens a sequence has room for.
HALITE_API size_t halite_generator_context(const halite_generator *generator);

/// The number of tokens in the model's vocabulary.
HALITE_API size_t halite_generator_vocabulary_size(const halite_generator *generator);

/// Whether a token ends an answer.
HALITE_API bool halite_generator_is_end(const halite_generator *generator, uint32_t token);

/// The tokens of a text, with a token for its beginning if the model expects one. Names of control tokens in the text, such as
/// `<|im_end|>`, are plain text, unless `with_control` makes tokens of them: for what `halite_generator_chat` made.
HALITE_API
HALITE_CHECK
halite_error *halite_generator_tokenize(const halite_generator *generator,
                                        const char *text,
                                        bool with_control,
                                        halite_tokens **out);

/// The text of tokens. Control tokens have no text. Bytes that are not UTF-8 are replaced.
HALITE_API
HALITE_CHECK
halite_error *halite_generator_text(const halite_generator *generator,
                                    const uint32_t *tokens,
                                    size_t count,
                                    halite_blob **out);

/// The prompt of a conversation as text, by the model's chat template, up to the place where the model answers.
HALITE_API
HALITE_CHECK
halite_error *halite_generator_chat(const halite_generator *generator,
                                    const halite_message *messages,
                                    size_t count,
                                    halite_blob **out);

/// The same with tools that the model may call, and values that its template may know; each is NULL for none. `tools` is a list as JSON,
/// in OpenAI's form (`[{"type": "function", "function": {…}}]`), `values` an object as JSON, such as `{"enable_thinking": false}`.
/// Values that the template does not know change nothing. It is an error if the template takes no tools.
HALITE_API
HALITE_CHECK
halite_error *halite_generator_chat_with(const halite_generator *generator,
                                         const halite_message *messages,
                                         size_t count,
                                         const char *tools,
                                         const char *values,
                                         halite_blob **out);

/// A sequence without tokens. Memory for its caches is taken when it gets some.
HALITE_API
HALITE_CHECK
halite_error *halite_generator_sequence(const halite_generator *generator,
                                        halite_sequence **out);

/// Frees a generator. Sequences made from it keep what they need.
HALITE_API void halite_generator_free(halite_generator *generator);

/// Sets Halite's own defaults for choosing tokens, which draw among likely tokens. The rest of the structure stays, the seed
/// among it.
HALITE_API
HALITE_CHECK
halite_error *halite_generation_sampling(halite_generation *generation);

/// Sets the tokens of the sequence. A common beginning is kept, and not computed again; `kept`,
/// which may be NULL, receives its number of tokens.
HALITE_API
HALITE_CHECK
halite_error *halite_sequence_prompt(halite_sequence *sequence,
                                     const uint32_t *tokens,
                                     size_t count,
                                     const halite_run_options *options,
                                     size_t *kept);

/// Adds tokens and computes the logits that follow them.
HALITE_API
HALITE_CHECK
halite_error *halite_sequence_append(halite_sequence *sequence,
                                     const uint32_t *tokens,
                                     size_t count,
                                     const halite_run_options *options);

/// Adds tokens, and writes how likely each was after those before it to `scores`, which has room for as many, as natural
/// logarithms. The first token of a sequence has nothing before it: 0. For generators with `scoring`.
HALITE_API
HALITE_CHECK
halite_error *halite_sequence_score(halite_sequence *sequence,
                                    const uint32_t *tokens,
                                    size_t count,
                                    const halite_run_options *options,
                                    double *scores);

/// Lets the model write, and passes each piece of text to the callback at once. The token that ends the text is neither passed
/// nor added. `stop`, which may be NULL, receives the reason why it ended. If it fails, the sequence keeps the pieces that were
/// passed.
HALITE_API
HALITE_CHECK
halite_error *halite_sequence_generate(halite_sequence *sequence,
                                       const halite_generation *generation,
                                       const halite_run_options *options,
                                       halite_stop *stop);

/// Removes all tokens after the first `count`. Takes no time.
HALITE_API void halite_sequence_truncate(halite_sequence *sequence, size_t count);

/// Number of tokens so far.
HALITE_API size_t halite_sequence_count(const halite_sequence *sequence);

/// All tokens so far.
HALITE_API
HALITE_CHECK
halite_error *halite_sequence_tokens(const halite_sequence *sequence,
                                     halite_tokens **out);

/// Logits of the token that comes next, one for each token that the model knows: a tensor of floats on the host. NULL, and no
/// error, where they have to be computed first: before the first token, after `halite_sequence_load` and
/// `halite_sequence_truncate`, and where the device chose the next token.
HALITE_API
HALITE_CHECK
halite_error *halite_sequence_logits(const halite_sequence *sequence,
                                     halite_tensor **out);

/// Bytes of its caches on the device.
HALITE_API size_t halite_sequence_size(const halite_sequence *sequence);

/// A second sequence with the same tokens and a copy of the caches. From then on both are independent.
HALITE_API HALITE_CHECK halite_error *halite_sequence_fork(halite_sequence *sequence, halite_sequence **out);

/// Tokens and caches as bytes, for `halite_sequence_load` of a generator with the same model, context and types of caches.
HALITE_API
HALITE_CHECK
halite_error *halite_sequence_save(halite_sequence *sequence,
                                   halite_blob **out);

/// Restores a saved sequence. If it does not fit, the sequence has no tokens.
HALITE_API
HALITE_CHECK
halite_error *halite_sequence_load(halite_sequence *sequence,
                                   const void *data,
                                   size_t size);

/// Frees a sequence.
HALITE_API void halite_sequence_free(halite_sequence *sequence);

/// Makes a sampler, which chooses tokens as `generation` says: its choice of tokens, the seed and `ignore_end` count. NULL
/// takes the most likely ones. `json_schema` is an error here: `halite_generator_schema_sampler` takes it.
HALITE_API
HALITE_CHECK
halite_error *halite_sampler_create(const halite_generation *generation,
                                    halite_sampler **out);

/// Makes a sampler for sequences of this generator, whose tokens make one JSON value that follows `json_schema` of `generation`,
/// and then end. The rest is as with `halite_sampler_create`.
HALITE_API
HALITE_CHECK
halite_error *halite_generator_schema_sampler(const halite_generator *generator,
                                              const halite_generation *generation,
                                              halite_sampler **out);

/// Frees a sampler.
HALITE_API void halite_sampler_free(halite_sampler *sampler);

/// The largest number of sequences that take a step together.
HALITE_API size_t halite_generator_batch(const halite_generator *generator);

/// Chooses the next token of each of these sequences and adds it. The logits of all sequences are computed together, so that
/// weights are read once. The list may change between steps. Each sequence and each sampler may be in it once. If the device
/// chooses tokens (`halite_generator_options.choose_on`), it already computes the next step when the function returns.
HALITE_API
HALITE_CHECK
halite_error *halite_generator_step(const halite_generator *generator,
                                    halite_writer *writers,
                                    size_t count,
                                    const halite_run_options *options);

/// Adds a token to each of these sequences, and computes the logits that follow, of all together. For programs that choose tokens
/// themselves. Both arrays have `count` elements, and each sequence may be in the list once.
HALITE_API
HALITE_CHECK
halite_error *halite_generator_append_each(const halite_generator *generator,
                                           halite_sequence *const *sequences,
                                           const uint32_t *tokens,
                                           size_t count,
                                           const halite_run_options *options);

/// Reads a GGUF file of a model for embeddings; otherwise as `halite_session_builder_build`.
HALITE_API
HALITE_CHECK
halite_error *halite_session_builder_embedder(halite_session_builder *builder,
                                              const halite_run_options *options,
                                              halite_embedder **out);

/// Most tokens of a text.
HALITE_API size_t halite_embedder_longest(const halite_embedder *embedder);

/// The tokens of a text, with the tokens that the model expects at its beginning and end.
HALITE_API
HALITE_CHECK
halite_error *halite_embedder_tokenize(const halite_embedder *embedder,
                                       const char *text,
                                       halite_tokens **out);

/// The vector of a text's tokens, a tensor of floats on the host. `normalize` scales it to length 1.
HALITE_API
HALITE_CHECK
halite_error *halite_embedder_embed(const halite_embedder *embedder,
                                    const uint32_t *tokens,
                                    size_t count,
                                    bool normalize,
                                    const halite_run_options *options,
                                    halite_tensor **out);

/// Frees an embedder.
HALITE_API void halite_embedder_free(halite_embedder *embedder);

/// The profile as JSON. Times are in nanoseconds. `total_ns` is `upload_ns` + `launch_ns` + `wait_ns` + `download_ns`, by the
/// host's clock; `devices` describes each device; `commands` lists what they ran, with the operation of the model that it
/// computes. Later versions only add fields.
HALITE_API
HALITE_CHECK
halite_error *halite_profile_json(const halite_profile *profile,
                                  halite_blob **out);

/// The call as a trace in the form of Chrome's trace events (JSON), which <https://ui.perfetto.dev> opens.
HALITE_API HALITE_CHECK halite_error *halite_profile_trace(const halite_profile *profile, halite_blob **out);

/// Frees a profile.
HALITE_API void halite_profile_free(halite_profile *profile);

/// Reads a model. The library finds the format by its content.
HALITE_API
HALITE_CHECK
halite_error *halite_model_open(const halite_source *source,
                                const halite_run_options *options,
                                halite_model **out);

/// Number of functions.
HALITE_API size_t halite_model_function_count(const halite_model *model);

/// The signature of a function, by its index; NULL after the last. It belongs to the model.
HALITE_API const halite_signature *halite_model_signature(const halite_model *model, size_t index);

/// Frees a model.
HALITE_API void halite_model_free(halite_model *model);

/// The module file in memory, for a session (`halite_source.data`) or a file.
HALITE_API
HALITE_CHECK
halite_error *halite_compiled_module(const halite_compiled *compiled,
                                     halite_blob **out);

/// Writes the module file (`.vmfb`). The weights go from the model's file to it without a copy in memory.
HALITE_API
HALITE_CHECK
halite_error *halite_compiled_write(const halite_compiled *compiled,
                                    const char *path);

/// Writes the weights that the module asks for under the scope of `halite_compiler_external_parameters`, as an archive (`.irpa`).
/// Fails if the weights are in the module.
HALITE_API
HALITE_CHECK
halite_error *halite_compiled_write_parameters(const halite_compiled *compiled,
                                               const char *path);

/// What the compiler decided and what it costs, as JSON: targets, kernels and the reasons for them, memory, work, sizes. Later
/// versions only add fields.
HALITE_API
HALITE_CHECK
halite_error *halite_compiled_explain_json(const halite_compiled *compiled,
                                           halite_blob **out);

/// The same as text for people.
HALITE_API
HALITE_CHECK
halite_error *halite_compiled_explain(const halite_compiled *compiled,
                                      halite_blob **out);

/// Frees a module that was made.
HALITE_API void halite_compiled_free(halite_compiled *compiled);

/// A compiler with the defaults.
HALITE_API halite_compiler *halite_compiler_create(void);

/// Adds a target: a kind of GPU, by its triple (`valhall-g78-android30`) or another name (`sm_90`, `rdna3`).
HALITE_API void halite_compiler_target(halite_compiler *compiler, const char *name);

/// Adds a device of this machine as a target.
HALITE_API void halite_compiler_target_device(halite_compiler *compiler, const halite_device *device);

/// Whether the module also has kernels for every Vulkan 1.1 device. The default is yes.
HALITE_API void halite_compiler_baseline(halite_compiler *compiler, bool is_included);

/// Which floats are used inside; by default the model's own.
HALITE_API void halite_compiler_precision(halite_compiler *compiler, halite_precision precision);

/// Chooses kernels by the measurements of a file, or with NULL only by those that ship with Halite. Without this, this user's own
/// measurements go first.
HALITE_API
void halite_compiler_tuning(halite_compiler *compiler,
                            const char *path);

/// Sizes of an open dimension, by its name: a version of each function for every combination.
HALITE_API
void halite_compiler_dimension(halite_compiler *compiler,
                               const char *name,
                               const size_t *all,
                               size_t count);

/// Adds a shape of an input: a version of its function for each.
HALITE_API
void halite_compiler_shape(halite_compiler *compiler,
                           const char *input,
                           const size_t *shape,
                           size_t rank);

/// Values of an input that decides sizes. The function accepts no other values.
HALITE_API
void halite_compiler_value(halite_compiler *compiler,
                           const char *input,
                           const halite_tensor *tensor);

/// The seed of random numbers that the model's operators draw; 0 unless this says otherwise.
HALITE_API void halite_compiler_seed(halite_compiler *compiler, uint64_t seed);

/// Adds a function to compile. Without this, all functions are compiled.
HALITE_API void halite_compiler_function(halite_compiler *compiler, const char *name);

/// The name of the module. The default is the name of the model's file.
HALITE_API void halite_compiler_module_name(halite_compiler *compiler, const char *name);

/// Names state: inputs and the outputs that replace them, such as `past_*` and `present_*`. May be called again. Without it, a
/// module has no state.
HALITE_API
void halite_compiler_state(halite_compiler *compiler,
                           const char *input,
                           const char *output);

/// Whether state is looked for by names, types and sizes, where none is named.
HALITE_API void halite_compiler_find_state(halite_compiler *compiler, bool looks);

/// Puts the weights into an archive beside the module (`halite_compiled_write_parameters`), which asks for them under this scope.
HALITE_API
void halite_compiler_external_parameters(halite_compiler *compiler,
                                         const char *scope);

/// Compiles a model. The same model and choices give the same bytes.
HALITE_API
HALITE_CHECK
halite_error *halite_compiler_compile(const halite_compiler *compiler,
                                      const halite_model *model,
                                      const halite_run_options *options,
                                      halite_compiled **out);

/// Frees a compiler.
HALITE_API void halite_compiler_free(halite_compiler *compiler);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HALITE_HALITE_H */
