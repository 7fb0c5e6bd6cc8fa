// The sizes that a request is about, of programs and models that have symbols.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "frontend/driver/model.h"
#include "ir/program/program.h"
#include "web/engine/request.h"
#include "web/engine/workspace.h"

namespace lathe {

using Sizes = std::map<std::string, int64_t>;

// Of every symbol: what the request's member "dims" says, otherwise `known`, which has them all. A
// name in "dims" that is not among these is an error; that no range or guard forbids the sizes is
// not checked.
Result<Sizes> sizes_of(const Request& request, const Sizes& known);

// Those of the program's symbols that it was compiled with.
Sizes hints_of(const Program& program);

// The run's program at the sizes of the request, as one without symbols; the program itself where
// it has none. An error when a range or a guard forbids the sizes.
Result<std::shared_ptr<const Program>> program_at(const PipelineRun& run, const Request& request);

// Gives the model other sizes for the time of a request.
class BorrowedSizes {
 public:
  BorrowedSizes(Model& model, const Sizes& sizes) : model_(model), kept_(model.dims) {
    for (const auto& [symbol, size] : sizes) model_.dims[symbol] = size;
  }
  ~BorrowedSizes() { model_.dims = std::move(kept_); }
  BorrowedSizes(const BorrowedSizes&) = delete;
  BorrowedSizes& operator=(const BorrowedSizes&) = delete;

 private:
  Model& model_;
  Sizes kept_;
};

}  // namespace lathe
