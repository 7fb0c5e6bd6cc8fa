// Text from files on its way to a terminal.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace lathe {

// The text with visible escapes for what a terminal would obey or hide and for what is no UTF-8:
// control characters (\x1b, \x9b), marks that turn the direction of text (\u202e). In `lines`,
// newlines and tabs stay.
std::string printable_line(std::string_view text);
std::string printable_lines(std::string_view text);

// Bytes of the UTF-8 character at the start of the text; 0 when there is none.
size_t utf8_size(std::string_view text);
bool is_utf8(std::string_view text);  // all of it

}  // namespace lathe
