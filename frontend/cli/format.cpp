// Figures, tables and wrapped text.
#include "frontend/cli/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lathe {

namespace {

// Columns that a cell takes: escape codes none, a UTF-8 character one.
size_t visible_width(const std::string& text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

// Decimals that leave three significant digits.
int decimals(double value) {
  double size = std::abs(value);
  return size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
}

// The unit that a time is shown in, and how many milliseconds it has.
struct TimeUnit {
  const char* name;
  double milliseconds;
};
TimeUnit unit_of(double milliseconds) {
  if (milliseconds >= 10000) return {"s", 1000};
  return milliseconds < 0.1 ? TimeUnit{"us", 0.001} : TimeUnit{"ms", 1};
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  for (const char* unit : {"kB", "MB", "GB"}) {
    value /= 1000;
    if (value < 999.5) return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, unit);
  }
  return fmt::format("{:.1f} TB", value / 1000);
}

std::string format_ms(double milliseconds) {
  TimeUnit unit = unit_of(milliseconds);
  double value = milliseconds / unit.milliseconds;
  return fmt::format("{:.{}f} {}", value, decimals(value), unit.name);
}

std::string format_spread(double half, double milliseconds) {
  TimeUnit unit = unit_of(milliseconds);
  return fmt::format("±{:.{}f}", half / unit.milliseconds,
                     decimals(milliseconds / unit.milliseconds));
}

std::string format_count(int64_t count) {
  std::string digits = fmt::format("{}", count), grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    bool is_group = i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-';
    if (is_group) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string format_large(double count) {
  if (count < 1e3) return fmt::format("{:.0f}", count);
  for (const char* unit : {"k", "M", "G"}) {
    count /= 1e3;
    if (count < 999.5) return fmt::format("{:.{}f} {}", count, count < 99.5 ? 1 : 0, unit);
  }
  return fmt::format("{:.1f} T", count / 1e3);
}

std::string format_error(double error) { return error == 0 ? "0" : fmt::format("{:.0e}", error); }

std::string format_percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string plural(int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string Table::str(int indent) const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (const Row& row : rows_) {
    if (row.is_line) continue;
    for (size_t c = 0; c < row.cells.size() && c < widths.size(); ++c)
      widths[c] = std::max(widths[c], visible_width(row.cells[c]));
  }
  std::string text;
  for (const Row& row : rows_) {
    std::string line =
        row.is_line ? row.cells.front() : std::string(static_cast<size_t>(indent), ' ');
    for (size_t c = 0; !row.is_line && c < row.cells.size() && c < widths.size(); ++c) {
      std::string padding(widths[c] - visible_width(row.cells[c]), ' ');
      line += (c == 0 ? "" : "  ");
      line += columns_[c] == Align::left ? row.cells[c] + padding : padding + row.cells[c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string spread(const std::string& left, const std::string& right, int width) {
  size_t used = visible_width(left) + visible_width(right);
  auto room = static_cast<size_t>(width);
  if (used + 2 > room) {
    size_t margin = room > visible_width(right) ? room - visible_width(right) : 0;
    return left + "\n" + std::string(margin, ' ') + right + "\n";
  }
  return left + std::string(room - used, ' ') + right + "\n";
}

std::string wrap(const std::string& text, int width, int indent) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string result, line;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(' ', at), text.size());
    std::string word = text.substr(at, end - at);
    at = end + 1;
    bool fits =
        visible_width(margin + line) + 1 + visible_width(word) <= static_cast<size_t>(width);
    if (!line.empty() && !fits) {
      result += margin + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? result : result + margin + line + "\n";
}

std::string cut(std::string text, size_t width) {
  if (text.size() > width) text = text.substr(0, width - 3) + "...";
  return text;
}

}  // namespace lathe
