#include "kintsugi/simulate/read_measured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/simulate/quantity.h"

namespace kintsugi::simulate {
namespace {

using base::UserError;
using config::Raw;
using program::Collective;

constexpr std::array kCollectives = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                     Collective::all_to_all, Collective::shift,      Collective::send};

// A row of one of the lists: its parts by name.
class RowOf {
 public:
  RowOf(const Raw& row, std::string at, std::span<const std::string_view> known) : row_(row), at_(std::move(at)) {
    if (row.type != Raw::Type::table)
      throw UserError("cluster", "{}: {} is not a row; a row is {{{} = ..., ...}}", at_, row.shown(), known[0]);
    for (const std::string& name : row.names)
      if (std::ranges::find(known, name) == known.end())
        throw UserError("cluster", "{}: unknown part {} of a row; there are {}", at_, base::in_quotes(name),
                        fmt::join(known, ", "));
  }

  const Raw* find(std::string_view name) const {
    for (size_t n = 0; n < row_.names.size(); ++n)
      if (row_.names[n] == name) return &row_.items[n];
    return nullptr;
  }

  std::string text(std::string_view name) const {
    const Raw* raw = find(name);
    if (raw == nullptr || raw->type != Raw::Type::text) fail(name, "a text");
    return raw->text;
  }

  double number(std::string_view name, double least, double most, double otherwise = -1) const {
    const Raw* raw = find(name);
    if (raw == nullptr && otherwise >= 0) return otherwise;
    const bool whole = raw && raw->type == Raw::Type::integer;
    if (!whole && !(raw && raw->type == Raw::Type::number)) fail(name, "a number");
    const double value = whole ? static_cast<double>(raw->integer) : raw->number;
    if (!(value >= least && value <= most)) fail(name, fmt::format("from {:g} to {:g}", least, most));
    return value;
  }

  double seconds() const {
    const auto value = quantity(text("time"), Measure::seconds);
    if (!value || !(*value >= 1e-10 && *value <= 1e5)) fail("time", "a time as \"12.3 us\"");
    return *value;
  }

  [[noreturn]] void fail(std::string_view name, std::string_view right) const {
    const Raw* raw = find(name);
    throw UserError("cluster", "{}: {} of a row is {}; it is {}", at_, name, raw ? raw->shown() : "missing", right);
  }

 private:
  const Raw& row_;
  std::string at_;
};

// "4096x768x3072" or "512x512x64x12"
ProductSize read_size(const RowOf& row) {
  const std::string text = row.text("size");
  std::array<double, 4> numbers = {0, 0, 0, 1};
  const char *at = text.data(), *const end = at + text.size();
  size_t n = 0;
  for (; n < numbers.size(); ++n) {
    int64_t number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || number < 1) row.fail("size", "as \"4096x768x3072\"");
    numbers[n] = static_cast<double>(number);
    at = after;
    if (at == end) break;
    if (*at++ != 'x') row.fail("size", "as \"4096x768x3072\"");
  }
  if (n < 2 || at != end) row.fail("size", "as \"4096x768x3072\"");
  return {.rows = numbers[0], .columns = numbers[1], .depth = numbers[2], .times = numbers[3]};
}

MeasuredKernel read_kernel(const Raw& raw, const std::string& at) {
  constexpr std::array<std::string_view, 7> kParts = {"kernel", "type", "form", "size", "flops", "bytes", "time"};
  const RowOf row(raw, at, kParts);
  MeasuredKernel m = {.key = {.kernel = row.text("kernel")}, .seconds = row.seconds()};
  const std::string type = row.text("type");
  constexpr std::array kTypes = {tensor::DType::f64, tensor::DType::f32, tensor::DType::bf16,
                                 tensor::DType::f16, tensor::DType::i64, tensor::DType::i32};
  const auto found = std::ranges::find_if(kTypes, [&](tensor::DType t) { return name_of(t) == type; });
  if (found == kTypes.end()) row.fail("type", "as \"fp32\"");
  m.key.type = *found;
  m.key.bytes = row.number("bytes", 0, 1e15);
  if (row.find("size")) {
    m.key.size = read_size(row);
    m.key.form = row.text("form");
  }
  m.key.flops = row.number("flops", 0, 1e18, m.key.size ? m.key.size->flops() : 0);
  return m;
}

MeasuredTransfer read_transfer(const Raw& raw, const std::string& at) {
  constexpr std::array<std::string_view, 4> kParts = {"collective", "ranks", "bytes", "time"};
  const RowOf row(raw, at, kParts);
  MeasuredTransfer m = {.ranks = static_cast<int>(row.number("ranks", 2, 1e6)),
                        .bytes = row.number("bytes", 0, 1e15),
                        .seconds = row.seconds()};
  const std::string name = row.text("collective");
  std::vector<std::string_view> names;
  for (const Collective c : kCollectives) {
    if (name_of(c) == name) {
      m.collective = c;
      return m;
    }
    names.push_back(name_of(c));
  }
  row.fail("collective", fmt::format("one of {}", fmt::join(names, ", ")));
}

std::string size_text(const ProductSize& s) {
  std::string text = fmt::format("{:.0f}x{:.0f}x{:.0f}", s.rows, s.columns, s.depth);
  return s.times == 1 ? text : fmt::format("{}x{:.0f}", text, s.times);
}

}  // namespace

void read_measured(const config::Entry& e, std::string_view name, Measured& to) {
  const std::string at = fmt::format("{}:{}", name, e.line);
  if ((e.key != "kernels" && e.key != "transfers") || e.value.type != Raw::Type::list)
    throw UserError("cluster", "{}: measured.{} is not known; [measured] has the lists kernels and transfers", at,
                    base::one_line(e.key));
  for (const Raw& row : e.value.items) {
    const std::string of_row = fmt::format("{}:{}", name, row.line);
    e.key == "kernels" ? to.add(read_kernel(row, of_row)) : to.add(read_transfer(row, of_row));
  }
}

std::string to_toml(const Measured& measured) {
  if (measured.kernels.empty() && measured.transfers.empty()) return "";
  std::string text = "\n[measured]\n";
  if (!measured.kernels.empty()) text += "kernels = [\n";
  for (const auto& [key, seconds] : measured.kernels) {
    text += fmt::format("  {{kernel = \"{}\", type = \"{}\", ", key.kernel, name_of(key.type));
    if (key.size) text += fmt::format("form = \"{}\", size = \"{}\", ", key.form, size_text(*key.size));
    if (!key.size || key.flops != key.size->flops()) text += fmt::format("flops = {:.0f}, ", key.flops);
    text += fmt::format("bytes = {:.0f}, time = \"{}\"}},\n", key.bytes, to_string(seconds, Measure::seconds));
  }
  if (!measured.kernels.empty()) text += "]\n";
  if (!measured.transfers.empty()) text += "transfers = [\n";
  for (const MeasuredTransfer& m : measured.transfers)
    text += fmt::format("  {{collective = \"{}\", ranks = {}, bytes = {:.0f}, time = \"{}\"}},\n",
                        name_of(m.collective), m.ranks, m.bytes, to_string(m.seconds, Measure::seconds));
  return measured.transfers.empty() ? text : text + "]\n";
}

}  // namespace kintsugi::simulate
