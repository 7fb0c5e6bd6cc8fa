// A WebAssembly module as data: what the encoder writes and the text printer shows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/wasm/opcode.h"

namespace lathe::wasm {

struct Instr {
  Op op;
  uint32_t index = 0;  // of a local, function or label; the offset of a memory access
  uint32_t lane = 0;
  uint64_t low = 0;   // a constant's bits; the first eight lanes of a shuffle
  uint64_t high = 0;  // the upper half of 128 bits
};

struct Function {
  std::string name;  // exported under it
  std::vector<Type> params;
  std::vector<std::string> param_names;  // as many as there are params
  std::vector<Type> locals;              // behind the params
  std::vector<Instr> body;               // without the last end
  // What to say beside an instruction, by its position, in order; text only.
  std::vector<std::pair<uint32_t, std::string>> notes;
};

// Bytes that the memory holds from the start.
struct Segment {
  uint32_t address = 0;
  const std::vector<std::byte>* bytes = nullptr;  // owned by the program
};

// Imports one memory, "env" "memory".
struct Module {
  std::string name;
  uint32_t num_pages = 0;  // the least size of the memory, in units of 64 KiB
  std::vector<Function> functions;
  std::vector<Segment> segments;
  std::vector<std::pair<std::string, std::string>> custom = {};  // sections, by name
};

inline constexpr int64_t kPageBytes = 64 << 10;

// The binary format, with a custom section `name` before those of the module.
std::string encode(const Module& module);
// The text format: one instruction a line, notes as comments.
std::string to_wat(const Module& module);

}  // namespace lathe::wasm
