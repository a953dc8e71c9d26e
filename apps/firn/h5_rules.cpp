#include "h5_rules.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "failure.hpp"
#include "numbers.hpp"
#include "shared_options.hpp"

namespace firn_cli {
namespace {

class RuleParser {
 public:
  RuleParser(const std::string& file, int line) : where_(fmt::format("{}, line {}", file, line)) {
    rule_.line = line;
  }

  DatasetRule parse(const std::vector<std::string>& words) {
    rule_.pattern = words[0];
    if (words.size() < 2)
      fail_here("after the pattern comes abs, rel, pwrel, psnr, lossless or skip");
    std::size_t next = 2;
    const std::string& kind = words[1];
    if (kind == "lossless") {
      rule_.bound = firn::Bound::lossless();
    } else if (kind == "abs" || kind == "rel" || kind == "pwrel" || kind == "psnr") {
      if (words.size() < 3) fail_here(fmt::format("{} needs a number", kind));
      rule_.bound = parse_bound(kind == "abs"     ? firn::BoundKind::abs
                                : kind == "rel"   ? firn::BoundKind::rel
                                : kind == "pwrel" ? firn::BoundKind::pwrel
                                                  : firn::BoundKind::psnr,
                                fmt::format("{}: {}", where_, kind), words[2]);
      next = 3;
    } else if (kind != "skip") {
      fail_here(fmt::format("'{}' is none of abs, rel, pwrel, psnr, lossless, skip", kind));
    }
    for (; next < words.size(); ++next) parse_setting(words[next]);
    return std::move(rule_);
  }

 private:
  [[noreturn]] void fail_here(const std::string& message) const {
    fail(ExitCode::usage, "{}: {}", where_, message);
  }

  void parse_setting(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "preset") {
      rule_.preset = value_or_fail(firn::parse_preset(value), where_);
    } else if (name == "fill") {
      rule_.fill = parse_fill(where_ + ": fill", value);
    } else if (name == "chunk") {
      parse_chunk(value);
    } else {
      fail_here(fmt::format("'{}' is none of preset=NAME, fill=V, chunk=AxBxC", word));
    }
  }

  // Any rank: these are HDF5's extents.
  void parse_chunk(const std::string& text) {
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, 'x');) {
      const std::optional<std::uint64_t> extent = parse_count(part);
      if (!extent || *extent == 0) fail_here(fmt::format("chunk takes AxBxC, not '{}'", text));
      rule_.chunk.push_back(*extent);
    }
    if (rule_.chunk.empty()) fail_here("chunk takes AxBxC");
  }

  std::string where_;
  DatasetRule rule_;
};

}  // namespace

bool DatasetRule::matches(const std::string& path) const {
  const bool whole = pattern.find('/') != std::string::npos;
  const std::string subject = whole ? path : path.substr(path.rfind('/') + 1);
  return fnmatch(pattern.c_str(), subject.c_str(), 0) == 0;
}

DatasetRules DatasetRules::read(const std::string& file) {
  std::ifstream input(file);
  if (!input) fail(ExitCode::cannot_read, "cannot read {}: {}", file, std::strerror(errno));
  DatasetRules rules;
  int number = 0;
  for (std::string line; std::getline(input, line);) {
    ++number;
    std::istringstream text(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    if (!words.empty()) rules.rules_.push_back(RuleParser(file, number).parse(words));
  }
  return rules;
}

const DatasetRule* DatasetRules::find(const std::string& path) const {
  for (const DatasetRule& rule : rules_) {
    if (rule.matches(path)) return &rule;
  }
  return nullptr;
}

}  // namespace firn_cli
