// The expressions of the text form, and the names that they may use; part of the parser.
#pragma once
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/loop/node.h"
#include "ir/support/lexer.h"
#include "ir/support/result.h"

namespace lathe::loop {

struct TypeName {
  DType dtype = DType::f32;
  int lanes = 1;
};

// What a %name stands for. A def is the expression itself.
using Named = std::variant<Var, BufferRef, RegArray, Expr>;

class ExprParser {
 public:
  ExprParser(Lexer& lexer, Kernel& kernel) : lexer_(lexer), kernel_(kernel) {}

  Result<Expr> parse();  // a literal alone is i64 or f32
  // A literal takes the dtype and lanes of its destination; other values must have them (lanes 0:
  // any, and a scalar is not splat).
  Result<Expr> parse_as(TypeName type);
  Result<Expr> parse_index();  // scalar or vector i64

  Result<ReduceOp> reduce_op();  // sum
  Result<TypeName> type();  // f32x16
  Result<DType> dtype();
  // "%x[": a value of the wanted kind.
  template <class T>
  Result<T> reference(const char* what);
  Result<std::vector<Expr>> indices();  // "[" i64, ... "]"

  // Names live until leave() with the mark that size() gave.
  Status define(const Token& name, Named meaning);
  size_t size() const { return scope_.size(); }
  void leave(size_t mark);
  const Named* find(std::string_view name) const;
  Diag undefined(const Token& name) const;

 private:
  // A literal has no dtype before it meets an operand that has one.
  struct Operand {
    Expr e;  // null: a literal
    Token token = {};
    bool is_real = false;
    bool is_negative = false;
  };
  Result<Operand> infix(int min_precedence);
  Result<Operand> prefix();
  Result<Operand> primary();
  Result<Operand> named_value(const Token& name);
  Result<Operand> word();
  Result<Operand> call(const Token& name);
  Result<Operand> cast_call(DType dtype);
  Result<Expr> load();
  Result<Expr> reduction(ReduceOp op);
  Result<Operand> special_call(const Token& name);
  Result<Operand> shuffle_call(const Token& name);
  Result<Operand> size_call(const Token& name);
  Result<Operand> apply(const Token& name, std::vector<Operand> operands);
  Result<Operand> combine(BinaryOp op, const Token& at, Operand a, Operand b);

  Result<Expr> typed(const Operand& operand) const;  // literals get their default
  Result<Expr> typed_as(const Operand& operand, DType dtype) const;
  // Gives all operands one dtype and equal lanes.
  Result<std::vector<Expr>> unified(const Token& at, const std::vector<Operand>& operands) const;
  Result<int> lanes();
  Diag mismatch(const Token& at, const std::string& message) const;

  Lexer& lexer_;
  Kernel& kernel_;
  std::unordered_map<std::string, Named> names_;
  std::vector<std::string> scope_;
  int depth_ = 0;
};

template <class T>
Result<T> ExprParser::reference(const char* what) {
  LATHE_TRY(Token name, lexer_.expect(TokenKind::value, what));
  const Named* meaning = find(name.text);
  if (!meaning) return undefined(name);
  const T* found = std::get_if<T>(meaning);
  if (!found) return mismatch(name, "'%" + std::string(name.text) + "' is not " + what);
  return *found;
}

}  // namespace lathe::loop
