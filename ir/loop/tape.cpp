// Compiles expressions to tapes and runs them; see tape.h.
//
// A reduce has a tape of its own for its body. Parts of the body that do not use the reduce's
// variables are computed once, outside: nested reductions would cost their product otherwise.
#include "ir/loop/tape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/loop/pool.h"
#include "ir/support/diag_codes.h"

namespace lathe::loop {
namespace {

constexpr size_t kMaxReduceDepth = 64;

template <class T>
T read_as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
template <class T>
void write_as(std::byte* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

std::vector<uint32_t> merge(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<uint32_t> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

}  // namespace

Scalar read_scalar(DType dtype, const std::byte* bytes) {
  switch (dtype) {
    case DType::b8:
      return int_scalar(read_as<uint8_t>(bytes) != 0);
    case DType::u8:
      return int_scalar(read_as<uint8_t>(bytes));
    case DType::i8:
      return int_scalar(read_as<int8_t>(bytes));
    case DType::i16:
      return int_scalar(read_as<int16_t>(bytes));
    case DType::i32:
      return int_scalar(read_as<int32_t>(bytes));
    case DType::i64:
      return int_scalar(read_as<int64_t>(bytes));
    case DType::f16:
      return float_scalar(f16_to_f32(read_as<uint16_t>(bytes)));
    case DType::bf16:
      return float_scalar(bf16_to_f32(read_as<uint16_t>(bytes)));
    case DType::f32:
      return float_scalar(read_as<float>(bytes));
    case DType::f64:
      return float_scalar(read_as<double>(bytes));
  }
  return int_scalar(0);
}

void write_scalar(DType dtype, Scalar value, std::byte* bytes) {
  switch (dtype) {
    case DType::b8:
    case DType::u8:
    case DType::i8:
      return write_as(bytes, static_cast<uint8_t>(value.i));
    case DType::i16:
      return write_as(bytes, static_cast<int16_t>(value.i));
    case DType::i32:
      return write_as(bytes, static_cast<int32_t>(value.i));
    case DType::i64:
      return write_as(bytes, value.i);
    case DType::f16:
      return write_as(bytes, f32_to_f16(static_cast<float>(value.f)));
    case DType::bf16:
      return write_as(bytes, f32_to_bf16(static_cast<float>(value.f)));
    case DType::f32:
      return write_as(bytes, static_cast<float>(value.f));
    case DType::f64:
      return write_as(bytes, value.f);
  }
}

// --- machine ---

bool Machine::fail(const char* code, std::string message) {
  error = Diag{code, kernel->origins.empty() ? Loc::unknown() : kernel->origins.front(),
               fmt::format("kernel '{}': {}", kernel->name, message)};
  return false;
}

bool Machine::take_steps(uint64_t count) {
  if (steps->take(count)) return true;
  return fail(code::kTooLarge, steps->refusal());
}

std::byte* Machine::element(BufferRef buffer, int64_t index, Access access) {
  const BufferState& state = buffers[buffer.id];
  const Buffer& info = kernel->buffers[buffer.id];
  if (index < 0 || index >= state.size) {
    fail(code::kBadValue,
         fmt::format("{} of element {} of buffer '{}', which has {} elements",
                     access == Access::load ? "load" : "store", index, info.name, state.size));
    return nullptr;
  }
  if (!state.touches.empty() && !touch(buffer, index, access)) return nullptr;
  return state.bytes + index * dtype_bytes(info.dtype);
}

// Threads run one after the other here, in truth at once: two that touch an element, one of them to
// write it, need a barrier between them.
bool Machine::touch(BufferRef buffer, int64_t index, Access access) {
  Touch& last = buffers[buffer.id].touches[static_cast<size_t>(index)];
  const bool races_write = last.write_phase == phase && last.writer != thread;
  const bool races_read = last.read_phase == phase && last.reader != thread;
  if (races_write || (access == Access::store && races_read))
    return fail(code::kBadValue,
                fmt::format("threads {} and {} meet at element {} of shared buffer '{}' without a "
                            "barrier between them",
                            races_write                   ? fmt::to_string(last.writer)
                            : last.reader == Touch::kMany ? "others"
                                                          : fmt::to_string(last.reader),
                            thread, index, kernel->buffers[buffer.id].name));
  if (access == Access::store) {
    last.writer = thread;
    last.write_phase = phase;
  } else {
    last.reader = races_read ? Touch::kMany : thread;
    last.read_phase = phase;
  }
  return true;
}

int64_t Machine::reg_element(RegArray array, const std::vector<uint32_t>& index_slots) {
  const RegInfo& info = kernel->regs[array.id];
  int64_t position = 0;
  for (size_t d = 0; d < index_slots.size(); ++d) {
    int64_t index = slots[index_slots[d]].i;
    if (index < 0 || index >= info.shape[d]) {
      fail(code::kBadValue, fmt::format("index {} of registers '{}', which have {} in dim {}",
                                        index, info.name, info.shape[d], d));
      return -1;
    }
    position = position * info.shape[d] + index;
  }
  return position;
}

// --- compiler ---

TapeCompiler::TapeCompiler(Machine& machine) : machine_(machine) {
  for (const VarInfo& var : machine.kernel->vars) var_slots_.push_back(new_slots(var.lanes));
  is_bound_.resize(var_slots_.size());
  is_reduce_var_.resize(var_slots_.size());
}

uint32_t TapeCompiler::new_slots(int lanes) {
  size_t first = machine_.slots.size();
  machine_.slots.resize(first + static_cast<size_t>(lanes), int_scalar(0));
  return static_cast<uint32_t>(first);
}

const uint32_t* TapeCompiler::find(Expr e) const {
  for (const Scope& scope : scopes_)
    if (auto found = scope.find(e.node()); found != scope.end()) return &found->second;
  return nullptr;
}

uint32_t TapeCompiler::slot_of(Expr e) const {
  if (!e) return kNoSlot;
  if (const auto* read = std::get_if<VarRead>(&e->kind)) return var_slots_[read->var.id];
  const uint32_t* slot = find(e);
  return slot ? *slot : kNoSlot;
}

Status TapeCompiler::compile(const std::vector<Expr>& roots, Tape& tape,
                             std::vector<uint32_t>& slots_of) {
  std::vector<Expr> present;
  for (Expr root : roots)
    if (root) present.push_back(root);
  find_free_vars(present);
  scopes_.assign(1, {});
  LATHE_DO(emit(present, tape));
  slots_of.clear();
  for (Expr root : roots) slots_of.push_back(slot_of(root));
  return Ok{};
}

// For every part of the statement, the reduce variables it needs; nothing when there is no reduce.
void TapeCompiler::find_free_vars(const std::vector<Expr>& roots) {
  free_vars_.clear();
  std::fill(is_reduce_var_.begin(), is_reduce_var_.end(), false);
  bool has_reduce = false;
  for (Expr root : roots)
    for_each(root, [&](Expr e) {
      const auto* reduce = std::get_if<Reduce>(&e->kind);
      if (!reduce) return;
      has_reduce = true;
      for (Var var : reduce->vars) is_reduce_var_[var.id] = true;
    });
  if (!has_reduce) return;
  for (Expr root : roots)
    for_each(root, [&](Expr e) {
      std::vector<uint32_t> vars;
      for (Expr kid : children(e)) vars = merge(vars, free_vars_[kid.node()]);
      if (const auto* read = std::get_if<VarRead>(&e->kind); read && is_reduce_var_[read->var.id])
        vars = {read->var.id};
      if (const auto* reduce = std::get_if<Reduce>(&e->kind)) {
        for (Var var : reduce->vars)
          vars.erase(std::remove(vars.begin(), vars.end(), var.id), vars.end());
      }
      free_vars_[e.node()] = std::move(vars);
    });
}

bool TapeCompiler::is_free_of_inner_vars(Expr e) {
  const std::vector<uint32_t>& vars = free_vars_[e.node()];
  return std::all_of(vars.begin(), vars.end(), [this](uint32_t id) { return is_bound_[id]; });
}

// What must be computed before `e` in its tape: its operands, and of a reduce the extents and the
// largest parts of the body that can be computed outside.
std::vector<Expr> TapeCompiler::operands(Expr e) {
  const auto* reduce = std::get_if<Reduce>(&e->kind);
  if (!reduce) return children(e);
  std::vector<Expr> outside = reduce->extents;
  std::unordered_map<const ExprNode*, bool> seen;
  std::vector<Expr> stack = {reduce->body};
  while (!stack.empty()) {
    Expr part = stack.back();
    stack.pop_back();
    if (!seen.emplace(part.node(), true).second) continue;
    if (is_free_of_inner_vars(part)) {
      outside.push_back(part);
    } else {
      for (Expr kid : children(part)) stack.push_back(kid);
    }
  }
  return outside;
}

Status TapeCompiler::emit(const std::vector<Expr>& roots, Tape& tape) {
  std::vector<std::pair<Expr, bool>> stack;
  for (size_t i = roots.size(); i-- > 0;) stack.push_back({roots[i], false});
  while (!stack.empty()) {
    auto [e, is_ready] = stack.back();
    stack.pop_back();
    if (std::holds_alternative<VarRead>(e->kind) || find(e)) continue;
    if (is_ready) {
      LATHE_DO(emit_node(e, tape));
      continue;
    }
    stack.push_back({e, true});
    for (Expr operand : operands(e)) stack.push_back({operand, false});
  }
  return Ok{};
}

Status TapeCompiler::emit_node(Expr e, Tape& tape) {
  if (machine_.slots.size() > kMaxSlots) {
    machine_.fail(code::kTooLarge, "too many expressions for the loop interpreter");
    return machine_.error;
  }
  uint32_t out = new_slots(e->lanes);
  scopes_.back()[e.node()] = out;
  if (const IntConst* c = as_int(e)) {
    std::fill_n(machine_.slots.begin() + out, e->lanes, int_scalar(c->value));
    return Ok{};
  }
  if (std::holds_alternative<Size>(e->kind)) {
    machine_.fail(code::kBadForm, "the loop interpreter runs kernels whose sizes are lifted");
    return machine_.error;
  }
  if (const FloatConst* c = as_float(e)) {
    std::fill_n(machine_.slots.begin() + out, e->lanes, float_scalar(c->value));
    return Ok{};
  }
  Instruction code;
  code.node = e.node();
  code.out = out;
  if (const auto* reduce = std::get_if<Reduce>(&e->kind)) {
    LATHE_DO(emit_reduce(*reduce, code, tape));
    return Ok{};
  }
  std::vector<Expr> kids = children(e);
  int lanes = e->lanes;
  for (Expr kid : kids) lanes = std::max(lanes, kid->lanes);
  tape.steps += static_cast<uint64_t>(lanes);
  if (std::holds_alternative<RegRead>(e->kind)) {
    for (Expr kid : kids) code.args.push_back(slot_of(kid));
  } else {
    code.a = slot_of(kids[0]);
    code.b = kids.size() > 1 ? slot_of(kids[1]) : kNoSlot;
    code.c = kids.size() > 2 ? slot_of(kids[2]) : kNoSlot;
  }
  tape.code.push_back(std::move(code));
  return Ok{};
}

Status TapeCompiler::emit_reduce(const Reduce& reduce, Instruction& code, Tape& tape) {
  if (scopes_.size() > kMaxReduceDepth) {
    machine_.fail(code::kTooLarge, "reduce expressions nest too deeply");
    return machine_.error;
  }
  for (Expr extent : reduce.extents) code.args.push_back(slot_of(extent));
  auto body = std::make_shared<Tape>();
  for (Var var : reduce.vars) is_bound_[var.id] = true;
  scopes_.emplace_back();
  LATHE_DO(emit({reduce.body}, *body));
  code.result = slot_of(reduce.body);
  scopes_.pop_back();
  for (Var var : reduce.vars) is_bound_[var.id] = false;
  for (Var var : reduce.vars) code.args.push_back(var_slots_[var.id]);
  code.body = std::move(body);
  ++tape.steps;
  tape.code.push_back(std::move(code));
  return Ok{};
}

// --- running ---

namespace {

struct Runner {
  Machine& m;
  const Instruction& code;
  const ExprNode& node = *code.node;
  int lanes = node.lanes;

  // Operands have the result's lanes, unless the instruction says otherwise.
  Scalar* slot(uint32_t first) { return m.slots.data() + first; }
  Scalar* out() { return slot(code.out); }

  bool operator()(const IntConst&) { return true; }
  bool operator()(const FloatConst&) { return true; }
  bool operator()(const VarRead&) { return true; }
  bool operator()(const Size&) { return true; }

  bool operator()(const Unary& n) {
    const Scalar* x = slot(code.a);
    for (int i = 0; i < lanes; ++i) out()[i] = apply(n.op, n.x->dtype, x[i]);
    return true;
  }
  bool operator()(const Binary& n) {
    const Scalar* a = slot(code.a);
    const Scalar* b = slot(code.b);
    for (int i = 0; i < lanes; ++i) out()[i] = apply(n.op, n.a->dtype, a[i], b[i]);
    return true;
  }
  bool operator()(const Fma&) {
    const Scalar* a = slot(code.a);
    const Scalar* b = slot(code.b);
    const Scalar* c = slot(code.c);
    for (int i = 0; i < lanes; ++i) out()[i] = apply_fma(node.dtype, a[i], b[i], c[i]);
    return true;
  }
  bool operator()(const PairDot&) {
    const Scalar* a = slot(code.a);
    const Scalar* b = slot(code.b);
    const Scalar* c = slot(code.c);
    for (int i = 0; i < lanes; ++i) out()[i] = apply_pair_dot(a[i], b[i], c[i]);
    return true;
  }
  bool operator()(const Select&) {
    const Scalar* condition = slot(code.a);
    const Scalar* a = slot(code.b);
    const Scalar* b = slot(code.c);
    for (int i = 0; i < lanes; ++i) out()[i] = condition[i].i != 0 ? a[i] : b[i];
    return true;
  }
  bool operator()(const Cast& n) {
    const Scalar* x = slot(code.a);
    for (int i = 0; i < lanes; ++i) out()[i] = convert(n.x->dtype, node.dtype, x[i]);
    return true;
  }
  bool operator()(const Bitcast& n) {
    const Scalar* x = slot(code.a);
    if (n.x->lanes == lanes) {
      for (int i = 0; i < lanes; ++i) out()[i] = convert_bits(n.x->dtype, node.dtype, x[i]);
      return true;
    }
    const auto own = static_cast<size_t>(dtype_bytes(node.dtype)),
               other = static_cast<size_t>(dtype_bytes(n.x->dtype));
    std::vector<std::byte> bytes(own * static_cast<size_t>(lanes));
    for (size_t i = 0; i * other < bytes.size(); ++i)
      write_scalar(n.x->dtype, x[i], bytes.data() + i * other);
    for (size_t i = 0; i * own < bytes.size(); ++i)
      out()[i] = read_scalar(node.dtype, bytes.data() + i * own);
    return true;
  }
  bool operator()(const Load& n) {
    const Scalar* index = slot(code.a);
    const Scalar* mask = code.b == kNoSlot ? nullptr : slot(code.b);
    bool is_gather = n.index->lanes > 1;
    for (int i = 0; i < lanes; ++i) {
      out()[i] = is_float(node.dtype) ? float_scalar(0) : int_scalar(0);
      if (mask && mask[i].i == 0) continue;
      int64_t position = is_gather ? index[i].i : wrapping_add(index[0].i, i);
      const std::byte* bytes = m.element(n.buffer, position, Machine::Access::load);
      if (!bytes) return false;
      out()[i] = read_scalar(node.dtype, bytes);
    }
    return true;
  }
  bool operator()(const RegRead& n) {
    int64_t element = m.reg_element(n.array, code.args);
    if (element < 0) return false;
    const Machine::RegState& regs = m.regs[n.array.id];
    if (!regs.is_defined[static_cast<size_t>(element)])
      return m.fail(code::kBadValue,
                    fmt::format("registers '{}' are read at element {} before they are set",
                                m.kernel->regs[n.array.id].name, element));
    std::copy_n(regs.values.begin() + element * lanes, lanes, out());
    return true;
  }
  bool operator()(const Splat&) {
    std::fill_n(out(), lanes, *slot(code.a));
    return true;
  }
  bool operator()(const Ramp& n) {
    int64_t value = slot(code.a)->i;
    for (int i = 0; i < lanes; ++i, value = wrapping_add(value, n.stride))
      out()[i] = int_scalar(value);
    return true;
  }
  bool operator()(const Shuffle& n) {
    const int first = n.a->lanes;
    for (int i = 0; i < lanes; ++i) {
      const int lane = n.lanes[static_cast<size_t>(i)];
      out()[i] = lane < first ? slot(code.a)[lane] : slot(code.b)[lane - first];
    }
    return true;
  }
  bool operator()(const ReduceLanes& n) {
    std::vector<Scalar> values(slot(code.a), slot(code.a) + n.x->lanes);
    DType dtype = n.x->dtype;
    if (n.op == ReduceOp::argmax || n.op == ReduceOp::argmin) {
      size_t best = 0;
      for (size_t i = 1; i < values.size(); ++i)
        if (is_better(n.op, dtype, values[i], values[best])) best = i;
      *out() = int_scalar(static_cast<int64_t>(best));
      return true;
    }
    for (size_t half = values.size() / 2; half > 0; half /= 2)
      for (size_t i = 0; i < half; ++i) values[i] = apply(n.op, dtype, values[i], values[i + half]);
    *out() = values[0];
    return true;
  }
  bool operator()(const Reduce& n);

  static bool is_better(ReduceOp op, DType dtype, Scalar x, Scalar best) {
    bool is_max = op == ReduceOp::argmax;
    if (!is_float(dtype)) return is_max ? x.i > best.i : x.i < best.i;
    if (std::isnan(best.f)) return false;
    return std::isnan(x.f) || (is_max ? x.f > best.f : x.f < best.f);
  }
};

bool Runner::operator()(const Reduce& n) {
  size_t rank = n.vars.size();
  bool gives_position = n.op == ReduceOp::argmax || n.op == ReduceOp::argmin;
  DType dtype = n.body->dtype;
  double start = identity(n.op, dtype);
  Scalar first = convert(DType::f64, dtype, float_scalar(start));
  std::vector<Scalar> best(static_cast<size_t>(lanes), first);
  std::fill_n(out(), lanes, gives_position ? int_scalar(0) : first);
  for (size_t d = 0; d < rank; ++d) {
    if (slot(code.args[d])->i <= 0) return true;
    *slot(code.args[rank + d]) = int_scalar(0);
  }
  for (int64_t position = 0;; ++position) {
    if (!m.take_steps(code.body->steps) || !code.body->run(m)) return false;
    const Scalar* x = slot(code.result);
    for (int i = 0; i < lanes; ++i) {
      Scalar& b = best[static_cast<size_t>(i)];
      if (!gives_position) {
        out()[i] = apply(n.op, dtype, out()[i], x[i]);
      } else if (position == 0 || is_better(n.op, dtype, x[i], b)) {
        b = x[i];
        out()[i] = int_scalar(position);
      }
    }
    size_t d = rank;
    while (d > 0) {
      Scalar& var = *slot(code.args[rank + d - 1]);
      if (++var.i < slot(code.args[d - 1])->i) break;
      var.i = 0;
      --d;
    }
    if (d == 0) return true;
  }
}

}  // namespace

bool Tape::run(Machine& machine) const {
  for (const Instruction& instruction : code) {
    Runner runner{machine, instruction};
    if (!std::visit(runner, instruction.node->kind)) return false;
  }
  return true;
}

}  // namespace lathe::loop
