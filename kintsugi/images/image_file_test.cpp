#include "kintsugi/images/image_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "kintsugi/data/test_folder.h"
#include "kintsugi/images/image_set.h"
#include "kintsugi/images/test_images.h"

namespace kintsugi::images::image_file_test {
namespace {

using data::error_of;
using data::TestFolder;

std::vector<uint8_t> image(const ImageFile& file, int64_t i) {
  std::vector<uint8_t> bytes(static_cast<size_t>(file.bytes_per_image()));
  file.read(i, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// The error for a file with this content, without "[images] " and with FOLDER for the folder.
std::string error_in(const TestFolder& folder, const std::string& name, const std::string& content,
                     const std::string& labels = "") {
  folder.write(name, content);
  std::string error =
      error_of([&] { const ImageFile file(folder / name, labels.empty() ? "" : (folder / labels).string()); });
  const std::string path = folder.path().string() + "/";
  for (size_t at; (at = error.find(path)) != error.npos;) error.erase(at, path.size());
  return error.starts_with("[images] ") ? error.substr(9) : error;
}

}  // namespace

TEST(ImageFile, ReadsCifar) {
  const TestFolder folder;
  folder.write("ten.bin", cifar_file({3, 9, 0}));
  folder.write("hundred.bin", cifar_file({3, 99}, 2));
  const ImageFile ten(folder / "ten.bin", ""), hundred(folder / "hundred.bin", "");
  EXPECT_EQ(ten.format(), "CIFAR-10");
  EXPECT_EQ(ten.size(), 3);
  EXPECT_EQ(ten.classes(), 10);
  EXPECT_EQ(ten.label(1), 9);
  EXPECT_EQ(hundred.format(), "CIFAR-100");
  EXPECT_EQ(hundred.classes(), 100);
  EXPECT_EQ(hundred.label(1), 99);
  for (const ImageFile* file : {&ten, &hundred}) {
    EXPECT_EQ((std::vector<int64_t>{file->channels(), file->height(), file->width()}),
              (std::vector<int64_t>{3, 32, 32}));
    const std::vector<uint8_t> second = image(*file, 1);
    for (int64_t i = 0; i < 3072; ++i) ASSERT_EQ(second[static_cast<size_t>(i)], test_pixel(1, i)) << i;
  }
  EXPECT_NE(ten.fingerprint(), hundred.fingerprint());
}

TEST(ImageFile, ReadsIdxWithTheLabelsBesideIt) {
  const TestFolder folder;
  folder.write("t10k-images-idx3-ubyte", idx_file({2, 4, 5}, test_pixels(0, 40)));
  folder.write("t10k-labels-idx1-ubyte", idx_file({2}, std::string{7, 2}));
  const ImageFile file(folder / "t10k-images-idx3-ubyte", "");
  EXPECT_EQ(file.size(), 2);
  EXPECT_EQ(file.channels(), 1);
  EXPECT_EQ(file.classes(), 8);
  EXPECT_EQ(file.label(1), 2);
  EXPECT_EQ(image(file, 1)[19], test_pixel(0, 39));
}

TEST(ImageFile, ReadsNpyInBothOrders) {
  const TestFolder folder;
  folder.write("labels.npy", npy_file("<i8", "(2,)", std::string{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  folder.write("labels.csv", "1\n0\n");
  folder.write("first.npy", npy_file("|u1", "(2, 3, 5, 7)", test_pixels(0, 210)));
  folder.write("last.npy", npy_file("|u1", "(2, 5, 7, 3)", test_pixels(0, 210)));
  folder.write("numbers.npy", npy_file("<f4", "(2, 5, 7)", test_pixels(0, 280)));
  for (const char* labels : {"labels.npy", "labels.csv"}) {
    const ImageFile first(folder / "first.npy", folder / labels), last(folder / "last.npy", folder / labels);
    EXPECT_EQ(first.label(0), 1);
    EXPECT_EQ(first.label(1), 0);
    const std::vector<uint8_t> a = image(first, 1), b = image(last, 1);
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t p = 0; p < 35; ++p) {
        ASSERT_EQ(a[static_cast<size_t>(c * 35 + p)], test_pixel(0, 105 + c * 35 + p));
        ASSERT_EQ(b[static_cast<size_t>(c * 35 + p)], test_pixel(0, 105 + p * 3 + c));
      }
  }
  const ImageFile numbers(folder / "numbers.npy", folder / "labels.csv");
  EXPECT_EQ(numbers.dtype(), tensor::DType::f32);
  EXPECT_EQ(numbers.bytes_per_image(), 140);
  EXPECT_EQ(image(numbers, 1)[3], test_pixel(0, 143));
}

TEST(ImageFile, RefusesWhatIsDamaged) {
  const TestFolder folder;
  folder.write("labels.csv", "1\n0\n");
  folder.write("two.csv", "1,2\n0,1\n");
  folder.write("five.npy", npy_file("|u1", "(5,)", "abcde"));
  folder.write("minus.npy", npy_file("|i1", "(2,)", std::string{'\1', '\xff'}));
  folder.write("large.npy", npy_file("<i4", "(2,)", std::string("\0\0\0\0\xff\xff\xff\x7f", 8)));
  folder.write("float.npy", npy_file("<f4", "(2,)", std::string(8, '\0')));
  const std::string ten = cifar_file({3, 10});
  EXPECT_EQ(error_in(folder, "a.bin", ten), "\"a.bin\" record 1 has label 10; CIFAR-10 has labels 0 to 9");
  EXPECT_EQ(
      error_in(folder, "a.bin", ten.substr(0, 5000)),
      "\"a.bin\" is neither an npy nor an idx file, and its 5,000 bytes are not a multiple of 3,073 or 3,074, the "
      "size of a CIFAR-10 or CIFAR-100 record: it is truncated, or of another format");
  EXPECT_EQ(error_in(folder, "a.npz", "PK\x03\x04" + ten.substr(0, 5000), "labels.csv"),
            "\"a.npz\" is a zip archive, as .npz files are; save each array with numpy.save");
  EXPECT_EQ(error_in(folder, "a.png", "\x89PNG" + ten.substr(0, 5000), "labels.csv"),
            "\"a.png\" is a PNG file; convert the images to one npy array");
  EXPECT_EQ(error_in(folder, "a.bin", "", "labels.csv"), "\"a.bin\" is empty");
  EXPECT_EQ(error_in(folder, "a.bin", cifar_file({1}), "labels.csv"),
            "\"a.bin\" contains its labels; leave out the labels file \"labels.csv\"");
  EXPECT_EQ(error_in(folder, "x-images-idx3", idx_file({2, 4, 5}, test_pixels(0, 39))),
            "\"x-images-idx3\" is truncated: it has 55 bytes, its header of [2 4 5] |u1 implies 56");
  EXPECT_EQ(error_in(folder, "x-images-idx3", idx_file({2, 4, 5}, test_pixels(0, 40))),
            "\"x-images-idx3\" has no labels: \"x-labels-idx1\" does not exist; name their file: data.train_labels, "
            "data.validation_labels or --labels");
  EXPECT_EQ(error_in(folder, "x", idx_file({2, 4}, test_pixels(0, 8))),
            "\"x\" holds [2 4] of |u1; images are [image height width], with a channel dim before or after height and "
            "width, or volumes [image channel depth height width]");
  EXPECT_EQ(error_in(folder, "x", idx_file({2, 4}, test_pixels(0, 8), 13)),
            "\"x\" is an idx file of element type 13; 8, uint8, is needed");
  const std::string pixels = test_pixels(0, 40);
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|u1", "(2, 4, 5)", pixels)),
            "\"x.npy\" has no labels; name their file: data.train_labels, data.validation_labels or --labels");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|u1", "(2, 4, 5)", pixels), "two.csv"),
            "\"two.csv\" has 2 numbers per line; an image has one label");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|u1", "(2, 4, 5)", pixels), "five.npy"),
            "\"five.npy\" has 5 labels, but \"x.npy\" has 2 images");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|u1", "(2, 4, 5)", pixels), "minus.npy"),
            "\"minus.npy\" label 1 is -1; labels are 0 to the number of classes minus 1");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|u1", "(2, 4, 5)", pixels), "large.npy"),
            "\"large.npy\" label 1 is 2147483647; there are at most 1,000,000,000 classes");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|u1", "(2, 4, 5)", pixels), "float.npy"),
            "\"float.npy\" holds [2] of <f4; labels are one integer per image, [image] of an integer type");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("<f8", "(1, 1, 5)", pixels), "labels.csv"),
            "\"x.npy\" holds [1 1 5] of <f8; images are uint8 (|u1) or fp32 (<f4)");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file(">f4", "(2, 5, 1)", pixels), "labels.csv"),
            "\"x.npy\" has big-endian elements, >f4; save it as little-endian");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|u1", "(2, 4, 5)", pixels, "True"), "labels.csv"),
            "\"x.npy\" is in Fortran order; save it with numpy.ascontiguousarray");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|O", "(2, 4, 5)", pixels), "labels.csv"),
            "\"x.npy\" has elements that are objects or records; an array of plain numbers is needed");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|u1", "(2, 4, 5, 1, 1, 1)", pixels), "labels.csv"),
            "\"x.npy\" holds [2 4 5 1 1 1] of |u1; images are [image height width], with a channel dim before or after "
            "height and width, or volumes [image channel depth height width]");
  EXPECT_EQ(
      error_in(folder, "x.npy", npy_file("|u1", "(2, 2, 5, 2)", pixels), "labels.csv"),
      "\"x.npy\" holds [2 2 5 2] of |u1; the channel dim may be the second or the last; fp32 arrays have channels "
      "first");
  EXPECT_EQ(
      error_in(folder, "x.npy", npy_file("|u1", "(1, 5, 1, 8)", pixels), "labels.csv"),
      "\"x.npy\" holds [1 5 1 8] of |u1; the second or the last dim must be the channels, 1 to 4; fp32 arrays may "
      "have any number");
  EXPECT_EQ(error_in(folder, "x.npy", npy_file("|u1", "(2, 4, 5)", pixels).substr(0, 40), "labels.csv"),
            "\"x.npy\" is a damaged npy file: it ends within its header");
}

