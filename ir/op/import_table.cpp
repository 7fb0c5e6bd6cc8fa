// Which row or composite imports an ATen operator (see import_table.h).
#include "ir/op/import_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Arguments that say where or how PyTorch computes, not what. Those of type Device, Layout,
// MemoryFormat and Generator are ignored by their type.
constexpr std::string_view kIgnoredArgs[] = {
    "pin_memory",    "non_blocking", "cudnn_enabled", "cudnn_enable",
    "sparse_grad",   "implicit",     "allow_tf32",    "benchmark",
    "deterministic", "sparse",       "copy",          "scale_grad_by_freq",
};

bool is_ignored(const SchemaArg& arg) {
  switch (arg.type) {
    case SchemaType::layout:
    case SchemaType::device:
    case SchemaType::memory_format:
    case SchemaType::generator:
      return true;
    default:
      return std::find(std::begin(kIgnoredArgs), std::end(kIgnoredArgs), arg.name) !=
             std::end(kIgnoredArgs);
  }
}

// "torch.ops.aten.add_.Tensor" -> "add_.Tensor"; "aten.linear.default" -> "linear". Other
// namespaces stay, so that they match nothing.
std::string_view schema_name(std::string_view target) {
  const auto drop_prefix = [&](std::string_view prefix) {
    if (target.substr(0, prefix.size()) == prefix) target.remove_prefix(prefix.size());
  };
  drop_prefix("torch.ops.");
  drop_prefix("aten.");
  constexpr std::string_view kDefault = ".default";
  if (target.size() > kDefault.size() &&
      target.substr(target.size() - kDefault.size()) == kDefault) {
    target.remove_suffix(kDefault.size());
  }
  return target;
}

// The row's name for a schema argument; "" when the import ignores it.
std::string_view row_name(const Import& import, std::string_view arg) {
  for (const auto& [from, to] : import.renames) {
    if (from == arg) return to;
  }
  return arg;
}

// Every argument has a place in the row, and every place of the row an argument or a default.
Status check_import(const OpDef& op, const Import& import, const Schema& schema) {
  if (import.build != nullptr) return Ok{};
  for (const SchemaArg& arg : schema.args) {
    const std::string_view name = row_name(import, arg.name);
    bool is_placed = name.empty() || is_ignored(arg) || op.attr_index(name) >= 0;
    for (const OperandSpec& operand : op.operands) is_placed = is_placed || operand.name == name;
    LATHE_CHECK(is_placed, fmt::format("op '{}' imports '{}' but has no operand or attribute '{}'",
                                       op.name, schema.name, name));
  }
  for (const OperandSpec& operand : op.operands) {
    LATHE_CHECK(operand.kind == OperandKind::optional_tensor ||
                    schema_arg(import, schema, operand.name) != nullptr,
                fmt::format("op '{}' imports '{}', which does not give operand '{}'", op.name,
                            schema.name, operand.name));
  }
  return Ok{};
}

}  // namespace

const SchemaArg* schema_arg(const Import& import, const Schema& schema, std::string_view name) {
  for (const SchemaArg& arg : schema.args) {
    if (row_name(import, arg.name) == name) return &arg;
  }
  return nullptr;
}

// What was parsed so far. Entries stay where they are: callers keep pointers to them.
struct ImportTable::Parsed {
  std::mutex mutex;
  std::map<std::pair<const Import*, const Import*>, std::optional<Entry>> entries;
};

Result<ImportTable> ImportTable::create(const Registry& ops) {
  ImportTable table;
  table.parsed_ = std::make_shared<Parsed>();
  for (const OpDef& op : ops.rows()) {
    for (const Import& import : op.imports) LATHE_DO(table.add(&op, import));
  }
  for (const Import& import : ops.composites()) {
    if (import.alias_of.empty()) LATHE_DO(table.add(nullptr, import));
  }
  // Those of other numbers after the real ones that they are of; other names are so for all.
  const Rows& real = table.rows(NumberKind::real);
  for (const NumberKind numbers : kNumberKinds) {
    for (const Import& import : ops.composites()) {
      if (import.alias_of.empty() || import.numbers != numbers) continue;
      LATHE_CHECK(add_alias(import, real, table.rows(numbers)),
                  fmt::format("'{}' is another name of '{}', which nothing else imports",
                              import.schema, import.alias_of));
    }
  }
  for (const Import& import : ops.composites()) {
    if (import.alias_of.empty()) continue;
    for (const NumberKind numbers : {NumberKind::complex, NumberKind::float8})
      add_alias(import, table.rows(numbers), table.rows(numbers));
  }
  return table;
}

