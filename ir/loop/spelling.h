// Spelling of operations in the text form, for the printer, the parser and messages.
//
//   kernel   = "kernel" "@" NAME "(" [ buffer { "," buffer } ] ")" [ "grain" INT ]
//              "{" { dim | symbol } block "}"
//   buffer   = VALUE ":" dtype "[" DIM "]" [ "out" | "scratch" | "stack" | "shared" ]
//   dim      = "dim" VALUE "in" "[" INT "," INT "]" [ "multiple" INT ]
//   symbol   = "size" NAME "in" range             // of two bounds, as in ir/graph/print.cpp
//   block    = { stmt }
//   stmt     = ( "parallel" | "for" | "unroll" | "thread" ) VALUE "in" expr ".." expr
//              [ "step" INT ] "{" block "}"
//            | "if" expr "{" block "}" [ "else" "{" block "}" ]
//            | "let" VALUE [ ":" type ] "=" expr
//            | "def" VALUE "=" expr                  // names a shared expression; no statement
//            | "regs" VALUE ":" type [ "[" INT { "," INT } "]" ]
//            | VALUE [ "[" expr { "," expr } "]" ] "=" expr
//            | "store" [ "nontemporal" ] VALUE "[" expr "]" [ "mask" "(" expr ")" ] "=" expr
//            | "prefetch" VALUE "[" expr "]" [ "locality" INT ]
//            | "barrier"
//            | "tiles" VALUE ":" ( "left" | "right" | "sum" ) "(" dtype "," M "," N "," K ")"
//              [ "[" INT { "," INT } "]" ]
//            | "load_tile" tile "," VALUE "[" expr "]" "stride" INT [ "transposed" ]
//            | "store_tile" VALUE "[" expr "]" "stride" INT "," tile
//            | "mma" tile "," tile "," tile          // the sum, left, right
//   tile     = VALUE [ "[" expr { "," expr } "]" ]
//   type     = dtype [ "x" LANES ]                   // f32, f32x16
//   expr     = infix operators, weakest first:  ||  &&  == != < <= > >=  |  ^  &  << >>  + -
//              * / // %  and prefix  - ! ~
//   primary  = literal | VALUE | VALUE "[" expr { "," expr } "]" | "(" expr ")"
//            | function "(" expr { "," expr } ")"    // sqrt, exp, min, max, pow, fma, select, ...
//            | dtype "(" expr ")"                    // cast
//            | "bitcast" "(" expr "," dtype ")"
//            | "size" "(" DIM ")"
//            | "splat" "(" expr "," LANES ")"
//            | "ramp" "(" expr "," STRIDE "," LANES ")"
//            | "shuffle" "(" expr "," expr "," "[" LANE { "," LANE } "]" ")"
//            | "reduce_lanes" "(" reduction "," expr ")"
//            | reduction "[" VALUE "in" "0" ".." expr { "," ... } "]" "(" expr ")"
//            | "load" [ type ] VALUE "[" expr "]" [ "mask" "(" expr ")" ]
//
// A literal takes the dtype of the operand beside it, and a scalar is splat to that operand's
// lanes; alone, an integer is i64 and a real f32. `//` is written without a blank before it, where
// it would begin a comment, and `%` with one behind it, where it would begin a name.
#pragma once
#include <string>
#include <string_view>

#include "ir/loop/node.h"

namespace lathe::loop {

// By enumerator; neg, logical_not and bit_not print as prefix marks.
inline constexpr std::string_view kUnaryNames[] = {
    "-",    "abs", "sqrt",  "rsqrt", "exp",   "expm1",      "log", "log1p", "sin",   "cos",
    "tanh", "erf", "floor", "ceil",  "trunc", "round_even", "!",   "~",     "is_nan"};
inline constexpr std::string_view kReduceNames[] = {"sum", "prod", "max",    "min",
                                                    "any", "all",  "argmax", "argmin"};

inline constexpr std::string_view kLoopNames[] = {"for", "unroll", "parallel", "thread"};
inline constexpr std::string_view kTileNames[] = {"", "left", "right", "sum"};

struct Infix {
  BinaryOp op;
  std::string_view mark;
  int precedence;  // higher binds tighter
  bool for_bools;  // && and || are the spelling of & and | on bools
};
inline constexpr int kComparePrecedence = 3;
inline constexpr int kSumPrecedence = 8;
inline constexpr int kPrefixPrecedence = 10;
inline constexpr Infix kInfix[] = {
    {BinaryOp::bit_or, "||", 1, true},       {BinaryOp::bit_and, "&&", 2, true},
    {BinaryOp::eq, "==", 3, false},          {BinaryOp::ne, "!=", 3, false},
    {BinaryOp::lt, "<", 3, false},           {BinaryOp::le, "<=", 3, false},
    {BinaryOp::gt, ">", 3, false},           {BinaryOp::ge, ">=", 3, false},
    {BinaryOp::bit_or, "|", 4, false},       {BinaryOp::bit_xor, "^", 5, false},
    {BinaryOp::bit_and, "&", 6, false},      {BinaryOp::shift_left, "<<", 7, false},
    {BinaryOp::shift_right, ">>", 7, false}, {BinaryOp::add, "+", 8, false},
    {BinaryOp::sub, "-", 8, false},          {BinaryOp::mul, "*", 9, false},
    {BinaryOp::div, "/", 9, false},          {BinaryOp::floor_div, "//", 9, false},
    {BinaryOp::mod, "%", 9, false},
};

std::string type_name(DType dtype, int lanes);  // "f32", "f32x16"

// min, max and pow: "" for the others.
inline std::string_view binary_function(BinaryOp op) {
  return op == BinaryOp::min   ? "min"
         : op == BinaryOp::max ? "max"
         : op == BinaryOp::pow ? "pow"
                               : "";
}

}  // namespace lathe::loop
