// Devices, tensors and other values in C++.
#ifndef HALITE_CPP_TENSOR_HPP
#define HALITE_CPP_TENSOR_HPP

#include "base.hpp"

namespace halite {
inline namespace HALITE_DETAIL_NAMESPACE {

/// The drivers that devices are looked for with.
class Drivers : public detail::Object<halite_drivers> {
   public:
    using Object::Object;

    /// Those in the library.
    static Result<Drivers> linked() { return make(false); }
    /// With those in libraries of their own.
    static Result<Drivers> with_plugins() { return make(true); }
    /// Sets an option for the devices that are opened with these drivers.
    Result<void> option(Text name, Text value) {
        return detail::finish(halite_drivers_set_option(get(), name.get(), value.get()));
    }

   private:
    static Result<Drivers> make(bool plugins) {
        return detail::make<Drivers, halite_drivers>(
            [&](halite_drivers **out) { return halite_drivers_create(plugins, out); });
    }
};

/// What kind of hardware a device is.
enum class DeviceKind : halite_device_kind {
    Other = HALITE_DEVICE_OTHER,
    DiscreteGpu = HALITE_DEVICE_DISCRETE_GPU,
    IntegratedGpu = HALITE_DEVICE_INTEGRATED_GPU,
    VirtualGpu = HALITE_DEVICE_VIRTUAL_GPU,
    Cpu = HALITE_DEVICE_CPU,
};

/// What is known of a device.
struct DeviceInfo {
    /// The URI that opens exactly this device.
    std::string uri;
    /// Its name for people.
    std::string name;
    /// Name of its driver.
    std::string driver;
    DeviceKind kind = DeviceKind::Other;
    /// The target that kernels are chosen by; empty where the driver tells none.
    std::string target;
    /// Why it cannot be used; empty when it can.
    std::string unusable;
    /// Facts for people: names and values.
    std::vector<std::pair<std::string, std::string>> properties;

    DeviceInfo() = default;
    explicit DeviceInfo(const halite_device_info &raw)
        : uri(detail::text(raw.uri)),
          name(detail::text(raw.name)),
          driver(detail::text(raw.driver)),
          kind(static_cast<DeviceKind>(raw.kind)),
          target(detail::text(raw.target)),
          unusable(detail::text(raw.unusable)) {
        for (std::size_t i = 0; i < raw.property_count; ++i)
            properties.emplace_back(detail::text(raw.properties[i].name), detail::text(raw.properties[i].value));
    }
};

/// An open device.
class Device : public detail::Object<halite_device> {
   public:
    using Object::Object;

    /// Opens a device by URI, such as `vulkan`, `vulkan://0`, `vulkan://llvmpipe`.
    static Result<Device> open(Text uri) { return open_with(nullptr, uri); }
    /// The same, looked for with these drivers.
    static Result<Device> open(const Drivers &drivers, Text uri) { return open_with(drivers.get(), uri); }

    /// A device on the program's own Vulkan device and queues; see halite_device_import_vulkan.
    static Result<Device> import_vulkan(const halite_vulkan_device &device, const Drivers &drivers = Drivers()) {
        return detail::make<Device, halite_device>(
            [&](halite_device **out) { return halite_device_import_vulkan(drivers.get(), &device, out); });
    }

    Result<DeviceInfo> info() const {
        auto raw = detail::structure<halite_device_info>();
        halite_error *error = halite_device_get_info(get(), &raw);
        return detail::finish(error, DeviceInfo(raw));
    }
    /// What it holds, what went through tensors between host and device, and how often recordings were written.
    Result<halite_device_stats> stats() const {
        auto raw = detail::structure<halite_device_stats>();
        halite_error *error = halite_device_get_stats(get(), &raw);
        return detail::finish(error, raw);
    }
    /// Gives memory that nobody uses back to the system.
    void trim() const noexcept { halite_device_trim(get()); }
    /// Whether both are the same open device.
    bool is_same(const Device &other) const noexcept { return halite_device_is_same(get(), other.get()); }

   private:
    static Result<Device> open_with(const halite_drivers *drivers, Text uri) {
        return detail::make<Device, halite_device>(
            [&](halite_device **out) { return halite_device_open(drivers, uri.get(), out); });
    }
};

/// The devices of all drivers. A driver that finds none is no failure.
inline Result<std::vector<DeviceInfo>> devices(const Drivers &drivers = Drivers()) {
    halite_device_list *raw = nullptr;
    halite_error *error = halite_device_list_create(drivers.get(), &raw);
    detail::Object<halite_device_list> list(raw);
    std::vector<DeviceInfo> all;
    for (std::size_t i = 0; error == nullptr && i < halite_device_list_count(raw); ++i) {
        auto info = detail::structure<halite_device_info>();
        error = halite_device_list_get(raw, i, &info);
        all.emplace_back(info);
    }
    return detail::finish(error, std::move(all));
}

/// The type of a tensor's elements.
enum class ElementType : halite_element_type {
    Unknown = 0,
    Bool = HALITE_ELEMENT_BOOL,
    I8 = HALITE_ELEMENT_I8,
    I16 = HALITE_ELEMENT_I16,
    I32 = HALITE_ELEMENT_I32,
    I64 = HALITE_ELEMENT_I64,
    U8 = HALITE_ELEMENT_U8,
    U16 = HALITE_ELEMENT_U16,
    U32 = HALITE_ELEMENT_U32,
    U64 = HALITE_ELEMENT_U64,
    F16 = HALITE_ELEMENT_F16,
    F32 = HALITE_ELEMENT_F32,
    F64 = HALITE_ELEMENT_F64,
    BF16 = HALITE_ELEMENT_BF16,
};

/// The element type of a C++ type.
template <class T>
constexpr ElementType element_type_of() noexcept {
    using U = std::remove_cv_t<T>;
    static_assert(std::is_arithmetic_v<U> && sizeof(U) <= 8,
                  "elements are numbers of at most 64 bits; for others pass bytes and an element type");
    if constexpr (std::is_same_v<U, bool>) return ElementType::Bool;
    else if constexpr (std::is_floating_point_v<U>) return sizeof(U) == 4 ? ElementType::F32 : ElementType::F64;
    else if constexpr (std::is_signed_v<U>)
        return sizeof(U) == 1   ? ElementType::I8
               : sizeof(U) == 2 ? ElementType::I16
               : sizeof(U) == 4 ? ElementType::I32
                                : ElementType::I64;
    else
        return sizeof(U) == 1   ? ElementType::U8
               : sizeof(U) == 2 ? ElementType::U16
               : sizeof(U) == 4 ? ElementType::U32
                                : ElementType::U64;
}

/// The dimensions of a tensor, outermost first.
using Shape = Span<const std::size_t>;

/// A dense row-major array of numbers, on the host or on a device. Its elements never change.
class Tensor : public detail::Object<halite_tensor> {
   public:
    using Object::Object;

    /// A copy of these elements.
    template <class T>
    static Result<Tensor> of(Span<const T> values, Shape shape) {
        return of_bytes(element_type_of<T>(), shape, values.data(), values.size() * sizeof(T));
    }
    template <class T>
    static Result<Tensor> of(const std::vector<T> &values, Shape shape) {
        return of(Span<const T>(values), shape);
    }
    /// These elements, which are not copied: the tensor keeps the vector.
    template <class T>
    static Result<Tensor> of(std::vector<T> &&values, Shape shape) {
        auto kept = std::make_unique<std::vector<T>>(std::move(values));
        const std::vector<T> &own = *kept;
        return borrow(element_type_of<T>(), shape, own.data(), own.size() * sizeof(T),
                      [](void *context) { delete static_cast<std::vector<T> *>(context); }, kept.release());
    }
    /// A copy of bytes.
    static Result<Tensor> of_bytes(ElementType element, Shape shape, const void *data, std::size_t size) {
        return detail::make<Tensor, halite_tensor>([&](halite_tensor **out) {
            return halite_tensor_create(raw(element), shape.data(), shape.size(), data, size, out);
        });
    }
    /// Bytes that are lent until `release(context)` is called.
    static Result<Tensor> borrow(ElementType element, Shape shape, const void *data, std::size_t size,
                                 halite_release_fn release, void *context) {
        return detail::make<Tensor, halite_tensor>([&](halite_tensor **out) {
            return halite_tensor_borrow(raw(element), shape.data(), shape.size(), data, size, release, context, out);
        });
    }
    static Result<Tensor> zeros(ElementType element, Shape shape) {
        return detail::make<Tensor, halite_tensor>([&](halite_tensor **out) {
            return halite_tensor_zeros(raw(element), shape.data(), shape.size(), out);
        });
    }

    ElementType element_type() const noexcept {
        return static_cast<ElementType>(halite_tensor_element_type(get()));
    }
    Shape shape() const noexcept { return {halite_tensor_shape(get()), halite_tensor_rank(get())}; }
    /// Bytes of all elements.
    std::size_t byte_size() const noexcept { return halite_tensor_size(get()); }
    bool is_on_device() const noexcept { return halite_tensor_is_on_device(get()); }

    /// The device that the elements lie on. Fails for a tensor on the host.
    Result<Device> device() const {
        return detail::make<Device, halite_device>(
            [&](halite_device **out) { return halite_tensor_device(get(), out); });
    }
    Result<Tensor> to_device(const Device &device) const {
        return detail::make<Tensor, halite_tensor>(
            [&](halite_tensor **out) { return halite_tensor_to_device(get(), device.get(), out); });
    }
    Result<Tensor> to_host() const {
        return detail::make<Tensor, halite_tensor>([&](halite_tensor **out) { return halite_tensor_to_host(get(), out); });
    }
    /// The same elements in another shape; nothing is copied.
    Result<Tensor> reshape(Shape shape) const {
        return detail::make<Tensor, halite_tensor>([&](halite_tensor **out) {
            return halite_tensor_reshape(get(), shape.data(), shape.size(), out);
        });
    }

    /// Copies the elements into memory of `byte_size()` bytes.
    Result<void> read(void *target, std::size_t size) const {
        return detail::finish(halite_tensor_read(get(), target, size));
    }
    /// The elements. Fails where they have another type.
    template <class T>
    Result<std::vector<T>> to_vector() const {
        static_assert(!std::is_same_v<T, bool>, "read truth values as bytes: std::vector<bool> has no array");
        std::vector<T> values(byte_size() / sizeof(T));
        halite_error *error =
            halite_tensor_read_as(get(), raw(element_type_of<T>()), values.data(), values.size());
        return detail::finish(error, std::move(values));
    }
    /// The elements of a tensor on the host where they lie; NULL where they lie on a device.
    const void *data() const noexcept { return halite_tensor_data(get()); }

   private:
    static constexpr halite_element_type raw(ElementType element) noexcept {
        return static_cast<halite_element_type>(element);
    }
};

/// What memory from elsewhere is known by.
enum class MemoryKind : halite_memory_kind {
    OpaqueFd = HALITE_MEMORY_OPAQUE_FD,
    DmaBuf = HALITE_MEMORY_DMA_BUF,
    Host = HALITE_MEMORY_HOST,
    AndroidHardwareBuffer = HALITE_MEMORY_ANDROID_HARDWARE_BUFFER,
    OpaqueWin32 = HALITE_MEMORY_OPAQUE_WIN32,
};

/// Memory that others also use; see halite_memory. The device has it at first.
class Memory : public detail::Object<halite_memory> {
   public:
    using Object::Object;

    /// What a device does with memory of a kind.
    static Result<halite_memory_support> support(const Device &device, MemoryKind kind) {
        auto raw = detail::structure<halite_memory_support>();
        halite_error *error =
            halite_device_get_memory_support(device.get(), static_cast<halite_memory_kind>(kind), &raw);
        return detail::finish(error, raw);
    }
    /// Memory from elsewhere. The handle stays the caller's.
    static Result<Memory> import_memory(const Device &device, const halite_external_memory &memory) {
        return detail::make<Memory, halite_memory>(
            [&](halite_memory **out) { return halite_memory_import(device.get(), &memory, out); });
    }
    /// The same by a descriptor.
    static Result<Memory> import_fd(const Device &device, MemoryKind kind, int fd, std::uint64_t size) {
        auto memory = detail::structure<halite_external_memory>();
        memory.kind = static_cast<halite_memory_kind>(kind);
        memory.fd = fd;
        memory.size = size;
        return import_memory(device, memory);
    }
    /// Memory for others, of at least so many bytes.
    static Result<Memory> create(const Device &device, MemoryKind kind, std::size_t size) {
        return detail::make<Memory, halite_memory>([&](halite_memory **out) {
            return halite_memory_create(device.get(), static_cast<halite_memory_kind>(kind), size, out);
        });
    }

    /// A handle of memory that was created for others; the caller closes it.
    Result<halite_external_memory> handle(MemoryKind kind) const {
        auto raw = detail::structure<halite_external_memory>();
        halite_error *error = halite_memory_export(get(), static_cast<halite_memory_kind>(kind), &raw);
        return detail::finish(error, raw);
    }
    /// Bytes that tensors can lie in.
    std::size_t size() const noexcept { return halite_memory_size(get()); }
    /// A tensor of the bytes from `offset` on, a multiple of 256; nothing is copied.
    Result<Tensor> tensor(ElementType element, Shape shape, std::size_t offset = 0) const {
        return detail::make<Tensor, halite_tensor>([&](halite_tensor **out) {
            return halite_memory_tensor(get(), static_cast<halite_element_type>(element), shape.data(), shape.size(),
                                        offset, out);
        });
    }
    /// Copies a tensor to the bytes from `offset` on, and waits for that.
    Result<void> write(const Tensor &tensor, std::size_t offset = 0) const {
        return detail::finish(halite_memory_write(get(), offset, tensor.get()));
    }
    /// Takes the memory back from the others, who must have finished.
    Result<void> acquire() const { return detail::finish(halite_memory_acquire(get())); }
    /// Gives the memory to the others.
    Result<void> give() const { return detail::finish(halite_memory_release(get())); }
};

/// What kind of value a value is.
enum class ValueKind : halite_value_kind {
    Null = HALITE_VALUE_NULL,
    Tensor = HALITE_VALUE_TENSOR,
    List = HALITE_VALUE_LIST,
    I32 = HALITE_VALUE_I32,
    I64 = HALITE_VALUE_I64,
    F32 = HALITE_VALUE_F32,
    F64 = HALITE_VALUE_F64,
    Other = HALITE_VALUE_OTHER,
};

/// An argument or a result of a function, of any kind.
class Value : public detail::Object<halite_value> {
   public:
    using Object::Object;

    static Value i32(std::int32_t number) { return Value(halite_value_i32(number)); }
    static Value i64(std::int64_t number) { return Value(halite_value_i64(number)); }
    static Value f32(float number) { return Value(halite_value_f32(number)); }
    static Value f64(double number) { return Value(halite_value_f64(number)); }
    static Result<Value> tensor(const Tensor &tensor) {
        return make([&](halite_value **out) { return halite_value_tensor(tensor.get(), out); });
    }
    static Result<Value> list(Span<const Value> values) {
        std::vector<const halite_value *> all;
        for (const Value &value : values) all.push_back(value.get());
        return make([&](halite_value **out) { return halite_value_list(all.data(), all.size(), out); });
    }

    ValueKind kind() const noexcept { return static_cast<ValueKind>(halite_value_get_kind(get())); }
    Result<Tensor> as_tensor() const {
        return detail::make<Tensor, halite_tensor>(
            [&](halite_tensor **out) { return halite_value_as_tensor(get(), out); });
    }
    Result<std::int64_t> as_integer() const {
        std::int64_t number = 0;
        halite_error *error = halite_value_as_integer(get(), &number);
        return detail::finish(error, number);
    }
    Result<double> as_float() const {
        double number = 0;
        halite_error *error = halite_value_as_float(get(), &number);
        return detail::finish(error, number);
    }
    /// Number of values in a list.
    std::size_t size() const noexcept { return halite_value_count(get()); }
    Result<Value> at(std::size_t index) const {
        return make([&](halite_value **out) { return halite_value_at(get(), index, out); });
    }

   private:
    template <class Call>
    static Result<Value> make(Call &&call) {
        return detail::make<Value, halite_value>(std::forward<Call>(call));
    }
};

}  // namespace HALITE_DETAIL_NAMESPACE
}  // namespace halite

#endif
