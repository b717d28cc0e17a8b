#include "kintsugi/train/text_bytes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kintsugi/base/error.h"

namespace kintsugi::train {

TextBytes::TextBytes(const text::Tokenizer& tokenizer) : bytes_(static_cast<size_t>(tokenizer.vocab_size())) {
  std::vector<int32_t> ids;  // a token before, since the space of a first token may be left out
  try {
    tokenizer.encode("a", ids);
  } catch (const base::UserError&) {  // the tokenizer lacks the character
  }
  const size_t before = tokenizer.decode(ids).size();
  ids.push_back(0);
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    ids.back() = id;
    bytes_[static_cast<size_t>(id)] = static_cast<int32_t>(std::max(tokenizer.decode(ids).size(), before) - before);
  }
  const auto mark = [&](int32_t id) {
    if (id >= 0 && id < tokenizer.vocab_size()) bytes_[static_cast<size_t>(id)] = 0;
  };
  for (const int32_t id : tokenizer.stops()) mark(id);
  if (const auto begin = tokenizer.begin_of_document()) mark(*begin);
  const text::SpecialTokens around = tokenizer.special_tokens();
  for (const int32_t id : around.before) mark(id);
  for (const int32_t id : around.after) mark(id);
}

int64_t TextBytes::of(std::span<const int32_t> labels) const {
  int64_t bytes = 0;
  for (const int32_t label : labels)
    if (label >= 0 && label < std::ssize(bytes_)) bytes += bytes_[static_cast<size_t>(label)];
  return bytes;
}

int64_t TextBytes::of(const samples::SampleSource& source, int64_t count) const {
  samples::Parts parts;  // sources make labels along with tokens
  for (const samples::Part& part : source.parts())
    if (part.name == "tokens" || part.name == "labels") parts.push_back(part);
  base::require(parts.size() == 2, "train", "samples without tokens and labels");
  samples::BatchMemory row(1, parts);
  int64_t bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    source.fill(static_cast<uint64_t>(i), row.view());
    bytes += of(row.get<int32_t>("labels"));
  }
  return bytes;
}

int64_t TextBytes::of_file(const std::string& name, const samples::SampleSource& source, int64_t count) {
  const auto [at, added] = files_.try_emplace(name, 0);
  if (added) at->second = of(source, count);
  return at->second;
}

double bits_per_byte(double loss_sum, int64_t bytes) {
  return loss_sum / std::numbers::ln2 / static_cast<double>(bytes);
}

}  // namespace kintsugi::train
