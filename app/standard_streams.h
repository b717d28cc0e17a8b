// What is printed must arrive: a full disk or a closed stdout is an error.
#pragma once

#include <ostream>
#include <string_view>

namespace kintsugi::app {

// Opens what is missing of the descriptors 0, 1 and 2, so that no file that is opened later gets one of their numbers.
// Reading from such a stdin fails, and so does writing to such a stdout; what is written to such a stderr is lost.
void open_missing_streams();

// Prints `text` at once. UserError "[output] ..." if it cannot be written.
void print_at_once(std::string_view text);

// UserError "[output] ..." unless all that was printed so far, on stdout and on `out`, is written.
void require_printed();
void require_printed(std::ostream& out);

// The text of that error, for a reason of the system.
std::string not_printed(std::string_view reason);

}  // namespace kintsugi::app
