// Parses programs; the grammar stands in text.h.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "ir/loop/text.h"
#include "ir/program/buffer_kind.h"
#include "ir/program/text.h"
#include "ir/program/verify.h"
#include "ir/support/base64.h"
#include "ir/support/diag_codes.h"
#include "ir/type/type_text.h"

namespace lathe {
namespace {

class Parser {
 public:
  Parser(std::string_view text, LocTable& locs, std::string_view file)
      : lexer_(text, file, &locs) {}

  Result<Program> run() {
    places_.header = lexer_.loc(lexer_.peek());
    LATHE_DO(lexer_.expect("program"));
    LATHE_TRY(const Token name, lexer_.expect(TokenKind::function, "a name such as @main"));
    program_.name = std::string(name.text);
    LATHE_TRY(program_.inputs, ids());
    LATHE_DO(lexer_.expect("->"));
    LATHE_TRY(program_.outputs, ids());
    LATHE_DO(lexer_.expect("{"));
    while (lexer_.accept("dim")) LATHE_DO(symbol());
    while (lexer_.peek().is("guard")) LATHE_DO(guard());
    while (lexer_.accept("size")) LATHE_DO(part());
    while (lexer_.peek().kind == TokenKind::value) LATHE_DO(buffer());
    while (lexer_.accept("mutates")) LATHE_DO(mutation());
    if (lexer_.accept("init")) LATHE_DO(block(program_.init, program_.init_arena_bytes));
    LATHE_DO(lexer_.expect("steps"));
    LATHE_DO(block(program_.steps, program_.arena_bytes));
    LATHE_DO(lexer_.expect("}"));
    while (!lexer_.at_end()) LATHE_DO(kernel());
    LATHE_DO(resolve_kernels());
    LATHE_DO(verify(program_, places_));
    return std::move(program_);
  }

 private:
  // What a launch calls its kernel, which stands further down.
  struct KernelName {
    Token token;
    bool is_init;
    size_t launch;
  };

  Result<std::vector<BufferId>> ids() {
    std::vector<BufferId> list;
    LATHE_DO(lexer_.expect("("));
    while (!lexer_.accept(")")) {
      if (!list.empty()) LATHE_DO(lexer_.expect(","));
      LATHE_TRY(const BufferId id, parse_buffer_id(lexer_));
      list.push_back(id);
    }
    return list;
  }

  Result<BufferKind> kind() {
    for (BufferKind kind : {BufferKind::input, BufferKind::output, BufferKind::weight,
                            BufferKind::constant, BufferKind::persistent, BufferKind::temporary})
      if (lexer_.accept(kind_name(kind))) return kind;
    return lexer_.expected("a kind of buffer");
  }

  Status buffer() {
    const Token start = lexer_.peek();
    LATHE_TRY(const BufferId id, parse_buffer_id(lexer_));
    if (static_cast<size_t>(id) != program_.buffers.size())
      return lexer_.error(start,
                          fmt::format("expected buffer %{}, since buffers are numbered in "
                                      "order",
                                      program_.buffers.size()),
                          code::kRedefinedValue);
    places_.buffers.push_back(lexer_.loc(start));
    LATHE_DO(lexer_.expect("="));
    ProgramBuffer made;
    LATHE_TRY(made.kind, kind());
    LATHE_TRY(made.name, lexer_.string());
    LATHE_DO(lexer_.expect(":"));
    LATHE_TRY(made.type, parse_type(lexer_));
    LATHE_DO(lexer_.expect(","));
    LATHE_TRY(made.num_bytes, size());
    LATHE_DO(lexer_.expect("bytes"));
    if (lexer_.accept("at")) {
      LATHE_TRY(made.offset, count());
    }
    if (lexer_.accept("of")) {
      LATHE_TRY(made.weight, lexer_.string());
    }
    if (lexer_.accept("holds")) {
      const Token at = lexer_.peek();
      LATHE_TRY(const std::string text, lexer_.string());
      std::optional<std::vector<std::byte>> bytes = from_base64(text);
      if (!bytes) return lexer_.error(at, "these are no bytes in base64", code::kBadValue);
      made.bytes = *std::move(bytes);
    }
    program_.buffers.push_back(std::move(made));
    return Ok{};
  }

