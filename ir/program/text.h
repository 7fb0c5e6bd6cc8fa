// The text form of programs. print and parse are exact inverses: what print gives parses to a
// program that prints the same and computes the same. The lexer's tokens; kernels as in
// ir/loop/spelling.h, types as in ir/graph/print.cpp.
//
//   program  = "program" FUNCTION "(" ids ")" "->" "(" ids ")" "{" { size } { guard } { part }
//              { buffer } { mutation } [ "init" block ] "steps" block "}" { kernel }
//   size     = "dim" NAME "in" "[" bound "," bound "]" [ "hint" INT ]   // as in ir/graph/print.cpp
//   guard    = "guard" comparison [ "because" STRING ] [ "by" NAME ]
//   part     = "size" NAME "=" SIZE         // what SIZEs that follow mean by the name
//   buffer   = id "=" kind STRING ":" type "," SIZE "bytes" [ "at" INT ] [ "of" STRING ]
//              [ "holds" STRING ]          // ids count from %0; bytes of constants in base64
//   kind     = "input" | "output" | "weight" | "constant" | "persistent" | "temporary"
//   mutation = "mutates" STRING ":" id "=" id   // the weight or param, its input, its output
//   block    = "arena" INT "{" { launch } "}"
//   launch   = ( "kernel" FUNCTION "(" [ begin { "," begin } ] ")" [ values ] | "library" call
//              | "copy" id "to" id | "shape" STRING "=" id
//              | "assert" id "in" expression "to" SIZE "or" STRING
//              | "host" STRING "(" ids ")" "->" "(" ids ")" )
//              [ "as" STRING ] [ "flops" SIZE ] [ "bytes" SIZE ]
//   values   = "sizes" "(" SIZE { "," SIZE } ")"   // of the kernel's dims
//   begin    = id [ "at" INT ]           // from its element INT on, a multiple of 64 bytes
//   call     = "matmul" operands [ activation ]
//            | "convolution" operands "padding" ints "stride" ints "dilation" ints
//              [ "transposed" ] [ "tf32" ] [ activation ]
//            | "attention" operands "scale" number [ "causal" ]
//   operands = "(" operand { "," operand } ")" "->" operand       // named and ordered as in call.h
//   operand  = NAME "=" id sizes [ "at" SIZE ] "by" sizes         // shape, offset, strides
//   activation = "relu" | "gelu_tanh" | ...                       // named as in activation.cpp
//   ints     = "[" [ INT { "," INT } ] "]"      sizes = "[" [ SIZE { "," SIZE } ] "]"
//   ids      = [ id { "," id } ]            id = VALUE            // %3
//
// As with every text, what a launch or kernel was made from (origins) is its place in the text.
#pragma once
#include <string>
#include <string_view>

#include "ir/program/program.h"
#include "ir/support/lexer.h"
#include "ir/support/result.h"

namespace lathe {

// Whether a text is a program's, by its first word; otherwise it is a module's.
bool is_program_text(std::string_view text);

// What parses has been verified, its kernels too. Errors stand at their place: kSyntax,
// kUndefinedValue, kRedefinedValue, kBadValue, those of kernels, and kBadProgram for what verify()
// refuses. `file` names the text in locations, which go to `locs`.
Result<Program> parse_program(std::string_view text, LocTable& locs,
                              std::string_view file = "<text>");

// The part of a launch behind "library".
Result<LibraryCall> parse_call(Lexer& lexer);
Result<BufferId> parse_buffer_id(Lexer& lexer);  // "%3"

}  // namespace lathe
