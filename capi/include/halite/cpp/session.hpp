// Sessions in C++: what bounds work, where models come from, signatures, calls, state.
#ifndef HALITE_CPP_SESSION_HPP
#define HALITE_CPP_SESSION_HPP

#include <chrono>
#include <functional>

#include "tensor.hpp"

namespace halite {
inline namespace HALITE_DETAIL_NAMESPACE {

/// Stops work from any thread, in all of its stages. Once set, it stays set.
class CancelToken : public detail::Object<halite_cancel_token> {
   public:
    CancelToken() : Object(halite_cancel_token_create()) {}
    void cancel() const noexcept { halite_cancel_token_cancel(get()); }
    bool is_cancelled() const noexcept { return halite_cancel_token_is_cancelled(get()); }
};

/// What is done on the way from a file to results.
enum class Stage : halite_stage {
    Other = HALITE_STAGE_OTHER,
    Reading = HALITE_STAGE_READING,
    Importing = HALITE_STAGE_IMPORTING,
    Optimizing = HALITE_STAGE_OPTIMIZING,
    Planning = HALITE_STAGE_PLANNING,
    ChoosingKernels = HALITE_STAGE_CHOOSING_KERNELS,
    Writing = HALITE_STAGE_WRITING,
    LoadingWeights = HALITE_STAGE_LOADING_WEIGHTS,
    BuildingPipelines = HALITE_STAGE_BUILDING_PIPELINES,
};

/// How far a piece of work is. `detail` lives until the function returns that is told.
struct Progress {
    Stage stage;
    const char *detail;
    std::uint64_t done;
    std::uint64_t total;
};

/// Bounds one piece of work, lets it be stopped, and watches it.
class RunOptions {
   public:
    /// Gives up this long after the work begins; no time at all is no limit.
    RunOptions &timeout(std::chrono::nanoseconds time) {
        timeout_ns_ = time.count() < 0 ? 1 : static_cast<std::uint64_t>(time.count());
        return *this;
    }
    /// Stops when this is set. The token has to live as long as these options.
    RunOptions &cancel(const CancelToken &token) {
        cancel_ = token.get();
        return *this;
    }
    /// Is told how far the work is: one call at a time, on any thread. It must not throw: the program would end.
    RunOptions &progress(std::function<void(const Progress &)> told) {
        told_ = std::move(told);
        return *this;
    }

    /// For functions of the C interface; lives as long as these options.
    halite_run_options raw() const noexcept {
        auto raw = detail::structure<halite_run_options>();
        raw.timeout_ns = timeout_ns_;
        raw.cancel = cancel_;
        if (told_) {
            raw.progress = tell;
            raw.progress_context = const_cast<RunOptions *>(this);
        }
        return raw;
    }

   private:
    static void tell(void *context, const halite_progress *progress) noexcept {
        const auto *own = static_cast<const RunOptions *>(context);
        own->told_({static_cast<Stage>(progress->stage), progress->detail, progress->done, progress->total});
    }

    std::uint64_t timeout_ns_ = 0;
    const halite_cancel_token *cancel_ = nullptr;
    std::function<void(const Progress &)> told_;
};

/// Where a model or module comes from.
class Source {
   public:
    /// Writes the next bytes: returns how many; 0 at the end; a negative number when it failed. It must not throw.
    using Reader = std::function<std::int64_t(std::uint8_t *target, std::size_t capacity)>;

    /// A file. A model whose weights lie in files beside it has to be given so.
    static Source path(std::string path) {
        Source source;
        source.path_ = std::move(path);
        return source;
    }
    /// A copy of bytes.
    static Source copy(Span<const std::uint8_t> bytes) {
        return Source::bytes(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
    }
    /// Bytes, which are not copied.
    static Source bytes(std::vector<std::uint8_t> bytes) {
        Source source;
        source.held_ = std::make_unique<Held>(Held{std::move(bytes), nullptr});
        return source;
    }
    /// All that a reader gives.
    static Source reader(Reader reader) {
        Source source;
        source.held_ = std::make_unique<Held>(Held{{}, std::move(reader)});
        return source;
    }
    /// A name for messages.
    Source named(std::string name) && {
        name_ = std::move(name);
        return std::move(*this);
    }

    /// Hands the source to a function of the C interface, which takes what it holds.
    template <class Call>
    auto pass(Call &&call) && {
        auto raw = detail::structure<halite_source>();
        if (held_ == nullptr) {
            raw.path = path_.c_str();
        } else if (held_->reader) {
            raw.read = read;
        } else {
            static const std::uint8_t nothing = 0;
            raw.data = held_->bytes.empty() ? &nothing : held_->bytes.data();
            raw.size = held_->bytes.size();
        }
        if (!name_.empty()) raw.name = name_.c_str();
        if (held_ != nullptr) {
            raw.release = release;
            raw.context = held_.release();
        }
        return call(&raw);
    }

   private:
    struct Held {
        std::vector<std::uint8_t> bytes;
        Reader reader;
    };

    static std::int64_t read(void *context, std::uint8_t *target, std::size_t capacity) noexcept {
        return static_cast<Held *>(context)->reader(target, capacity);
    }
    static void release(void *context) noexcept { delete static_cast<Held *>(context); }

    std::string path_;
    std::string name_;
    std::unique_ptr<Held> held_;
};

/// An input of a call: a tensor or another value, which live until the call has returned, by name or by place.
class Input {
   public:
    Input(Text name, const Tensor &tensor) noexcept : raw_{name.get(), tensor.get(), nullptr} {}
    Input(Text name, const Value &value) noexcept : raw_{name.get(), nullptr, value.get()} {}
    Input(const Tensor &tensor) noexcept : raw_{nullptr, tensor.get(), nullptr} {}
    Input(const Value &value) noexcept : raw_{nullptr, nullptr, value.get()} {}
    /// The next input by place is left out.
    Input(std::nullptr_t) noexcept : raw_{nullptr, nullptr, nullptr} {}

    const halite_input &raw() const noexcept { return raw_; }

   private:
    halite_input raw_;
};

using Inputs = Span<const Input>;

namespace detail {
static_assert(sizeof(Input) == sizeof(halite_input), "an array of inputs is one of the C interface");
inline const halite_input *raw(Inputs inputs) noexcept { return inputs.empty() ? nullptr : &inputs.data()->raw(); }
}  // namespace detail

/// The results of a call, which lie on the device until they are read.
class Outputs : public detail::Object<halite_outputs> {
   public:
    using Object::Object;

    std::size_t size() const noexcept { return halite_outputs_count(get()); }
    /// Lives as long as this.
    const char *name(std::size_t index) const noexcept { return halite_outputs_name(get(), index); }
    Result<Tensor> tensor(Text name) const {
        return detail::make<Tensor, halite_tensor>(
            [&](halite_tensor **out) { return halite_outputs_tensor(get(), name.get(), out); });
    }
    Result<Tensor> tensor_at(std::size_t index) const {
        return detail::make<Tensor, halite_tensor>(
            [&](halite_tensor **out) { return halite_outputs_tensor_at(get(), index, out); });
    }
    Result<Value> value_at(std::size_t index) const {
        return detail::make<Value, halite_value>(
            [&](halite_value **out) { return halite_outputs_value_at(get(), index, out); });
    }
};

/// A dimension of an input or output.
struct Dimension {
    /// One of `HALITE_DIMENSION_…`.
    halite_dimension_kind kind = HALITE_DIMENSION_OPEN;
    /// Its size, or the most that it can be.
    std::size_t size = 0;
    std::string name;
};

/// An input or output of a function.
struct ValueInfo {
    std::string name;
    /// All for people: `'picture' f32[1,1,16,16]`.
    std::string text;
    ValueKind kind = ValueKind::Other;
    ElementType element_type = ElementType::Unknown;
    /// The dimensions of a tensor, where their number is known.
    std::optional<std::vector<Dimension>> shape;
    bool is_optional = false;
};

/// What a function takes and gives.
struct Signature {
    std::string name;
    std::string module;
    /// All for people.
    std::string text;
    std::vector<ValueInfo> inputs;
    std::vector<ValueInfo> outputs;
    /// Inputs that are state, and the outputs that replace them.
    std::vector<std::pair<std::string, std::string>> states;

    /// Reads one of the C interface.
    static Result<Signature> of(const halite_signature *raw) {
        Signature own;
        halite_error *error = own.read(raw);
        return detail::finish(error, std::move(own));
    }
    /// Reads several: `get(i)` for `i` below `count`.
    template <class Get>
    static Result<std::vector<Signature>> all(std::size_t count, Get &&get) {
        std::vector<Signature> all(count);
        halite_error *error = nullptr;
        for (std::size_t i = 0; error == nullptr && i < count; ++i) error = all[i].read(get(i));
        return detail::finish(error, std::move(all));
    }

   private:
    halite_error *read(const halite_signature *raw) {
        auto info = detail::structure<halite_signature_info>();
        if (halite_error *error = halite_signature_get(raw, &info)) return error;
        name = detail::text(info.name);
        module = detail::text(info.module);
        text = detail::text(info.text);
        halite_error *error = nullptr;
        for (std::size_t i = 0; error == nullptr && i < info.input_count; ++i)
            error = add(inputs, raw, i, halite_signature_input);
        for (std::size_t i = 0; error == nullptr && i < info.output_count; ++i)
            error = add(outputs, raw, i, halite_signature_output);
        const char *input = nullptr, *output = nullptr;
        while (halite_signature_state(raw, states.size(), &input, &output)) states.emplace_back(input, output);
        return error;
    }
    template <class Get>
    static halite_error *add(std::vector<ValueInfo> &all, const halite_signature *raw, std::size_t index, Get &&get) {
        auto info = detail::structure<halite_value_info>();
        if (halite_error *error = get(raw, index, &info)) return error;
        ValueInfo own;
        own.name = detail::text(info.name);
        own.text = detail::text(info.text);
        own.kind = static_cast<ValueKind>(info.kind);
        own.element_type = static_cast<ElementType>(info.element_type);
        own.is_optional = info.is_optional;
        if (info.has_rank) own.shape.emplace();
        for (std::size_t i = 0; info.has_rank && i < info.rank; ++i) {
            const halite_dimension &dimension = info.dimensions[i];
            own.shape->push_back({dimension.kind, dimension.size, detail::text(dimension.name)});
        }
        all.push_back(std::move(own));
        return nullptr;
    }
};

/// Where the time of one call went.
class Profile : public detail::Object<halite_profile> {
   public:
    using Object::Object;

    Result<std::string> json() const { return text(halite_profile_json); }
    /// A trace that <https://ui.perfetto.dev> opens.
    Result<std::string> trace() const { return text(halite_profile_trace); }

   private:
    template <class Get>
    Result<std::string> text(Get &&get_text) const {
        halite_blob *raw = nullptr;
        halite_error *error = get_text(get(), &raw);
        return detail::finish(error, Blob(raw).text());
    }
};

/// A call whose work may still be going on.
class Pending : public detail::Object<halite_pending> {
   public:
    using Object::Object;

    bool is_done() const noexcept { return halite_pending_is_done(get()); }
    /// Waits for the results. Every wait gives the same ones.
    Result<Outputs> wait(const RunOptions &options = {}) const {
        const halite_run_options raw = options.raw();
        return detail::make<Outputs, halite_outputs>(
            [&](halite_outputs **out) { return halite_pending_wait(get(), &raw, out); });
    }
};

/// The state of a sequence: tensors on the device that each call reads and replaces.
class State : public detail::Object<halite_state> {
   public:
    using Object::Object;

    /// Runs the function on this state and waits.
    Result<Outputs> run(Inputs inputs, const RunOptions &options = {}) {
        const halite_run_options raw = options.raw();
        return detail::make<Outputs, halite_outputs>([&](halite_outputs **out) {
            return halite_state_run(get(), detail::raw(inputs), inputs.size(), &raw, out);
        });
    }
    /// Back to the beginning.
    Result<void> reset() { return detail::finish(halite_state_reset(get())); }
    /// A second state with a copy of the tensors.
    Result<State> fork() {
        return detail::make<State, halite_state>([&](halite_state **out) { return halite_state_fork(get(), out); });
    }
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        while (const char *name = halite_state_name(get(), all.size())) all.emplace_back(name);
        return all;
    }
    /// Bytes that its tensors take on the device.
    std::size_t byte_size() const noexcept { return halite_state_size(get()); }
    /// A copy of a tensor as it is now; without a handle where nothing has said its sizes yet.
    Result<Tensor> tensor(Text name) {
        return detail::make<Tensor, halite_tensor>(
            [&](halite_tensor **out) { return halite_state_tensor(get(), name.get(), out); });
    }
    /// Replaces a tensor, by a copy of this one.
    Result<void> set(Text name, const Tensor &tensor) {
        return detail::finish(halite_state_set(get(), name.get(), tensor.get()));
    }
    Result<Blob> save() {
        return detail::make<Blob, halite_blob>([&](halite_blob **out) { return halite_state_save(get(), out); });
    }
    Result<void> load(Span<const std::uint8_t> bytes) {
        return detail::finish(halite_state_load(get(), bytes.data(), bytes.size()));
    }
};

/// A function of a session.
class Function : public detail::Object<halite_function> {
   public:
    using Object::Object;

    Result<Signature> signature() const { return Signature::of(halite_function_signature(get())); }
    /// Runs it and waits for the results.
    Result<Outputs> run(Inputs inputs, const RunOptions &options = {}) const {
        const halite_run_options raw = options.raw();
        return detail::make<Outputs, halite_outputs>([&](halite_outputs **out) {
            return halite_function_run(get(), detail::raw(inputs), inputs.size(), &raw, out);
        });
    }
    /// Starts it and returns while the device works.
    Result<Pending> start(Inputs inputs, const RunOptions &options = {}) const {
        const halite_run_options raw = options.raw();
        return detail::make<Pending, halite_pending>([&](halite_pending **out) {
            return halite_function_start(get(), detail::raw(inputs), inputs.size(), &raw, out);
        });
    }
    /// Makes the first call as fast as the others. Without inputs zeros are taken.
    Result<void> prewarm(Inputs inputs = {}, const RunOptions &options = {}) const {
        const halite_run_options raw = options.raw();
        return detail::finish(halite_function_prewarm(get(), detail::raw(inputs), inputs.size(), &raw));
    }
    /// Runs it once and tells where the time went.
    Result<Profile> profile(Inputs inputs, Outputs *outputs = nullptr, const RunOptions &options = {}) const {
        const halite_run_options raw = options.raw();
        halite_outputs *results = nullptr;
        halite_profile *profile = nullptr;
        halite_error *error =
            halite_function_profile(get(), detail::raw(inputs), inputs.size(), &raw, &results, &profile);
        Outputs own(results);
        if (outputs != nullptr) *outputs = std::move(own);
        return detail::finish(error, Profile(profile));
    }
    /// A new state, a sequence of its own.
    Result<State> state() const {
        return detail::make<State, halite_state>([&](halite_state **out) { return halite_function_state(get(), out); });
    }
};

class SessionBuilder;

/// A model or module, ready to run on its devices. Any thread may use it, and many may run it at the same time.
class Session : public detail::Object<halite_session> {
   public:
    using Object::Object;

    /// Opens a model or module from a file on the best device that can run it.
    static Result<Session> open(Text path) { return open_on(path, nullptr); }
    /// The same on a device, by URI.
    static Result<Session> open(Text path, Text device) { return open_on(path, device.get()); }
    /// Collects what else a session is made from.
    static SessionBuilder builder();

    /// Runs the default function and waits for its results: `session.run({{"picture", tensor}})`.
    Result<Outputs> run(Inputs inputs, const RunOptions &options = {}) const {
        const halite_run_options raw = options.raw();
        return detail::make<Outputs, halite_outputs>([&](halite_outputs **out) {
            return halite_session_run(get(), detail::raw(inputs), inputs.size(), &raw, out);
        });
    }
    /// The default function.
    Result<Function> function() const { return function_named(nullptr); }
    Result<Function> function(Text name) const { return function_named(name.get()); }
    /// What the functions take and give.
    Result<std::vector<Signature>> signatures() const {
        return Signature::all(halite_session_function_count(get()),
                              [&](std::size_t i) { return halite_session_signature(get(), i); });
    }
    /// A new state of the default function.
    Result<State> state() const {
        return detail::make<State, halite_state>([&](halite_state **out) { return halite_session_state(get(), out); });
    }
    std::size_t device_count() const noexcept { return halite_session_device_count(get()); }
    /// A device; inputs and results lie on the first.
    Result<Device> device(std::size_t index = 0) const {
        return detail::make<Device, halite_device>(
            [&](halite_device **out) { return halite_session_device(get(), index, out); });
    }
    /// How many compiled versions of a model are loaded, each for other sizes.
    std::size_t loaded_versions() const noexcept { return halite_session_loaded_versions(get()); }

   private:
    static Result<Session> open_on(Text path, const char *device) {
        return detail::make<Session, halite_session>(
            [&](halite_session **out) { return halite_session_open(path.get(), device, out); });
    }
    Result<Function> function_named(const char *name) const {
        return detail::make<Function, halite_function>(
            [&](halite_function **out) { return halite_session_function(get(), name, out); });
    }
};

}  // namespace HALITE_DETAIL_NAMESPACE
}  // namespace halite

#endif
