// A case that went through its pipeline on one machine, and what it gives.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "frontend/driver/model.h"
#include "ir/program/program.h"
#include "tests/random/run_case.h"

namespace lathe::random_graphs {

inline constexpr const char* kInterp = "interp";

// What a run left: outputs in the order of the program, and the contents of its inputs.
struct Ran {
  std::vector<Tensor> outputs;
  std::vector<ProgramMutation> mutations;
  std::vector<BufferId> output_ids;
};

// Made once for each machine.
Result<Backend*> backend_of(const Machine& machine);

// NaN is NaN.
bool has_same_bits(const Tensor& a, const Tensor& b);

class Compiled {
 public:
  // Sizes that are symbols stay.
  static Result<std::unique_ptr<Compiled>> create(const Case& test, const Machine& machine,
                                                  Numerics numerics, Coverage* coverage);

  // Runs are made twice (run_case.h).
  Result<Ran> run(const std::vector<Tensor>& inputs);
  // An error of code kDimRange, kBadValue or kTooLarge refuses the sizes.
  Result<Ran> run_at(const Sizes& sizes, const std::vector<Tensor>& inputs);
  // Of a program without symbols that was made from the case's.
  Result<Ran> run_instance(const Program& program, const std::vector<Tensor>& inputs);

  const Program& program() const { return program_; }
  // Of each region, the kind of kernel that makes it.
  const std::vector<std::string>& plans() const { return plans_; }

 private:
  explicit Compiled(Backend& backend) : backend_(backend) {}
  Result<std::unique_ptr<Executable>> compile(const Program& program) const;

  Backend& backend_;
  Model model_;
  Program program_;
  std::vector<std::string> plans_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<Executable> executable_;
};

}  // namespace lathe::random_graphs
