// Builds the body of one function from values instead of stack positions and numbered locals.
//
// Instructions go into scopes: scope 0 is the function, and each loop or branch is one inside the
// scope that it is placed in. Code may be added at the end of any open scope, so what does not move
// with a loop can be put in front of it while the loop is being written. `finish` decides which
// values stay on the stack (used once, soon, and nothing in between changes them) and which locals
// the others share.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "backends/wasm/module.h"

namespace lathe::wasm {

// A value: computed once, never changed. Visible where its scope is open, after it was made.
struct Ref {
  uint32_t id = UINT32_MAX;
  explicit operator bool() const { return id != UINT32_MAX; }
  friend bool operator==(Ref a, Ref b) { return a.id == b.id; }
};
// A variable. Holds anything until it is set.
struct Local {
  uint32_t id = UINT32_MAX;
  explicit operator bool() const { return id != UINT32_MAX; }
};

class FunctionBuilder {
 public:
  explicit FunctionBuilder(std::vector<Type> params);

  Ref param(uint32_t index);
  Ref i32(int32_t value);
  Ref i64(int64_t value);
  Ref f32(float value);
  Ref f64(double value);
  Ref v128(uint64_t low, uint64_t high);

  // `immediates` gives offset, lane and bits; its op is not read.
  Ref op(Op op, std::initializer_list<Ref> args, Instr immediates = {});
  // An instruction without a result: a store.
  void effect(Op op, std::initializer_list<Ref> args, Instr immediates = {});
  Local local(Type type);  // belongs to the scope at `level`
  Ref get(Local local);
  // The value of a variable that changes only where nobody holds what it was: a loop's counter.
  Ref steady(Local local);
  void set(Local local, Ref value);

  // The scope that code is added to: 0, the function, to depth().
  size_t level() const { return level_; }
  void set_level(size_t level) { level_ = level; }
  size_t depth() const { return scopes_.size() - 1; }
  void open_scope();
  using Code = std::vector<uint32_t>;
  Code close_scope();
  // Place a closed scope at `level`. A loop repeats while `again`, which its code ends with.
  void loop(const Code& body, Ref again, std::string note);
  void branch(Ref condition, const Code& then_code, const Code& else_code);

  Type type(Ref value) const { return items_[value.id].type; }
  std::optional<int64_t> int_constant(Ref value) const;  // of i32 or i64
  struct Bits {
    uint64_t low, high;
    bool is_all(uint64_t half) const { return low == half && high == half; }
  };
  std::optional<Bits> v128_constant(Ref value) const;
  size_t num_items() const { return items_.size(); }

  // Moves the body, the locals and the notes into `function`.
  void finish(Function& function);

 private:
  friend class Stackifier;
  enum class Kind : uint8_t { value, effect, get, set, declare, marker };
  struct Item {
    Instr instr;
    Kind kind = Kind::value;
    Type type = Type::none;
    bool is_free = false;  // as cheap as reading a local: made anew at each use
    uint8_t num_args = 0;
    Ref args[3] = {};
    uint32_t local = UINT32_MAX;  // of get, set and declare
    uint32_t note = UINT32_MAX;
  };
  Ref add(Item item);
  uint32_t marker(Op op, Ref arg = {});

  std::vector<Type> params_;
  std::vector<Type> locals_;
  std::vector<Item> items_;
  std::vector<Code> scopes_;
  std::vector<std::string> notes_;
  size_t level_ = 0;
};

}  // namespace lathe::wasm
