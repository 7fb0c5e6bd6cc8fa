// What a command is: a CLI11 subcommand that, when chosen, leaves its action. The one place of
// exceptions is main.cpp, around CLI11; commands return exit codes.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "ir/support/result.h"

namespace lathe {

// 0: all held. 1: a check failed. 2: the input is wrong. 3: Lathe is wrong.
enum ExitCode : int { kHeld = 0, kCheckFailed = 1, kWrongInput = 2, kInternal = 3 };

struct Session {
  std::string command_line;     // as typed, for carets
  std::function<int()> action;  // of the command that was chosen
};

// Each adds its subcommand; parsing it sets the session's action.
void add_run(CLI::App& app, Session& session);
void add_compile(CLI::App& app, Session& session);
void add_opt(CLI::App& app, Session& session);
void add_explain(CLI::App& app, Session& session);
void add_trace(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_list(CLI::App& app, Session& session);

// Shows an error on standard error and gives its exit code. An internal one also names the
// reproducer: `reproducer` is the text of a .lathe file, written below results/; empty: none.
int report(const Diag& diag, const LocTable& locs, const std::string& reproducer = {});

// "a,b" as "a", "b"; nothing for an empty text.
std::vector<std::string> split_list(const std::string& text);

}  // namespace lathe
