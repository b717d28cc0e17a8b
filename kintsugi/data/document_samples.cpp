#include "kintsugi/data/document_samples.h"

#include <algorithm>

#include "kintsugi/data/window.h"

namespace kintsugi::data {

DocumentSamples::DocumentSamples(std::shared_ptr<const TokenFile> file, std::shared_ptr<const NumberTable> labels,
                                 DocumentOptions options)
    : file_(std::move(file)), labels_(std::move(labels)), options_(options) {
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
}

RowSizes DocumentSamples::row() const {
  const int64_t n = options_.sequence, classes = options_.targets == 0 ? 1 : 0;
  return {.tokens = n,
          .labels = 0,
          .starts = n,
          .types = n,
          .classes = classes,
          .weights = classes,
          .features = 0,
          .targets = options_.targets};
}

void DocumentSamples::fill(uint64_t first, const BatchView& batch) const {
  const DocumentOptions& o = options_;
  for_each_row(batch, row(), [&](uint64_t at, const BatchView& view) {
    const uint64_t sample = o.order(first + at, num_samples());
    const bool ended = sample >= num_samples();
    const uint64_t document = ended ? 0 : sample;
    const uint64_t begin = file_->document_begin(document), size = file_->document_begin(document + 1) - begin;
    const size_t before = o.first >= 0 ? 1 : 0, behind = o.separator >= 0 ? 1 : 0;
    const size_t room = view.tokens.size() - before - behind;
    const size_t taken = std::min<uint64_t>(room, size), used = before + taken + behind;
    file_->read(begin, view.tokens.subspan(before, taken));
    check_ids(*file_, begin, view.tokens.subspan(before, taken), o.vocab);
    if (before) view.tokens[0] = static_cast<int32_t>(o.first);
    if (behind) view.tokens[used - 1] = static_cast<int32_t>(o.separator);
    std::ranges::fill(view.tokens.subspan(used), -1);
    std::ranges::fill(view.types, 0);
    std::ranges::fill(view.starts, 0);
    if (!view.starts.empty()) std::ranges::fill(view.starts.subspan(used), static_cast<int32_t>(used));
    set_label(view, labels_->row(static_cast<int64_t>(document)), ended);
  });
}

}  // namespace kintsugi::data
