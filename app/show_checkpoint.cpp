#include "app/show_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "app/print_entry.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/open.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/tensor_files.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/exchange/open_model.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string name, dims, dtype, kind;
  uint64_t bytes = 0;
  std::string pieces;
};

std::string counted(size_t n, std::string_view what) {
  return fmt::format("{} {}{}", base::group_digits(static_cast<int64_t>(n)), what, n == 1 ? "" : "s");
}

void print_rows(const std::vector<Row>& rows) {
  size_t name = 0, dims = 0, kind = 0;
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    dims = std::max(dims, row.dims.size());
    kind = std::max(kind, row.kind.size());
  }
  write_out("\n");
  // Name and dims have separate columns if that fits the page; otherwise dims follow the name.
  size_t pieces = 0;
  for (const Row& row : rows) pieces = std::max(pieces, row.pieces.size());
  const size_t rest = 2 + 2 + 6 + 2 + kind + 2 + 10 + (pieces ? 2 + pieces : 0), page = kColumns;
  if (name + 2 + dims + rest > page) {
    size_t both = 0;
    for (const Row& row : rows) both = std::max(both, row.name.size() + 2 + row.dims.size());
    both = std::min(both, page - rest);
    for (const Row& row : rows) {
      const std::string what = row.name + "  " + row.dims;
      const bool fits = what.size() <= both;
      const std::string line = fmt::format("  {:<{}}  {:<6}  {:<{}}  {:>10}  {}", fits ? what : "  " + row.dims, both,
                                           row.dtype, row.kind, kind, base::format_bytes(row.bytes), row.pieces);
      if (!fits) write_out("  {}\n", row.name);
      write_out("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }
    return;
  }
  for (const Row& row : rows) {
    std::string line = fmt::format("  {:<{}}  {:<{}}  {:<6}  {:<{}}  {:>10}  {}", row.name, name, row.dims, dims,
                                   row.dtype, row.kind, kind, base::format_bytes(row.bytes), row.pieces);
    write_out("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

// The sections of config.toml, one line each: "model   layers = 4, heads = 4". Comments and blank lines are left out.
// `only`: one section, if not empty.
void print_config(const std::string& config, std::string_view only = "") {
  std::string section = "config", keys;
  const auto end_section = [&] {
    if (!keys.empty() && (only.empty() || only == section))
      print_entry(section, base::one_line(keys, 1000), FoldAt::commas);
    keys.clear();
  };
  for (size_t at = 0; at < config.size();) {
    const size_t end = std::min(config.find('\n', at), config.size());
    std::string line = config.substr(at, end - at);
    at = end + 1;
    bool quoted = false;
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
      if (line[i] == '#' && !quoted) line.resize(i);
    }
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, line.find_first_not_of(" \t"));
    if (line.starts_with('[') && line.ends_with(']') && line.find('=') == line.npos) {
      end_section();
      section = line.substr(1, line.size() - 2);
    } else if (!line.empty()) {
      keys += (keys.empty() ? "" : ", ") + line;
    }
  }
  end_section();
}

// JSON with a space after each comma between names.
std::string spaced(const std::string& json) {
  std::string text;
  for (size_t i = 0; i < json.size(); ++i) {
    text += json[i];
    if (json[i] == ',' && i + 1 < json.size() && (json[i + 1] == '"' || json[i + 1] == '{')) text += ' ';
  }
  return text;
}

void print_totals(const checkpoint::Index& index) {
  struct Total {
    size_t tensors = 0;
    int64_t elements = 0;
    uint64_t bytes = 0;
  };
  std::array<Total, 3> totals;
  for (const auto& [name, tensor] : index.tensors) {
    Total& total = totals[static_cast<size_t>(tensor.kind)];
    ++total.tensors;
    total.elements += tensor.type.shape.elements();
    total.bytes += static_cast<uint64_t>(tensor.type.bytes());
  }
  for (size_t kind = 0; kind < totals.size(); ++kind)
    if (const Total& total = totals[kind]; total.tensors > 0)
      print_entry(checkpoint::name_of(static_cast<checkpoint::Kind>(kind)),
                  fmt::format("{}, {}, {}", counted(total.tensors, "tensor"), base::counted(total.elements, "element"),
                              base::format_bytes(total.bytes)));
}

void show_saved(const checkpoint::CheckpointReader& reader, bool verify) {
  print_entry("checkpoint", reader.folder().string());
  print_entry("step", base::group_digits(reader.step()));
  print_totals(reader.index());
  uint64_t bytes = 0;
  for (const auto& [name, file] : reader.index().files) bytes += file.bytes;
  print_entry("files", fmt::format("{}, {}", counted(reader.index().files.size(), "file"), base::format_bytes(bytes)));
  if (verify) reader.verify();
  print_entry("checksums", verify ? "verified: every byte matches" : "of the index only; --verify reads every byte");
  const std::string tokenizer = reader.tokenizer();
  print_entry("tokenizer", tokenizer.empty() ? "none" : base::format_bytes(tokenizer.size()));
  print_config(reader.config());
  print_entry("state", spaced(base::one_line(reader.state(), 1000)));
  std::vector<Row> rows;
  for (const auto& [name, tensor] : reader.index().tensors)
    rows.push_back({base::one_line(name), base::one_line(to_string(tensor.type.shape)),
                    std::string(name_of(tensor.type.dtype)), std::string(checkpoint::name_of(tensor.kind)),
                    static_cast<uint64_t>(tensor.type.bytes()),
                    tensor.pieces.size() == 1 ? "" : counted(tensor.pieces.size(), "piece")});
  print_rows(rows);
}

// The model according to config.json, or why it cannot be read: the tensors are shown anyway.
void print_model(const fs::path& folder) {
  try {
    print_config(exchange::config_of(exchange::FolderReader(folder)), "model");
  } catch (const base::UserError& error) {
    print_entry("model", fmt::format("not read: {}", error.what()));
  }
}

void show_files(const fs::path& path) {
  const checkpoint::TensorFiles files(path);
  std::vector<Row> rows;
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : files.tensors()) {
    rows.push_back({base::one_line(name), fmt::format("[{}]", fmt::join(tensor.shape.begin(), tensor.shape.end(), " ")),
                    std::string(name_of(tensor.dtype)), "", tensor.bytes, ""});
    bytes += tensor.bytes;
  }
  print_entry("safetensors", path.string());
  if (std::error_code error; fs::exists(path / "config.json", error)) print_model(path);
  print_entry("tensors", fmt::format("{}, {}", counted(rows.size(), "tensor"), base::format_bytes(bytes)));
  print_entry("checksums", "the format has none");
  print_rows(rows);
}

}  // namespace

void show_checkpoint(const fs::path& path, bool verify) {
  if (path.extension() == ".safetensors" || exchange::is_hugging_face(path)) return show_files(path);
  show_saved(*checkpoint::open_checkpoint(path, *comm::self_communicator()), verify);
}

}  // namespace kintsugi::app
