// What the rest of the C++ interface stands on: errors and how they are told, views of arrays, handles.
#ifndef HALITE_CPP_BASE_HPP
#define HALITE_CPP_BASE_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../halite.h"

// A program without exceptions, or one that defines HALITE_NO_EXCEPTIONS before it includes this, gets a `Result` from each function
// that can fail. Both kinds of source files may be in one program.
#if !defined(HALITE_NO_EXCEPTIONS) && (defined(__cpp_exceptions) || defined(_CPPUNWIND))
#define HALITE_DETAIL_THROWS 1
#define HALITE_DETAIL_NAMESPACE throwing
#else
#define HALITE_DETAIL_THROWS 0
#define HALITE_DETAIL_NAMESPACE returning
#endif

namespace halite {
inline namespace HALITE_DETAIL_NAMESPACE {

/// What kind of failure an error is. Newer libraries may have more.
enum class ErrorKind : halite_error_kind {
    NotFound = HALITE_ERROR_NOT_FOUND,
    InvalidInput = HALITE_ERROR_INVALID_INPUT,
    InvalidModel = HALITE_ERROR_INVALID_MODEL,
    Unsupported = HALITE_ERROR_UNSUPPORTED,
    NoDevice = HALITE_ERROR_NO_DEVICE,
    OutOfMemory = HALITE_ERROR_OUT_OF_MEMORY,
    DeadlineExceeded = HALITE_ERROR_DEADLINE_EXCEEDED,
    Cancelled = HALITE_ERROR_CANCELLED,
    DeviceLost = HALITE_ERROR_DEVICE_LOST,
    PermissionDenied = HALITE_ERROR_PERMISSION_DENIED,
    Io = HALITE_ERROR_IO,
    Other = HALITE_ERROR_OTHER,
};

/// A failure: what went wrong, where, and what to do about it. Copies share one handle.
class Error : public std::exception {
   public:
    /// Takes an error of the C interface, which is not NULL.
    explicit Error(halite_error *raw) : shared_(raw, halite_error_free) {}

    /// All of it as one text: code, message, what was being done.
    const char *what() const noexcept override { return halite_error_text(shared_.get()); }
    /// What kind of failure it is. Programs decide by it.
    ErrorKind kind() const noexcept { return static_cast<ErrorKind>(halite_error_get_kind(shared_.get())); }
    /// What went wrong, without what was being done.
    const char *message() const noexcept { return halite_error_message(shared_.get()); }
    /// The name of the status code, such as `INVALID_ARGUMENT`.
    const char *code_name() const noexcept { return halite_error_code_name(shared_.get()); }
    /// What was being done, from the innermost step outwards.
    std::vector<std::string> context() const {
        std::vector<std::string> lines;
        while (const char *line = halite_error_context(shared_.get(), lines.size())) lines.emplace_back(line);
        return lines;
    }

   private:
    std::shared_ptr<halite_error> shared_;
};

#if HALITE_DETAIL_THROWS

/// What a function gives that can fail: the value, as it throws an `Error` otherwise.
template <class T>
using Result = T;

namespace detail {
inline void finish(halite_error *error) {
    if (error != nullptr) throw Error(error);
}
template <class T>
T finish(halite_error *error, T value) {
    finish(error);
    return value;
}
}  // namespace detail

#else

/// What a function gives that can fail: a value, or an error.
template <class T>
class [[nodiscard]] Result {
   public:
    Result(T value) : value_(std::move(value)) {}
    Result(Error error) : error_(std::move(error)) {}

    /// Whether there is a value.
    explicit operator bool() const noexcept { return value_.has_value(); }
    /// The value. There has to be one.
    T &value() & { return *value_; }
    const T &value() const & { return *value_; }
    T &&value() && { return std::move(*value_); }
    T &operator*() & { return *value_; }
    T &&operator*() && { return std::move(*value_); }
    T *operator->() { return &*value_; }
    /// The error. There has to be one.
    const Error &error() const { return *error_; }

   private:
    std::optional<T> value_;
    std::optional<Error> error_;
};

/// Whether a function that gives nothing has failed.
template <>
class [[nodiscard]] Result<void> {
   public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}
    explicit operator bool() const noexcept { return !error_.has_value(); }
    const Error &error() const { return *error_; }

   private:
    std::optional<Error> error_;
};

namespace detail {
inline Result<void> finish(halite_error *error) {
    if (error != nullptr) return Error(error);
    return {};
}
template <class T>
Result<T> finish(halite_error *error, T value) {
    if (error != nullptr) return Error(error);
    return Result<T>(std::move(value));
}
}  // namespace detail

#endif

#if defined(__GNUC__) && !defined(__clang__)
// A view of a list in braces is for the call that it is passed to.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif

/// A view of an array that somebody else owns: of a vector, an array, a list in braces, `std::span`.
template <class T>
class Span {
   public:
    using value_type = std::remove_cv_t<T>;

