#include "kintsugi/samples/document_samples.h"

#include <algorithm>

#include "kintsugi/samples/window.h"

namespace kintsugi::samples {

DocumentSamples::DocumentSamples(std::shared_ptr<const data::TokenFile> file,
                                 std::shared_ptr<const data::NumberTable> labels, DocumentOptions options)
    : file_(std::move(file)), labels_(std::move(labels)), options_(options), parts_(labels_of(options.targets)) {
  if (static_cast<uint64_t>(labels_->rows()) != file_->num_documents())
    throw base::UserError("data", "\"{}\" has {} lines of labels, \"{}.bin\" {} documents; each has one",
                          labels_->path().string(), labels_->rows(), file_->prefix().string(), file_->num_documents());
  const int64_t around = (options_.first >= 0 ? 1 : 0) + (options_.separator >= 0 ? 1 : 0);
  if (options_.sequence <= around)
    throw base::UserError("data",
                          "train.sequence {} is too short: a sample needs {} tokens around its text, and 1 of it",
                          options_.sequence, around);
  const int64_t columns = std::max<int64_t>(options_.targets, 1);
  if (labels_->columns() != columns)
    throw base::UserError("data", "\"{}\" has {} numbers a line; the model has {} for each document",
                          labels_->path().string(), labels_->columns(), columns);
  Part starts = starts_part(options_.sequence), types = types_part(options_.sequence);
  starts.optional = types.optional = true;
  parts_.insert(parts_.begin(), {tokens_part(options_.sequence), starts, types});
}

void DocumentSamples::fill(uint64_t first, const BatchView& batch) const {
  const DocumentOptions& o = options_;
  for_each_row(batch, parts_, [&](uint64_t at, const BatchView& view) {
    const uint64_t sample = o.order(first + at, num_samples());
    const bool ended = sample >= num_samples();
    const uint64_t document = ended ? 0 : sample;
    const uint64_t begin = file_->document_begin(document), size = file_->document_begin(document + 1) - begin;
    const size_t before = o.first >= 0 ? 1 : 0, behind = o.separator >= 0 ? 1 : 0;
    const std::span<int32_t> tokens = view.get<int32_t>("tokens"), starts = view.get<int32_t>("starts");
    const size_t room = tokens.size() - before - behind;
    const size_t taken = std::min<uint64_t>(room, size), used = before + taken + behind;
    file_->read(begin, tokens.subspan(before, taken));
    check_ids(*file_, begin, tokens.subspan(before, taken), o.vocab);
    if (before) tokens[0] = static_cast<int32_t>(o.first);
    if (behind) tokens[used - 1] = static_cast<int32_t>(o.separator);
    std::ranges::fill(tokens.subspan(used), -1);
    std::ranges::fill(view.get<int32_t>("types"), 0);
    std::ranges::fill(starts, 0);
    if (!starts.empty()) std::ranges::fill(starts.subspan(used), static_cast<int32_t>(used));
    set_label(view, labels_->row(static_cast<int64_t>(document)), ended);
  });
}

}  // namespace kintsugi::samples
