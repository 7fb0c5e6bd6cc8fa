// Weights as the programs of one model keep them, packed or as they came: what one program has, the
// next takes.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "backends/backend.h"
#include "frontend/driver/weight_store.h"
#include "ir/program/program.h"
#include "ir/program/provenance.h"

namespace lathe {

// For programs of one module, with the same weights, target and numerics.
class SharedWeights {
 public:
  // `program` with a weight in the place of each persistent buffer that another program has, and
  // without what would make them. The store holds those, and what others read as it came.
  Program take(const Program& program, WeightStore& store);
  // What `executable`, made of what take() gave for `program`, and the store hold: there for others
  // as long as somebody holds it.
  void offer(const Program& program, const Executable& executable, const WeightStore& store);

 private:
  // In the store, where it is no name of the module's.
  static std::string name_of(int64_t provenance, const WeightStore& store);

  struct Kept {
    const std::byte* data;
    size_t size;
    std::weak_ptr<const void> owner;
  };
  Provenances provenances_;
  std::map<std::string, Kept> kept_;  // by name in a store
};

}  // namespace lathe
