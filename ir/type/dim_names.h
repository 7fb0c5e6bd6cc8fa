// Names for parts that sizes have in common, so that many can be read. How a size of rows is cut
// into tiles takes dozens of sizes of a launch, each thousands of characters long, that are made of
// few parts.
#pragma once
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/type/dim.h"

namespace lathe {

class DimNames {
 public:
  // For these sizes; `taken` are names that mean something else.
  DimNames(std::span<const Dim> sizes, const std::set<std::string>& taken);

  // Each name and what it stands for, spelled with the names before it.
  const std::vector<std::pair<std::string, std::string>>& definitions() const {
    return definitions_;
  }
  // As Dim::str(), with names in it.
  std::string spell(const Dim& size) const { return named(size).str(); }

 private:
  struct Hash {
    size_t operator()(const Dim& size) const { return static_cast<size_t>(size.hash()); }
  };
  Dim named(const Dim& size) const;

  std::vector<std::pair<std::string, std::string>> definitions_;
  std::unordered_map<Dim, Dim, Hash> names_;  // by part
};

}  // namespace lathe
