// Statements: loops, branches, register arrays.
//
// A serial loop is emitted rotated (body first, test at the end), inside a branch when it may run
// zero times. Elements of register arrays are variables, so neither loops nor branches join values.
#include "backends/wasm/emit_lanes.h"
#include "backends/wasm/kernel_emitter.h"

namespace lathe::wasm {

using loop::Block;
using loop::For;
using loop::If;
using loop::Let;
using loop::LoopKind;
using loop::RegArray;
using loop::SetReg;

void KernelEmitter::set_counter(loop::Var counter, int64_t i) {
  VarValue& var = vars_[counter.id];
  var.lanes = {{int_of(fits_i32({i, i}) ? Form::i32 : Form::i64, i)}, 8};
  var.linear.reset();
  values_.touch(values_.slot(counter), 0);
}

void KernelEmitter::open_scope(placement::Scope scope) {
  values_.open(scope);
  scopes_.emplace_back();
  builder_.open_scope();
}

FunctionBuilder::Code KernelEmitter::close_scope() {
  values_.close();
  scopes_.pop_back();
  return builder_.close_scope();
}

void KernelEmitter::emit_loop(const For& loop) {
  const loop::VarInfo& info = kernel_.vars[loop.var.id];
  bool is_parallel = loop.kind == LoopKind::parallel;
  // The counter also takes the first value beyond the range.
  bool is_narrow = is_parallel || (info.min >= INT32_MIN && info.max <= INT32_MAX - loop.step &&
                                   fits_i32(loop.lo) && fits_i32(loop.hi));
  Form form = is_narrow ? Form::i32 : Form::i64;
  Ref lo = is_parallel ? parallel_lo_ : emit(loop.lo).ref();
  Ref hi = is_parallel ? parallel_hi_ : emit(loop.hi).ref();
  lo = is_narrow ? as_i32(lo) : as_i64(lo);
  hi = is_narrow ? as_i32(hi) : as_i64(hi);
  Op less = is_narrow ? Op::i32_lt_s : Op::i64_lt_s;
  std::optional<int64_t> first = builder_.int_constant(lo), end = builder_.int_constant(hi);
  bool always_runs = is_parallel || (first && end);  // the empty ones are written out
  Local counter = builder_.local(is_narrow ? Type::i32 : Type::i64);
  builder_.set(counter, lo);
  Ref runs = always_runs ? Ref{} : builder_.op(less, {lo, hi});

  placement::Effects effects = placement::effects_of(loop.body);
  open_scope({!effects.has_loop, always_runs, false});
  Ref index = builder_.steady(counter);
  if (!is_parallel && is_narrow) {
    scopes_.back().counter = index;
    scopes_.back().lo = lo;
    scopes_.back().step = loop.step;
  }
  VarValue& var = vars_[loop.var.id];
  var.lanes = {{index}, 8};
  var.linear.reset();
  values_.touch(values_.slot(loop.var), values_.depth());
  values_.note(effects);
  emit_block(loop.body);

  for (const Bump& bump : scopes_.back().bumps) {
    Ref moved =
        builder_.op(Op::i32_add, {builder_.steady(bump.pointer), int_of(Form::i32, bump.bytes)});
    builder_.set(bump.pointer, moved);
  }
  Ref next = builder_.op(is_narrow ? Op::i32_add : Op::i64_add, {index, int_of(form, loop.step)});
  builder_.set(counter, next);
  Ref again = builder_.op(less, {builder_.get(counter), hi});
  FunctionBuilder::Code body = close_scope();
  std::string note = info.name;
  if (runs) {
    builder_.open_scope();
    builder_.loop(body, again, note);
    builder_.branch(runs, builder_.close_scope(), {});
  } else {
    builder_.loop(body, again, note);
  }
  values_.note(effects);
}

void KernelEmitter::emit_stmt(const If& branch) {
  Ref condition = emit(branch.condition).ref();
  if (std::optional<int64_t> known = builder_.int_constant(condition)) {
    emit_block(*known != 0 ? branch.then_body : branch.else_body);
    return;
  }
  const Block* bodies[2] = {&branch.then_body, &branch.else_body};
  placement::Effects effects[2] = {placement::effects_of(branch.then_body),
                                   placement::effects_of(branch.else_body)};
  FunctionBuilder::Code codes[2];
  for (int side = 0; side < 2; ++side) {
    open_scope({false, false, true});
    // What either side assigns is a variable that may have changed here.
    for (const placement::Effects& e : effects) values_.note(e);
    emit_block(*bodies[side]);
    codes[side] = close_scope();
  }
  builder_.branch(condition, codes[0], codes[1]);
  values_.note(effects[0]);
  values_.note(effects[1]);
}

void KernelEmitter::emit_stmt(const Let& let) {
  Placed placed = emit(let.value);
  VarValue& var = vars_[let.var.id];
  var.lanes = placed.lanes;
  var.linear.reset();
  if (let.value->dtype == DType::i64 && let.value->lanes == 1)
    var.linear = resolve(splits_.of(let.value));
  values_.touch(values_.slot(let.var), placed.level);
}

void KernelEmitter::emit_stmt(const loop::DeclareRegs& declare) {
  const RegArray array = declare.array;
  const loop::RegInfo& info = kernel_.regs[array.id];
  int64_t count = 1;
  for (int64_t extent : info.shape) count *= extent;
  bool is_vector = info.lanes > 1;
  auto num_parts = static_cast<size_t>(is_vector ? parts_of(info.lanes, width_of(info.dtype)) : 1);
  std::vector<Element>& elements = regs_[array.id];
  elements.assign(static_cast<size_t>(count), {});
  for (Element& element : elements)
    for (size_t part = 0; part < num_parts; ++part)
      element.parts.push_back(builder_.local(is_vector ? Type::v128 : type_of(info.dtype)));
  values_.touch(values_.slot(array), values_.depth());
}

void KernelEmitter::emit_stmt(const SetReg& set) {
  const loop::RegInfo& info = kernel_.regs[set.array.id];
  Lanes value = emit(set.value).lanes;
  std::optional<size_t> at = register_at(set.array, set.indices, regs_[set.array.id].size());
  if (error_) return;
  if (info.lanes > 1 && info.dtype == DType::b8) value = mask_width(info.lanes, value, 4);
  if (info.lanes == 1 && info.dtype == DType::i64) value.parts = {as_i64(value.ref())};
  const Element& element = regs_[set.array.id][*at];
  for (size_t part = 0; part < element.parts.size(); ++part)
    builder_.set(element.parts[part], value.parts[part]);
  values_.touch(values_.slot(set.array), values_.depth());
}

// Read where it was last set, so that what depends on it alone can leave the loops inside; once,
// because there every reading is a local of its own.
Placed KernelEmitter::read_reg(Expr e) {
  const auto& read = std::get<loop::RegRead>(e->kind);
  std::optional<size_t> at = register_at(read.array, read.indices, regs_[read.array.id].size());
  if (!at) return {failed("", *e.node()), 0};
  Element& element = regs_[read.array.id][*at];
  const size_t slot = values_.slot(read.array);
  const int level = values_.level_of(slot);
  const bool is_outer = level < values_.depth();
  if (is_outer && element.time >= values_.changed(slot)) return {element.outer, level};
  Lanes lanes = at_level(level, [&] {
    Lanes result{{}, width_of(e->dtype)};
    for (Local part : element.parts) result.parts.push_back(builder_.get(part));
    return result;
  });
  if (is_outer) {
    element.outer = lanes;
    element.time = values_.now();
  }
  return {lanes, level};
}

}  // namespace lathe::wasm
