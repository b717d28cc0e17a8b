// The page that the server shows in a browser: a chat, or a text that the model continues. It uses the API alone.
#pragma once

#include <string_view>

namespace kintsugi::serve {

// HTML with its script and style, without anything from elsewhere. %MODEL% and %CHATS% (true or false) are replaced.
extern const std::string_view kPage;

}  // namespace kintsugi::serve
