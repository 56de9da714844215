// A line at a time; each kind of line has a function of its own. Nothing is allocated that the text
// does not spell out, so that no number in it can ask for memory.

#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "graph/text.h"
#include "graph/text_attributes.h"
#include "graph/text_line.h"

namespace reprise::graph {
namespace {

class GraphParser {
 public:
  void parse_line(TextLine& line) {
    const std::string_view keyword = line.name("value, node, output, update, updates, loss or end");
    if (keyword == "value") {
      parse_value(line);
    } else if (keyword == "node") {
      parse_node(line);
    } else if (keyword == "output") {
      graph_.outputs.push_back(known_value(line));
    } else if (keyword == "update") {
      parse_update(line);
    } else if (keyword == "updates") {
      parse_placement(line);
    } else if (keyword == "loss") {
      parse_loss(line);
    } else if (keyword == "name") {
      parse_name(line);
    } else if (keyword == "end") {
      ended_ = true;
    } else {
      throw line.fault("expected value, node, output, update, updates, loss or end, got '{}'",
                       keyword);
    }
    line.expect_end();
  }

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] Graph take() { return std::move(graph_); }

 private:
  // name "mlp"
  void parse_name(TextLine& line) {
    if (named_) throw line.fault("the graph has a second name");
    graph_.name = line.quoted("the graph's name in quotes");
    named_ = true;
  }

  // value w parameter f32 [2,3] trainable
  void parse_value(TextLine& line) {
    Value value;
    value.name = line.name("the name of a value");
    value.role = parse_word(line, "a role", parse_role);
    value.dtype = parse_word(line, "a dtype", parse_dtype);
    value.shape = line.integers("a shape like [8,3]");
    value.trainable = line.take("trainable");
    const ValueId id(graph_.values.size());
    if (!values_.emplace(value.name, id).second) {
      throw line.fault("there already is a value '{}'", value.name);
    }
    graph_.values.push_back(std::move(value));
  }

  // node y forward matmul (x, w) -> (y) transpose_b=true
  void parse_node(TextLine& line) {
    Node node;
    node.name = line.name("the name of a node");
    node.phase = parse_word(line, "a phase", parse_phase);
    const std::string_view op = line.name("an op");
    const std::optional<OpKind> kind = find_op(op);
    if (!kind) throw line.fault("there is no op '{}'", op);
    node.op = *kind;
    node.accumulate = line.take("accumulate");
    node.inputs = value_list(line);
    line.expect("->");
    node.outputs = value_list(line);
    node.attributes = parse_attributes(node.op, line);
    claim_outputs(line, node);
    graph_.nodes.push_back(std::move(node));
  }

  void claim_outputs(const TextLine& line, const Node& node) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      Value& value = graph_.values[node.outputs[i]];
      if (value.producer.valid()) throw line.fault("'{}' is made a second time", value.name);
      value.producer = NodeId(graph_.nodes.size());
      value.output = static_cast<std::uint32_t>(i);
    }
  }

  // update w -> w.next
  void parse_update(TextLine& line) {
    Update update;
    update.initial = known_value(line);
    line.expect("->");
    update.final = known_value(line);
    graph_.updates.push_back(update);
  }

  // updates last
  void parse_placement(TextLine& line) {
    if (graph_.updates_last) throw line.fault("'updates last' stands here a second time");
    line.expect("last");
    graph_.updates_last = true;
  }

  // loss loss
  void parse_loss(TextLine& line) {
    if (graph_.loss.valid()) throw line.fault("the graph has a second loss");
    graph_.loss = known_value(line);
  }

  std::vector<ValueId> value_list(TextLine& line) {
    line.expect("(");
    std::vector<ValueId> values;
    if (line.take(")")) return values;
    do {
      values.push_back(known_value(line));
    } while (line.take(","));
    line.expect(")");
    return values;
  }

  ValueId known_value(TextLine& line) {
    const std::string_view name = line.name("the name of a value");
    const auto found = values_.find(std::string(name));
    if (found == values_.end()) throw line.fault("there is no value '{}' above", name);
    return found->second;
  }

  template <class T>
  static T parse_word(TextLine& line, std::string_view what, T (*parse)(std::string_view)) {
    const std::string_view word = line.name(what);
    try {
      return parse(word);
    } catch (const base::Error& error) {
      throw line.fault("{}", error.what());
    }
  }

  Graph graph_;
  std::unordered_map<std::string, ValueId> values_;
  bool named_ = false;
  bool ended_ = false;
};

void parse_header(TextLine& line) {
  line.expect("reprise-graph");
  const std::int64_t version = line.integer("a version");
  if (version != 1) throw line.fault("version {} is unknown; this program reads 1", version);
  line.expect_end();
}

}  // namespace

Graph parse_graph(std::string_view text) {
  GraphParser parser;
  bool headed = false;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    TextLine line(text.substr(0, newline), ++number);
    if (newline == std::string_view::npos) {
      throw line.fault("expected a newline after the last line; the text was cut");
    }
    text.remove_prefix(newline + 1);
    if (line.done() || line.take("#")) continue;
    if (parser.ended()) throw line.fail("nothing after 'end'");
    if (headed) {
      parser.parse_line(line);
    } else {
      parse_header(line);
      headed = true;
    }
  }
  if (!parser.ended()) throw base::input_error("line {}: expected 'end' at the end", number + 1);
  Graph graph = parser.take();
  validate(graph);
  return graph;
}

}  // namespace reprise::graph
