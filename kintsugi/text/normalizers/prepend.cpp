// { "prepend": text }: before every nonempty text.
#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string_view prefix) : prefix_(prefix) {}
  void apply(std::string& text, Place place) const override {
    if (!text.empty() && place != Place::kContinued) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

}  // namespace

std::unique_ptr<Normalizer> read_prepend(const base::Json& part) {
  return std::make_unique<Prepend>(part.at("prepend").text());
}

}  // namespace kintsugi::text
