// Asks the system about its terminal, and draws the progress line.
#include "frontend/cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

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

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

bool color_on_stdout() { return color_on(STDOUT_FILENO); }
bool color_on_stderr() { return color_on(STDERR_FILENO); }
int output_width() { return std::clamp(columns(STDOUT_FILENO, 80), 60, 100); }

std::string styled(std::string_view text, Style style, bool on) {
  if (!on) return std::string(text);
  std::string_view code = style == Style::bold   ? "1"
                          : style == Style::dim  ? "2"
                          : style == Style::good ? "32"
                          : style == Style::bad  ? "31"
                                                 : "36";
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

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
  std::string line(text.substr(0, static_cast<size_t>(room)));
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