TEST(ImageSet, JoinsFilesOfOneSize) {
  const TestFolder folder;
  folder.write("set/data_batch_2.bin", cifar_file({4, 5, 6}));
  folder.write("set/data_batch_1.bin", cifar_file({1, 2}));
  folder.write("set/test_batch.bin", cifar_file({9}));
  folder.write("set/readme.html", "text");
  const ImageSet train({folder / "set"}, "", Use::train), test({folder / "set"}, "", Use::evaluate);
  EXPECT_EQ(train.size(), 5);
  EXPECT_EQ(test.size(), 1);
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < train.size(); ++i) labels.push_back(train.label(i));
  EXPECT_EQ(labels, (std::vector<int32_t>{1, 2, 4, 5, 6}));
  std::vector<uint8_t> last(3072);
  train.read(4, std::as_writable_bytes(std::span(last)));
  EXPECT_EQ(last[10], test_pixel(2, 10));
  folder.write("few.bin", cifar_file({0, 1, 1, 2}));
  const ImageSet few({folder / "few.bin"}, "", Use::train);
  EXPECT_EQ(error_of([&] { few.require_all_classes(3); }), "no error");
  EXPECT_EQ(error_of([&] { few.require_all_classes(1000); }),
            "[images] the model has 1000 classes, and \"" + (folder / "few.bin").string() +
                "\" has 10; set model.outputs = 10, or = 1000 to train without the others");
  EXPECT_EQ(error_of([&] { train.require_labels(6); }).substr(0, 22), "[images] image 2 of \"/");
  const std::string empty = error_of([&] { train.require_all_classes(10); });
  EXPECT_TRUE(empty.starts_with("[images] class 0 of 0 to 9 has no image in ")) << empty;
  EXPECT_TRUE(
      empty.ends_with(" or the 1 other files; number the classes from 0 without gaps, or set model.outputs = "
                      "10 to train without it"))
      << empty;
  EXPECT_TRUE(error_of([&] { image_files(folder.path(), Use::train); })
                  .ends_with("has no published training set: data_batch_*.bin of CIFAR-10, train.bin of CIFAR-100, or "
                             "train-images-idx3-ubyte of MNIST; name files instead"));
  folder.write("small.npy", npy_file("|u1", "(1, 4, 5)", test_pixels(0, 20)));
  EXPECT_NE(error_of([&] { const ImageSet set({folder / "set", folder / "small.npy"}, "", Use::train); }), "no error");
  folder.write("hundred.bin", cifar_file({3, 99}, 2));
  const std::string mixed = error_of([&] {
    const ImageSet set({folder / "set", folder / "hundred.bin"}, "", Use::train);
  });
  EXPECT_TRUE(mixed.ends_with("hundred.bin\" CIFAR-100; their classes differ")) << mixed;
  folder.write("set/train-images-idx3-ubyte", idx_file({2, 4, 5}, test_pixels(0, 40)));
  EXPECT_TRUE(error_of([&] { image_files(folder / "set", Use::train); })
                  .ends_with("has files of two data sets, data_batch_1.bin and train-images-idx3-ubyte; name files "
                             "instead"));
}

