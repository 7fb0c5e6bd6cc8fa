// Decompression through zlib, in steps that the output limit bounds.
#include "frontend/file/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <climits>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// zlib counts input in unsigned int; larger inputs are fed in pieces.
uInt piece(size_t remaining) {
  return static_cast<uInt>(std::min<size_t>(remaining, UINT_MAX / 2));
}

Bytef* input_of(std::string_view bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

// Grows `out` (at most to `max_bytes`) and points the stream at the new part. False at the limit.
bool grow(z_stream& stream, std::string& out, size_t max_bytes) {
  size_t used = out.size();
  if (used >= max_bytes) return false;
  size_t target = std::min(max_bytes, std::max<size_t>(used * 2, size_t{1} << 16));
  out.resize(std::min(target, used + (size_t{1} << 26)));
  stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
  stream.avail_out = static_cast<uInt>(out.size() - used);
  return true;
}

}  // namespace

Result<std::string> inflate_bytes(std::string_view compressed, DeflateFormat format,
                                  size_t max_bytes) {
  z_stream stream = {};
  int window = format == DeflateFormat::gzip ? 15 + 16 : -15;
  LATHE_CHECK(inflateInit2(&stream, window) == Z_OK, "zlib does not start");
  stream.next_in = input_of(compressed);
  size_t fed = 0;
  std::string out;
  int status = Z_OK;
  bool fits = true;
  while (status == Z_OK && fits) {
    if (stream.avail_in == 0) {
      stream.avail_in = piece(compressed.size() - fed);
      fed += stream.avail_in;
    }
    if (stream.avail_out == 0) {
      // At the limit one more byte of room tells an exact fit from too much.
      fits = grow(stream, out, max_bytes + 1);
      if (!fits) break;
    }
    status = inflate(&stream, Z_NO_FLUSH);
  }
  out.resize(out.size() - stream.avail_out);
  inflateEnd(&stream);
  if (!fits || out.size() > max_bytes)
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("compressed data holds more than {} bytes", max_bytes)};
  if (status != Z_STREAM_END)
    return Diag{code::kBadArchive, Loc::unknown(),
                status == Z_BUF_ERROR ? "compressed data ends early" : "compressed data is broken"};
  return out;
}

Result<std::string> deflate_bytes(std::string_view bytes) {
  z_stream stream = {};
  LATHE_CHECK(
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK,
      "zlib does not start");
  stream.next_in = input_of(bytes);
  size_t fed = 0;
  std::string out;
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      stream.avail_in = piece(bytes.size() - fed);
      fed += stream.avail_in;
    }
    if (stream.avail_out == 0) grow(stream, out, SIZE_MAX);
    status = deflate(&stream, fed == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
  }
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  LATHE_CHECK(status == Z_STREAM_END, "zlib does not finish");
  return out;
}

uint32_t crc32_of(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(crc32_z(0, nullptr, 0), input_of(bytes), bytes.size()));
}

}  // namespace lathe
