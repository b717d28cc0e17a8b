// JSON reader. All errors are UserErrors that name the file, the line and the key,
//   [tokenizer] "tokenizer.json":12: "model.vocab" is a list; it should be an object
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/base/error.h"

namespace kintsugi::base {

// A value in a document. Copies are cheap and keep the document alive.
class Json {
 public:
  class Items;

  // Parses one value. Throws UserError for text that is not JSON (including numbers out of range of a double and
  // invalid UTF-8), that contains a NUL, repeats a member of an object, or nests deeper than 64 levels. `where` and
  // `name` appear in all errors about the document; `first_line` is the line of the text in the file.
  static Json parse(std::string_view where, std::string_view name, std::string_view text, int64_t first_line = 1);

  bool is_null() const;
  bool is_text() const;
  bool is_number() const;
  bool is_list() const;
  bool is_object() const;

  // Accessors throw UserError if the value has another type.
  std::string_view text() const;  // valid as long as the document
  int64_t whole(int64_t least = 0, int64_t most = std::numeric_limits<int64_t>::max()) const;
  double number() const;  // finite
  bool boolean() const;
  Items list() const;
  Items members() const;  // of an object, in file order

  // A member of an object; throws UserError if this is not an object, and at() also if there is no such member.
  Json at(std::string_view key) const;
  std::optional<Json> find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }

  std::string_view key() const;  // of this member in its object; valid as long as the document
  std::string compact() const;   // one line without spaces, members sorted by key
  std::string shown() const;     // for messages: a number, a short text in quotes, "a list"

  // Throws UserError "[where] "NAME":LINE: "KEY" is VALUE; it should be ..."
  [[noreturn]] void refuse(std::string_view should_be) const;
  // Throws UserError "[where] "NAME":LINE: ..."
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw UserError(where(), "{}: {}", place(), fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  struct Node;
  struct Document;
  class Builder;

  Json(std::shared_ptr<const Document> document, uint32_t index) : document_(std::move(document)), index_(index) {}

  const Node& node() const;
  const std::string& where() const;
  std::string place() const;  // "NAME":LINE

  std::shared_ptr<const Document> document_;
  uint32_t index_;
};

// The values of a list, or the members of an object.
class Json::Items {
 public:
  class Iterator {
   public:
    Iterator(const Json& at) : at_(at) {}
    const Json& operator*() const { return at_; }
    const Json* operator->() const { return &at_; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return at_.index_ == other.at_.index_; }

   private:
    Json at_;
  };

  size_t size() const;
  bool empty() const { return size() == 0; }
  Iterator begin() const;
  Iterator end() const;
  Json operator[](size_t index) const;  // takes linear time

 private:
  friend class Json;
  explicit Items(const Json& owner) : owner_(owner) {}
  Json owner_;
};

}  // namespace kintsugi::base