Status ImportTable::add(const OpDef* op, const Import& import) {
  const std::string name = import.schema.substr(0, import.schema.find('('));
  const bool is_new = rows(import.numbers).emplace(name, Row{op, &import, &import}).second;
  LATHE_CHECK(is_new, fmt::format("'{}' has two imports", name));
  return Ok{};
}

// The rows of `from` that the alias names, as its own in `to`; whether there was one that is new
// there: a row may import an overload of its own.
bool ImportTable::add_alias(const Import& import, const Rows& from, Rows& to) {
  std::vector<std::pair<std::string, Row>> found;
  for (const auto& [name, row] : from) {
    if (name != import.alias_of && !name.starts_with(import.alias_of + ".")) continue;
    // A row takes reals; what builds calls around one of matrices may make reals of them.
    const bool is_built = row.op != nullptr && row.import->build != nullptr &&
                          row.op->traits.op_class == OpClass::matrix;
    if (import.numbers != NumberKind::real && import.build == nullptr && row.op != nullptr &&
        !is_built)
      continue;
    found.emplace_back(import.schema + name.substr(import.alias_of.size()), row);
    if (import.build == nullptr) continue;
    found.back().second.op = nullptr;
    found.back().second.import = &import;
  }
  bool is_new = false;
  for (auto& [name, row] : found) is_new |= to.emplace(std::move(name), row).second;
  return is_new;
}

Status ImportTable::check() const {
  for (const Rows& rows : rows_) {
    for (const auto& [name, row] : rows) {
      const auto schema = parse_schema(row.schema->schema);
      LATHE_CHECK(schema.ok(),
                  fmt::format("import '{}': {}", row.schema->schema, schema.error().message));
      LATHE_CHECK(row.op != nullptr || row.import->build != nullptr,
                  fmt::format("composite '{}' builds nothing", name));
      if (row.op != nullptr) LATHE_DO(check_import(*row.op, *row.import, *schema));
    }
  }
  return Ok{};
}

const ImportTable::Entry* ImportTable::entry_of(const Row& row) const {
  const std::lock_guard lock(parsed_->mutex);
  auto [place, is_new] = parsed_->entries.try_emplace({row.import, row.schema});
  if (is_new) {
    auto schema = parse_schema(row.schema->schema);
    if (schema.ok()) place->second.emplace(Entry{row.op, row.import, std::move(*schema)});
  }
  return place->second ? &*place->second : nullptr;
}

ImportTable::Match ImportTable::find(std::string_view target, NumberKind numbers) const {
  const Rows& rows = this->rows(numbers);
  const std::string_view name = schema_name(target);
  if (auto found = rows.find(name); found != rows.end()) {
    const Entry* entry = entry_of(found->second);
    return {entry, entry != nullptr && entry->schema.is_in_place};
  }
  const size_t base = std::min(name.find('.'), name.size());
  if (base < 2 || name[base - 1] != '_' || name[base - 2] == '_') return {};
  const std::string functional =
      std::string(name.substr(0, base - 1)) + std::string(name.substr(base));
  if (auto found = rows.find(functional); found != rows.end())
    return {entry_of(found->second), true};
  return {};
}

std::vector<std::string> ImportTable::targets(NumberKind numbers) const {
  std::vector<std::string> names;
  for (const auto& [name, row] : rows(numbers))
    names.push_back(name.starts_with("prims.") || name.starts_with("torch_nn.") ? name
                                                                                : "aten." + name);
  return names;
}

}  // namespace lathe
