// Damaged checkpoints: truncated, altered or incomplete.
#include <gtest/gtest.h>

#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/scratch_test.h"

namespace kintsugi::checkpoint::damage_test {
namespace {

namespace fs = std::filesystem;
using tensor::DType;

std::string flaw_of(const fs::path& folder, const fs::path& scratch) {
  return error_of([&] { CheckpointReader(folder).verify(); }, scratch);
}

}  // namespace

TEST(Damage, NoFlippedBitOrMissingByteIsOverlooked) {
  ScratchFolder scratch;
  const fs::path folder = save_small(scratch.path(), 1);
  ASSERT_EQ(flaw_of(folder, scratch.path()), "");
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string whole = base::read_file(entry.path());
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string text = whole;
      text[i] = static_cast<char>(text[i] ^ (1 << (i % 8)));
      put(entry.path(), text);
      const std::string error = flaw_of(folder, scratch.path());
      ASSERT_NE(error, "") << entry.path() << " byte " << i;
      ASSERT_TRUE(is_one_line(error)) << error;
    }
    for (size_t n = 0; n < whole.size(); n += 7) {
      put(entry.path(), whole.substr(0, n));
      ASSERT_NE(flaw_of(folder, scratch.path()), "") << entry.path() << " cut at " << n;
    }
    put(entry.path(), whole);
  }
  EXPECT_EQ(flaw_of(folder, scratch.path()), "");
}

// A mapped file would end the process by a signal.
TEST(Damage, AFileThatBecomesShorterWhileItIsRead) {
  ScratchFolder scratch;
  const fs::path folder = save_small(scratch.path(), 1);
  const CheckpointReader reader(folder);
  reader.hold();
  const fs::path file = folder / "rank_00000.safetensors";
  const uint64_t size = fs::file_size(file);
  fs::resize_file(file, 100);
  const std::string error = error_of([&] { reader.verify(); }, scratch.path());
  EXPECT_TRUE(error.starts_with("[file] \"step_00000001/rank_00000.safetensors\" was truncated while in use: it had " +
                                std::to_string(size) + " bytes"))
      << error;
}

TEST(Damage, Messages) {
  ScratchFolder scratch;
  const fs::path folder = save_small(scratch.path(), 1);
  const fs::path file = folder / "rank_00000.safetensors";
  const std::string whole = base::read_file(file);

  std::string text = whole;
  text.back() = 'x';
  put(file, text);
  EXPECT_EQ(flaw_of(folder, scratch.path()),
            "[checkpoint] \"step_00000001/rank_00000.safetensors\": tensor \"w#1\" is damaged: its checksum is "
            "519f184675060086, the index says c7de39ae11689bef; load another step");
  const CheckpointReader reader(folder);
  std::vector<std::byte> out(6);
  reader.read({"w", {}, Range{0, 6}}, DType::u8, out);  // the piece beside it is whole
  EXPECT_THROW(reader.read({"w", {}, Range{1, 7}}, DType::u8, out), base::UserError);

  put(file, whole + "x");
  EXPECT_EQ(flaw_of(folder, scratch.path()),
            "[checkpoint] \"step_00000001/rank_00000.safetensors\" is damaged: it has " +
                std::to_string(whole.size() + 1) + " bytes, the index says " + std::to_string(whole.size()));
  fs::remove(file);
  EXPECT_EQ(flaw_of(folder, scratch.path()),
            "[checkpoint] \"step_00000001/rank_00000.safetensors\" is missing: No such file or directory");
  put(file, whole);

  put(folder / "config.toml", "[model]\nlayers = 3\n");
  EXPECT_TRUE(flaw_of(folder, scratch.path())
                  .starts_with("[checkpoint] \"step_00000001/config.toml\" is damaged: its checksum is "));
  put(folder / "index.json", "{}");
  EXPECT_TRUE(flaw_of(folder, scratch.path())
                  .starts_with("[checkpoint] \"step_00000001/index.json\" is damaged: its checksum is "));
  fs::remove(folder / "index.xxh3");
  EXPECT_EQ(flaw_of(folder, scratch.path()),
            "[file] cannot open \"step_00000001/index.xxh3\": No such file or directory");
  fs::remove(folder / "index.json");
  EXPECT_EQ(flaw_of(folder, scratch.path()),
            "[checkpoint] \"step_00000001\" has no index.json; is it a checkpoint's folder?");
}

}  // namespace kintsugi::checkpoint::damage_test