  Result<int64_t> count() {
    const Token at = lexer_.peek();
    LATHE_TRY(const int64_t value, lexer_.integer());
    if (value < 0)
      return lexer_.error(at, "expected a number that is not negative", code::kBadValue);
    return value;
  }

  // A number that is not negative, or an expression of the program's symbols.
  Result<Dim> size() {
    const Token at = lexer_.peek();
    LATHE_TRY(const Dim value, formula());
    if (value.is_const() && value.value() < 0)
      return lexer_.error(at, "expected a number that is not negative", code::kBadValue);
    return value;
  }

  // Of the program's symbols, and of parts, which it then has written out.
  Result<Dim> formula() {
    const Token at = lexer_.peek();
    LATHE_TRY(Dim value, parse_dim(lexer_));
    if (!parts_.empty()) value = value.substitute(parts_);
    std::vector<std::string> names;
    value.collect_symbols(names);
    for (const std::string& name : names)
      if (program_.symbols.count(name) == 0)
        return lexer_.error(at, fmt::format("no size '{}' in this program", name.substr(0, 40)),
                            code::kUndefinedValue);
    return value;
  }

  Status symbol() {
    LATHE_TRY(const Token name, lexer_.expect(TokenKind::name, "a name such as s0"));
    LATHE_DO(lexer_.expect("in"));
    LATHE_TRY(const DimRange range, parse_range(lexer_));
    if (!program_.symbols.emplace(std::string(name.text), range).second)
      return lexer_.error(name, "a second size of that name", code::kRedefinedValue);
    if (lexer_.accept("hint")) {
      LATHE_TRY(program_.hints[std::string(name.text)], count());
    }
    return Ok{};
  }

  Status part() {
    LATHE_TRY(const Token name, lexer_.expect(TokenKind::name, "a name such as m0"));
    std::string spelled(name.text);
    if (program_.symbols.count(spelled) != 0 || parts_.count(spelled) != 0)
      return lexer_.error(name, "a second size of that name", code::kRedefinedValue);
    LATHE_DO(lexer_.expect("="));
    LATHE_TRY(Dim value, formula());
    parts_.emplace(std::move(spelled), std::move(value));
    return Ok{};
  }

  Status guard() {
    const Loc loc = lexer_.loc(lexer_.take());
    LATHE_TRY(Guard made, parse_known_guard(lexer_));
    made.loc = loc;
    program_.guards.push_back(std::move(made));
    return Ok{};
  }

  Status sizes(KernelLaunch& launch) {
    LATHE_DO(lexer_.expect("("));
    do {
      LATHE_TRY(Dim value, size());
      launch.sizes.push_back(std::move(value));
    } while (lexer_.accept(","));
    return lexer_.expect(")");
  }

  Status mutation() {
    ProgramMutation made;
    LATHE_TRY(made.target, lexer_.string());
    LATHE_DO(lexer_.expect(":"));
    LATHE_TRY(made.input, parse_buffer_id(lexer_));
    LATHE_DO(lexer_.expect("="));
    LATHE_TRY(made.output, parse_buffer_id(lexer_));
    program_.mutations.push_back(std::move(made));
    return Ok{};
  }

  Status block(std::vector<Launch>& launches, int64_t& arena_bytes) {
    LATHE_DO(lexer_.expect("arena"));
    LATHE_TRY(arena_bytes, count());
    LATHE_DO(lexer_.expect("{"));
    while (!lexer_.accept("}")) LATHE_DO(launch(launches));
    return Ok{};
  }

  Result<KernelLaunch> begins() {
    KernelLaunch made{-1, {}};
    LATHE_DO(lexer_.expect("("));
    while (!lexer_.accept(")")) {
      if (!made.buffers.empty()) LATHE_DO(lexer_.expect(","));
      LATHE_TRY(const BufferId id, parse_buffer_id(lexer_));
      made.buffers.push_back(id);
      if (!lexer_.accept("at")) continue;
      LATHE_TRY(const int64_t offset, count());
      made.offsets.resize(made.buffers.size());
      made.offsets.back() = offset;
    }
    if (!made.offsets.empty()) made.offsets.resize(made.buffers.size());
    return made;
  }

