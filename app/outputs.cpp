#include "app/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include "kintsugi/base/error.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

enum class Kind { none, text, page, picture, array, tensors, trace, configuration, cluster, json };

struct OptionRow {
  std::string_view option;
  Kind writes;
};
constexpr OptionRow kOptions[] = {
    {"--csv", Kind::text},         {"--times", Kind::text},   {"--svg", Kind::picture},
    {"--timeline", Kind::picture}, {"--dump", Kind::tensors}, {"--trace", Kind::trace},
    {"--output", Kind::page},      {"--into", Kind::cluster}, {"--predictions", Kind::text},
    {"--picture", Kind::picture},
};

// Names that only our files, or those of Hugging Face folders, have.
constexpr std::string_view kOwnNames[] = {"config.toml",
                                          "metrics.jsonl",
                                          "best.json",
                                          "ended.json",
                                          "profile.json",
                                          "stragglers.txt",
                                          ".lock",
                                          "index.json",
                                          "index.xxh3",
                                          "tokenizer.json",
                                          "config.json",
                                          "generation_config.json",
                                          "tokenizer_config.json",
                                          "special_tokens_map.json",
                                          "added_tokens.json",
                                          "model.safetensors.index.json",
                                          "pytorch_model.bin.index.json",
                                          "tokenizer.model",
                                          "spiece.model",
                                          "vocab.json",
                                          "merges.txt",
                                          "vocab.txt",
                                          "encoder.json",
                                          "vocab.bpe"};

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool has_any(const fs::path& folder, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return is_there(folder / name); });
}

// The kind of a folder, if it is one of ours.
std::string_view folder_kind(const fs::path& folder) {
  if (has_any(folder, {"index.json", "index.xxh3"})) return "a checkpoint";
  if (is_there(folder / "config.toml")) return "a run";
  if (is_there(folder / "config.json")) return "a model's folder";
  if (is_there(folder / "train.bin") && is_there(folder / "train.idx")) return "a corpus";
  return "";
}

bool is_own_name(const fs::path& path) {
  const std::string name = path.filename().string();
  if (std::ranges::find(kOwnNames, name) != std::end(kOwnNames)) return true;
  if (name.starts_with("events.out.tfevents")) return true;
  const fs::path stem = fs::path(path).replace_extension();  // of token files
  const auto beside = [&](const char* suffix) { return is_there(fs::path(stem.string() + suffix)); };
  return (name.ends_with(".bin") || name.ends_with(".idx") || name.ends_with(".json")) && beside(".bin") &&
         beside(".idx");
}

bool is_header(std::string_view line, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return line.starts_with('[') && line.substr(1).starts_with(name) && line.substr(1 + name.size()).starts_with(']');
  });
}

// Recognized by the first bytes of a file.
Kind kind_of(const fs::path& path) {
  std::string head(8192, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  if (head.empty()) return Kind::none;
  const std::string_view text = head;
  if (text.size() > 9 && text[7] == '\0' && text[8] == '{') return Kind::tensors;
  if (text.starts_with("\x93NUMPY")) return Kind::array;
  if (text.starts_with("<!DOCTYPE html") || text.starts_with("<!doctype html")) return Kind::page;
  if (text.starts_with("<svg") || text.starts_with("<?xml")) return Kind::picture;
  if (text.starts_with('{')) return Kind::json;
  if (text.find('\0') != text.npos || text.starts_with('\n')) return Kind::trace;
  for (size_t at = 0; at < text.size(); at = std::min(text.find('\n', at), text.size() - 1) + 1) {
    const std::string_view line = text.substr(at);
    if (is_header(line, {"model", "data", "train", "checkpoint", "parallel"})) return Kind::configuration;
    if (is_header(line, {"device", "cluster", "network", "[level", "[kernel", "[transfer"})) return Kind::cluster;
  }
  return Kind::text;
}

// --output is a page, an array or a table, by the name of the file.
Kind written_by(const base::Output& output) {
  const auto* row = std::ranges::find(kOptions, output.option, &OptionRow::option);
  base::require(row != std::end(kOptions), "app", "{} is not among the options that write", output.option);
  if (output.option == "--output" && output.path.extension() == ".npy") return Kind::array;
  if (output.option == "--output" && output.path.extension() == ".csv") return Kind::text;
  return row->writes;
}

bool is_weights_name(const fs::path& path) {
  return path.extension() == ".safetensors" || path.extension() == ".bin";
}

// The folder that a new file would become a part of; "" if there is none.
std::string_view joined_by(const fs::path& path) {
  const std::string_view kind = folder_kind(path.parent_path());
  const bool joins = kind == "a checkpoint" || is_own_name(path) || (is_weights_name(path) && kind != "a run");
  return joins ? kind : "";
}

// The owner of an existing file that the option must not replace; "" if it may.
std::string owner_of(const base::Output& output, const fs::path& path) {
  const Kind writes = written_by(output), is = kind_of(path);
  const bool documents = output.option == "--dump" && is == Kind::json && path.extension() == ".jsonl";
  const bool own = is_own_name(path), same = is == writes || is == Kind::none || documents;
  int levels = 0;
  for (fs::path folder = path.parent_path(); levels < 3; folder = folder.parent_path(), ++levels) {
    const std::string_view kind = folder_kind(folder);
    if (kind.empty()) continue;
    if (own || is_weights_name(path) || (!same && levels > 0) || (!same && is != Kind::text)) {
      return fmt::format("a file of {}", kind);
    }
  }
  if (own) return "a file of a run, a corpus or a tokenizer";
  if (same) return "";
  if (is == Kind::configuration) return "the configuration of a run";
  if (is == Kind::cluster) return "the description of a cluster";
  if (is == Kind::tensors) return "a file of weights";
  return "";
}

}  // namespace

void require_outputs(std::string_view where, std::span<const base::Output> outputs,
                     std::span<const std::filesystem::path> inputs) {
  base::refuse_inputs(where, outputs, inputs);
  for (const base::Output& output : outputs) {
    if (output.path.empty()) continue;
    std::error_code error;
    const fs::path path = fs::weakly_canonical(base::target_of(output.path), error);
    if (error) continue;
    if (!fs::exists(path, error)) {
      if (const std::string_view folder = joined_by(path); !folder.empty())
        throw base::UserError(where, "{} \"{}\" would add a file to {}; name another file", output.option,
                              output.path.string(), folder);
      continue;
    }
    if (!fs::is_regular_file(path, error)) continue;
    if (const std::string owner = owner_of(output, path); !owner.empty())
      throw base::UserError(where, "{} \"{}\" would replace {}; name another file", output.option, output.path.string(),
                            owner);
  }
}

}  // namespace kintsugi::app
