// What `show` prints of a file of conversations.
#pragma once

#include <string>

namespace kintsugi::app {

// Prints a line of JSON per conversation: its text by the chat template, in parts, and which of them are answers, that
// is, counted by the loss. Throws UserError if no template is named, and as data::Conversations does.
void show_chats(const std::string& path, const std::string& chat);

}  // namespace kintsugi::app
