// { "strip_left": true, "strip_right": true }: strips white space at the ends.
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/normalizers/rows.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

class Strip final : public Normalizer {
 public:
  explicit Strip(const base::Json& part)
      : left_(flag(part, "strip_left", true)), right_(flag(part, "strip_right", true)) {}

  void apply(std::string& text, Place place) const override {
    std::string_view rest = text;
    while (left_ && place != Place::kContinued) {
      const Character c = read_character(rest);
      if (c.size == 0 || !is_space(c.code)) break;
      rest.remove_prefix(c.size);
    }
    while (right_) {
      const Character c = read_last_character(rest);
      if (c.size == 0 || !is_space(c.code)) break;
      rest.remove_suffix(c.size);
    }
    if (rest.size() < text.size()) text = std::string(rest);
  }

 private:
  bool left_, right_;
};

}  // namespace

std::unique_ptr<Normalizer> read_strip(const base::Json& part) {
  return std::make_unique<Strip>(part);
}

}  // namespace kintsugi::text
