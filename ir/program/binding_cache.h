// The latest bindings of a program: sizes that come again cost neither arithmetic nor memory.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "ir/program/binding.h"

namespace lathe {

class BindingCache {
 public:
  explicit BindingCache(const Program& program) : binder_(program) {}

  // As Binder::bind. Allocates nothing where the sizes are among the latest kCapacity.
  Result<std::shared_ptr<const Binding>> at(std::span<const int64_t> values);

  const std::vector<std::string>& symbols() const { return binder_.symbols(); }

  static constexpr size_t kCapacity = 64;

 private:
  struct Entry {
    std::vector<int64_t> values;
    std::shared_ptr<const Binding> binding;
  };
  Binder binder_;
  std::list<Entry> entries_;  // the latest first
};

}  // namespace lathe
