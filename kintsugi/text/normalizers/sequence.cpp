// { "normalizers": [...] }: applied in sequence.
#include <vector>

#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(const base::Json& list) {
    for (const base::Json& step : list.list()) steps_.push_back(read_normalizer(step));
  }
  void apply(std::string& text, Place place) const override {
    for (const auto& step : steps_) step->apply(text, place);
  }
  bool spells_bytes() const override {
    for (const auto& step : steps_)
      if (step->spells_bytes()) return true;
    return false;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

}  // namespace

std::unique_ptr<Normalizer> read_normalizer_sequence(const base::Json& part) {
  return std::make_unique<NormalizerSequence>(part.at("normalizers"));
}

}  // namespace kintsugi::text
