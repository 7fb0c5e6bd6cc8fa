// Asks the system about its terminal, and draws the progress line.
#include "frontend/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "ir/support/printable.h"

namespace lathe {

namespace {

bool color_on(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  bool is_dumb = term != nullptr && std::string_view(term) == "dumb";
  return isatty(descriptor) != 0 && (no_color == nullptr || *no_color == '\0') && !is_dumb;
}

int columns(int descriptor, int fallback) {
  winsize size{};
  if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return fallback;
  return size.ws_col;
}

// In the order of Style.
constexpr std::string_view kStyles[] = {"\033[1m", "\033[2m", "\033[32m", "\033[31m", "\033[36m"};
constexpr std::string_view kPlain = "\033[0m";

// Bytes of the style code at the start of the text.
size_t style_size(std::string_view text) {
  const auto starts = [&](std::string_view code) { return text.substr(0, code.size()) == code; };
  for (std::string_view code : kStyles)
    if (starts(code)) return code.size();
  return starts(kPlain) ? kPlain.size() : 0;
}

void print_safely(std::FILE* file, std::string_view text, bool has_styles) {
  std::string out;
  while (!text.empty()) {
    const size_t plain = has_styles ? std::min(text.find('\033'), text.size()) : text.size();
    out += printable_lines(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t code = style_size(text);
    out += code > 0 ? std::string(text.substr(0, code)) : printable_lines(text.substr(0, 1));
    text.remove_prefix(std::max<size_t>(code, 1));
  }
  fmt::print(file, "{}", out);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

bool color_on_stdout() { return color_on(STDOUT_FILENO); }
bool color_on_stderr() { return color_on(STDERR_FILENO); }
int output_width() { return std::clamp(columns(STDOUT_FILENO, 80), 60, 100); }

std::string styled(std::string_view text, Style style, bool on) {
  if (!on) return std::string(text);
  return fmt::format("{}{}{}", kStyles[static_cast<size_t>(style)], text, kPlain);
}

void say(std::string_view text) { print_safely(stdout, text, color_on_stdout()); }
void complain(std::string_view text) { print_safely(stderr, text, color_on_stderr()); }
void write_out(std::string_view bytes) { fmt::print("{}", bytes); }

Progress::Progress() : on_(isatty(STDERR_FILENO) != 0) {}
Progress::~Progress() { erase(); }

void Progress::show(double share, std::string_view text) {
  if (!on_) return;
  constexpr double kSecondsBetween = 0.1;
  double now = seconds_now();
  if (drawn_ && now - last_seconds_ < kSecondsBetween) return;
  last_seconds_ = now;
  drawn_ = true;
  constexpr int kBar = 24;
  int filled = std::clamp(static_cast<int>(share * kBar + 0.5), 0, kBar);
  int room = std::max(columns(STDERR_FILENO, 80) - kBar - 9, 10);
  const std::string line = printable_line(text.substr(0, static_cast<size_t>(room)));
  fmt::print(stderr, "\r\033[K[{}{}] {:3.0f}%  {}", std::string(static_cast<size_t>(filled), '#'),
             std::string(static_cast<size_t>(kBar - filled), '-'), share * 100, line);
  std::fflush(stderr);
}

void Progress::erase() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace lathe
