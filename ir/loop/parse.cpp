// Parses kernels; the grammar stands in spelling.h. What parses has been verified.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ir/loop/linear.h"
#include "ir/loop/parse_expr.h"
#include "ir/loop/pool.h"
#include "ir/loop/spelling.h"
#include "ir/loop/text.h"
#include "ir/support/diag_codes.h"

namespace lathe::loop {
namespace {

constexpr int kMaxDepth = 150;

// Launches name kernels: one that the printer spelled otherwise would be lost.
bool is_printed_as_it_is(std::string_view name) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return std::all_of(name.begin(), name.end(), is_plain) && !std::isdigit(name.front());
}

class Parser {
 public:
  explicit Parser(Lexer& lexer) : lexer_(lexer), exprs_(lexer_, kernel_) {
    kernel_.pool = std::make_shared<Pool>();
  }

  Result<Kernel> run() {
    kernel_.origins = {lexer_.loc(lexer_.peek())};
    LATHE_DO(lexer_.expect("kernel"));
    LATHE_TRY(Token name, lexer_.expect(TokenKind::function, "a name such as @relu"));
    kernel_.name = std::string(name.text);
    if (!is_printed_as_it_is(kernel_.name))
      return lexer_.error(
          name,
          fmt::format("a kernel's name has letters, digits and '_' alone and begins "
                      "with no digit, got '@{}'",
                      kernel_.name),
          code::kSyntax);
    LATHE_DO(buffers());
    if (lexer_.accept("grain")) {
      LATHE_TRY(kernel_.grain, lexer_.integer());
    }
    LATHE_DO(lexer_.expect("{"));
    while (lexer_.accept("dim")) LATHE_DO(dim());
    while (lexer_.accept("size")) LATHE_DO(symbol());
    LATHE_TRY(kernel_.body, statements());
    LATHE_DO(verify(kernel_, /*is_scheduled=*/false));
    return std::move(kernel_);
  }

 private:
  // --- header ---

  Status buffers() {
    LATHE_DO(lexer_.expect("("));
    if (lexer_.accept(")")) return Ok{};
    do {
      LATHE_TRY(Token name, lexer_.expect(TokenKind::value, "a buffer such as %x"));
      LATHE_DO(lexer_.expect(":"));
      Buffer buffer;
      buffer.name = std::string(name.text);
      LATHE_TRY(buffer.dtype, exprs_.dtype());
      LATHE_DO(lexer_.expect("["));
      LATHE_TRY(buffer.size, parse_dim(lexer_));
      LATHE_DO(lexer_.expect("]"));
      if (lexer_.accept("scratch")) {
        buffer.space = Space::scratch;
      } else if (lexer_.accept("stack")) {
        buffer.space = Space::stack;
      } else if (lexer_.accept("shared")) {
        buffer.space = Space::shared;
      }
      buffer.is_written = buffer.space != Space::global || lexer_.accept("out");
      LATHE_DO(exprs_.define(name, kernel_.add_buffer(std::move(buffer))));
    } while (lexer_.accept(","));
    return lexer_.expect(")");
  }

  Status dim() {
    LATHE_TRY(Token name, lexer_.expect(TokenKind::value, "a dim such as %n"));
    LATHE_TRY(const Interval range, range_in());
    VarInfo info{std::string(name.text), VarKind::dim};
    info.min = range.min;
    info.max = range.max;
    if (lexer_.accept("multiple")) {
      LATHE_TRY(info.multiple, lexer_.integer());
    }
    return exprs_.define(name, kernel_.add_var(std::move(info)));
  }

  Status symbol() {
    LATHE_TRY(Token name, lexer_.expect(TokenKind::name, "a symbol such as s0"));
    LATHE_DO(lexer_.expect("in"));
    LATHE_TRY(const DimRange range, parse_range(lexer_));
    if (!kernel_.symbols.emplace(name.text, range).second)
      return lexer_.error(name, fmt::format("'{}' has two ranges", name.text),
                          code::kRedefinedValue);
    return Ok{};
  }

  Result<Interval> range_in() {
    Interval range{};
    LATHE_DO(lexer_.expect("in"));
    LATHE_DO(lexer_.expect("["));
    LATHE_TRY(range.min, lexer_.integer());
    LATHE_DO(lexer_.expect(","));
    LATHE_TRY(range.max, lexer_.integer());
    LATHE_DO(lexer_.expect("]"));
    return range;
  }

  // --- statements ---

  // Up to and with the closing brace.
  Result<Block> statements() {
    if (++depth_ > kMaxDepth)
      return lexer_.error(lexer_.peek(), "statements nest too deeply", code::kTooLarge);
    Block block;
    size_t mark = exprs_.size();
    while (!lexer_.accept("}")) {
      if (lexer_.accept("def")) {
        LATHE_DO(definition());
        continue;
      }
      LATHE_TRY(Stmt stmt, statement());
      block.push_back(std::move(stmt));
    }
    exprs_.leave(mark);
    --depth_;
    return block;
  }

