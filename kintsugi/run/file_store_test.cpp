#include "kintsugi/run/file_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>

#include "kintsugi/base/error.h"
#include "tests/patterns.h"

namespace kintsugi::run::file_store_test {
namespace {

namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string name = (fs::temp_directory_path() / "kintsugi_store_XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path = name;
  }
  ~Folder() override { fs::remove_all(path); }

  bool empty() const { return fs::is_empty(path); }

  fs::path path;
};

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "";
}

std::vector<std::byte> block(size_t bytes, int seed) {
  std::vector<std::byte> b(bytes);
  for (size_t i = 0; i < bytes; ++i) b[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return b;
}

// While this object exists, no file of this process may exceed this size.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_ = {};
};

using FileStoreTest = Folder;

}  // namespace

// More concurrent requests than slots; each sees those before it.
TEST_F(FileStoreTest, WritesAndReadsInOrder) {
  FileStore store(path, 1 << 20, 0);
  EXPECT_TRUE(empty());  // it has no name
  constexpr int64_t kBytes = 5000;
  std::vector<std::vector<std::byte>> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(block(kBytes, i));
  for (int i = 0; i < 200; ++i) store.write(kBytes * i, blocks[static_cast<size_t>(i)]);
  std::vector<std::byte> back(static_cast<size_t>(200 * kBytes)), first(kBytes);
  const FileStore::Ticket all = store.read(0, back);
  store.write(0, blocks[7]);
  const FileStore::Ticket again = store.read(0, first);
  store.wait(again);
  store.wait(all);
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(std::memcmp(back.data() + i * kBytes, blocks[i].data(), kBytes), 0) << i;
  EXPECT_EQ(first, blocks[7]);
  EXPECT_GE(store.waited_seconds(), 0.0);
}

TEST_F(FileStoreTest, EndsWhatIsUnderWay) {
  const std::vector<std::byte> b = block(1 << 20, 1);
  FileStore store(path, int64_t{64} << 20, 0);
  for (int i = 0; i < 64; ++i) store.write(int64_t{i} << 20, b);
}

TEST_F(FileStoreTest, AFolderThatIsNotThere) {
  const std::string in = (path / "nowhere").string();
  EXPECT_EQ(error_of([&] { FileStore store(in, 100, 3); }),
            "[offload] rank 3 cannot make a file in \"" + in +
                "\": No such file or directory; parallel.offload_folder must be an existing, writable folder");
}

TEST_F(FileStoreTest, AFolderThatCannotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may write anywhere";
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(error_of([&] { FileStore store(path, 100, 0); }),
            "[offload] rank 0 cannot make a file in \"" + path.string() +
                "\": Permission denied; parallel.offload_folder must be an existing, writable folder");
  fs::permissions(path, fs::perms::owner_all);
}

// Fails before anything is written, and leaves nothing.
TEST_F(FileStoreTest, AFullDisk) {
  const FileLimit limit(1 << 20);
  const std::string text = error_of([&] { FileStore store(path, 3 << 20, 2); });
  EXPECT_EQ(tests::replaced(text, "where [^:]* is free", "where SOME is free"),
            "[offload] rank 2 needs a file of 3.0 MiB (3145728 bytes) in \"" + path.string() +
                "\", where SOME is free: File too large; set parallel.offload_folder to a disk with more space, or "
                "parallel.offload to less");
  EXPECT_TRUE(empty());
}

// A waiting caller gets the error, for this request and all later ones; no caller hangs.
TEST_F(FileStoreTest, AReadThatFails) {
  FileStore store(path, 4096, 1);
  std::vector<std::byte> b(100);
  const FileStore::Ticket good = store.read(0, b);
  store.wait(good);
  const FileStore::Ticket bad = store.read(4090, b), later = store.read(0, b);
  const std::string error =
      "[offload] rank 1 cannot read 100 bytes at 4090 of its file in \"" + path.string() + "\": it ends before";
  EXPECT_EQ(error_of([&] { store.wait(later); }), error);
  EXPECT_EQ(error_of([&] { store.wait(bad); }), error);
}

TEST_F(FileStoreTest, AWriteThatFails) {
  FileStore store(path, 1 << 20, 0);
  const std::vector<std::byte> b = block(1000, 1);
  const FileLimit limit(4096);
  EXPECT_EQ(
      error_of([&] { store.wait(store.write(4000, b)); }),
      "[offload] rank 0 cannot write 1000 bytes at 4000 of its file in \"" + path.string() + "\": File too large");
}

}  // namespace kintsugi::run::file_store_test
