// The server's web page: a chat, or a text that the model continues. Uses only the API.
#pragma once

#include <string_view>

namespace kintsugi::serve {

// Self-contained HTML with its script and style. Replace %MODEL% and %CHATS% (true or false).
extern const std::string_view kPage;

}  // namespace kintsugi::serve