// Optional labels are read if the file contains them or their published file exists.
TEST(ImageFile, ReadsOptionalLabels) {
  const TestFolder folder;
  folder.write("t10k-images-idx3-ubyte", idx_file({2, 4, 5}, test_pixels(0, 40)));
  const auto open = [&](const std::string& name) { return ImageFile(folder / name, "", LabelKind::none); };
  EXPECT_EQ(open("t10k-images-idx3-ubyte").label(1), -1);
  folder.write("t10k-labels-idx1-ubyte", idx_file({2}, std::string{7, 2}));
  EXPECT_EQ(open("t10k-images-idx3-ubyte").label(1), 2);
  folder.write("ten.bin", cifar_file({3, 9, 0}));
  EXPECT_EQ(open("ten.bin").label(1), 9);
  folder.write("x.npy", npy_file("|u1", "(2, 4, 5)", test_pixels(0, 40)));
  EXPECT_EQ(open("x.npy").label(1), -1);
  EXPECT_EQ(open("x.npy").classes(), 0);
}

TEST(ImageFile, ReadsVolumesWithNumbers) {
  const TestFolder folder;
  std::string elements;
  for (float x = 0; x < 2 * 2 * 3 * 4 * 5; ++x) elements.append(reinterpret_cast<const char*>(&x), 4);
  folder.write("x.npy", npy_file("<f4", "(2, 2, 3, 4, 5)", elements));
  folder.write("y.csv", "1,2\n3,4\n");
  const ImageFile file(folder / "x.npy", folder / "y.csv", LabelKind::numbers);
  EXPECT_EQ(file.size(), 2);
  EXPECT_EQ((std::vector<int64_t>{file.channels(), file.depth(), file.height(), file.width(), file.numbers()}),
            (std::vector<int64_t>{2, 3, 4, 5, 2}));
  EXPECT_EQ(file.numbers_of(1)[0], 3.0f);
  std::vector<float> image(120);
  file.read(1, std::as_writable_bytes(std::span(image)));
  EXPECT_EQ(image[0], 120.0f);
  EXPECT_EQ(image[119], 239.0f);
  folder.write("short.csv", "1,2\n");
  EXPECT_NE(error_of([&] {
              const ImageFile bad(folder / "x.npy", folder / "short.csv", LabelKind::numbers);
            }).find("has numbers for 1 images"),
            std::string::npos);
}

