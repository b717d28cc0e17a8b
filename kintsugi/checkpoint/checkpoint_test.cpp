// Writing and reading combined: from any layout into any other.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/scratch_test.h"
#include "kintsugi/checkpoint/writer.h"

namespace kintsugi::checkpoint::checkpoint_test {
namespace {

using tensor::DType;
using tensor::Shape;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& list) {
  return std::as_bytes(std::span(list));
}

template <typename T>
std::vector<T> read(const CheckpointReader& reader, const Slice& slice, DType dtype, int64_t count) {
  std::vector<T> list(static_cast<size_t>(count));
  reader.read(slice, dtype, std::as_writable_bytes(std::span(list)));
  return list;
}

std::vector<float> counting(int64_t n, float from = 0) {
  std::vector<float> list;
  for (int64_t i = 0; i < n; ++i) list.push_back(from + static_cast<float>(i));
  return list;
}

int64_t below(std::mt19937& random, int64_t n) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
}

// A random partition of a box: split along random dims, then each box's flat elements split into ranges.
void cut(const Box& box, std::mt19937& random, std::vector<Part>& parts) {
  if (random() % 3 && !box.size.empty()) {
    const auto d = static_cast<size_t>(below(random, static_cast<int64_t>(box.size.size())));
    if (box.size[d] > 1) {
      const int64_t at = 1 + below(random, box.size[d] - 1);
      Box a = box, b = box;
      a.size[d] = at;
      b.start[d] += at;
      b.size[d] -= at;
      cut(a, random, parts);
      return cut(b, random, parts);
    }
  }
  const int64_t n = box.elements();
  for (int64_t begin = 0; begin < n;) {
    const int64_t end = random() % 2 ? n : begin + 1 + below(random, n - begin);
    parts.push_back({box, {begin, end}});
    begin = end;
  }
}

// The elements of a part, taken from the whole tensor.
std::vector<float> take(const Shape& shape, const std::vector<float>& whole, const Part& part) {
  std::vector<float> list;
  for (int64_t flat = part.flat.begin; flat < part.flat.end; ++flat) {
    int64_t rest = flat, index = 0;
    for (size_t d = shape.rank(); d-- > 0;) {
      index += (part.box.start[d] + rest % part.box.size[d]) * shape.stride(d);
      rest /= part.box.size[d];
    }
    list.push_back(whole[static_cast<size_t>(index)]);
  }
  return list;
}

}  // namespace

TEST(Checkpoint, RoundTrip) {
  ScratchFolder scratch;
  const std::vector<float> w = counting(12), m = counting(12, 100);
  const std::vector<int64_t> count = {7};
  CheckpointWriter writer(scratch / "run", 1000);
  writer.add({"w", {Shape{{"a", 3}, {"b", 4}}, DType::f32}, Kind::weight, {}, {}}, bytes_of(w));
  writer.add({"adam_m/w", {Shape{{"a", 3}, {"b", 4}}, DType::f32}, Kind::optimizer, {}, {}}, [&](const Sink& sink) {
    for (int i = 0; i < 3; ++i) sink(bytes_of(m).subspan(static_cast<size_t>(i) * 16, 16));
  });
  writer.add({"count", {Shape{}, DType::i64}, Kind::statistic, {}, {}}, bytes_of(count));
  writer.add({"none", {Shape{{"a", 0}}, DType::f32}, Kind::weight, {}, {}}, std::span<const std::byte>());
  writer.write();
  EXPECT_TRUE(list(scratch / "run").empty());
  const auto folder = writer.finish({R"({"seed": 18446744073709551615, "scale": 0.1})", "layers = 2\n", "{}"});
  EXPECT_EQ(folder, scratch / "run/step_00001000");

  const CheckpointReader reader(folder);
  reader.verify();
  EXPECT_EQ(reader.step(), 1000);
  EXPECT_EQ(reader.state(), R"({"scale":0.1,"seed":18446744073709551615})");
  EXPECT_EQ(reader.config(), "layers = 2\n");
  EXPECT_EQ(reader.tokenizer(), "{}");
  EXPECT_EQ(read<float>(reader, {"w", {}, {}}, DType::f32, 12), w);
  EXPECT_EQ(read<float>(reader, {"adam_m/w", {}, {}}, DType::f32, 12), m);
  EXPECT_EQ(read<int64_t>(reader, {"count", {}, {}}, DType::i64, 1), count);
  EXPECT_EQ(read<float>(reader, {"none", {}, {}}, DType::f32, 0), counting(0));
  EXPECT_EQ(read<float>(reader, {"w", Box{{1, 2}, {2, 2}}, Range{1, 4}}, DType::f32, 3),
            (std::vector<float>{7, 10, 11}));
  EXPECT_EQ(read<double>(reader, {"w", {}, Range{3, 5}}, DType::f64, 2), (std::vector<double>{3, 4}));
  EXPECT_EQ(read<uint16_t>(reader, {"w", {}, Range{3, 5}}, DType::bf16, 2), (std::vector<uint16_t>{0x4040, 0x4080}));
  EXPECT_EQ(reader.at("w").kind, Kind::weight);

  // Other programs find whole tensors by name, in their shapes.
  const SafetensorsFile file(folder / "rank_00000.safetensors");
  EXPECT_EQ(file.at("w").shape.size(), 2u);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"config.toml", "index.json", "index.xxh3", "rank_00000.safetensors",
                                             "tokenizer.json"}));

  EXPECT_EQ(error_of([&] { reader.at("adam_v/w"); }, scratch.path()),
            R"([checkpoint] "run/step_00001000" has no tensor "adam_v/w"; the nearest is "adam_m/w")");
  EXPECT_EQ(error_of(
                [&] {
                  read<float>(reader, {"count", {}, {}}, DType::f32, 1);
                },
                scratch.path()),
            R"([checkpoint] "run/step_00001000": tensor "count" holds int64, which is not read as fp32)");
  EXPECT_THROW(read<float>(reader, {"w", Box{{2, 0}, {2, 4}}, {}}, DType::f32, 8), base::InternalError);
  EXPECT_THROW(read<float>(reader, {"w", {}, Range{0, 13}}, DType::f32, 13), base::InternalError);
  EXPECT_THROW(read<float>(reader, {"w", {}, {}}, DType::f32, 11), base::InternalError);
}

