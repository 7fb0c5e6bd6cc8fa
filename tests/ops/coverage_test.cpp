// The coverage page: what each row has, as ir/ops/COVERAGE.md says it. BLESS=1 writes the page.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "ir/op/all_ops.h"
#include "ir/op/import_table.h"

namespace lathe {
namespace {

const char* page_path = nullptr;

// Reasons are notes below the table, numbered in the order in which they come up.
class Notes {
 public:
  std::string cell(bool is_there, std::string_view why) {
    if (is_there) return "yes";
    const auto [note, is_new] = numbers_.try_emplace(std::string(why), numbers_.size() + 1);
    if (is_new) texts_.push_back(note->first);
    return fmt::format("[{}]", note->second);
  }
  std::string str() const {
    std::string text;
    for (size_t i = 0; i < texts_.size(); ++i) text += fmt::format("{}. {}\n", i + 1, texts_[i]);
    return text;
  }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> texts_;
};

template <class Function>
std::string cell(Notes& notes, const Slot<Function>& slot) {
  return notes.cell(static_cast<bool>(slot), slot.why);
}

std::string page() {
  const Registry& ops = builtin_registry();
  const auto table = ImportTable::create(ops);
  if (!table.ok()) return table.error().message;
  std::string text = fmt::format(
      "# What each op has\n\n"
      "{} rows; {} ATen operators, and {} of complex numbers, are imported to them, directly or "
      "as\n"
      "composites. Written by `BLESS=1 ./lathe test //tests/ops:coverage_test`, which otherwise "
      "fails\nwhen this page is not what the rows are.\n\n"
      "`kernel`: the row's loops, which the interpreter, the CPU, WebAssembly and CUDA share; "
      "every\n"
      "example of the row is run on each of them (`tests/backends`, `tests/cuda`), and an op "
      "without "
      "a\nkernel by its parts or its template. `examples`: calls that tests compare with the "
      "reference and\nwith PyTorch.\n\n"
      "| op | ATen operators | reference | parts | kernel | derivative | examples |\n"
      "|---|---|---|---|---|---|---|\n",
      ops.rows().size(), table->targets().size(), table->targets(NumberKind::complex).size());
  Notes notes;
  for (const OpDef& op : ops.rows()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", op.name, op.imports.size(),
                        cell(notes, op.reference), cell(notes, op.decompose), cell(notes, op.lower),
                        cell(notes, op.derivative), op.examples.size());
  }
  return text + "\n" + notes.str();
}

TEST(Coverage, ThePageIsWhatTheRowsAre) {
  if (std::getenv("BLESS")) {
    std::ofstream(page_path) << page();
    return;
  }
  std::stringstream found;
  found << std::ifstream(page_path).rdbuf();
  EXPECT_EQ(found.str(), page());
}

}  // namespace
}  // namespace lathe

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  lathe::page_path = argc > 1 ? argv[1] : "ir/ops/COVERAGE.md";
  return RUN_ALL_TESTS();
}