// Channels-last volumes are read channels-first.
TEST(ImageFile, ReadsChannelsLastOfVolumes) {
  const TestFolder folder;
  folder.write("x.npy", npy_file("|u1", "(1, 5, 6, 7, 2)", test_pixels(0, 420)));
  const ImageFile file(folder / "x.npy", "", LabelKind::none);
  EXPECT_EQ((std::vector<int64_t>{file.channels(), file.depth(), file.height(), file.width()}),
            (std::vector<int64_t>{2, 5, 6, 7}));
  EXPECT_EQ(file.label(0), -1);
  const std::vector<uint8_t> bytes = image(file, 0);
  for (int64_t i = 0; i < 210; ++i) {
    ASSERT_EQ(bytes[static_cast<size_t>(i)], test_pixel(0, 2 * i)) << i;
    ASSERT_EQ(bytes[static_cast<size_t>(210 + i)], test_pixel(0, 2 * i + 1)) << i;
  }
}

TEST(ImageFile, ReadsClassesOfPixels) {
  const TestFolder folder;
  folder.write("x.npy", npy_file("|u1", "(2, 2, 3)", test_pixels(0, 12)));
  folder.write("y.npy", npy_file("|u1", "(2, 2, 3)", std::string("\0\1\2\0\1\2\3\0\xff\1\1\1", 12)));
  const ImageFile file(folder / "x.npy", folder / "y.npy", LabelKind::pixels);
  EXPECT_EQ(file.classes(), 4);
  std::vector<int32_t> classes(6);
  file.read_classes(1, classes);
  EXPECT_EQ(classes, (std::vector<int32_t>{3, 0, -1, 1, 1, 1}));
  folder.write("other.npy", npy_file("|u1", "(2, 3, 2)", std::string(12, '\0')));
  EXPECT_NE(error_of([&] {
              const ImageFile bad(folder / "x.npy", folder / "other.npy", LabelKind::pixels);
            }).find("other.npy\" holds [2 3 2] of |u1; the classes of pixels of"),
            std::string::npos);
}

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(ImageFile, ReadsFieldsOfPixels) {
  const TestFolder folder;
  folder.write("x.npy", npy_file("|u1", "(2, 2, 3)", test_pixels(0, 12)));
  std::vector<float> values(24);  // [image channel height width]
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 3.5f;
  folder.write("first.npy", npy_file("<f4", "(2, 2, 2, 3)", floats(values)));
  std::vector<float> last(24), one(values.begin(), values.begin() + 12);
  for (size_t n = 0; n < 2; ++n)
    for (size_t c = 0; c < 2; ++c)
      for (size_t p = 0; p < 6; ++p) last[n * 12 + p * 2 + c] = values[n * 12 + c * 6 + p];
  folder.write("last.npy", npy_file("<f4", "(2, 2, 3, 2)", floats(last)));
  folder.write("one.npy", npy_file("<f4", "(2, 2, 3)", floats(one)));
  for (const char* name : {"first.npy", "last.npy"}) {
    const ImageFile file(folder / "x.npy", folder / name, LabelKind::fields);
    EXPECT_EQ(file.numbers(), 2);
    EXPECT_EQ(file.image_of_zeros(), -1);
    std::vector<float> read(12);
    file.read_fields(1, read);
    EXPECT_EQ(read, std::vector<float>(last.begin() + 12, last.end())) << name;
  }
  const ImageFile single(folder / "x.npy", folder / "one.npy", LabelKind::fields);
  std::vector<float> read(6);
  single.read_fields(1, read);
  EXPECT_EQ(single.numbers(), 1);
  EXPECT_EQ(read, std::vector<float>(one.begin() + 6, one.end()));
}