TEST(Checkpoint, AnyLayoutIntoAnyOther) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    ScratchFolder scratch;
    const int ranks = 1 + static_cast<int>(below(random, 4));
    std::map<std::string, std::pair<Shape, std::vector<float>>> tensors;
    for (int t = 0; t < 4; ++t) {
      std::vector<tensor::Dim> dims;
      for (int64_t d = below(random, 5); d > 0; --d) dims.push_back({"d" + std::to_string(d), 1 + below(random, 6)});
      const Shape shape(dims);
      tensors["t" + std::to_string(t)] = {shape, counting(shape.elements(), static_cast<float>(t) * 10000)};
    }
    std::vector<std::unique_ptr<CheckpointWriter>> writers;
    for (int rank = 0; rank < ranks; ++rank)
      writers.push_back(std::make_unique<CheckpointWriter>(scratch.path(), 5, rank, ranks));
    std::vector<std::vector<float>> alive;
    alive.reserve(10000);
    for (const auto& [name, tensor] : tensors) {
      std::vector<Part> parts;
      cut(whole_box(tensor.first), random, parts);
      for (const Part& part : parts) {
        alive.push_back(take(tensor.first, tensor.second, part));
        writers[static_cast<size_t>(below(random, ranks))]->add(
            {name, {tensor.first, DType::f32}, Kind::weight, part.box, part.flat}, bytes_of(alive.back()));
      }
    }
    for (const auto& writer : writers) writer->write();
    const CheckpointReader reader(writers[0]->finish({}));
    for (const auto& [name, tensor] : tensors) {
      EXPECT_EQ(read<float>(reader, {name, {}, {}}, DType::f32, tensor.first.elements()), tensor.second);
      std::vector<Part> parts;
      cut(whole_box(tensor.first), random, parts);
      for (const Part& part : parts)
        ASSERT_EQ(read<float>(reader, {name, part.box, part.flat}, DType::f32, part.flat.size()),
                  take(tensor.first, tensor.second, part));
    }
    reader.verify();
  }
}

TEST(Checkpoint, RanksThatDoNotComeOrDoNotFit) {
  ScratchFolder scratch;
  const Shape shape{{"a", 4}};
  const std::vector<float> half = counting(2);
  EXPECT_EQ(
      error_of([&] { CheckpointWriter(scratch.path(), 3, 1, 2); }, scratch.path()),
      "[checkpoint] step 3 is not saved, earlier checkpoints are untouched: rank 1 finds no \".part-step_00000003\", "
      "which rank 0 should have made");
  {
    CheckpointWriter zero(scratch.path(), 3, 0, 2), one(scratch.path(), 3, 1, 2);
    zero.add({"w", {shape, DType::f32}, Kind::weight, Box{{0}, {2}}, {}}, bytes_of(half));
    zero.write();
    EXPECT_EQ(error_of([&] { zero.finish({}); }),
              "[checkpoint] step 3 is not saved, earlier checkpoints are untouched: rank 1 has not written its part");
  }
  {
    CheckpointWriter zero(scratch.path(), 3, 0, 2), one(scratch.path(), 3, 1, 2);
    zero.add({"w", {shape, DType::f32}, Kind::weight, Box{{0}, {2}}, {}}, bytes_of(half));
    one.add({"w", {shape, DType::f32}, Kind::weight, Box{{1}, {2}}, {}}, bytes_of(half));
    zero.write();
    one.write();
    EXPECT_EQ(
        error_of([&] { zero.finish({}); }, scratch.path()),
        "[checkpoint] step 3 is not saved, earlier checkpoints are untouched: \".part-step_00000003/index.json\": "
        "tensor \"w\" [a:4] is incomplete: boxes [0:2] and [1:3] overlap");
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));  // the writers took their folders with them
  CheckpointWriter writer(scratch.path(), 3);
  EXPECT_THROW(writer.add({"w", {shape, DType::f32}, Kind::weight, {}, {}}, bytes_of(half)), base::InternalError);
  EXPECT_THROW(writer.add({"w", {shape, DType::f32}, Kind::weight, Box{{3}, {2}}, {}}, bytes_of(half)),
               base::InternalError);
}

TEST(Checkpoint, SavedAgainReplacesWhatWasThere) {
  ScratchFolder scratch;
  for (float value : {1.0f, 2.0f}) {
    const std::vector<float> w = {value};
    CheckpointWriter writer(scratch.path(), 8);
    writer.add({"w", {Shape{}, DType::f32}, Kind::weight, {}, {}}, bytes_of(w));
    writer.write();
    const CheckpointReader reader(writer.finish({}));
    EXPECT_EQ(read<float>(reader, {"w", {}, {}}, DType::f32, 1), w);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

}  // namespace kintsugi::checkpoint::checkpoint_test
