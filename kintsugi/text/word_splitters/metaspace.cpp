// { "replacement": "▁", "prepend_scheme": "always" or "first" or "never", "split": true }: the replacement stands for
// spaces, is added before the text, and begins words. Old files say "add_prefix_space" in place of the scheme.
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/utf8.h"
#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

enum class Prepend { kAlways, kFirst, kNever };

class Metaspace final : public WordSplitter {
 public:
  explicit Metaspace(const base::Json& part) : split_(flag(part, "split", true)) {
    append_character(one_character(part.at("replacement")), mark_);
    prepend_ = flag(part, "add_prefix_space", true) ? Prepend::kAlways : Prepend::kNever;
    const auto scheme = find_part(part, "prepend_scheme");
    if (!scheme) return;
    if (scheme->text() == "always") {
      prepend_ = Prepend::kAlways;
    } else if (scheme->text() == "first") {
      prepend_ = Prepend::kFirst;
    } else if (scheme->text() == "never") {
      prepend_ = Prepend::kNever;
    } else {
      scheme->refuse("\"always\", \"first\" or \"never\"");
    }
  }

  void split(std::string_view text, Place place, const WordSink& word) const override {
    if (text.empty()) return;
    std::string marked;
    marked.reserve(text.size() + text.size() / 2 + mark_.size());
    const bool has_mark = text.front() == ' ' || text.starts_with(mark_);
    if (!has_mark && adds(place)) marked = mark_;
    for (size_t done = 0; done < text.size();) {
      const size_t space = std::min(text.find(' ', done), text.size());
      marked.append(text, done, space - done);
      if (space < text.size()) marked += mark_;
      done = space + 1;
    }
    if (!split_) return word(marked, place);
    const std::string_view all = marked;
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find(mark_, begin + 1), all.size());
      word(all.substr(begin, end - begin), begin == 0 ? place : Place::kInside);
      begin = end;
    }
  }

 private:
  bool adds(Place place) const {
    return prepend_ == Prepend::kAlways ? place != Place::kContinued
                                        : prepend_ == Prepend::kFirst && place == Place::kBegin;
  }

  std::string mark_;
  Prepend prepend_ = Prepend::kAlways;
  bool split_;
};

}  // namespace

std::unique_ptr<WordSplitter> read_metaspace(const base::Json& part) {
  return std::make_unique<Metaspace>(part);
}

}  // namespace kintsugi::text
