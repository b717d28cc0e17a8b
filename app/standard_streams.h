// What is printed must arrive: a full disk or a closed stdout is an error. And it cannot control a terminal, whatever
// names, texts and keys it holds.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>

#include "kintsugi/base/format.h"

namespace kintsugi::app {

// Opens what is missing of the descriptors 0, 1 and 2, so that no file that is opened later gets one of their numbers.
// Reading from such a stdin fails, and so does writing to such a stdout; what is written to such a stderr is lost.
void open_missing_streams();

// Prints `text` at once, as it is: for files, pipes and what draws on a terminal. UserError "[output] ..." if it cannot
// be written.
void print_at_once(std::string_view text);

// Prints what a model wrote, or a user: printable() where stdout is a terminal, every byte of it elsewhere.
void print_model_text(std::string_view text);

// Print on stdout or stderr, printable(); file paths also without line breaks. UserError "[output] ..." if stdout
// cannot be written; what is buffered fails in require_printed().
void write_text(std::FILE* to, std::string_view text);

template <typename T>
using Printable = std::conditional_t<std::is_same_v<T, std::filesystem::path>, std::string, T>;
template <typename T>
decltype(auto) to_printable(const T& value) {
  if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return base::one_line(value.string(), std::string_view::npos);
  } else {
    return (value);
  }
}
template <typename... Args>
void write_to(std::FILE* to, fmt::format_string<Printable<Args>...> format, const Args&... args) {
  const auto write = [&](const auto&... shown) {
    write_text(to, fmt::vformat(format, fmt::make_format_args(shown...)));
  };
  write(to_printable(args)...);
}
template <typename... Args>
void write_out(fmt::format_string<Printable<Args>...> format, const Args&... args) {
  write_to<Args...>(stdout, format, args...);
}
template <typename... Args>
void write_err(fmt::format_string<Printable<Args>...> format, const Args&... args) {
  write_to<Args...>(stderr, format, args...);
}
// "warning: ..." on stderr, in one line.
void write_warning(std::string_view text);

// UserError "[output] ..." unless all that was printed so far, on stdout and on `out`, is written.
void require_printed();
void require_printed(std::ostream& out);

// The text of that error, for a reason of the system.
std::string not_printed(std::string_view reason);

}  // namespace kintsugi::app
