#include "kintsugi/base/json.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "kintsugi/base/format.h"
#include "kintsugi/base/lfs_pointer.h"

namespace kintsugi::base {
namespace {

using Library = nlohmann::json;

constexpr size_t kDeepest = 64;
constexpr size_t kLongestShown = 60;
constexpr size_t kLongestPath = 120;
constexpr uint32_t kOpen = UINT32_MAX;  // end of an object or list that is still being read

enum class Kind : uint8_t { null, boolean, natural, negative, real, text, list, object };

struct Span {
  uint32_t begin = 0;
  uint32_t size = 0;
};

// An iterator that reports how far the text has been read. The library takes a pair of them as a range.
class Cursor {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  const char& operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

}  // namespace

// A value; its children follow it, up to `end`.
struct Json::Node {
  Kind kind = Kind::null;
  uint32_t line = 0;  // relative to the first of the document
  uint32_t end = 0;
  Span key;
  union {
    bool boolean;
    uint64_t natural;
    int64_t negative;
    double real;
    Span text;
    uint32_t count;  // number of values in a list or object
  };
  Node() : natural(0) {}
};

struct Json::Document {
  std::string where;
  std::string name;
  int64_t first_line = 1;
  std::vector<Node> nodes;
  std::string pool;  // all keys and texts

  std::string_view in_pool(Span span) const { return std::string_view(pool).substr(span.begin, span.size); }

  std::string place(uint32_t line) const {
    return fmt::format("{}:{}", in_quotes(name), first_line + static_cast<int64_t>(line));
  }

  // "model.vocab[3]"; "" for the whole document.
  std::string path(uint32_t index) const {
    std::string path;
    for (uint32_t at = 0; at != index;) {
      const bool list = nodes[at].kind == Kind::list;
      uint32_t child = at + 1;
      size_t number = 0;
      for (; nodes[child].end <= index; child = nodes[child].end) ++number;
      if (list)
        path += fmt::format("[{}]", number);
      else
        path += (path.empty() ? "" : ".") + one_line(in_pool(nodes[child].key), kLongestShown);
      at = child;
    }
    return one_line(path, kLongestPath);
  }
};

// Builds the nodes from the events of the library's parser.
class Json::Builder {
 public:
  Builder(Document& document, std::string_view text) : document_(document), text_(text), counted_(text.data()) {
    reached_ = text.data();
  }

  void parse() {
    // The library takes a NUL for the end of the text, and would ignore everything after it.
    if (const size_t nul = text_.find('\0'); nul != text_.npos) {
      reached_ = text_.data() + nul + 1;
      fail("this is not JSON: it holds a NUL at byte {}", nul);
    }
    Library::sax_parse(Cursor(text_.data(), &reached_), Cursor(text_.data() + text_.size(), &reached_), this);
  }

  bool null() {
    add(Kind::null);
    return true;
  }
  bool boolean(bool value) {
    add(Kind::boolean).boolean = value;
    return true;
  }
  bool number_integer(int64_t value) {
    add(Kind::negative).negative = value;
    return true;
  }
  bool number_unsigned(uint64_t value) {
    add(Kind::natural).natural = value;
    return true;
  }
  bool number_float(double value, const std::string&) {
    add(Kind::real).real = value;
    return true;
  }
  bool string(const std::string& value) {
    const Span span = store(value);
    add(Kind::text).text = span;
    return true;
  }
  bool binary(Library::binary_t&) { return false; }  // JSON text has no binary values
  bool start_object(size_t) { return start(Kind::object); }
  bool start_array(size_t) { return start(Kind::list); }
  bool end_object() {
    require_distinct_keys(open_.back());
    return end();
  }
  bool end_array() { return end(); }
  bool key(const std::string& value) {
    key_ = store(value);
    return true;
  }

