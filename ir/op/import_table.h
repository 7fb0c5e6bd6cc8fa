// Which row or composite imports an ATen operator.
#pragma once
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"
#include "ir/op/schema.h"
#include "ir/support/result.h"

namespace lathe {

// Every FX target that some row or composite imports. Schemas are parsed when they are first asked
// for: a model calls a few of them, and all take milliseconds and a megabyte.
class ImportTable {
 public:
  struct Entry {
    const OpDef* op;  // null: a composite
    const Import* import;
    Schema schema;
  };

  // Refuses (internally) a target with two rows. `ops` must outlive the table.
  static Result<ImportTable> create(const Registry& ops);

  // Refuses (internally) a schema that does not parse, an argument that no operand or attribute of
  // the row takes, and a composite that builds nothing. Tests ask; such a target is not found.
  Status check() const;

  // An in-place target without an entry of its own is its functional one's with `in_place` set:
  // "aten.add_.Tensor" finds "aten.add.Tensor". Null when no row imports it. Threads may call it.
  struct Match {
    const Entry* entry = nullptr;
    bool in_place = false;
    explicit operator bool() const { return entry != nullptr; }
  };
  // Calls that other numbers than real ones take part in have entries of their own.
  Match find(std::string_view target, NumberKind numbers = NumberKind::real) const;
  // Sorted, "aten.softmax.int".
  std::vector<std::string> targets(NumberKind numbers = NumberKind::real) const;

 private:
  // An entry before its schema is parsed: that of `schema`, which for another name is the other's.
  struct Row {
    const OpDef* op;
    const Import* import;
    const Import* schema;
  };
  using Rows = std::map<std::string, Row, std::less<>>;  // by schema name
  struct Parsed;

  Status add(const OpDef* op, const Import& import);
  static bool add_alias(const Import& import, const Rows& from, Rows& to);
  const Entry* entry_of(const Row& row) const;

  Rows& rows(NumberKind numbers) { return rows_[static_cast<size_t>(numbers)]; }
  const Rows& rows(NumberKind numbers) const { return rows_[static_cast<size_t>(numbers)]; }

  std::array<Rows, std::size(kNumberKinds)> rows_;
  std::shared_ptr<Parsed> parsed_;  // the table's own, and its copies'
};

// The argument of a call that a row's operand or attribute of this name takes; null without one.
const SchemaArg* schema_arg(const Import& import, const Schema& schema, std::string_view name);

}  // namespace lathe
