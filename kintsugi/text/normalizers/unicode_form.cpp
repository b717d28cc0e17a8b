#include "kintsugi/text/normalize.h"
#include "kintsugi/text/normalizers/rows.h"

namespace kintsugi::text {
namespace {

class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(NormalForm form) : form_(form) {}
  void apply(std::string& text, Place) const override {
    if (!is_surely_normal(text, form_)) text = normalize(text, form_);
  }

 private:
  NormalForm form_;
};

}  // namespace

std::unique_ptr<Normalizer> read_unicode_form(const base::Json& part) {
  return std::make_unique<UnicodeForm>(parse_normal_form(part.at("type").text()).value());
}

}  // namespace kintsugi::text
