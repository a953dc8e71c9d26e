// Worker threads that do one thing together, again and again; the caller is one of them.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace rtm {

class Team {
 public:
  // `prepare` runs once in every member's thread, the caller's included.
  Team(int members, const std::function<void(int member)>& prepare);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  int members() const { return members_; }
  // Calls work(member) in every member; returns when all are done.
  void run(const std::function<void(int member)>& work);

 private:
  int members_;
  std::barrier<> barrier_;
  const std::function<void(int)>* work_ = nullptr;  // null: the end
  std::vector<std::thread> threads_;
};

// [first, last) of `count` that a member has.
struct Share {
  int first, last;
};
inline Share share_of(int count, int member, int members) {
  return {static_cast<int>(static_cast<long long>(count) * member / members),
          static_cast<int>(static_cast<long long>(count) * (member + 1) / members)};
}

}  // namespace rtm
