// Formats numbers and texts for people. All results are one line and independent of the locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kintsugi::base {

std::string format_bytes(uint64_t bytes);     // "512 B", "1.2 GiB", "24.0 KiB", "123 MiB"
std::string format_count(double count);       // "812", "3.1 M", "1.5 B", "300 B", "1.4 T"; thousand is k
std::string format_duration(double seconds);  // "0.8s", "12s", "4m10s", "2h05m", "3d04h"; "?" if not finite
// Three digits and a decimal prefix: format_rate(1.52e11, "FLOP/s") is "152 GFLOP/s", format_rate(1520, "tokens/s") is
// "1.52 ktokens/s".
std::string format_rate(double value, std::string_view unit);
std::string three_digits(double value);   // "1.23", "12.3", "123"; larger numbers with all integer digits
std::string format_seconds(double s);     // more digits, for comparing times: "13.100 s", "86.28 ms", "5.1 us"
std::string format_time(double seconds);  // three digits: "1.23 s", "45.6 ms", "0.12 us"; minutes as "1234 s"
// With that many decimals; "1.23457e+20" beyond 15 integer digits.
std::string format_fixed(double value, int decimals);
// Formats a loss in the same way, or as "1.23e-05" where fewer than three digits would remain.
std::string format_loss(double value, int decimals = 4);
std::string group_digits(int64_t value);  // "1,234,567"
// "1 step", "0 steps", "1,234 steps"; pass `many` for irregular plurals.
std::string counted(int64_t n, std::string_view one, std::string_view many = "");

// `text` with control characters and invalid UTF-8 escaped, so that it stays on one line and cannot control a terminal.
// Beyond `limit` bytes it is cut between characters and ends in "...".
std::string one_line(std::string_view text, size_t limit = 200);
// Escapes multi-line text for a terminal as one_line does, except for newlines and tabs.
std::string printable(std::string_view text);
// one_line in double quotes: a name or text from a file, for a message.
std::string in_quotes(std::string_view text, size_t limit = 200);

// Shortens UTF-8 `text` to `limit` bytes (3 or more), replacing the middle by "...", since the end of a message says
// what would be right.
std::string without_middle(std::string_view text, size_t limit);

// The length in bytes of the UTF-8 character at the beginning of `text`, or 0 if there is none.
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace kintsugi::base
