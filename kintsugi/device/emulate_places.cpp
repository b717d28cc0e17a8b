// Barriers, exchanges and waits that the environment suppresses or lists.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>
#include <string>

#include "kintsugi/device/emulate.h"

// Load address of the program, defined by the linker.
extern "C" const char __executable_start;

namespace kintsugi::device::emulate {

namespace {

std::string text_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

struct Without {
  std::string place;
  std::set<uintptr_t> kernels;  // empty: all
};
// Initialized before threads exist, so that there is no race.
const std::string list_of_places = text_of("KINTSUGI_EMULATE_PLACES");
const Without without = [] {
  Without all;
  std::istringstream words(text_of("KINTSUGI_EMULATE_WITHOUT"));
  words >> all.place >> std::hex;
  for (uintptr_t kernel = 0; words >> kernel;) all.kernels.insert(kernel);
  return all;
}();

}  // namespace

const bool places_are_watched = !without.place.empty() || !list_of_places.empty();

bool is_left_out(const Place& place) {
  const char* slash = std::strrchr(place.file_name(), '/');
  const std::string name =
      std::string(slash == nullptr ? place.file_name() : slash + 1) + ":" + std::to_string(place.line());
  const uintptr_t kernel = reinterpret_cast<uintptr_t>(kernel_now()) - reinterpret_cast<uintptr_t>(&__executable_start);
  if (!list_of_places.empty()) {
    static std::mutex mutex;
    static std::set<std::string> met;
    const std::lock_guard lock(mutex);
    if (met.insert(fmt::format("{} {:x}", name, kernel)).second) {
      std::FILE* file = std::fopen(list_of_places.c_str(), "a");
      if (file == nullptr) {  // inside a kernel nobody would catch an exception
        fmt::print(stderr, "error: [device] KINTSUGI_EMULATE_PLACES: cannot write to {}\n", list_of_places);
        std::_Exit(1);
      }
      fmt::print(file, "{} {:x}\n", name, kernel);
      std::fclose(file);
    }
  }
  return name == without.place && (without.kernels.empty() || without.kernels.contains(kernel));
}

}  // namespace kintsugi::device::emulate
