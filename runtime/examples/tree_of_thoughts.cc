// Searches for a continuation that leads to a good end: tree_of_thoughts MODEL TEXT END [BREADTH DEPTH KERNEL]
//
// Round by round each kept branch forks, the forks are decoded together up to the end of a sentence, the model says how
// likely END would be behind each, and all but the best are pruned.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <soliton.hpp>
#include <string>
#include <vector>

namespace {

struct Thought {
  soliton::Tree::Branch branch = 0;
  double score = 0;  // mean logprob of a token of END behind it
};

constexpr std::size_t kKept = 2;
constexpr int kTokens = 12;  // of a thought at most

std::vector<Thought> fork_all(soliton::Tree& tree, const std::vector<Thought>& kept, std::size_t breadth) {
  std::vector<Thought> forked;
  for (const Thought& thought : kept) {
    for (const auto branch : tree.fork(thought.branch, breadth)) forked.push_back({branch});
    tree.prune(thought.branch);
  }
  return forked;
}

void decode(soliton::Tree& tree, const soliton::Model& model, const std::vector<Thought>& thoughts,
            int round) {
  soliton::Options options = model.options();
  options.max_tokens = kTokens;
  options.temperature = 0.8;
  options.seed = static_cast<std::uint32_t>(1000 * round);
  options.stops = {"."};
  std::vector<soliton::Tree::Branch> branches;
  for (const Thought& thought : thoughts) branches.push_back(thought.branch);
  tree.decode(branches, options);
}

void score(soliton::Tree& tree, const soliton::Tokens& end, std::vector<Thought>& thoughts) {
  for (Thought& thought : thoughts) {
    const std::vector<float> logprobs = tree.score(thought.branch, end);
    thought.score =
        std::accumulate(logprobs.begin(), logprobs.end(), 0.0) / static_cast<double>(logprobs.size());
  }
}

/// Ends all but the best.
void prune(soliton::Tree& tree, std::vector<Thought>& thoughts) {
  std::sort(thoughts.begin(), thoughts.end(),
            [](const Thought& a, const Thought& b) { return a.score > b.score; });
  for (; thoughts.size() > kKept; thoughts.pop_back()) tree.prune(thoughts.back().branch);
}

void search(const soliton::Model& model, const std::string& text, const std::string& end, std::size_t breadth,
            int depth) {
  soliton::Tree tree(model);
  std::vector<Thought> kept = {{tree.add(model.prompt(text))}};
  for (int round = 0; round < depth; ++round) {
    kept = fork_all(tree, kept, breadth);
    decode(tree, model, kept, round);
    score(tree, model.tokenize(end), kept);
    prune(tree, kept);
  }
  for (const Thought& thought : kept) {
    std::cout << thought.score << ' ' << model.detokenize(tree.tokens(thought.branch)) << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::cerr << "usage: tree_of_thoughts MODEL TEXT END [BREADTH DEPTH KERNEL]\n";
    return 2;
  }
  soliton::ModelOptions options;
  options.log = [](const std::string& line) { std::cerr << line << '\n'; };
  if (argc > 6) options.kernel = argv[6];
  const soliton::Model model(argv[1], options);
  search(model, argv[2], argv[3], argc > 4 ? std::strtoul(argv[4], nullptr, 10) : 3,
         argc > 5 ? std::atoi(argv[5]) : 3);
} catch (const soliton::Error& error) {
  std::cerr << "tree_of_thoughts: " << error.what() << '\n';
  return error.status();
}
