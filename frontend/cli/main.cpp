// The command line: one subcommand for each file of this folder. CLI11 throws; nothing else does.
#include <fmt/format.h>
#include <malloc.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include "frontend/cli/command.h"
#include "frontend/cli/terminal.h"

namespace lathe {

namespace {

// Flags and subcommands of the command that was being read, for the nearest choice.
std::vector<std::string> known_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(command->get_name());
  return words;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* command = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
  std::string message = error.what(), hint;
  if (!message.empty() && message.back() == '.') message.pop_back();
  for (int i = 1; i < argc; ++i) {
    std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    std::vector<std::string> words = known_words(*command);
    bool is_known = std::find(words.begin(), words.end(), word) != words.end();
    std::string near = is_known ? "" : nearest(word, words);
    bool is_culprit = message.find(word) != std::string::npos || command == &app;
    if (!near.empty() && is_culprit) {
      message = fmt::format("no {} named '{}'", word[0] == '-' ? "flag" : "command", word);
      hint = fmt::format("; did you mean '{}'?", near);
      break;
    }
  }
  complain("lathe: error[unknown-key]: {}{}\n", message, hint);
  complain("  lathe {}--help shows what there is\n",
           command == &app ? "" : command->get_name() + " ");
  return kWrongInput;
}

// glibc raises this threshold to the largest block freed, after which freed weights stay in its
// heap; with one of our own they go back to the system.
constexpr int kMappedBlockBytes = 1 << 20;

int output_error(const char* why) {
  complain("lathe: error[missing-file]: cannot write the output: {}\n", why);
  return kWrongInput;
}

// What was printed has arrived: a full disk may show itself at the last flush.
int flushed(int exit_code) {
  const bool is_whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return is_whole ? exit_code : output_error(std::strerror(errno));
}

int run_main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, kMappedBlockBytes);
  CLI::App app{"Lathe: a compiler laboratory for PyTorch graphs.", "lathe"};
  app.require_subcommand(1);
  app.footer("Start with: lathe run experiments/configs/quickstart.json");
  app.set_help_all_flag("--help-all", "Help of every command");
  Session session;
  session.command_line = "lathe";
  for (int i = 1; i < argc; ++i) session.command_line += std::string(" ") + argv[i];
  add_run(app, session);
  add_compile(app, session);
  add_opt(app, session);
  add_explain(app, session);
  add_trace(app, session);
  add_doctor(app, session);
  add_list(app, session);
  try {
    app.parse(argc, argv);
    return flushed(session.action());
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, argc, argv);
  } catch (const std::system_error& error) {  // fmt's
    return output_error(std::strerror(error.code().value()));
  } catch (const std::bad_alloc&) {
    complain("lathe: error[too-large]: memory is out\n");
    return kWrongInput;
  } catch (const std::exception& error) {
    complain("lathe: error[internal]: {}\n", error.what());
    return kInternal;
  }
}

}  // namespace

}  // namespace lathe

int main(int argc, char** argv) { return lathe::run_main(argc, argv); }
