// Escapes for control characters and broken UTF-8.
#include "ir/support/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace lathe {
namespace {

// How many bytes a character takes that starts with `lead`, and the least one that needs so many;
// size 0 for a byte that starts none.
struct Utf8Form {
  size_t size = 0;
  uint32_t least = 0;
};

Utf8Form form_of(unsigned char lead) {
  if (lead < 0x80) return {1, 0};
  if (lead >= 0xc0 && lead < 0xe0) return {2, 0x80};
  if (lead >= 0xe0 && lead < 0xf0) return {3, 0x800};
  if (lead >= 0xf0 && lead < 0xf8) return {4, 0x10000};
  return {};
}

// The character at the start of a text that is not empty; size 0 when it is broken.
struct Character {
  size_t size = 0;
  uint32_t code = 0;
};

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const Utf8Form form = form_of(lead);
  if (form.size == 0 || form.size > text.size()) return {};
  uint32_t code = form.size == 1 ? lead : lead & (0x7fu >> form.size);
  for (size_t i = 1; i < form.size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {};
    code = code << 6 | (byte & 0x3fu);
  }
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < form.least || code > 0x10ffff || is_surrogate) return {};
  return {form.size, code};
}

bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

// Embeddings, overrides, isolates and marks of direction; separators of lines and paragraphs.
bool is_layout_mark(uint32_t code) {
  return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string printable(std::string_view text, bool keeps_lines) {
  std::string out;
  while (!text.empty()) {
    const Character c = first_character(text);
    const size_t size = c.size == 0 ? 1 : c.size;
    const bool is_kept = keeps_lines && (c.code == '\n' || c.code == '\t');
    if (c.size == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (is_control(c.code) && !is_kept) {
      out += fmt::format("\\x{:02x}", c.code);
    } else if (is_layout_mark(c.code)) {
      out += fmt::format("\\u{:04x}", c.code);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace

std::string printable_line(std::string_view text) { return printable(text, false); }
std::string printable_lines(std::string_view text) { return printable(text, true); }

size_t utf8_size(std::string_view text) { return text.empty() ? 0 : first_character(text).size; }

bool is_utf8(std::string_view text) {
  while (const size_t size = utf8_size(text)) text.remove_prefix(size);
  return text.empty();
}

}  // namespace lathe
