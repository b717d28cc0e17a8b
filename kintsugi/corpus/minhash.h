// Near duplicates by MinHash and locality-sensitive hashing (Broder 1997; Leskovec, Rajaraman, Ullman 2014, section
// 3.4): documents of Jaccard similarity s share at least one of b bands of r rows with probability 1 - (1 - s^r)^b.
#pragma once

#include <cstdint>
#include <vector>

namespace kintsugi::corpus {

struct Bands {
  int64_t bands = 0;  // 0: no search for near duplicates
  int64_t rows = 0;   // per band

  double probability(double similarity) const;
};

// At most `hashes` in all, such that the similarity with a probability of one half is closest to `threshold`.
Bands choose_bands(double threshold, int64_t hashes);

// The keys of a document's bands: equal keys of one band mark two documents as candidates. No shingles: no keys.
class MinHash {
 public:
  explicit MinHash(Bands bands);

  std::vector<uint64_t> keys(const std::vector<uint64_t>& shingles) const;

 private:
  Bands bands_;
  std::vector<uint64_t> factors_, offsets_;  // of the hash functions
};

}  // namespace kintsugi::corpus
