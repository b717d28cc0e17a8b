#include "kintsugi/text/normalizers/rows.h"
#include "kintsugi/text/replace_pattern.h"

namespace kintsugi::text {
namespace {

class Replace final : public Normalizer {
 public:
  explicit Replace(const base::Json& part) : replace_(part) {}
  void apply(std::string& text, Place) const override { replace_.apply(text); }

 private:
  ReplacePattern replace_;
};

}  // namespace

std::unique_ptr<Normalizer> read_replace(const base::Json& part) {
  return std::make_unique<Replace>(part);
}

}  // namespace kintsugi::text