TEST(ImageFile, FieldsThatDoNotFitAreSaid) {
  const TestFolder folder;
  folder.write("x.npy", npy_file("|u1", "(2, 2, 3)", test_pixels(0, 12)));
  const auto error = [&](std::string_view type, std::string_view shape, const std::string& elements) {
    folder.write("y.npy", npy_file(type, shape, elements));
    std::string text = error_of([&] { const ImageFile bad(folder / "x.npy", folder / "y.npy", LabelKind::fields); });
    const std::string at = (folder / "").string();
    for (size_t i; (i = text.find(at)) != text.npos;) text.erase(i, at.size());
    return text;
  };
  const std::string fields = "; the fields of \"x.npy\" are fp32 (<f4), [2 channel 2 3], or with channels last";
  EXPECT_EQ(error("<f4", "(2, 6)", floats(std::vector<float>(12, 1))),
            "[images] \"y.npy\" holds [2 6] of <f4" + fields);
  EXPECT_EQ(error("<f4", "(2, 5, 3, 2)", floats(std::vector<float>(60, 1))),
            "[images] \"y.npy\" holds [2 5 3 2] of <f4" + fields);
  EXPECT_EQ(error("<f4", "(3, 1, 2, 3)", floats(std::vector<float>(18, 1))),
            "[images] \"y.npy\" holds [3 1 2 3] of <f4" + fields);
  EXPECT_EQ(error("|u1", "(2, 2, 3)", std::string(12, '\1')), "[images] \"y.npy\" holds [2 2 3] of |u1" + fields);
  std::vector<float> values(12, 1);
  values[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error("<f4", "(2, 2, 3)", floats(values)),
            "[images] \"y.npy\" has NaN or infinity in the fields of image 1");
  folder.write("y.txt", "1\n2\n");
  EXPECT_NE(error_of([&] {
              const ImageFile bad(folder / "x.npy", folder / "y.txt", LabelKind::fields);
            }).find("is no npy file; fields are"),
            std::string::npos);
  const ImageFile zeros = [&] {
    std::vector<float> some(12, 1);
    std::fill_n(some.begin() + 6, 6, 0.0f);
    folder.write("y.npy", npy_file("<f4", "(2, 2, 3)", floats(some)));
    return ImageFile(folder / "x.npy", folder / "y.npy", LabelKind::fields);
  }();
  EXPECT_EQ(zeros.image_of_zeros(), 1);
}

}  // namespace kintsugi::images::image_file_test
