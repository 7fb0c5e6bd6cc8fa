// The loop interpreter: the meaning of a kernel, run on raw bytes. Every access is checked.
//
// It runs loops of every kind in order. Registers that are read before they are set are an error;
// scratch, stack and shared buffers start as bytes of ones (NaN in every float dtype), so that a
// kernel that relies on their contents shows.
//
// The threads of a group run one after the other from barrier to barrier, each with slots and
// registers of its own. Shared elements that two of them touch between the same barriers, one to
// write, are an error; of global ones this is not checked.
#include <fmt/format.h>

#include <algorithm>

#include "ir/loop/lift_sizes.h"
#include "ir/loop/pool.h"
#include "ir/loop/tape.h"
#include "ir/loop/text.h"
#include "ir/loop/threads.h"
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
  bool has_barrier = false;
  Tape tape;
  std::vector<uint32_t> slots;  // of the expressions, in the order compile() lists them
  std::vector<std::vector<Code>> bodies;
};

class Evaluator {
 public:
  Evaluator(const Kernel& kernel, std::span<const int64_t> sizes, StepBudget& steps)
      : sizes_(sizes) {
    machine_.kernel = &kernel;
    machine_.steps = &steps;
  }

  Status run(const std::vector<Memory>& memory) {
    LATHE_DO(check_sizes());
    LATHE_DO(bind_buffers(memory));
    LATHE_DO(make_registers());
    LATHE_DO(check_variables());
    TapeCompiler compiler(machine_);
    compiler_ = &compiler;
    const std::vector<Var> params = dims(*machine_.kernel);
    for (size_t i = 0; i < params.size(); ++i)
      machine_.slots[compiler.var_slot(params[i])] = int_scalar(sizes_[i]);
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

  Status check_sizes() {
    const std::vector<Var> params = dims(*machine_.kernel);
    if (params.size() != sizes_.size())
      return bad_value(fmt::format("expected {} sizes, got {}", params.size(), sizes_.size()));
    for (size_t i = 0; i < params.size(); ++i) {
      const VarInfo& info = machine_.kernel->vars[params[i].id];
      const int64_t size = sizes_[i];
      if (size < info.min || size > info.max || size % info.multiple != 0)
        return bad_value(fmt::format("size '{}' is {}, expected a multiple of {} in [{}, {}]",
                                     info.name, size, info.multiple, info.min, info.max));
    }
    return Ok{};
  }

  Status bind_buffers(const std::vector<Memory>& memory) {
    const Kernel& kernel = *machine_.kernel;
    size_t num_globals = 0;
    int64_t local_bytes = 0;
    for (const Buffer& buffer : kernel.buffers) {
      const int64_t bytes_each = dtype_bytes(buffer.dtype);
      const int64_t size = num_elements(kernel, buffer, sizes_);
      if (size < 0) return bad_value(fmt::format("buffer '{}' has {} elements", buffer.name, size));
      if (buffer.space != Space::global) {
        if (size > (kMaxLocalBytes - local_bytes) / bytes_each)
          return too_large(
              fmt::format("buffer '{}' of {} elements is too large for the loop "
                          "interpreter",
                          buffer.name, size));
        int64_t num_bytes = size * bytes_each;
        local_bytes += num_bytes;
        LATHE_DO(take_bytes(num_bytes));
        locals_.emplace_back(static_cast<size_t>(num_bytes), std::byte{0xff});
        machine_.buffers.push_back({locals_.back().data(), size});
        if (buffer.space == Space::shared) LATHE_DO(share(machine_.buffers.back()));
        continue;
      }
      if (num_globals < memory.size()) {
        const Memory& given = memory[num_globals];
        if (size > static_cast<int64_t>(given.num_bytes) / bytes_each)
          return bad_value(fmt::format("buffer '{}' needs {} elements of {} bytes, got {} bytes",
                                       buffer.name, size, bytes_each, given.num_bytes));
        machine_.buffers.push_back({given.bytes, size});
      }
      ++num_globals;
    }
    if (num_globals != memory.size())
      return bad_value(fmt::format("expected {} buffers, got {}", num_globals, memory.size()));
    return Ok{};
  }

  Status share(Machine::BufferState& state) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(Machine::Touch));
    if (state.size > kMaxLocalBytes / kBytes)
      return too_large("its shared buffers are too large for the loop interpreter");
    LATHE_DO(take_bytes(state.size * kBytes));
    state.touches.resize(static_cast<size_t>(state.size));
    return Ok{};
  }

  Status make_registers() {
    int64_t total = 0;
    for (const RegInfo& info : machine_.kernel->regs) {
      int64_t elements = 1;
      for (int64_t extent : info.shape)
        if (__builtin_mul_overflow(elements, extent, &elements)) elements = kMaxLocalBytes;
      int64_t room = kMaxLocalBytes / static_cast<int64_t>(sizeof(Scalar)) - total;
      const int64_t width = info.width();
      if (elements > room / width)
        return too_large(
            fmt::format("registers '{}' are too many for the loop interpreter", info.name));
      total += elements * width;
      LATHE_DO(take_bytes(elements * width * static_cast<int64_t>(sizeof(Scalar))));
      machine_.regs.push_back({std::vector<Scalar>(static_cast<size_t>(elements * width)),
                               std::vector<bool>(static_cast<size_t>(elements))});
    }
    num_registers_ = static_cast<uint64_t>(total);
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
      out.push_back({&stmt, loop::has_barrier(stmt), {}, {}, {}});
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
      std::vector<Expr> operator()(const Barrier&) { return {}; }
      // The tile's indices, then the place.
      std::vector<Expr> operator()(const LoadTile& n) { return with(n.tile.indices, n.index); }
      std::vector<Expr> operator()(const StoreTile& n) { return with(n.tile.indices, n.index); }
      std::vector<Expr> operator()(const Mma& n) {
        std::vector<Expr> all;
        for (const TileRef* tile : {&n.sum, &n.left, &n.right})
          all.insert(all.end(), tile->indices.begin(), tile->indices.end());
        return all;
      }
      static std::vector<Expr> with(std::vector<Expr> all, Expr last) {
        all.push_back(last);
        return all;
      }
    };
    return std::visit(Visitor{}, stmt.kind);
  }

  // --- running ---

  bool run(const std::vector<Code>& block) {
    for (const Code& code : block)
      if (!run(code)) return false;
    return true;
  }
  bool run(const Code& code) {
    if (!compute(code)) return false;
    return std::visit([&](const auto& stmt) { return execute(stmt, code); }, code.stmt->kind);
  }
  // The statement's expressions.
  bool compute(const Code& code) {
    return machine_.take_steps(code.tape.steps) && code.tape.run(machine_);
  }

  const Scalar* value(const Code& code, size_t i) const {
    return machine_.slots.data() + code.slots[i];
  }

  bool execute(const For& loop, const Code& code) {
    if (loop.kind == LoopKind::thread) return run_group(loop, code);
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
    const int width = machine_.kernel->regs[set.array.id].width();
    const auto first = regs.values.begin() + element * width;
    if (width == set.value->lanes) {
      std::copy_n(value(code, index.size()), width, first);
    } else {
      std::fill_n(first, width, *value(code, index.size()));  // of a tile
    }
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
      std::byte* bytes = machine_.element(store.buffer, position, Machine::Access::store);
      if (!bytes) return false;
      const DType dtype = store.value->dtype;
      const Scalar own = store.atomic
                             ? apply(*store.atomic, dtype, read_scalar(dtype, bytes), values[i])
                             : values[i];
      write_scalar(dtype, own, bytes);
    }
    return true;
  }
  bool execute(const Prefetch&, const Code&) { return true; }  // may point anywhere
  bool execute(const Barrier&, const Code&) { return true; }   // run_together() counts it

  // --- matrix tiles ---

  // The elements of the tile whose indices begin at `first` of the statement's slots; null when
  // there is none, or it is read before it is set.
  Scalar* tile(const TileRef& tile, const Code& code, size_t first, bool is_set) {
    const auto begin = code.slots.begin() + static_cast<std::ptrdiff_t>(first);
    const std::vector<uint32_t> index(begin,
                                      begin + static_cast<std::ptrdiff_t>(tile.indices.size()));
    const int64_t element = machine_.reg_element(tile.array, index);
    if (element < 0) return nullptr;
    Machine::RegState& regs = machine_.regs[tile.array.id];
    const RegInfo& info = machine_.kernel->regs[tile.array.id];
    if (is_set) regs.is_defined[static_cast<size_t>(element)] = true;
    if (regs.is_defined[static_cast<size_t>(element)])
      return regs.values.data() + element * info.width();
    machine_.fail(code::kBadValue, fmt::format("tile '{}' is read at element {} before it is set",
                                               info.name, element));
    return nullptr;
  }
  bool execute(const LoadTile& load, const Code& code) {
    const RegInfo& info = machine_.kernel->regs[load.tile.array.id];
    Scalar* elements = tile(load.tile, code, 0, true);
    if (!elements || !machine_.take_steps(static_cast<uint64_t>(info.width()))) return false;
    const int64_t index = value(code, load.tile.indices.size())->i;
    for (int r = 0; r < info.rows(); ++r)
      for (int c = 0; c < info.columns(); ++c) {
        const int64_t offset = load.is_transposed ? r + c * load.stride : r * load.stride + c;
        const std::byte* bytes =
            machine_.element(load.buffer, wrapping_add(index, offset), Machine::Access::load);
        if (!bytes) return false;
        *elements++ = read_scalar(info.dtype, bytes);
      }
    return true;
  }
  bool execute(const StoreTile& store, const Code& code) {
    const RegInfo& info = machine_.kernel->regs[store.tile.array.id];
    const Scalar* elements = tile(store.tile, code, 0, false);
    if (!elements || !machine_.take_steps(static_cast<uint64_t>(info.width()))) return false;
    const int64_t index = value(code, store.tile.indices.size())->i;
    for (int r = 0; r < info.rows(); ++r)
      for (int c = 0; c < info.columns(); ++c) {
        std::byte* bytes = machine_.element(store.buffer, wrapping_add(index, r * store.stride + c),
                                            Machine::Access::store);
        if (!bytes) return false;
        write_scalar(info.dtype, *elements++, bytes);
      }
    return true;
  }
  bool execute(const Mma& mma, const Code& code) {
    const size_t left_at = mma.sum.indices.size(), right_at = left_at + mma.left.indices.size();
    Scalar* sum = tile(mma.sum, code, 0, false);
    if (!sum) return false;
    const Scalar* left = tile(mma.left, code, left_at, false);
    if (!left) return false;
    const Scalar* right = tile(mma.right, code, right_at, false);
    if (!right) return false;
    const auto [m, n, k] = machine_.kernel->regs[mma.sum.array.id].tile;
    if (!machine_.take_steps(static_cast<uint64_t>(m) * static_cast<uint64_t>(n * k))) return false;
    for (int r = 0; r < m; ++r)
      for (int c = 0; c < n; ++c) {
        auto total = static_cast<float>(sum[r * n + c].f);
        for (int i = 0; i < k; ++i)
          total = static_cast<float>(total + left[r * k + i].f * right[i * n + c].f);
        sum[r * n + c] = float_scalar(total);
      }
    return true;
  }

  // --- threads ---

  struct Thread {
    std::vector<Scalar> slots;
    std::vector<Machine::RegState> regs;
  };

  bool run_group(const For& loop, const Code& code) {
    const auto count = static_cast<uint64_t>(value(code, 1)->i);
    const uint64_t scalars = count * (machine_.slots.size() + num_registers_);
    if (scalars > kMaxSlots)
      return machine_.fail(code::kTooLarge, "its threads are too many for the loop interpreter");
    if (!machine_.take_steps(scalars * sizeof(Scalar) / kBytesPerStep) || !clear_shared())
      return false;
    std::vector<Thread> threads(count, Thread{machine_.slots, machine_.regs});
    for (size_t i = 0; i < threads.size(); ++i)
      threads[i].slots[compiler_->var_slot(loop.var)] = int_scalar(static_cast<int64_t>(i));
    ++machine_.phase;
    return run_together(code.bodies[0], threads);
  }
  bool clear_shared() {
    for (size_t i = 0; i < machine_.buffers.size(); ++i) {
      if (machine_.kernel->buffers[i].space != Space::shared) continue;
      const Machine::BufferState& state = machine_.buffers[i];
      const int64_t bytes = state.size * dtype_bytes(machine_.kernel->buffers[i].dtype);
      if (!machine_.take_steps(static_cast<uint64_t>(bytes) / kBytesPerStep)) return false;
      std::fill_n(state.bytes, bytes, std::byte{0xff});
    }
    return true;
  }

  // Each thread runs up to the next barrier, or what contains one, before the next thread does.
  bool run_together(const std::vector<Code>& block, std::vector<Thread>& threads) {
    for (auto from = block.begin(); from != block.end();) {
      const auto to =
          std::find_if(from, block.end(), [](const Code& code) { return code.has_barrier; });
      const auto run_to = [&] {
        return std::all_of(from, to, [this](const Code& code) { return run(code); });
      };
      if (from != to && !for_each_thread(threads, run_to)) return false;
      if (to == block.end()) return true;
      if (!pass_together(*to, threads)) return false;
      from = to + 1;
    }
    return true;
  }
  template <class F>
  bool for_each_thread(std::vector<Thread>& threads, const F& body) {
    bool is_ok = true;
    for (size_t i = 0; i < threads.size() && is_ok; ++i) {
      machine_.thread = static_cast<uint32_t>(i);
      std::swap(machine_.slots, threads[i].slots);
      std::swap(machine_.regs, threads[i].regs);
      is_ok = body();
      std::swap(machine_.slots, threads[i].slots);
      std::swap(machine_.regs, threads[i].regs);
    }
    machine_.thread = 0;
    return is_ok;
  }

  // A barrier, or a statement with one inside: its bounds or condition are the same for all.
  bool pass_together(const Code& code, std::vector<Thread>& threads) {
    if (std::holds_alternative<Barrier>(code.stmt->kind)) {
      ++machine_.phase;
      return machine_.take_steps(threads.size());
    }
    if (!for_each_thread(threads, [&] { return compute(code); })) return false;
    const auto shared_value = [&](size_t i) { return threads.front().slots[code.slots[i]].i; };
    if (std::holds_alternative<If>(code.stmt->kind))
      return run_together(code.bodies[shared_value(0) != 0 ? 0 : 1], threads);
    const auto& loop = std::get<For>(code.stmt->kind);
    const int64_t hi = shared_value(1);
    for (int64_t i = shared_value(0); i < hi;) {
      if (!machine_.take_steps(1)) return false;
      for (Thread& thread : threads) thread.slots[compiler_->var_slot(loop.var)] = int_scalar(i);
      if (!run_together(code.bodies[0], threads)) return false;
      if (__builtin_add_overflow(i, loop.step, &i)) break;
    }
    return true;
  }

  Machine machine_;
  std::span<const int64_t> sizes_;
  TapeCompiler* compiler_ = nullptr;
  std::vector<std::vector<std::byte>> locals_;
  uint64_t num_statements_ = 0;
  uint64_t num_registers_ = 0;  // scalars in them
};

}  // namespace

std::string StepBudget::refusal() const {
  return fmt::format("it takes more than {} steps, the most that the interpreter may run", limit);
}

Status evaluate(const Kernel& kernel, const std::vector<Memory>& buffers,
                std::span<const int64_t> sizes, StepBudget& steps) {
  LATHE_DO(verify(kernel, /*is_scheduled=*/false));
  return Evaluator(kernel, sizes, steps).run(buffers);
}

Status evaluate(const Kernel& kernel, const std::vector<Memory>& buffers,
                std::span<const int64_t> sizes) {
  StepBudget steps;
  return evaluate(kernel, buffers, sizes, steps);
}

}  // namespace lathe::loop
