// What the commands know of the terminal: colour, width, and a progress line that leaves no trace.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace lathe {

// Colour only on a terminal, and never when NO_COLOR is set.
bool color_on_stdout();
bool color_on_stderr();

// Columns of standard output: the terminal's, at least 60 and at most 100; 80 elsewhere.
int output_width();

enum class Style { bold, dim, good, bad, accent };
// Wrapped in the style's escape codes when `on`.
std::string styled(std::string_view text, Style style, bool on);

// Prints what a person reads, on standard output and on standard error. Names and messages come
// from files: what a terminal would obey in them appears as escapes, but for the styles above.
void say(std::string_view text);
void complain(std::string_view text);
template <typename... Parts>
void say(fmt::format_string<Parts...> format, Parts&&... parts) {
  say(std::string_view(fmt::format(format, std::forward<Parts>(parts)...)));
}
template <typename... Parts>
void complain(fmt::format_string<Parts...> format, Parts&&... parts) {
  complain(std::string_view(fmt::format(format, std::forward<Parts>(parts)...)));
}

// Standard output byte for byte: IR, machine code and JSON, for other programs.
void write_out(std::string_view bytes);

// One line on standard error, redrawn at most ten times a second:
//   [#########---------------]  73/192   bert_base   compiling
// Nothing at all when standard error is no terminal. The destructor erases it.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  // `share` from 0 to 1.
  void show(double share, std::string_view text);
  void erase();

 private:
  bool on_ = false;
  bool drawn_ = false;
  double last_seconds_ = -1;
};

}  // namespace lathe
