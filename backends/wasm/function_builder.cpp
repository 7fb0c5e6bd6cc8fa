// The recording side of function_builder.h; stackify.cpp turns the record into code.
#include "backends/wasm/function_builder.h"

#include <cstring>

namespace lathe::wasm {

FunctionBuilder::FunctionBuilder(std::vector<Type> params) : params_(std::move(params)) {
  scopes_.emplace_back();
}

Ref FunctionBuilder::add(Item item) {
  auto id = static_cast<uint32_t>(items_.size());
  if (!item.is_free) scopes_[level_].push_back(id);
  items_.push_back(std::move(item));
  return {id};
}

Ref FunctionBuilder::param(uint32_t index) {
  Item item{.instr = {Op::local_get, index}, .type = params_[index], .is_free = true};
  return add(item);
}

Ref FunctionBuilder::i32(int32_t value) {
  Instr instr{.op = Op::i32_const, .low = static_cast<uint64_t>(static_cast<int64_t>(value))};
  return add({.instr = instr, .type = Type::i32, .is_free = true});
}

Ref FunctionBuilder::i64(int64_t value) {
  Instr instr{.op = Op::i64_const, .low = static_cast<uint64_t>(value)};
  return add({.instr = instr, .type = Type::i64, .is_free = true});
}

Ref FunctionBuilder::f32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return add({.instr = {.op = Op::f32_const, .low = bits}, .type = Type::f32, .is_free = true});
}

Ref FunctionBuilder::f64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return add({.instr = {.op = Op::f64_const, .low = bits}, .type = Type::f64, .is_free = true});
}

Ref FunctionBuilder::v128(uint64_t low, uint64_t high) {
  return add({.instr = {.op = Op::v128_const, .low = low, .high = high}, .type = Type::v128});
}

Ref FunctionBuilder::op(Op op, std::initializer_list<Ref> args, Instr immediates) {
  Item item{.instr = immediates};
  item.instr.op = op;
  item.type = op == Op::select ? type(*args.begin()) : info(op).result;
  for (Ref arg : args) item.args[item.num_args++] = arg;
  return add(item);
}

void FunctionBuilder::effect(Op op, std::initializer_list<Ref> args, Instr immediates) {
  Item item{.instr = immediates, .kind = Kind::effect};
  item.instr.op = op;
  for (Ref arg : args) item.args[item.num_args++] = arg;
  add(item);
}

Local FunctionBuilder::local(Type type) {
  auto id = static_cast<uint32_t>(locals_.size());
  locals_.push_back(type);
  add({.kind = Kind::declare, .local = id});
  return {id};
}

Ref FunctionBuilder::get(Local local) {
  return add(
      {.instr = {Op::local_get}, .kind = Kind::get, .type = locals_[local.id], .local = local.id});
}

Ref FunctionBuilder::steady(Local local) {
  return add({.instr = {Op::local_get},
              .kind = Kind::get,
              .type = locals_[local.id],
              .is_free = true,
              .local = local.id});
}

void FunctionBuilder::set(Local local, Ref value) {
  add({.instr = {Op::local_set},
       .kind = Kind::set,
       .num_args = 1,
       .args = {value},
       .local = local.id});
}

void FunctionBuilder::open_scope() {
  scopes_.emplace_back();
  level_ = depth();
}

FunctionBuilder::Code FunctionBuilder::close_scope() {
  Code code = std::move(scopes_.back());
  scopes_.pop_back();
  level_ = depth();
  return code;
}

uint32_t FunctionBuilder::marker(Op op, Ref arg) {
  Item item{.instr = {op}, .kind = Kind::marker};
  if (arg) item.args[item.num_args++] = arg;
  items_.push_back(item);
  return static_cast<uint32_t>(items_.size()) - 1;
}

void FunctionBuilder::loop(const Code& body, Ref again, std::string note) {
  Code& out = scopes_[level_];
  uint32_t head = marker(Op::loop);
  if (!note.empty()) {
    items_[head].note = static_cast<uint32_t>(notes_.size());
    notes_.push_back(std::move(note));
  }
  out.push_back(head);
  out.insert(out.end(), body.begin(), body.end());
  out.push_back(marker(Op::br_if, again));
  out.push_back(marker(Op::end));
}

void FunctionBuilder::branch(Ref condition, const Code& then_code, const Code& else_code) {
  Code& out = scopes_[level_];
  out.push_back(marker(Op::if_, condition));
  out.insert(out.end(), then_code.begin(), then_code.end());
  if (!else_code.empty()) {
    out.push_back(marker(Op::else_));
    out.insert(out.end(), else_code.begin(), else_code.end());
  }
  out.push_back(marker(Op::end));
}

std::optional<int64_t> FunctionBuilder::int_constant(Ref value) const {
  const Instr& instr = items_[value.id].instr;
  if (instr.op == Op::i32_const || instr.op == Op::i64_const)
    return static_cast<int64_t>(instr.low);
  return std::nullopt;
}

std::optional<FunctionBuilder::Bits> FunctionBuilder::v128_constant(Ref value) const {
  const Instr& instr = items_[value.id].instr;
  if (instr.op == Op::v128_const) return Bits{instr.low, instr.high};
  return std::nullopt;
}

}  // namespace lathe::wasm
