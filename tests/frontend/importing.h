// Imports for tests: the built-in rows, errors as text.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "frontend/import/import.h"
#include "ir/op/all_ops.h"

namespace lathe {

inline const ImportTable& builtin_imports() {
  static const Result<ImportTable> table = ImportTable::create(builtin_registry());
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.error().message);
  return *table;
}

// The model, or in `error` how the command line would show the failure.
struct Imported {
  std::optional<ImportedModel> model;
  std::string error;
};

inline Imported import_bytes(std::string bytes, const ImportOptions& options = {}) {
  LocTable locs;
  auto model = import_model(own_bytes(std::move(bytes)), "m.pt2", builtin_imports(),
                            builtin_registry(), options, &locs);
  if (model.ok()) return {*std::move(model), ""};
  return {std::nullopt, render(model.error(), locs)};
}

inline Imported import_path(const std::string& path, const ImportOptions& options = {}) {
  LocTable locs;
  auto model = import_model(path, builtin_imports(), builtin_registry(), options, &locs);
  if (model.ok()) return {*std::move(model), ""};
  return {std::nullopt, render(model.error(), locs)};
}

}  // namespace lathe
