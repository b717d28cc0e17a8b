// Persists the algorithms that a library selected for matrix products, so that a product has the same bits in later
// runs, whatever the library would select. Text, one line per product: its description, " = ", and the library's bytes
// in hexadecimal; the first line of a product counts. Processes append whole lines.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

namespace kintsugi::kernels {

class AlgorithmFile {
 public:
  // Empty path: nothing is stored. Algorithms that cannot be read are selected anew.
  explicit AlgorithmFile(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path_, ignored)) return;  // reading others may never end
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);)
      if (const size_t at = line.find(" = "); at != line.npos) known_.emplace(line.substr(0, at), line.substr(at + 3));
  }

  // The file that KINTSUGI_PRODUCTS names, by default in the user's cache; "off": none.
  static std::filesystem::path default_path() {
    if (const std::string path = given("KINTSUGI_PRODUCTS"); !path.empty()) return path == "off" ? "" : path;
    if (const std::string cache = given("XDG_CACHE_HOME"); !cache.empty()) return cache + "/kintsugi/products";
    const std::string home = given("HOME");
    return home.empty() ? "" : home + "/.cache/kintsugi/products";
  }

  // Why selections could not be stored there; "" if they can, or need not be.
  static std::string why_not(const std::filesystem::path& path) {
    if (path.empty()) return given("KINTSUGI_PRODUCTS") == "off" ? "" : "HOME is not set";
    std::error_code ignored;
    std::filesystem::create_directories(path.parent_path(), ignored);
    if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
      return path.string() + " is not a file";
    const int file = open_to_add(path);
    if (file < 0 && ::access(path.c_str(), R_OK) == 0) return "";  // others maintain it
    if (file < 0) return path.string() + ": " + std::generic_category().message(errno);
    ::close(file);
    return "";
  }
  // Whether the environment names the file.
  static bool is_given() { return !given("KINTSUGI_PRODUCTS").empty(); }

  bool keeps() const { return !path_.empty(); }

  bool knows(const std::string& product) const { return known_.contains(product); }

  // False if it is unknown, or has another size.
  bool find(const std::string& product, void* algorithm, size_t bytes) const {
    const auto at = known_.find(product);
    if (at == known_.end() || at->second.size() != 2 * bytes) return false;
    for (size_t i = 0; i < bytes; ++i) {
      const int high = digit(at->second[2 * i]), low = digit(at->second[2 * i + 1]);
      if (high < 0 || low < 0) return false;
      static_cast<unsigned char*>(algorithm)[i] = static_cast<unsigned char>(16 * high + low);
    }
    return true;
  }

  // If several processes select concurrently, all of them use the first in the file from then on.
  void add(const std::string& product, const void* algorithm, size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; ++i) {
      const auto byte = static_cast<const unsigned char*>(algorithm)[i];
      text += kDigits[byte / 16];
      text += kDigits[byte % 16];
    }
    if (!known_.emplace(product, text).second || path_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(path_.parent_path(), ignored);
    const int file = open_to_add(path_);
    if (file < 0) return;  // optional
    const std::string line = product + " = " + text + "\n";
    [[maybe_unused]] const auto written = ::write(file, line.data(), line.size());
    ::close(file);
    std::ifstream whole(path_);
    for (std::string first; std::getline(whole, first);) {
      if (!first.starts_with(product + " = ")) continue;
      known_[product] = first.substr(product.size() + 3);
      return;
    }
  }

 private:
  static std::string given(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  }
  static int open_to_add(const std::filesystem::path& path) {
    return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  }

  static constexpr char kDigits[] = "0123456789abcdef";
  static int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

  std::filesystem::path path_;
  std::map<std::string, std::string> known_;
};

}  // namespace kintsugi::kernels
