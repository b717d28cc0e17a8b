// Where a long text may be cut, so that its parts can be tokenized apart.
#pragma once

#include <cstddef>
#include <string_view>

namespace kintsugi::text {

// The last place in (0, most] before a space that follows an ASCII letter; failing that, the last one at or before
// `most` where a character begins; `most` itself in bytes that are no UTF-8. The ids of the parts, joined, are those
// of the whole for bytes and chars; for bpe too in the first case, given a pattern of the GPT-2 family and no added
// token with a space inside it or that takes the white space on its right. `text.size()` if that is at most `most`.
// Looks at no more than the last 64 KiB before `most`, which must be at least 4.
size_t find_cut(std::string_view text, size_t most);

}  // namespace kintsugi::text
