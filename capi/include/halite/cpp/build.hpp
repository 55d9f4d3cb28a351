// What sessions and modules are made from, in C++: the builder of sessions, models, the compiler.
#ifndef HALITE_CPP_BUILD_HPP
#define HALITE_CPP_BUILD_HPP

#include "generate.hpp"
#include "session.hpp"

namespace halite {
inline namespace HALITE_DETAIL_NAMESPACE {

/// How files come into memory.
enum class LoadMode : halite_load_mode { Map = HALITE_LOAD_MAP, Preload = HALITE_LOAD_PRELOAD };

/// Which floats a model computes with inside.
enum class Precision : halite_precision { Model = HALITE_PRECISION_MODEL, F16 = HALITE_PRECISION_F16 };

/// Collects what a session is made from; only the model is needed. `build` tells of the first thing that was wrong.
class SessionBuilder : public detail::Object<halite_session_builder> {
   public:
    SessionBuilder() : Object(halite_session_builder_create()) {}

    /// The model or module that the session runs.
    SessionBuilder &model(Source source) {
        std::move(source).pass([&](const halite_source *raw) { halite_session_builder_model(get(), raw); });
        return *this;
    }
    SessionBuilder &model(Text path) {
        halite_session_builder_model_path(get(), path.get());
        return *this;
    }
    /// A module that later ones, and the main one, may import from.
    SessionBuilder &import(Source source) {
        std::move(source).pass([&](const halite_source *raw) { halite_session_builder_import(get(), raw); });
        return *this;
    }
    /// A device, by URI.
    SessionBuilder &device(Text uri) {
        halite_session_builder_device(get(), uri.get());
        return *this;
    }
    /// A device that is open.
    SessionBuilder &device(const Device &device) {
        halite_session_builder_open_device(get(), device.get());
        return *this;
    }
    /// The drivers that devices are looked for with.
    SessionBuilder &drivers(const Drivers &drivers) {
        halite_session_builder_drivers(get(), drivers.get());
        return *this;
    }
    /// A parameter archive whose entries modules find under `scope`.
    SessionBuilder &parameters(Text scope, Text path, LoadMode mode = LoadMode::Map) {
        halite_session_builder_parameters(get(), scope.get(), path.get(), static_cast<halite_load_mode>(mode));
        return *this;
    }
    SessionBuilder &load_mode(LoadMode mode) {
        halite_session_builder_load_mode(get(), static_cast<halite_load_mode>(mode));
        return *this;
    }
    /// Keeps compiled models and pipelines in a folder; `limit` is the most bytes, 0 is 4 GiB.
    SessionBuilder &cache(Text folder, std::uint64_t limit = 0) {
        halite_session_builder_cache(get(), folder.get(), limit);
        return *this;
    }
    /// Keeps nothing for the next process.
    SessionBuilder &no_cache() {
        halite_session_builder_no_cache(get());
        return *this;
    }
    SessionBuilder &precision(Precision precision) {
        halite_session_builder_precision(get(), static_cast<halite_precision>(precision));
        return *this;
    }
    /// Chooses kernels by the measurements of a file.
    SessionBuilder &tuning(Text path) {
        halite_session_builder_tuning(get(), path.get());
        return *this;
    }
    /// Chooses kernels only by the measurements that ship with Halite.
    SessionBuilder &shipped_tuning() {
        halite_session_builder_tuning(get(), nullptr);
        return *this;
    }
    /// The size of an open dimension, by its name.
    SessionBuilder &dimension(Text name, std::size_t size) {
        halite_session_builder_dimension(get(), name.get(), size);
        return *this;
    }
    /// The bounds of an open dimension, both of which are taken.
    SessionBuilder &bound(Text name, std::size_t least, std::size_t most) {
        halite_session_builder_bound(get(), name.get(), least, most);
        return *this;
    }
    /// The shape of an input.
    SessionBuilder &shape(Text input, Shape shape) {
        halite_session_builder_shape(get(), input.get(), shape.data(), shape.size());
        return *this;
    }
    /// Elements of an input that decide sizes.
    SessionBuilder &value(Text input, const Tensor &tensor) {
        halite_session_builder_value(get(), input.get(), tensor.get());
        return *this;
    }
    /// The seed of random numbers.
    SessionBuilder &seed(std::uint64_t seed) {
        halite_session_builder_seed(get(), seed);
        return *this;
    }
    SessionBuilder &max_loaded_versions(std::size_t count) {
        halite_session_builder_max_loaded_versions(get(), count);
        return *this;
    }
    /// Most bytes of host memory that the host code of modules may hold for itself.
    SessionBuilder &program_memory(std::uint64_t bytes) {
        halite_session_builder_program_memory(get(), bytes);
        return *this;
    }
    /// Most bytes of memory that buffers take on each device that the session opens.
    SessionBuilder &device_memory(std::uint64_t bytes) {
        halite_session_builder_device_memory(get(), bytes);
        return *this;
    }
    /// The model or module comes from a stranger: what it can do and use is bounded.
    SessionBuilder &untrusted() {
        halite_session_builder_untrusted(get());
        return *this;
    }
    /// Names state: inputs and the outputs that replace them.
    SessionBuilder &state(Text input, Text output) {
        halite_session_builder_state(get(), input.get(), output.get());
        return *this;
    }
    /// Takes nothing for state that is not named.
    SessionBuilder &without_state() {
        halite_session_builder_without_state(get());
        return *this;
    }

    /// Makes the session. The options bound and watch the building itself. The builder is empty afterwards.
    Result<Session> build(const RunOptions &options = {}) {
        const halite_run_options raw = options.raw();
        return detail::make<Session, halite_session>(
            [&](halite_session **out) { return halite_session_builder_build(get(), &raw, out); });
    }
    /// Makes a language model, instead of a session: of a GGUF file, or of a decoder in another format with its tokenizer.
    Result<Generator> generator(const GeneratorOptions &wanted = {}, const RunOptions &options = {}) {
        const halite_run_options raw = options.raw();
        auto stated = detail::structure<halite_generator_options>();
        stated.context = wanted.context;
        stated.keys = static_cast<halite_cache_type>(wanted.keys);
        stated.values = static_cast<halite_cache_type>(wanted.values);
        stated.scoring = wanted.scoring;
        stated.tokenizer = wanted.tokenizer.empty() ? nullptr : wanted.tokenizer.c_str();
        stated.choose_on = static_cast<halite_choose_on>(wanted.choose_on);
        stated.batch = wanted.batch;
        return detail::make<Generator, halite_generator>([&](halite_generator **out) {
            return halite_session_builder_generator(get(), &stated, &raw, out);
        });
    }
    /// Makes a model of vectors of a GGUF file, instead of a session.
    Result<Embedder> embedder(const RunOptions &options = {}) {
        const halite_run_options raw = options.raw();
        return detail::make<Embedder, halite_embedder>(
            [&](halite_embedder **out) { return halite_session_builder_embedder(get(), &raw, out); });
    }
};

inline SessionBuilder Session::builder() { return SessionBuilder(); }

/// A model that was read, to be compiled for devices that are elsewhere.
class Model : public detail::Object<halite_model> {
   public:
    using Object::Object;

    static Result<Model> open(Source source, const RunOptions &options = {}) {
        const halite_run_options raw = options.raw();
        return std::move(source).pass([&](const halite_source *from) {
            return detail::make<Model, halite_model>(
                [&](halite_model **out) { return halite_model_open(from, &raw, out); });
        });
    }
    /// What its functions take and give.
    Result<std::vector<Signature>> signatures() const {
        return Signature::all(halite_model_function_count(get()),
                              [&](std::size_t i) { return halite_model_signature(get(), i); });
    }
};

/// A module that was made from a model.
class Compiled : public detail::Object<halite_compiled> {
   public:
    using Object::Object;

    /// The module file in memory.
    Result<Blob> module() const {
        return detail::make<Blob, halite_blob>([&](halite_blob **out) { return halite_compiled_module(get(), out); });
    }
    /// Writes the module file (`.vmfb`).
    Result<void> write(Text path) const { return detail::finish(halite_compiled_write(get(), path.get())); }
    /// Writes the weights that were kept out of the module (`.irpa`).
    Result<void> write_parameters(Text path) const {
        return detail::finish(halite_compiled_write_parameters(get(), path.get()));
    }
    /// What was decided and what it costs, for people.
    Result<std::string> explain() const { return text(halite_compiled_explain); }
    /// The same as JSON.
    Result<std::string> explain_json() const { return text(halite_compiled_explain_json); }

   private:
    template <class Get>
    Result<std::string> text(Get &&get_text) const {
        halite_blob *raw = nullptr;
        halite_error *error = get_text(get(), &raw);
        return detail::finish(error, Blob(raw).text());
    }
};

/// Compiles models to modules. Without a target a module runs on every Vulkan 1.1 device.
class Compiler : public detail::Object<halite_compiler> {
   public:
    Compiler() : Object(halite_compiler_create()) {}

    /// A kind of GPU, by its triple or another name.
    Compiler &target(Text name) {
        halite_compiler_target(get(), name.get());
        return *this;
    }
    /// A device at hand.
    Compiler &target(const Device &device) {
        halite_compiler_target_device(get(), device.get());
        return *this;
    }
    /// Whether kernels for every Vulkan 1.1 device are in the module, too.
    Compiler &baseline(bool is_included) {
        halite_compiler_baseline(get(), is_included);
        return *this;
    }
    Compiler &precision(Precision precision) {
        halite_compiler_precision(get(), static_cast<halite_precision>(precision));
        return *this;
    }
    /// Chooses kernels by the measurements of a file.
    Compiler &tuning(Text path) {
        halite_compiler_tuning(get(), path.get());
        return *this;
    }
    /// Chooses kernels only by the measurements that ship with Halite.
    Compiler &shipped_tuning() {
        halite_compiler_tuning(get(), nullptr);
        return *this;
    }
    /// Sizes of an open dimension: a version for every combination.
    Compiler &dimension(Text name, Span<const std::size_t> all) {
        halite_compiler_dimension(get(), name.get(), all.data(), all.size());
        return *this;
    }
    /// A shape of an input: a version for each.
    Compiler &shape(Text input, Shape shape) {
        halite_compiler_shape(get(), input.get(), shape.data(), shape.size());
        return *this;
    }
    /// Elements of an input that decide sizes.
    Compiler &value(Text input, const Tensor &tensor) {
        halite_compiler_value(get(), input.get(), tensor.get());
        return *this;
    }
    /// The seed of random numbers.
    Compiler &seed(std::uint64_t seed) {
        halite_compiler_seed(get(), seed);
        return *this;
    }
    /// A function that is compiled; without any, all are.
    Compiler &function(Text name) {
        halite_compiler_function(get(), name.get());
        return *this;
    }
    Compiler &module_name(Text name) {
        halite_compiler_module_name(get(), name.get());
        return *this;
    }
    /// Names state: inputs and the outputs that replace them.
    Compiler &state(Text input, Text output) {
        halite_compiler_state(get(), input.get(), output.get());
        return *this;
    }
    /// Whether state is looked for, where none is named.
    Compiler &find_state(bool looks) {
        halite_compiler_find_state(get(), looks);
        return *this;
    }
    /// Keeps the weights out of the module, which asks for them under this scope.
    Compiler &external_parameters(Text scope) {
        halite_compiler_external_parameters(get(), scope.get());
        return *this;
    }

    Result<Compiled> compile(const Model &model, const RunOptions &options = {}) const {
        const halite_run_options raw = options.raw();
        return detail::make<Compiled, halite_compiled>(
            [&](halite_compiled **out) { return halite_compiler_compile(get(), model.get(), &raw, out); });
    }
};

}  // namespace HALITE_DETAIL_NAMESPACE
}  // namespace halite

#endif
