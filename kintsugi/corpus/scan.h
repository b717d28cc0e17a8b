// What the first pass over an input notes of each document, stored in a file so that an interrupted pipeline continues
// after the last input that was read whole.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/corpus/filters.h"

namespace kintsugi::corpus {

using Digest = std::array<uint64_t, 2>;  // of a text

struct Note {
  Verdict verdict = Verdict::kept;
  uint64_t bytes = 0;
  Digest digest = {};
  std::vector<uint64_t> keys = {};  // of bands; empty if the document is dropped or has no words
};

// A file of columns, in segments of bounded size:
//   scan    = "KINTSCAN" version: u32 = 1  bands: u32  stamp: u64  segment*  end
//   segment = count: u64  verdict: u8[count]  bytes: u64[count]  digest: u64[2 count]  keys: u64[bands][count]
//   end     = 0: u64  bad_lines: u64
// A missing key is 0. Little-endian.
class ScanWriter {
 public:
  // Writes to PATH.part; finish() syncs and renames it.
  ScanWriter(std::filesystem::path path, uint64_t stamp, size_t bands);

  void add(Note note);
  void finish(uint64_t bad_lines);

 private:
  void flush();

  std::filesystem::path path_;
  size_t bands_;
  std::ofstream out_;
  std::vector<Note> notes_;
};

class Scan {
 public:
  // Nothing if there is no complete scan with this stamp and number of bands.
  static std::optional<Scan> open(const std::filesystem::path& path, uint64_t stamp, size_t bands);

  size_t size() const { return verdicts_.size(); }
  uint64_t bad_lines() const { return bad_lines_; }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }
  uint64_t bytes(size_t i) const { return bytes_[i]; }
  std::vector<Digest> digests() const;            // reads the file
  std::vector<uint64_t> keys(size_t band) const;  // reads the file

 private:
  struct Segment {
    uint64_t at = 0, count = 0;
  };
  std::filesystem::path path_;
  size_t bands_ = 0;
  uint64_t bad_lines_ = 0;
  std::vector<Segment> segments_;
  std::vector<Verdict> verdicts_;
  std::vector<uint64_t> bytes_;
};

}  // namespace kintsugi::corpus
