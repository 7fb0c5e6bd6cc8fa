// One word of a shell's command line.
#pragma once
#include <string>

namespace lathe {

// `text` quoted, so that a POSIX shell takes it as it stands.
inline std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

}  // namespace lathe
