// Source locations. A location is one 32-bit id into a LocTable that outlives every graph which
// uses it; nodes never hold pointers to locations, so passes may rebuild graphs freely.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe {

// Id of a row in a LocTable; 0 is "unknown" and must be asked for by name (Loc::unknown()).
struct Loc {
  uint32_t id = 0;
  static Loc unknown() { return {}; }
  bool is_unknown() const { return id == 0; }
  friend bool operator==(Loc a, Loc b) { return a.id == b.id; }
  friend bool operator!=(Loc a, Loc b) { return a.id != b.id; }
  friend bool operator<(Loc a, Loc b) { return a.id < b.id; }
};

// One Python stack frame. Frames form a prefix tree (parent = caller), interned.
struct Frame {
  std::string file;
  int line = 0;
  std::string function;
  std::string code;  // the source line's text, empty when the exporter did not record it
};

// Where a node came from. Which fields are set depends on the kind.
struct LocRow {
  enum class Kind : uint8_t { unknown, python, text, derived };
  Kind kind = Kind::unknown;
  // python
  int32_t frame = -1;        // innermost frame in LocTable, -1 when the exporter recorded no stack
  std::string fx_node;       // "linear_3"
  std::string fx_target;     // "aten.linear.default"
  std::string module_path;   // "encoder.layers.3.proj"
  std::string module_class;  // "torch.nn.modules.linear.Linear"
  // text: a position in a .lathe, JSON or config file
  std::string file;
  int line = 0;    // 1-based
  int column = 0;  // 1-based, 0 when unknown
  // For the caret: what stands around the column in that line, and how many bytes of the line come
  // before it. Never the whole of a long line: each byte of a file of one line may have a location.
  std::string source_line;
  int source_begin = 0;
  // derived: a pass or rule made it from other locations
  std::string by;
  std::vector<Loc> from;
};

class LocTable {
 public:
  // Bytes of a source line that are kept on each side of the column.
  static constexpr size_t kKeptOnEachSide = 128;

  LocTable();

  // Interns a frame below `parent` (-1: outermost); equal frames share one id.
  int32_t add_frame(int32_t parent, Frame frame);
  const Frame& frame(int32_t id) const { return frames_[static_cast<size_t>(id)].frame; }
  int32_t frame_parent(int32_t id) const { return frames_[static_cast<size_t>(id)].parent; }
  size_t num_frames() const { return frames_.size(); }

  // The innermost frame at or above `id` that is not PyTorch's own code (a path that contains
  // "/site-packages/torch/" or "/dist-packages/torch/", or starts with "torch/"); `id` itself when
  // every frame is PyTorch's; -1 for -1.
  int32_t user_frame(int32_t id) const;

  Loc add(LocRow row);
  // `source_line` is the line from its start to kKeptOnEachSide behind the column, or more.
  Loc text(std::string file, int line, int column, std::string_view source_line = {});
  // Made by pass or rule `by` from `from` (duplicates and unknowns dropped). Unknown when nothing
  // is left.
  Loc derive(std::string_view by, std::vector<Loc> from);
  // Of a location of another table, which this one does not reach, that of the unknown one.
  const LocRow& operator[](Loc loc) const {
    return loc.id < rows_.size() ? rows_[loc.id] : unknown_row();
  }
  size_t size() const { return rows_.size(); }

  // Follows derived rows to the first python or text row; unknown when there is none.
  Loc origin(Loc loc) const;

 private:
  static const LocRow& unknown_row();

  struct FrameNode {
    int32_t parent;
    Frame frame;
  };
  std::vector<FrameNode> frames_;
  std::map<std::pair<int32_t, std::string>, int32_t>
      frame_index_;  // (parent, file\0line\0function\0code)
  std::vector<LocRow> rows_;
  std::map<std::pair<std::string, std::vector<Loc>>, Loc> derived_index_;
};

}  // namespace lathe
