#include "kintsugi/train/run_end.h"

#include <fmt/format.h>

#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"

namespace kintsugi::train {
namespace {

namespace fs = std::filesystem;

constexpr std::array<Stop, 4> kStops = {Stop::none, Stop::time, Stop::signal, Stop::step};

}  // namespace

std::string_view name_of(Stop stop) {
  switch (stop) {
    case Stop::none:
      return "";
    case Stop::time:
      return "stop_after_minutes";
    case Stop::signal:
      return "signal";
    case Stop::step:
      return "--stop-at";
  }
  return "";
}

std::string in_words(const RunEnd& end) {
  if (!end.error.empty()) return "ended with an error";
  if (end.stop == Stop::none) return "";
  return fmt::format("stopped by {}", end.stop == Stop::signal ? "a signal" : name_of(end.stop));
}

std::optional<RunEnd> read_end(const fs::path& folder) {
  const fs::path path = folder / kEndFile;
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const auto json = base::Json::parse("train", path.string(), base::read_file(path));
  RunEnd end = {.step = json.at("step").whole()};
  if (const auto text = json.find("error")) end.error = text->text();
  if (const auto stop = json.find("stopped_by")) {
    for (const Stop each : kStops)
      if (each != Stop::none && name_of(each) == stop->text()) end.stop = each;
    if (end.stop == Stop::none) stop->refuse("signal, stop_after_minutes or --stop-at");
  }
  return end;
}

void write_end(const fs::path& folder, const RunEnd& end) {
  base::JsonWriter json;
  json.object([&] {
    json.key("step").value(end.step);
    if (end.stop != Stop::none) json.key("stopped_by").value(name_of(end.stop));
    if (!end.error.empty()) json.key("error").value(end.error);
  });
  base::write_file_atomically(folder / kEndFile, json.text() + "\n");
}

void remove_end(const fs::path& folder) {
  std::error_code error;
  fs::remove(folder / kEndFile, error);
}

}  // namespace kintsugi::train
