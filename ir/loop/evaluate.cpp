// The loop interpreter: the meaning of a kernel, run on raw bytes. Every access is checked.
//
// It runs loops of every kind in order. Registers that are read before they are set are an error;
// scratch and stack buffers start as bytes of ones (NaN in every float dtype), so that a kernel
// that relies on their contents shows.
#include <fmt/format.h>

#include <algorithm>

#include "ir/loop/pool.h"
#include "ir/loop/tape.h"
#include "ir/loop/text.h"
#include "ir/support/diag_codes.h"

namespace lathe::loop {
namespace {

// Of scratch and stack buffers, and of register arrays.
constexpr int64_t kMaxLocalBytes = int64_t{1} << 28;
// What a launch costs before it runs, in steps: to verify and compile an expression, and to clear
// some of its memory.
constexpr uint64_t kStepsToCompile = 16;
constexpr uint64_t kBytesPerStep = 64;

// A statement with its expressions compiled; the bodies of For and If follow in `bodies`.
struct Code {
  const Stmt* stmt;
  Tape tape;
  std::vector<uint32_t> slots;  // of the expressions, in the order compile() lists them
  std::vector<std::vector<Code>> bodies;
};

class Evaluator {
 public:
  Evaluator(const Kernel& kernel, StepBudget& steps) {
    machine_.kernel = &kernel;
    machine_.steps = &steps;
  }

  Status run(const std::vector<Memory>& memory) {
    LATHE_DO(bind_buffers(memory));
    LATHE_DO(make_registers());
    LATHE_DO(check_variables());
    TapeCompiler compiler(machine_);
    compiler_ = &compiler;
    std::vector<Code> body;
    LATHE_DO(compile(machine_.kernel->body, body));
    const uint64_t compiled = machine_.slots.size() + num_statements_;
    if (!machine_.take_steps(compiled * kStepsToCompile) || !run(body)) return machine_.error;
    return Ok{};
  }

 private:
  Diag too_large(std::string message) {
    machine_.fail(code::kTooLarge, std::move(message));
    return machine_.error;
  }
  Diag bad_value(std::string message) {
    machine_.fail(code::kBadValue, std::move(message));
    return machine_.error;
  }

  Status take_bytes(int64_t num_bytes) {
    if (machine_.take_steps(static_cast<uint64_t>(num_bytes) / kBytesPerStep)) return Ok{};
    return machine_.error;
  }

  Status bind_buffers(const std::vector<Memory>& memory) {
    const Kernel& kernel = *machine_.kernel;
    size_t num_globals = 0;
    int64_t local_bytes = 0;
    for (const Buffer& buffer : kernel.buffers) {
      int64_t bytes_each = dtype_bytes(buffer.dtype);
      if (buffer.space != Space::global) {
        if (buffer.size > (kMaxLocalBytes - local_bytes) / bytes_each)
          return too_large(
              fmt::format("buffer '{}' of {} elements is too large for the loop "
                          "interpreter",
                          buffer.name, buffer.size));
        int64_t num_bytes = buffer.size * bytes_each;
        local_bytes += num_bytes;
        LATHE_DO(take_bytes(num_bytes));
        locals_.emplace_back(static_cast<size_t>(num_bytes), std::byte{0xff});
        machine_.buffers.push_back({locals_.back().data(), buffer.size});
        continue;
      }
      if (num_globals < memory.size()) {
        const Memory& given = memory[num_globals];
        if (buffer.size > static_cast<int64_t>(given.num_bytes) / bytes_each)
          return bad_value(fmt::format("buffer '{}' needs {} elements of {} bytes, got {} bytes",
                                       buffer.name, buffer.size, bytes_each, given.num_bytes));
        machine_.buffers.push_back({given.bytes, buffer.size});
      }
      ++num_globals;
    }
    if (num_globals != memory.size())
      return bad_value(fmt::format("expected {} buffers, got {}", num_globals, memory.size()));
    return Ok{};
  }

  Status make_registers() {
    int64_t total = 0;
    for (const RegInfo& info : machine_.kernel->regs) {
      int64_t elements = 1;
      for (int64_t extent : info.shape)
        if (__builtin_mul_overflow(elements, extent, &elements)) elements = kMaxLocalBytes;
      int64_t room = kMaxLocalBytes / static_cast<int64_t>(sizeof(Scalar)) - total;
      if (elements > room / info.lanes)
        return too_large(
            fmt::format("registers '{}' are too many for the loop interpreter", info.name));
      total += elements * info.lanes;
      LATHE_DO(take_bytes(elements * info.lanes * static_cast<int64_t>(sizeof(Scalar))));
      machine_.regs.push_back({std::vector<Scalar>(static_cast<size_t>(elements * info.lanes)),
                               std::vector<bool>(static_cast<size_t>(elements))});
    }
    return Ok{};
  }

  Status check_variables() {
    size_t lanes = 0;
    for (const VarInfo& var : machine_.kernel->vars) lanes += static_cast<size_t>(var.lanes);
    if (lanes > kMaxSlots) return too_large("too many variables for the loop interpreter");
    return Ok{};
  }

  // --- compiling ---

