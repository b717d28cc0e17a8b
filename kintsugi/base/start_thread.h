// Starts threads, with an error message if the system refuses.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

namespace kintsugi::base {

[[noreturn]] void throw_no_thread(const std::system_error& error);

// As std::thread(f, arguments ...); throws UserError if the system cannot start more threads.
template <typename... F>
std::thread start_thread(F&&... f) {
  try {
    return std::thread(std::forward<F>(f)...);
  } catch (const std::system_error& error) {
    throw_no_thread(error);
  }
}

}  // namespace kintsugi::base
