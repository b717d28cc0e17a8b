#include <filesystem>
#include <memory>

#include "app/ranks.h"
#include "app/show_chats.h"
#include "app/show_checkpoint.h"
#include "app/show_images.h"
#include "app/show_run.h"
#include "app/show_tokens.h"
#include "app/verbs.h"
#include "kintsugi/data/conversations.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/images/image_file.h"

namespace kintsugi::app {

void add_show(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("show", "Prints the contents of a token file, checkpoint, run or run.toml");
  struct Options {
    std::string path, labels, chat;
    bool verify = false;
  };
  const auto options = std::make_shared<Options>();
  verb.text("path", options->path,
            "A token file (with or without .bin), image file, checkpoint, run folder, folder with model.safetensors, "
            "or run.toml")
      .required();
  verb.flag("--verify", options->verify, "Verify the checksums of a checkpoint");
  verb.text("--labels", options->labels, "A separate file with the labels of the images");
  verb.text("--chat", options->chat, "For a file of conversations: the chat template to render them with");
  verb.run([options] {
    require_one_process("show");
    const std::filesystem::path path = options->path, index = data::with_suffix(data::token_prefix(path), ".idx");
    const bool tokens =
        std::filesystem::exists(index) ||
        (path.extension() == ".bin" && std::filesystem::is_regular_file(path) && !images::is_image_file(path));
    if (data::is_conversations(path) || !options->chat.empty()) {
      show_chats(options->path, options->chat);
    } else if (!std::filesystem::is_directory(path) && tokens) {
      show_tokens(options->path);
    } else if (std::filesystem::is_regular_file(options->path) &&
               std::filesystem::path(options->path).extension() == ".toml") {
      show_run(options->path);
    } else if (std::filesystem::is_regular_file(options->path) && images::is_image_file(options->path)) {
      show_images(options->path, options->labels);
    } else {
      show_checkpoint(options->path, options->verify);
    }
  });
}

}  // namespace kintsugi::app