  Status compile(const Block& block, std::vector<Code>& out) {
    out.reserve(block.size());
    num_statements_ += block.size();
    for (const Stmt& stmt : block) {
      out.push_back({&stmt, {}, {}, {}});
      Code& code = out.back();
      LATHE_DO(compiler_->compile(expressions(stmt), code.tape, code.slots));
      if (const auto* loop = std::get_if<For>(&stmt.kind)) {
        code.bodies.resize(1);
        LATHE_DO(compile(loop->body, code.bodies[0]));
      } else if (const auto* branch = std::get_if<If>(&stmt.kind)) {
        code.bodies.resize(2);
        LATHE_DO(compile(branch->then_body, code.bodies[0]));
        LATHE_DO(compile(branch->else_body, code.bodies[1]));
      }
    }
    return Ok{};
  }

  static std::vector<Expr> expressions(const Stmt& stmt) {
    struct Visitor {
      std::vector<Expr> operator()(const For& n) { return {n.lo, n.hi}; }
      std::vector<Expr> operator()(const If& n) { return {n.condition}; }
      std::vector<Expr> operator()(const Let& n) { return {n.value}; }
      std::vector<Expr> operator()(const DeclareRegs&) { return {}; }
      std::vector<Expr> operator()(const SetReg& n) {
        std::vector<Expr> all = n.indices;
        all.push_back(n.value);
        return all;
      }
      std::vector<Expr> operator()(const Store& n) { return {n.index, n.value, n.mask}; }
      std::vector<Expr> operator()(const Prefetch& n) { return {n.index}; }
    };
    return std::visit(Visitor{}, stmt.kind);
  }

  // --- running ---

  bool run(const std::vector<Code>& block) {
    for (const Code& code : block) {
      if (!machine_.take_steps(code.tape.steps) || !code.tape.run(machine_)) return false;
      bool is_ok =
          std::visit([&](const auto& stmt) { return execute(stmt, code); }, code.stmt->kind);
      if (!is_ok) return false;
    }
    return true;
  }

  const Scalar* value(const Code& code, size_t i) const {
    return machine_.slots.data() + code.slots[i];
  }

  bool execute(const For& loop, const Code& code) {
    int64_t hi = value(code, 1)->i;
    uint32_t slot = compiler_->var_slot(loop.var);
    for (int64_t i = value(code, 0)->i; i < hi;) {
      if (!machine_.take_steps(1)) return false;  // a body may be empty
      machine_.slots[slot] = int_scalar(i);
      if (!run(code.bodies[0])) return false;
      if (__builtin_add_overflow(i, loop.step, &i)) break;
    }
    return true;
  }
  bool execute(const If&, const Code& code) {
    return run(code.bodies[value(code, 0)->i != 0 ? 0 : 1]);
  }
  bool execute(const Let& let, const Code& code) {
    std::copy_n(value(code, 0), let.value->lanes,
                machine_.slots.begin() + compiler_->var_slot(let.var));
    return true;
  }
  bool execute(const DeclareRegs& declare, const Code&) {
    std::vector<bool>& is_defined = machine_.regs[declare.array.id].is_defined;
    if (!machine_.take_steps(is_defined.size() / kBytesPerStep)) return false;
    std::fill(is_defined.begin(), is_defined.end(), false);
    return true;
  }
  bool execute(const SetReg& set, const Code& code) {
    std::vector<uint32_t> index(code.slots.begin(), code.slots.end() - 1);
    int64_t element = machine_.reg_element(set.array, index);
    if (element < 0) return false;
    Machine::RegState& regs = machine_.regs[set.array.id];
    regs.is_defined[static_cast<size_t>(element)] = true;
    int lanes = set.value->lanes;
    std::copy_n(value(code, index.size()), lanes, regs.values.begin() + element * lanes);
    return true;
  }
  bool execute(const Store& store, const Code& code) {
    const Scalar* index = value(code, 0);
    const Scalar* values = value(code, 1);
    const Scalar* mask = store.mask ? value(code, 2) : nullptr;
    bool is_scatter = store.index->lanes > 1;
    for (int i = 0; i < store.value->lanes; ++i) {
      if (mask && mask[i].i == 0) continue;
      int64_t position = is_scatter ? index[i].i : wrapping_add(index[0].i, i);
      std::byte* bytes = machine_.element(store.buffer, position, "store");
      if (!bytes) return false;
      write_scalar(store.value->dtype, values[i], bytes);
    }
    return true;
  }
  bool execute(const Prefetch&, const Code&) { return true; }  // may point anywhere

  Machine machine_;
  TapeCompiler* compiler_ = nullptr;
  std::vector<std::vector<std::byte>> locals_;
  uint64_t num_statements_ = 0;
};

}  // namespace

std::string StepBudget::refusal() const {
  return fmt::format("it takes more than {} steps, the most that the interpreter may run", limit);
}

Status evaluate(const Kernel& kernel, const std::vector<Memory>& buffers, StepBudget& steps) {
  LATHE_DO(verify(kernel, /*is_scheduled=*/false));
  return Evaluator(kernel, steps).run(buffers);
}

Status evaluate(const Kernel& kernel, const std::vector<Memory>& buffers) {
  StepBudget steps;
  return evaluate(kernel, buffers, steps);
}

}  // namespace lathe::loop