  Result<Block> braced() {
    LATHE_DO(lexer_.expect("{"));
    return statements();
  }

  Status definition() {
    LATHE_TRY(Token name, lexer_.expect(TokenKind::value, "a name such as %0"));
    LATHE_DO(lexer_.expect("="));
    LATHE_TRY(Expr e, exprs_.parse());
    return exprs_.define(name, e);
  }

  Result<Stmt> statement() {
    if (lexer_.peek().kind == TokenKind::value) return set_reg();
    if (lexer_.accept("parallel")) return loop(LoopKind::parallel);
    if (lexer_.accept("for")) return loop(LoopKind::serial);
    if (lexer_.accept("unroll")) return loop(LoopKind::unroll);
    if (lexer_.accept("thread")) return loop(LoopKind::thread);
    if (lexer_.accept("if")) return branch();
    if (lexer_.accept("let")) return let();
    if (lexer_.accept("regs")) return registers();
    if (lexer_.accept("store")) return store();
    if (lexer_.accept("prefetch")) return prefetch();
    if (lexer_.accept("barrier")) return Stmt{Barrier{}};
    if (lexer_.accept("tiles")) return tiles();
    if (lexer_.accept("load_tile")) return load_tile();
    if (lexer_.accept("store_tile")) return store_tile();
    if (lexer_.accept("mma")) return mma();
    return lexer_.expected("a statement or '}'");
  }

  Result<Stmt> loop(LoopKind kind) {
    LATHE_TRY(Token name, lexer_.expect(TokenKind::value, "a variable such as %i"));
    LATHE_DO(lexer_.expect("in"));
    For result{};
    result.kind = kind;
    LATHE_TRY(result.lo, exprs_.parse_as({DType::i64, 1}));
    LATHE_DO(lexer_.expect(".."));
    LATHE_TRY(result.hi, exprs_.parse_as({DType::i64, 1}));
    result.step = 1;
    if (lexer_.accept("step")) {
      LATHE_TRY(result.step, lexer_.integer());
    }
    VarInfo info;
    info.name = std::string(name.text);
    info.min = interval(result.lo, kernel_).min;
    int64_t end = interval(result.hi, kernel_).max;
    info.max = std::max(info.min, end == INT64_MIN ? end : end - 1);
    result.var = kernel_.add_var(std::move(info));
    size_t mark = exprs_.size();
    LATHE_DO(exprs_.define(name, result.var));
    LATHE_TRY(result.body, braced());
    exprs_.leave(mark);
    return Stmt{std::move(result)};
  }

  Result<Stmt> branch() {
    If result;
    LATHE_TRY(result.condition, exprs_.parse_as({DType::b8, 1}));
    LATHE_TRY(result.then_body, braced());
    if (lexer_.accept("else")) {
      LATHE_TRY(result.else_body, braced());
    }
    return Stmt{std::move(result)};
  }

  Result<Stmt> let() {
    LATHE_TRY(Token name, lexer_.expect(TokenKind::value, "a variable such as %t"));
    Let result;
    if (lexer_.accept(":")) {
      LATHE_TRY(TypeName type, exprs_.type());
      LATHE_DO(lexer_.expect("="));
      LATHE_TRY(result.value, exprs_.parse_as(type));
    } else {
      LATHE_DO(lexer_.expect("="));
      LATHE_TRY(result.value, exprs_.parse());
    }
    VarInfo info;
    info.name = std::string(name.text);
    info.kind = VarKind::let;
    info.dtype = result.value->dtype;
    info.lanes = result.value->lanes;
    result.var = kernel_.add_var(std::move(info));
    LATHE_DO(exprs_.define(name, result.var));
    return Stmt{result};
  }

  Result<Stmt> registers() {
    LATHE_TRY(Token name, lexer_.expect(TokenKind::value, "a name such as %acc"));
    LATHE_DO(lexer_.expect(":"));
    LATHE_TRY(TypeName type, exprs_.type());
    RegInfo info{std::string(name.text), type.dtype, type.lanes, {}};
    return declaration(name, std::move(info));
  }

  // What registers and tiles have behind their type.
  Result<Stmt> declaration(const Token& name, RegInfo info) {
    if (lexer_.accept("[")) {
      do {
        LATHE_TRY(int64_t extent, lexer_.integer());
        info.shape.push_back(extent);
      } while (lexer_.accept(","));
      LATHE_DO(lexer_.expect("]"));
    }
    RegArray array = kernel_.add_regs(std::move(info));
    LATHE_DO(exprs_.define(name, array));
    return Stmt{DeclareRegs{array}};
  }

  Result<Stmt> set_reg() {
    SetReg result;
    LATHE_TRY(result.array, exprs_.reference<RegArray>("a register array"));
    const RegInfo info = kernel_.regs[result.array.id];
    if (!info.shape.empty()) {
      LATHE_TRY(result.indices, exprs_.indices());
    }
    LATHE_DO(lexer_.expect("="));
    LATHE_TRY(result.value, exprs_.parse_as({info.dtype, info.lanes}));
    return Stmt{std::move(result)};
  }

