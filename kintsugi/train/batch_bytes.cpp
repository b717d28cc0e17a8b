#include "kintsugi/train/batch_bytes.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/timeout_message.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::train {
namespace {

struct ReadShare {
  int64_t ranks = 1, rank = 0;
};

// Whether this rank is the first of those that read its samples. Ranks without inputs of their own read the whole batch
// (share_of): if there is one, it alone counts.
bool counts_share(const samples::Share& share, comm::Communicator& all) {
  const ReadShare mine = {share.ranks, share.rank};
  std::vector<ReadShare> every(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  const auto me = static_cast<size_t>(all.rank());
  for (size_t r = 0; r < every.size(); ++r)
    if (every[r].ranks == 1) return r == me;
  for (size_t r = 0; r < me; ++r)
    if (every[r].rank == mine.rank) return false;
  return true;
}

}  // namespace

BatchBytes::BatchBytes(const std::string& tokenizer_json, const samples::Share& share, comm::Communicator& all)
    : all_(all), counts_(counts_share(share, all)) {
  if (counts_ || all.rank() == 0)
    text_bytes_ = std::make_unique<TextBytes>(*text::parse_tokenizer(tokenizer_json, "tokenizer.json"));
}

void BatchBytes::add(std::span<const int32_t> labels) {
  if (counts_) open_ += text_bytes_->of(labels);
}

void BatchBytes::end_step() {
  ended_.push_back(std::exchange(open_, 0));
}

int64_t BatchBytes::take(int64_t step) {
  base::require(!ended_.empty(), "train", "bytes of step {}, which was not read", step);
  const int64_t mine = ended_.front();
  ended_.pop_front();
  if (all_.size() == 1) return mine;
  int64_t sum = 0;
  try {
    all_.wait(all_.all_reduce(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(&sum, 1)),
                              tensor::DType::i64, comm::Reduction::sum));
  } catch (const comm::Timeout& e) {
    comm::throw_timeout_of(all_.rank(), fmt::format("after step {}, the bytes of its texts", step), e);
  }
  return sum;
}

}  // namespace kintsugi::train