  Result<AssertLaunch> assertion() {
    AssertLaunch made{};
    LATHE_TRY(made.key, parse_buffer_id(lexer_));
    LATHE_DO(lexer_.expect("in"));
    LATHE_TRY(made.low, formula());
    LATHE_DO(lexer_.expect("to"));
    LATHE_TRY(made.high, size());
    LATHE_DO(lexer_.expect("or"));
    LATHE_TRY(made.message, lexer_.string());
    return made;
  }

  Status launch(std::vector<Launch>& launches) {
    Launch made;
    made.origins = {lexer_.loc(lexer_.peek())};
    std::optional<Token> kernel;
    if (lexer_.accept("kernel")) {
      LATHE_TRY(kernel, lexer_.expect(TokenKind::function, "a kernel such as @relu_0"));
      LATHE_TRY(KernelLaunch begun, begins());
      if (lexer_.accept("sizes")) LATHE_DO(sizes(begun));
      made.kind = std::move(begun);
    } else if (lexer_.accept("library")) {
      LATHE_TRY(LibraryCall call, parse_call(lexer_));
      made.kind = LibraryLaunch{std::move(call)};
    } else if (lexer_.accept("copy")) {
      CopyLaunch copy{};
      LATHE_TRY(copy.source, parse_buffer_id(lexer_));
      LATHE_DO(lexer_.expect("to"));
      LATHE_TRY(copy.destination, parse_buffer_id(lexer_));
      made.kind = copy;
    } else if (lexer_.accept("shape")) {
      ShapeLaunch shape{};
      LATHE_TRY(shape.symbol, lexer_.string());
      LATHE_DO(lexer_.expect("="));
      LATHE_TRY(shape.value, parse_buffer_id(lexer_));
      made.kind = std::move(shape);
    } else if (lexer_.accept("assert")) {
      LATHE_TRY(made.kind, assertion());
    } else if (lexer_.accept("host")) {
      HostLaunch host;
      LATHE_TRY(host.function, lexer_.string());
      LATHE_TRY(host.reads, ids());
      LATHE_DO(lexer_.expect("->"));
      LATHE_TRY(host.writes, ids());
      made.kind = std::move(host);
    } else {
      return lexer_.expected("a launch or '}'");
    }
    if (lexer_.accept("as")) {
      LATHE_TRY(made.label, lexer_.string());
    }
    if (lexer_.accept("flops")) {
      LATHE_TRY(made.flops, size());
    }
    if (lexer_.accept("bytes")) {
      LATHE_TRY(made.bytes, size());
    }
    if (kernel)
      names_.push_back({*std::move(kernel), &launches == &program_.init, launches.size()});
    launches.push_back(std::move(made));
    return Ok{};
  }

  Status kernel() {
    const Token start = lexer_.peek();
    LATHE_TRY(loop::Kernel made, loop::parse_kernel(lexer_));
    const int index = static_cast<int>(program_.kernels.size());
    if (!kernels_.emplace(made.name, index).second)
      return lexer_.error(start, fmt::format("a second kernel '@{}'", made.name),
                          code::kRedefinedValue);
    program_.kernels.push_back(std::move(made));
    return Ok{};
  }

  Status resolve_kernels() {
    for (const KernelName& name : names_) {
      const auto found = kernels_.find(std::string(name.token.text));
      if (found == kernels_.end())
        return lexer_.error(
            name.token,
            fmt::format("no kernel '@{}' in this program", name.token.text.substr(0, 40)),
            code::kUndefinedValue);
      Launch& launch = (name.is_init ? program_.init : program_.steps)[name.launch];
      std::get<KernelLaunch>(launch.kind).kernel = found->second;
    }
    return Ok{};
  }

  Lexer lexer_;
  Program program_;
  ProgramPlaces places_;
  std::map<std::string, Dim> parts_;  // of sizes, by name
  std::vector<KernelName> names_;
  std::map<std::string, int> kernels_;
};

}  // namespace

bool is_program_text(std::string_view text) {
  return Lexer(text, "", nullptr).peek().is("program");
}

Result<Program> parse_program(std::string_view text, LocTable& locs, std::string_view file) {
  return Parser(text, locs, file).run();
}

}  // namespace lathe