    constexpr Span() noexcept = default;
    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N>
    constexpr Span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    /// Lives as long as the full expression that has the list.
    template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
    constexpr Span(std::initializer_list<value_type> list) noexcept : data_(list.begin()), size_(list.size()) {}
    template <class C, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C &>().data()), T *>>,
              class = decltype(std::declval<C &>().size())>
    constexpr Span(C &&container) noexcept : data_(container.data()), size_(container.size()) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }

   private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// A text that is passed: a literal, or a `std::string`.
class Text {
   public:
    constexpr Text(const char *text) noexcept : text_(text) {}
    Text(const std::string &text) noexcept : text_(text.c_str()) {}
    constexpr const char *get() const noexcept { return text_; }

   private:
    const char *text_;
};

namespace detail {

/// Frees each kind of handle.
struct Free {
    void operator()(halite_blob *raw) const noexcept { halite_blob_free(raw); }
    void operator()(halite_cancel_token *raw) const noexcept { halite_cancel_token_free(raw); }
    void operator()(halite_compiled *raw) const noexcept { halite_compiled_free(raw); }
    void operator()(halite_compiler *raw) const noexcept { halite_compiler_free(raw); }
    void operator()(halite_device *raw) const noexcept { halite_device_free(raw); }
    void operator()(halite_device_list *raw) const noexcept { halite_device_list_free(raw); }
    void operator()(halite_drivers *raw) const noexcept { halite_drivers_free(raw); }
    void operator()(halite_embedder *raw) const noexcept { halite_embedder_free(raw); }
    void operator()(halite_function *raw) const noexcept { halite_function_free(raw); }
    void operator()(halite_generator *raw) const noexcept { halite_generator_free(raw); }
    void operator()(halite_model *raw) const noexcept { halite_model_free(raw); }
    void operator()(halite_outputs *raw) const noexcept { halite_outputs_free(raw); }
    void operator()(halite_pending *raw) const noexcept { halite_pending_free(raw); }
    void operator()(halite_profile *raw) const noexcept { halite_profile_free(raw); }
    void operator()(halite_sampler *raw) const noexcept { halite_sampler_free(raw); }
    void operator()(halite_sequence *raw) const noexcept { halite_sequence_free(raw); }
    void operator()(halite_session *raw) const noexcept { halite_session_free(raw); }
    void operator()(halite_session_builder *raw) const noexcept { halite_session_builder_free(raw); }
    void operator()(halite_state *raw) const noexcept { halite_state_free(raw); }
    void operator()(halite_tensor *raw) const noexcept { halite_tensor_free(raw); }
    void operator()(halite_memory *raw) const noexcept { halite_memory_free(raw); }
    void operator()(halite_tokens *raw) const noexcept { halite_tokens_free(raw); }
    void operator()(halite_value *raw) const noexcept { halite_value_free(raw); }
};

/// What owns a handle: it moves, and frees the handle at its end.
template <class Raw>
class Object {
   public:
    Object() noexcept = default;
    /// Takes a handle of the C interface.
    explicit Object(Raw *raw) noexcept : raw_(raw) {}

    /// The handle, for functions of the C interface. It stays this object's.
    Raw *get() const noexcept { return raw_.get(); }
    /// Gives the handle away.
    Raw *release() noexcept { return raw_.release(); }
    /// Whether there is a handle: there is none after a move.
    explicit operator bool() const noexcept { return raw_ != nullptr; }

   private:
    std::unique_ptr<Raw, Free> raw_;
};

/// Calls a function of the C interface that gives a handle.
template <class T, class Raw, class Call>
Result<T> make(Call &&call) {
    Raw *raw = nullptr;
    halite_error *error = call(&raw);
    return finish(error, T(raw));
}

/// A structure of the C interface with its size and zeros.
template <class T>
T structure() noexcept {
    T zeros{};
    zeros.struct_size = sizeof(T);
    return zeros;
}

inline std::string text(const char *text) { return text == nullptr ? std::string() : std::string(text); }

}  // namespace detail

/// Bytes that the library made: saved state, modules, JSON.
class Blob : public detail::Object<halite_blob> {
   public:
    using Object::Object;

    Span<const std::uint8_t> bytes() const noexcept { return {halite_blob_data(get()), halite_blob_size(get())}; }
    /// The same as a text.
    std::string text() const {
        return std::string(reinterpret_cast<const char *>(halite_blob_data(get())), halite_blob_size(get()));
    }
};

}  // namespace HALITE_DETAIL_NAMESPACE
}  // namespace halite

#endif
