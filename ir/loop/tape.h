// The evaluator's expressions: compiled once to a list of instructions over numbered slots, run
// many times. A shared sub-expression is one instruction, however often it is used.
#pragma once
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/scalar.h"
#include "ir/loop/text.h"
#include "ir/support/result.h"

namespace lathe::loop {

// Everything a running kernel reads and writes. Slots hold one Scalar per lane.
struct Machine {
  // Who last wrote and read an element of a shared buffer, and between which barriers.
  struct Touch {
    static constexpr uint32_t kMany = UINT32_MAX;
    uint64_t write_phase = 0, read_phase = 0;
    uint32_t writer = 0, reader = 0;
  };
  struct BufferState {
    std::byte* bytes = nullptr;
    int64_t size = 0;                 // elements
    std::vector<Touch> touches = {};  // of shared ones
  };
  struct RegState {
    std::vector<Scalar> values;    // lanes or tile of element 0, those of element 1, ...
    std::vector<bool> is_defined;  // per element
  };
  const Kernel* kernel = nullptr;
  std::vector<Scalar> slots;
  std::vector<BufferState> buffers;  // by BufferRef
  std::vector<RegState> regs;        // by RegArray
  uint32_t thread = 0;               // that runs, of a group
  uint64_t phase = 0;                // grows with every barrier and every group
  StepBudget* steps = nullptr;
  Diag error;  // when a call returned false

  bool fail(const char* code, std::string message);
  bool take_steps(uint64_t count);
  enum class Access : uint8_t { load, store };
  // Element `index` of a buffer; null (and an error) when out of bounds, or when another thread may
  // write it at the same time.
  std::byte* element(BufferRef buffer, int64_t index, Access access);
  bool touch(BufferRef buffer, int64_t index, Access access);
  // Position of an element in RegState; -1 (and an error) when out of bounds.
  int64_t reg_element(RegArray array, const std::vector<uint32_t>& index_slots);
};

struct Tape;
struct Instruction {
  const ExprNode* node = nullptr;
  uint32_t out = 0;                  // first slot of the result
  uint32_t a = 0, b = 0, c = 0;      // first slots of the operands
  std::vector<uint32_t> args;        // register indices, reduce extents
  std::shared_ptr<const Tape> body;  // of reduces
  uint32_t result = 0;               // of the body
};
struct Tape {
  std::vector<Instruction> code;
  uint64_t steps = 1;                // of one run, without those of reduces' bodies
  bool run(Machine& machine) const;  // false: see Machine::error
};
inline constexpr uint32_t kNoSlot = UINT32_MAX;
inline constexpr size_t kMaxSlots = size_t{1} << 24;

// Gives slots to variables and expressions; constants are written to their slots at once.
class TapeCompiler {
 public:
  explicit TapeCompiler(Machine& machine);
  uint32_t var_slot(Var var) const { return var_slots_[var.id]; }

  // One tape for the expressions of one statement; slots_of gets their slots (kNoSlot for null).
  Status compile(const std::vector<Expr>& roots, Tape& tape, std::vector<uint32_t>& slots_of);

 private:
  using Scope = std::unordered_map<const ExprNode*, uint32_t>;

  Status emit(const std::vector<Expr>& roots, Tape& tape);
  Status emit_node(Expr e, Tape& tape);
  Status emit_reduce(const Reduce& reduce, Instruction& code, Tape& tape);
  void find_free_vars(const std::vector<Expr>& roots);
  std::vector<Expr> operands(Expr e);
  bool is_free_of_inner_vars(Expr e);
  const uint32_t* find(Expr e) const;
  uint32_t slot_of(Expr e) const;
  uint32_t new_slots(int lanes);

  Machine& machine_;
  std::vector<uint32_t> var_slots_;
  std::vector<Scope> scopes_;        // one per tape on the way to the innermost reduce
  std::vector<bool> is_reduce_var_;  // of the statement being compiled
  std::vector<bool> is_bound_;       // by a reduce around the current tape
  std::unordered_map<const ExprNode*, std::vector<uint32_t>> free_vars_;  // reduce variables only
};

// Between memory and scalars.
Scalar read_scalar(DType dtype, const std::byte* bytes);
void write_scalar(DType dtype, Scalar value, std::byte* bytes);

}  // namespace lathe::loop
