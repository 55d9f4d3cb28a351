// The C++17 interface of Halite: run machine-learning models on any Vulkan device, and on processors. It wraps halite.h, which has the
// contract, and is headers only: objects free their handles, and functions that fail throw a `halite::Error`, or return a
// `halite::Result` in programs without exceptions (see cpp/base.hpp). docs/tutorials/getting-started-c.md begins with a program.
#ifndef HALITE_HALITE_HPP
#define HALITE_HALITE_HPP

#include "cpp/build.hpp"
#include "cpp/generate.hpp"
#include "cpp/session.hpp"
#include "cpp/tensor.hpp"

namespace halite {
inline namespace HALITE_DETAIL_NAMESPACE {

/// The version of the library.
inline const char *version() noexcept { return halite_version(); }

/// Has a function hear the log, up to a level (1 error to 5 trace); NULL ends that.
inline Result<void> log(halite_log_fn function, void *context = nullptr, std::uint32_t level = 2) {
    return detail::finish(halite_log_set(function, context, level));
}

}  // namespace HALITE_DETAIL_NAMESPACE
}  // namespace halite

#endif