  bool parse_error(size_t byte, const std::string& token, const Library::exception& error) {
    constexpr int kNumberOutOfRange = 406;
    if (error.id == kNumberOutOfRange) {
      add(Kind::null);
      const std::string path = document_.path(last());
      fail("{} is {}, which is out of the range of numbers", path.empty() ? "the value" : in_quotes(path),
           one_line(token, kLongestShown));
    }
    if (byte > text_.size()) fail("the JSON ends too early, after {} bytes; it seems to be cut off", text_.size());
    const size_t line_end = text_.rfind('\n', byte == 0 ? 0 : byte - 1);
    const size_t line_begin = line_end == text_.npos || byte == 0 ? 0 : line_end + 1;
    fail("this is not JSON at byte {} of the line", byte - std::min(line_begin, byte));
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    throw UserError(document_.where, "{}: {}", document_.place(line()),
                    fmt::format(format, std::forward<Args>(args)...));
  }

  uint32_t last() const { return static_cast<uint32_t>(document_.nodes.size() - 1); }

  Span store(const std::string& value) {
    const Span span = {static_cast<uint32_t>(document_.pool.size()), static_cast<uint32_t>(value.size())};
    document_.pool += value;
    return span;
  }

  // Line of the token read last. After a number, one more character has been read.
  uint32_t line() {
    const char* end = reached_ > counted_ && reached_[-1] == '\n' ? reached_ - 1 : reached_;
    line_ += static_cast<uint32_t>(std::count(counted_, end, '\n'));
    counted_ = end;
    return line_;
  }

  Node& add(Kind kind) {
    if (!open_.empty()) ++document_.nodes[open_.back()].count;
    Node& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.line = line();
    node.end = static_cast<uint32_t>(document_.nodes.size());
    node.key = key_;
    key_ = {};
    return node;
  }

  bool start(Kind kind) {
    if (open_.size() == kDeepest) fail("the values nest deeper than {} levels", kDeepest);
    Node& node = add(kind);
    node.end = kOpen;
    node.count = 0;
    open_.push_back(last());
    return true;
  }

  bool end() {
    document_.nodes[open_.back()].end = static_cast<uint32_t>(document_.nodes.size());
    open_.pop_back();
    return true;
  }

  void require_distinct_keys(uint32_t object) {
    std::unordered_set<std::string_view> keys;
    if (document_.nodes[object].count < 2) return;
    keys.reserve(document_.nodes[object].count);
    for (uint32_t at = object + 1; at < document_.nodes.size(); at = document_.nodes[at].end)
      if (!keys.insert(document_.in_pool(document_.nodes[at].key)).second)
        throw UserError(document_.where, "{}: {} is there twice", document_.place(document_.nodes[at].line),
                        in_quotes(document_.path(at)));
  }

