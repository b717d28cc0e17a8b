// Numbers and texts in readable form. All results are one line and independent of the locale.
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
std::string three_digits(double value);   // "1.23", "12.3", "123"; of larger numbers all before the point
std::string format_seconds(double s);     // more digits, for times that are compared: "13.100 s", "86.28 ms", "5.1 us"
std::string format_time(double seconds);  // three digits: "1.23 s", "45.6 ms", "0.12 us"; of minutes "1234 s"
// With so many decimals; "1.23457e+20" where that would be more than 15 digits before them.
std::string format_fixed(double value, int decimals);
// A loss: the same, and "1.23e-05" where that would leave fewer than three digits.
std::string format_loss(double value, int decimals = 4);
std::string group_digits(int64_t value);  // "1,234,567"
// "1 step", "0 steps", "1,234 steps"; a plural that is not formed by "s" is given.
std::string counted(int64_t n, std::string_view one, std::string_view many = "");

// `text` with control characters and bytes that are not UTF-8 written as escapes (\n,
// \x1b), so that it stays on one line and cannot control a terminal. If longer than `limit` bytes, it is cut between
// characters and ends in "...".
std::string one_line(std::string_view text, size_t limit = 200);
// Text for a terminal, of any number of lines: escapes what one_line does, but for \n and \t.
std::string printable(std::string_view text);
// one_line in double quotes: a name or a text from a file, for a message.
std::string in_quotes(std::string_view text, size_t limit = 200);

// UTF-8 `text` of at most `limit` bytes (3 or more): of a longer one the middle is left out, "...", since its end says
// what would be right.
std::string without_middle(std::string_view text, size_t limit);

// The length in bytes of the UTF-8 character that `text` begins with, or 0 if it begins with none.
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace kintsugi::base
