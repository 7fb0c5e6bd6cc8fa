// The stable words that name diagnostics, one per kind of mistake. tests/diagnostics has a file for
// each that text IR can cause; those of model files are in tests/frontend, the others beside what
// reports them.
#pragma once

namespace lathe::code {

inline constexpr char kInternal[] = "internal";     // Lathe is wrong
inline constexpr char kSyntax[] = "syntax";         // text IR, JSON or config does not parse
inline constexpr char kUnknownOp[] = "unknown-op";  // text IR names an op that does not exist
inline constexpr char kUnsupportedOp[] = "unsupported-op";  // a model uses ops Lathe cannot import
inline constexpr char kUnknownPass[] = "unknown-pass";
inline constexpr char kUnknownKey[] = "unknown-key";  // config key or option
inline constexpr char kBadValue[] = "bad-value";      // a value of the wrong kind or out of range
inline constexpr char kUndefinedValue[] = "undefined-value";  // use of a name that nothing defines
inline constexpr char kRedefinedValue[] = "redefined-value";
inline constexpr char kOperandCount[] = "operand-count";
inline constexpr char kAttribute[] = "attribute";  // missing, unknown or of the wrong kind
inline constexpr char kShapeMismatch[] = "shape-mismatch";
inline constexpr char kDtypeMismatch[] = "dtype-mismatch";
inline constexpr char kTypeMismatch[] =
    "type-mismatch";                                  // written type differs from the inferred one
inline constexpr char kAssertion[] = "assertion";     // data is not what a model asks of it
inline constexpr char kDimRange[] = "dim-range";      // dim index or symbolic size out of range
inline constexpr char kBadProgram[] = "bad-program";  // a program's text breaks what programs keep
inline constexpr char kBadForm[] = "bad-form";        // a pass met a form it does not accept
inline constexpr char kBadArchive[] = "bad-archive";  // zip or payload is broken
inline constexpr char kBadModel[] = "bad-model";      // model JSON breaks the schema
inline constexpr char kSchemaVersion[] = "schema-version";
inline constexpr char kMissingWeight[] = "missing-weight";
inline constexpr char kMissingFile[] = "missing-file";
inline constexpr char kTooLarge[] = "too-large";  // overflowing or absurd size
inline constexpr char kUnsupported[] =
    "unsupported";  // valid, but Lathe cannot do it yet; says what it can
inline constexpr char kUnavailable[] =
    "unavailable";                             // this machine lacks a target or instruction set
inline constexpr char kStopped[] = "stopped";  // the caller asked for it, through progress

}  // namespace lathe::code