  Document& document_;
  std::string_view text_;
  const char* reached_ = nullptr;
  const char* counted_;  // lines are counted up to here
  uint32_t line_ = 0;
  std::vector<uint32_t> open_;
  Span key_;
};

Json Json::parse(std::string_view where, std::string_view name, std::string_view text, int64_t first_line) {
  auto document = std::make_shared<Document>();
  document->where = where;
  document->name = name;
  document->first_line = first_line;
  if (text.size() >= kOpen)
    throw UserError(where, "{}: it has {} bytes; JSON of up to 4 GiB is read", in_quotes(name), text.size());
  if (is_lfs_pointer(text)) throw UserError(where, "{} is {}", in_quotes(name), kLfsAdvice);
  Builder(*document, text).parse();
  return Json(std::move(document), 0);
}

const Json::Node& Json::node() const {
  return document_->nodes[index_];
}
const std::string& Json::where() const {
  return document_->where;
}
std::string Json::place() const {
  return document_->place(node().line);
}

bool Json::is_null() const {
  return node().kind == Kind::null;
}
bool Json::is_text() const {
  return node().kind == Kind::text;
}
bool Json::is_number() const {
  return node().kind == Kind::natural || node().kind == Kind::negative || node().kind == Kind::real;
}
bool Json::is_list() const {
  return node().kind == Kind::list;
}
bool Json::is_object() const {
  return node().kind == Kind::object;
}

std::string_view Json::text() const {
  if (!is_text()) refuse("a text");
  return document_->in_pool(node().text);
}

int64_t Json::whole(int64_t least, int64_t most) const {
  const Node& n = node();
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const bool fits = n.kind == Kind::negative || (n.kind == Kind::natural && n.natural <= kMost);
  const int64_t value = !fits ? 0 : n.kind == Kind::negative ? n.negative : static_cast<int64_t>(n.natural);
  if (fits && least <= value && value <= most) return value;
  refuse(most == std::numeric_limits<int64_t>::max() ? fmt::format("a whole number from {} on", least)
                                                     : fmt::format("a whole number from {} to {}", least, most));
}

double Json::number() const {
  const Node& n = node();
  if (n.kind == Kind::natural) return static_cast<double>(n.natural);
  if (n.kind == Kind::negative) return static_cast<double>(n.negative);
  if (n.kind != Kind::real) refuse("a number");
  return n.real;
}

bool Json::boolean() const {
  if (node().kind != Kind::boolean) refuse("true or false");
  return node().boolean;
}

Json::Items Json::list() const {
  if (!is_list()) refuse("a list");
  return Items(*this);
}

Json::Items Json::members() const {
  if (!is_object()) refuse("an object");
  return Items(*this);
}

std::optional<Json> Json::find(std::string_view key) const {
  if (!is_object()) refuse("an object");
  const std::vector<Node>& nodes = document_->nodes;
  for (uint32_t at = index_ + 1; at < node().end; at = nodes[at].end)
    if (document_->in_pool(nodes[at].key) == key) return Json(document_, at);
  return std::nullopt;
}

Json Json::at(std::string_view key) const {
  if (const auto found = find(key)) return *found;
  const std::string path = document_->path(index_);
  fail("{} is missing", in_quotes((path.empty() ? "" : path + ".") + std::string(key)));
}

std::string_view Json::key() const {
  return document_->in_pool(node().key);
}

std::string Json::compact() const {
  const std::function<Library(const Json&)> copy = [&](const Json& value) -> Library {
    const Node& n = value.node();
    Library made;
    switch (n.kind) {
      case Kind::null:
        return nullptr;
      case Kind::boolean:
        return n.boolean;
      case Kind::natural:
        return n.natural;
      case Kind::negative:
        return n.negative;
      case Kind::real:
        return n.real;
      case Kind::text:
        return value.text();
      case Kind::list:
        made = Library::array();
        for (const Json& item : value.list()) made.push_back(copy(item));
        return made;
      case Kind::object:
        made = Library::object();
        for (const Json& member : value.members()) made[std::string(member.key())] = copy(member);
        return made;
    }
    return made;
  };
  return copy(*this).dump();
}

std::string Json::shown() const {
  if (is_list()) return "a list";
  if (is_object()) return "an object";
  return is_text() ? in_quotes(text(), kLongestShown) : compact();
}

void Json::refuse(std::string_view should_be) const {
  const std::string path = document_->path(index_);
  fail("{} is {}; it should be {}", path.empty() ? "the value" : in_quotes(path), shown(), should_be);
}

Json::Items::Iterator& Json::Items::Iterator::operator++() {
  at_.index_ = at_.node().end;
  return *this;
}

size_t Json::Items::size() const {
  return owner_.node().count;
}
Json::Items::Iterator Json::Items::begin() const {
  return Json(owner_.document_, owner_.index_ + 1);
}
Json::Items::Iterator Json::Items::end() const {
  return Json(owner_.document_, owner_.node().end);
}
Json Json::Items::operator[](size_t index) const {
  Iterator at = begin();
  for (; index > 0; --index) ++at;
  return *at;
}

}  // namespace kintsugi::base
