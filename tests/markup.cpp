#include "tests/markup.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

namespace kintsugi::tests {
namespace {

using Words = std::vector<std::string_view>;

bool has(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Markup that makes a browser load or execute something.
bool reaches_out(std::string_view text) {
  for (const std::string_view word : {"://", "url(", "@import", "javascript:"})
    if (text.find(word) != std::string_view::npos) return true;
  return false;
}

class MarkupChecker {
 public:
  explicit MarkupChecker(std::string_view page) : rest_(page) {}

  std::string fault() {
    if (!take("<!DOCTYPE html>\n")) return "no <!DOCTYPE html>";
    while (fault_.empty() && !rest_.empty()) step();
    if (fault_.empty() && !open_.empty()) fault_ = "not closed: " + open_.back();
    if (fault_.empty() && roots_ != 1) fault_ = "not one root";
    return fault_;
  }

 private:
  void step() {
    if (rest_[0] == '&') {
      if (!entity()) fail("unknown entity");
    } else if (rest_[0] == '>') {
      fail("bare >");
    } else if (rest_[0] != '<') {
      if (open_.empty() && rest_[0] != '\n') fail("text outside of the page");
      rest_.remove_prefix(1);
    } else if (take("</")) {
      const std::string element(name());
      if (open_.empty() || element != open_.back() || !take(">")) return fail("</" + element + "> closes nothing");
      open_.pop_back();
    } else {
      begin();
    }
  }

  void begin() {
    rest_.remove_prefix(1);
    const std::string element(name());
    if (element.empty()) return fail("no name");
    if (has({"script", "link", "iframe", "object", "embed", "base", "video", "audio"}, element))
      return fail("<" + element + "> is not allowed");
    if (open_.empty()) ++roots_;
    std::set<std::string> attributes;
    while (take(" "))
      if (!attribute(element, attributes)) return;
    const bool drawn = element == "svg" || std::ranges::find(open_, "svg") != open_.end();
    if (take("/>")) {
      if (!drawn) fail("<" + element + "/> is no HTML");
      return;
    }
    if (!take(">")) return fail("an open tag");
    if (element == "meta" || element == "img") return;
    open_.push_back(element);
    if (element != "style") return;
    const size_t end = rest_.find("</style>");
    if (end == std::string_view::npos) return fail("an open style");
    if (reaches_out(rest_.substr(0, end))) return fail("a style that loads something");
    rest_.remove_prefix(end);
  }

  bool attribute(const std::string& element, std::set<std::string>& attributes) {
    if (element == "img" && take("src=\"data:image/bmp;base64,")) return attributes.insert("src").second && base64();
    const std::string attribute(name());
    if (attribute.empty() || !attributes.insert(attribute).second) return fail("attribute " + attribute), false;
    if (attribute.starts_with("on") || has({"src", "href", "srcset", "action", "data"}, attribute))
      return fail("attribute " + attribute + " is not allowed"), false;
    if (!take("=\"")) return fail("a bare attribute"), false;
    const size_t end = rest_.find_first_of("\"<");
    if (end == std::string_view::npos || rest_[end] != '"') return fail("an open attribute"), false;
    if (reaches_out(rest_.substr(0, end))) return fail("an attribute that loads something"), false;
    for (std::string_view value = rest_.substr(0, end); !value.empty(); value.remove_prefix(1))
      if (value[0] == '&' && !known_entity(value)) return fail("unknown entity"), false;
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool base64() {
    const size_t end = rest_.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=");
    if (end == std::string_view::npos || rest_[end] != '"') return fail("an image that is no base64"), false;
    rest_.remove_prefix(end + 1);
    return true;
  }

  static size_t known_entity(std::string_view text) {
    for (const std::string_view known : {"&amp;", "&lt;", "&gt;", "&quot;"})
      if (text.starts_with(known)) return known.size();
    return 0;
  }
  bool entity() {
    const size_t size = known_entity(rest_);
    rest_.remove_prefix(size);
    return size > 0;
  }

  std::string_view name() {
    size_t size = 0;
    while (size < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[size])) || rest_[size] == '-')) ++size;
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what + " before \"" + std::string(rest_.substr(0, 40)) + "\"";
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  int roots_ = 0;
  std::string fault_;
};

}  // namespace

std::string markup_fault(std::string_view page) {
  return MarkupChecker(page).fault();
}

}  // namespace kintsugi::tests
