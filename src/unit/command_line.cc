// SPDX-License-Identifier: Apache-2.0
#include "unit/command_line.h"

#include <array>

#include "base/text.h"
#include "unit/unit_text.h"

namespace vacate {
namespace {

bool is_blank(char c) noexcept { return kUnitBlanks.find(c) != std::string_view::npos; }

/// Takes words off the front of a text, quotes and C's escapes resolved. An unknown escape stays as it is.
class WordReader {
 public:
  explicit WordReader(std::string_view text) noexcept : text_(text) {}

  void skip_blanks() noexcept {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  [[nodiscard]] bool at_end() const noexcept { return at_ >= text_.size(); }

  /// Is the next word `mark` and nothing else? Then it is taken. Before any quotes or escapes are resolved.
  bool take_mark(std::string_view mark) noexcept {
    if (!text_.substr(at_).starts_with(mark)) return false;
    const auto end = at_ + mark.size();
    if (end < text_.size() && !is_blank(text_[end])) return false;
    at_ = end;
    return true;
  }

  /// The next word; nothing if a quote does not end.
  std::optional<std::string> take_word() {
    std::string word;
    char quote = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size()) {
        take_escape(word);
      } else if (quote != 0) {
        if (c == quote)
          quote = 0;
        else
          word += c;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (is_blank(c)) {
        break;
      } else {
        word += c;
      }
    }
    return quote == 0 ? std::optional(std::move(word)) : std::nullopt;
  }

 private:
  /// At a backslash; leaves at_ on the last byte of the escape.
  void take_escape(std::string& word) {
    struct Escape {
      char letter;
      char meaning;
    };
    static constexpr std::array<Escape, 11> kEscapes{{{'a', '\a'},
                                                      {'b', '\b'},
                                                      {'f', '\f'},
                                                      {'n', '\n'},
                                                      {'r', '\r'},
                                                      {'t', '\t'},
                                                      {'v', '\v'},
                                                      {'\\', '\\'},
                                                      {'"', '"'},
                                                      {'\'', '\''},
                                                      {'s', ' '}}};
    const char letter = text_[at_ + 1];
    for (const auto& escape : kEscapes) {
      if (escape.letter != letter) continue;
      word += escape.meaning;
      ++at_;
      return;
    }
    if (letter == 'x' && at_ + 3 < text_.size()) {
      if (const auto byte = parse_hex(text_.substr(at_ + 2, 2)); byte && *byte != 0) {
        word += static_cast<char>(*byte);
        at_ += 3;
        return;
      }
    }
    word += '\\';
    word += letter;
    ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Takes the signs before the program off `word`. True: the word after the program is its name (`@`).
bool take_signs(UnitCommand& command, std::string& word) {
  bool is_named = false;
  std::size_t at = 0;
  for (; at < word.size(); ++at) {
    const char c = word[at];
    if (c == '-')
      command.ignores_failure = true;
    else if (c == '@')
      is_named = true;
    else if (c == ':')
      command.keeps_variables = true;
    else if (c == '+')
      command.has_all_rights = true;
    else if (c == '!')
      command.is_of_root = true;
    else
      break;
  }
  word.erase(0, at);
  return is_named;
}

}  // namespace

std::string_view UnitCommand::program() const noexcept {
  if (words.empty()) return {};
  const std::string_view path = words.front();
  return path.substr(path.rfind('/') + 1);
}

UnitCommands parse_command_line(std::string_view value) {
  UnitCommands found;
  WordReader reader(value);
  UnitCommand command;
  bool is_named = false;
  std::size_t seen = 0;
  const auto finish = [&] {
    if (!command.words.empty()) found.commands.push_back(std::move(command));
    command = {};
    seen = 0;
  };
  for (reader.skip_blanks(); !reader.at_end(); reader.skip_blanks()) {
    if (reader.take_mark(";")) {
      finish();
      continue;
    }
    const bool is_semicolon = reader.take_mark("\\;");
    auto word = is_semicolon ? std::optional<std::string>(";") : reader.take_word();
    if (!word) {
      found.flaw = "a quote is opened and not closed";
      return found;
    }
    if (seen == 0) {
      is_named = take_signs(command, *word);
      if (word->empty()) {
        found.flaw = "there is no program";
        return found;
      }
    }
    ++seen;
    if (seen == 2 && is_named) continue;
    command.words.push_back(std::move(*word));
  }
  finish();
  return found;
}

std::vector<std::string> parse_quoted_words(std::string_view value) {
  std::vector<std::string> words;
  WordReader reader(value);
  for (reader.skip_blanks(); !reader.at_end(); reader.skip_blanks()) {
    auto word = reader.take_word();
    if (!word) break;
    words.push_back(std::move(*word));
  }
  return words;
}

}  // namespace vacate
