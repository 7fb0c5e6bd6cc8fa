// Figures and tables for people: units on everything, columns that line up in 80 characters.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lathe {

std::string format_bytes(int64_t bytes);     // "9.4 MB" (10^6)
std::string format_ms(double milliseconds);  // "0.41 ms", "23 us", "1.2 s"
// "±0.02": half a spread, in the unit and with the digits that format_ms gives `milliseconds`.
std::string format_spread(double half, double milliseconds);
std::string format_count(int64_t count);   // "1,231"
std::string format_large(double count);    // "86 M", "22.4 G"
std::string format_error(double error);    // "3e-07", "0"
std::string format_percent(double share);  // "41 %"
// "1 kernel", "2 kernels".
std::string plural(int64_t count, const std::string& noun);

enum class Align { left, right };

// Rows of cells; every column is as wide as its widest cell, two spaces between columns. Cells may
// hold colour codes, which take no room.
class Table {
 public:
  explicit Table(std::vector<Align> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back({std::move(cells), false}); }
  // A line of its own, which takes part in no column.
  void add_line(std::string text) { rows_.push_back({{std::move(text)}, true}); }
  std::string str(int indent = 0) const;  // every line ends with a newline

 private:
  struct Row {
    std::vector<std::string> cells;
    bool is_line;
  };
  std::vector<Align> columns_;
  std::vector<Row> rows_;
};

// `left` and `right` at the ends of a line of `width` columns; of two lines when one is too short.
std::string spread(const std::string& left, const std::string& right, int width);
// Words wrapped at `width`, each line indented.
std::string wrap(const std::string& text, int width, int indent);

// At most `width` bytes, the last of them "..." where some are missing.
std::string cut(std::string text, size_t width);
inline constexpr size_t kUncut = 10000;

}  // namespace lathe