  Result<Stmt> store() {
    Store result{};
    result.nontemporal = lexer_.accept("nontemporal");
    if (lexer_.accept("atomic")) {
      LATHE_TRY(result.atomic, exprs_.reduce_op());
    }
    LATHE_TRY(result.buffer, exprs_.reference<BufferRef>("a buffer"));
    LATHE_DO(lexer_.expect("["));
    LATHE_TRY(result.index, exprs_.parse_index());
    LATHE_DO(lexer_.expect("]"));
    if (lexer_.accept("mask")) {
      LATHE_DO(lexer_.expect("("));
      LATHE_TRY(result.mask, exprs_.parse_as({DType::b8, 0}));
      LATHE_DO(lexer_.expect(")"));
    }
    LATHE_DO(lexer_.expect("="));
    LATHE_TRY(result.value, exprs_.parse_as({kernel_.buffers[result.buffer.id].dtype, 0}));
    return Stmt{result};
  }

  Result<Stmt> prefetch() {
    Prefetch result;
    LATHE_TRY(result.buffer, exprs_.reference<BufferRef>("a buffer"));
    LATHE_DO(lexer_.expect("["));
    LATHE_TRY(result.index, exprs_.parse_as({DType::i64, 1}));
    LATHE_DO(lexer_.expect("]"));
    if (lexer_.accept("locality")) {
      LATHE_TRY(int64_t locality, lexer_.integer());
      result.locality = static_cast<int>(std::clamp<int64_t>(locality, 0, 4));
    }
    return Stmt{result};
  }

  // --- matrix tiles ---

  Result<Stmt> tiles() {
    LATHE_TRY(Token name, lexer_.expect(TokenKind::value, "a name such as %acc"));
    LATHE_DO(lexer_.expect(":"));
    RegInfo info;
    info.name = std::string(name.text);
    for (const TileRole role : {TileRole::left, TileRole::right, TileRole::sum})
      if (info.role == TileRole::none && lexer_.accept(kTileNames[static_cast<size_t>(role)]))
        info.role = role;
    if (info.role == TileRole::none) return lexer_.expected("left, right or sum");
    LATHE_DO(lexer_.expect("("));
    LATHE_TRY(info.dtype, exprs_.dtype());
    for (int* dim : {&info.tile.m, &info.tile.n, &info.tile.k}) {
      LATHE_DO(lexer_.expect(","));
      LATHE_TRY(int64_t extent, lexer_.integer());
      *dim = static_cast<int>(std::clamp<int64_t>(extent, 0, INT16_MAX));  // verify() refuses both
    }
    LATHE_DO(lexer_.expect(")"));
    return declaration(name, std::move(info));
  }

  Result<TileRef> tile() {
    TileRef result;
    LATHE_TRY(result.array, exprs_.reference<RegArray>("a register array"));
    if (!kernel_.regs[result.array.id].shape.empty()) {
      LATHE_TRY(result.indices, exprs_.indices());
    }
    return result;
  }

  Status place(BufferRef& buffer, Expr& index, int64_t& stride) {
    LATHE_TRY(buffer, exprs_.reference<BufferRef>("a buffer"));
    LATHE_DO(lexer_.expect("["));
    LATHE_TRY(index, exprs_.parse_as({DType::i64, 1}));
    LATHE_DO(lexer_.expect("]"));
    LATHE_DO(lexer_.expect("stride"));
    LATHE_TRY(stride, lexer_.integer());
    return Ok{};
  }

  Result<Stmt> load_tile() {
    LoadTile result{};
    LATHE_TRY(result.tile, tile());
    LATHE_DO(lexer_.expect(","));
    LATHE_DO(place(result.buffer, result.index, result.stride));
    result.is_transposed = lexer_.accept("transposed");
    return Stmt{std::move(result)};
  }

  Result<Stmt> store_tile() {
    StoreTile result{};
    LATHE_DO(place(result.buffer, result.index, result.stride));
    LATHE_DO(lexer_.expect(","));
    LATHE_TRY(result.tile, tile());
    return Stmt{std::move(result)};
  }

  Result<Stmt> mma() {
    Mma result;
    LATHE_TRY(result.sum, tile());
    LATHE_DO(lexer_.expect(","));
    LATHE_TRY(result.left, tile());
    LATHE_DO(lexer_.expect(","));
    LATHE_TRY(result.right, tile());
    return Stmt{std::move(result)};
  }

  Kernel kernel_;
  Lexer& lexer_;
  ExprParser exprs_;
  int depth_ = 0;
};

}  // namespace

Result<Kernel> parse_kernel(Lexer& lexer) { return Parser(lexer).run(); }

Result<Kernel> parse_kernel(std::string_view text, LocTable& locs, std::string_view file) {
  Lexer lexer(text, file, &locs);
  LATHE_TRY(Kernel kernel, parse_kernel(lexer));
  if (!lexer.at_end()) return lexer.expected("the end");
  return kernel;
}

}  // namespace lathe::loop
