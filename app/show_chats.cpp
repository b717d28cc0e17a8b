#include "app/show_chats.h"

#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/data/conversations.h"

namespace kintsugi::app {

void show_chats(const std::string& path, const std::string& chat) {
  if (chat.empty())
    throw base::UserError("show", "\"{}\" has conversations: name a chat template with --chat, such as chatml", path);
  const text::ChatTemplate& format = text::chat_template(chat);
  data::for_each_line(path, chat, [&](const base::Json& line, const data::LinePlace& place) {
    base::JsonWriter out;
    out.object([&] {
      out.key("parts").list([&] {
        for (const text::ChatPart& part : data::rendered(format, data::conversation_turns(line), place))
          if (!part.text.empty())
            out.object([&] { out.key("text").value(part.text).key("answer").value(part.answer); });
      });
    });
    write_out("{}\n", out.text());
  });
}

}  // namespace kintsugi::app
