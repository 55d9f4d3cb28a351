//! The walk over a model's nodes: names and what they stand for, functions, and which importer is asked.

use halite_sizes::{Size, Trace};

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use halite_formats::onnx::{
    AttributeValue, ExternalData, Function, Graph as GraphProto, Model, Node, OpsetId, Tensor,
};

use super::{
    NodeView, Result,
    blocked::{self, Blocks},
    constant::{Constant, Constants},
    names::{Functions, location_of, own_domain, version_of},
    order::{self, Order, Unordered},
    ports::{ports, value_of},
    value::Value,
};
use crate::{
    CompileError, Control, SourceLocation,
    build::{Builder, budget::Cost},
    graph::{ElementType, Graph, OpenSizes, TensorId},
    signature::{Bindings, Signature},
};

/// Versions of ONNX's own operators that are known.
const OPSETS: std::ops::RangeInclusive<i64> = 7..=28;
/// Operators that mean the same before those versions.
const UNCHANGED: &[&str] = &[
    "Abs",
    "Ceil",
    "Exp",
    "Floor",
    "Identity",
    "Log",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Sigmoid",
    "Sqrt",
    "Tanh",
    "Transpose",
];
/// Most functions and inner graphs inside of each other.
const MOST_DEPTH: usize = 48;
/// Most nodes of a cycle that its error names.
const MOST_NAMED: usize = 8;

/// The names of a graph or function.
#[derive(Default)]
struct Scope<'m> {
    values: HashMap<&'m str, Value>,
    /// Constants that nobody has asked for yet.
    initializers: HashMap<&'m str, &'m Tensor>,
    /// Attributes that the node that calls a function gives.
    attributes: Rc<HashMap<&'m str, &'m AttributeValue>>,
    opsets: &'m [OpsetId],
    /// Whether names of the scope around it are seen: of graphs, not of functions.
    sees_outer: bool,
    /// Where it is.
    location: String,
}

/// Imports one model.
pub(super) struct Importer<'m> {
    model: &'m Model,
    functions: Functions<'m>,
    constants: Rc<Constants<'m>>,
    /// Of channels, in models for the processor that saved them.
    pub(super) blocks: Option<Blocks<'m>>,
    pub(super) builder: Builder,
    /// Imports a node: which operators there are is not known here.
    compute: Compute,
    scopes: Vec<Scope<'m>>,
    /// Initializers that are constants of the graph by now, by where they lie.
    initialized: HashMap<*const Tensor, Value>,
    /// In which order the nodes of graphs and functions are imported, by where these lie.
    orders: HashMap<*const Node, Rc<Order<'m>>>,
}

/// Imports one node; gives its outputs.
pub(super) type Compute = for<'m> fn(&mut Importer<'m>, &Site<'m>) -> Result<Vec<Value>>;

/// A node and how it is meant where it is.
pub(super) struct Site<'m> {
    pub(super) node: &'m Node,
    /// Domain, with ONNX's own always empty.
    pub(super) domain: &'m str,
    pub(super) version: i64,
    pub(super) location: SourceLocation,
    pub(super) used: Vec<bool>,
    pub(super) attributes: Vec<(&'m str, &'m AttributeValue)>,
}

impl<'m> Site<'m> {
    /// A graph that is an attribute.
    pub(super) fn graph(&self, name: &str) -> Result<&'m GraphProto> {
        match self.attribute(name) {
            Some(AttributeValue::Graph(graph)) => Ok(graph),
            _ => Err(CompileError::invalid(&self.location, format!("there is no graph '{name}'"))),
        }
    }

    /// An attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&'m AttributeValue> {
        self.attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }
}

impl<'m> Importer<'m> {
    /// An importer of a model whose file has so many bytes.
    pub(super) fn new(
        model: &'m Model,
        bytes: u64,
        external: &'m dyn ExternalData,
        compute: Compute,
        control: &Control,
    ) -> Self {
        let mut builder = Builder::controlled(control);
        builder.budget.of_model(order::count(model), bytes);
        Importer {
            model,
            functions: Functions::of(model),
            constants: Rc::new(Constants::of(external)),
            blocks: Blocks::of(model),
            builder,
            compute,
            scopes: Vec::new(),
            initialized: HashMap::new(),
            orders: HashMap::new(),
        }
    }

    /// The graph for some sizes and values.
    pub(super) fn import(mut self, inputs: &[Signature], bindings: &Bindings) -> Result<Graph> {
        let graph = &self.model.graph;
        self.builder.seed(bindings.seed);
        self.scopes.push(Scope { opsets: &self.model.opsets, ..Scope::default() });
        let inputs = ports(inputs, bindings);
        let shapes = bindings.resolve(&inputs)?;
        let open = bindings.open_shapes(&inputs, &shapes);
        let trace = open.as_ref().map_or_else(Trace::new, |open| open.trace.clone());
        let _entered = trace.enter();
        self.builder.with_data(&trace);
        let mut tensors: HashMap<&str, TensorId> = HashMap::new();
        for (index, (input, dims)) in inputs.iter().zip(&shapes).enumerate() {
            let sizes = match &open {
                Some(open) => open.shapes[index].clone(),
                None => dims.iter().map(Size::from).collect(),
            };
            tensors.insert(&input.name, self.input(input, &sizes, bindings)?);
        }
        for input in &graph.inputs {
            if let Some(value) = value_of(&input.name, input.value.as_ref(), &tensors) {
                self.define(&input.name, value);
            }
        }
        let results = self.run(graph)?;
        for (output, value) in graph.outputs.iter().zip(results) {
            self.give(&output.name, value)?;
        }
        let data = self.builder.take_data();
        let mut graph = self.builder.finish()?;
        let symbols = open.map_or_else(Vec::new, |open| open.symbols);
        graph.open = (!symbols.is_empty() || !data.is_empty()).then_some(OpenSizes { trace, symbols, data });
        Ok(graph)
    }

    /// Makes a value an output of the graph: a list is as many as it has tensors.
    fn give(&mut self, name: &str, value: Value) -> Result<()> {
        match value {
            Value::Tensor(id) | Value::Narrow(id, _) => {
                let id = self.builder.written(id)?;
                self.builder.output(name, id);
            }
            Value::Sequence(all) => {
                for (index, id) in all.iter().enumerate() {
                    let id = self.builder.written(*id)?;
                    self.builder.output(&format!("{name}[{index}]"), id);
                }
            }
            Value::Listed(list) => {
                if let Some(all) = list.one_by_one(&mut self.builder)? {
                    return self.give(name, Value::Sequence(all.into()));
                }
                let known = self.builder.need_ints(list.sizes, "how many tensors a list has");
                if let Err(error) = known
                    && matches!(&error, CompileError::NeedsValues { inputs, .. } if !inputs.is_empty())
                {
                    return Err(error);
                }
                let reason = format!("the output '{name}', a list of as many tensors as data decide");
                return Err(CompileError::unsupported(&SourceLocation::default(), reason));
            }
            Value::Nothing => {}
        }
        Ok(())
    }

    fn input(&mut self, input: &Signature, dims: &[Size], bindings: &Bindings) -> Result<TensorId> {
        let Some(element) = input.element else {
            let reason =
                format!("the type of the input {input} is not supported; export the model with another");
            return Err(CompileError::unsupported(&SourceLocation::default(), reason));
        };
        let Some(value) = bindings.values.get(&input.name) else {
            return self.builder.input_of(&input.name, element, dims);
        };
        if value.element != element {
            let reason = format!("the value for {input} has elements of type {}", value.element);
            return Err(CompileError::Request(reason));
        }
        let dims: Vec<u64> = dims.iter().map(|size| size.exact()).collect();
        self.builder.bound_input(&input.name, element, &dims, value.bytes.clone())
    }

    /// Imports the nodes of a graph whose inputs are defined in the innermost scope; its outputs.
    pub(super) fn run(&mut self, graph: &'m GraphProto) -> Result<Vec<Value>> {
        let location = self.scope().location.clone();
        if graph.sparse_initializers > 0 {
            let reason = "sparse constants are not supported";
            return Err(CompileError::unsupported(&SourceLocation::new(location), reason));
        }
        self.builder.spend(Cost::Run, 1 + (graph.initializers.len() as u64) / 8)?;
        let scope = self.scopes.last_mut().expect("a scope is open");
        scope.initializers.extend(graph.initializers.iter().map(|tensor| (tensor.name.as_str(), tensor)));
        for tensor in &graph.initializers {
            scope.values.remove(tensor.name.as_str());
        }
        let outputs = || graph.outputs.iter().map(|output| output.name.as_str());
        self.nodes(&graph.nodes, || order::given(graph).collect(), outputs())?;
        outputs().map(|name| self.value(name, &SourceLocation::new(location.as_str()))).collect()
    }

    /// Imports those of the nodes that the outputs need. `given` are the names that are defined without them.
    fn nodes(
        &mut self,
        nodes: &'m [Node],
        given: impl FnOnce() -> HashSet<&'m str>,
        outputs: impl Iterator<Item = &'m str>,
    ) -> Result<()> {
        if nodes.is_empty() {
            return Ok(());
        }
        let order = match self.orders.get(&nodes.as_ptr()) {
            Some(order) => Rc::clone(order),
            None => {
                let made = order::needed(nodes, &given(), outputs);
                let order = Rc::new(made.map_err(|why| self.unordered(nodes, &why))?);
                self.orders.insert(nodes.as_ptr(), Rc::clone(&order));
                order
            }
        };
        let is_main = self.scopes.len() == 1;
        for (done, index) in order.nodes.iter().enumerate() {
            match is_main {
                true => self.builder.watch().step(done, order.nodes.len())?,
                false => self.builder.watch().check()?,
            }
            self.node(&nodes[*index], *index, &order.names)?;
        }
        if is_main {
            self.builder.watch().step(order.nodes.len(), order.nodes.len())?;
        }
        Ok(())
    }

    /// The error that nodes have no order.
    fn unordered(&self, nodes: &[Node], why: &Unordered<'_>) -> CompileError {
        let outer = &self.scope().location;
        let place = |index: &usize| location_of(&nodes[*index], *index, "").to_string();
        let (first, reason) = match why {
            Unordered::Cycle(cycle) => {
                let listed: Vec<String> = cycle.iter().take(MOST_NAMED).map(place).collect();
                let more = cycle.len().saturating_sub(MOST_NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let reason = match cycle.len() {
                    1 => "the node reads its own result".to_owned(),
                    count => format!("{count} nodes read results of each other: {}{more}", listed.join(", ")),
                };
                (cycle[0], reason)
            }
            Unordered::Twice(name, both) => {
                let reason = match both {
                    [first, second] if first == second => format!("the node defines '{name}' twice"),
                    [first, second] => {
                        let both = format!("{} and {}", place(first), place(second));
                        format!("two nodes define '{name}', {both}; each name is defined once")
                    }
                };
                (both[1], reason)
            }
            Unordered::Given(name, node) => {
                (*node, format!("the node defines '{name}', which is an input or a constant already"))
            }
        };
        CompileError::invalid(&location_of(&nodes[first], first, outer), reason)
    }

    /// Runs `work` in a new scope for an inner graph.
    pub(super) fn inner<T>(
        &mut self,
        location: &SourceLocation,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let opsets = self.scope().opsets;
        let attributes = Rc::clone(&self.scope().attributes);
        let location = location.as_str().to_owned();
        let scope = Scope { opsets, attributes, sees_outer: true, location, ..Scope::default() };
        self.scoped(scope, work)
    }

    /// Runs the nodes of a function of the model in a scope of its own; its outputs.
    pub(super) fn call(
        &mut self,
        site: &Site<'m>,
        function: &'m Function,
        inputs: Vec<Option<Value>>,
    ) -> Result<Vec<Value>> {
        let defaults = function.defaults.iter().map(|default| (default.name.as_str(), &default.value));
        let attributes: HashMap<_, _> = defaults.chain(site.attributes.iter().copied()).collect();
        let names = attributes.len() + function.inputs.len() + function.outputs.len();
        self.builder.spend(Cost::Run, 1 + names as u64 / 8)?;
        let opsets = if function.opsets.is_empty() { self.scope().opsets } else { &function.opsets };
        let location = site.location.as_str().to_owned();
        let scope = Scope { opsets, attributes: Rc::new(attributes), location, ..Scope::default() };
        self.scoped(scope, |importer| {
            for (index, name) in function.inputs.iter().enumerate() {
                let value = inputs.get(index).cloned().flatten();
                importer.define(name, value.unwrap_or(Value::Nothing));
            }
            let given = || function.inputs.iter().map(String::as_str).collect();
            importer.nodes(&function.nodes, given, function.outputs.iter().map(String::as_str))?;
            function.outputs.iter().map(|name| importer.value(name, &site.location)).collect()
        })
    }

    /// The model.
    pub(super) fn model(&self) -> &'m Model {
        self.model
    }

    /// The function of the model that a node calls.
    pub(super) fn function(&self, node: &Node) -> Option<&'m Function> {
        self.functions.called_by(node)
    }

    fn scoped<T>(&mut self, scope: Scope<'m>, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.scopes.len() >= MOST_DEPTH {
            let reason = format!("more than {MOST_DEPTH} functions and graphs inside of each other");
            return Err(CompileError::invalid(&SourceLocation::new(scope.location), reason));
        }
        self.scopes.push(scope);
        let result = work(self);
        self.scopes.pop();
        result
    }

    fn scope(&self) -> &Scope<'m> {
        self.scopes.last().expect("a scope is open")
    }

    /// Gives a name a meaning.
    pub(super) fn define(&mut self, name: &'m str, value: Value) {
        if !name.is_empty() {
            self.scopes.last_mut().expect("a scope is open").values.insert(name, value);
        }
    }

    /// What a name stands for.
    pub(super) fn value(&mut self, name: &str, location: &SourceLocation) -> Result<Value> {
        for index in (0..self.scopes.len()).rev() {
            let scope = &self.scopes[index];
            if let Some(value) = scope.values.get(name) {
                return Ok(value.clone());
            }
            if let Some((name, tensor)) = scope.initializers.get_key_value(name) {
                let (name, tensor) = (*name, *tensor);
                let value = self.initialized(tensor, location)?;
                self.scopes[index].values.insert(name, value.clone());
                return Ok(value);
            }
            if !scope.sees_outer {
                break;
            }
        }
        Err(CompileError::invalid(location, format!("the value '{name}' is read, but nothing defines it")))
    }

    /// The constant of the graph that an initializer is.
    fn initialized(&mut self, tensor: &'m Tensor, location: &SourceLocation) -> Result<Value> {
        if let Some(value) = self.initialized.get(&std::ptr::from_ref(tensor)) {
            return Ok(value.clone());
        }
        let (element, dims, bytes) = self.constant(tensor, location)?;
        let id = self.builder.constant(&tensor.name, element, &dims, bytes)?;
        let value = Value::of(id, tensor.data_type().ok());
        self.initialized.insert(tensor, value.clone());
        Ok(value)
    }

    /// The values that a node reads; none where an optional one is left out.
    pub(super) fn inputs(&mut self, site: &Site<'m>) -> Result<Vec<Option<Value>>> {
        let read = |name: &String| match name.as_str() {
            "" => Ok(None),
            name => self.value(name, &site.location).map(Some),
        };
        site.node.inputs.iter().map(read).collect()
    }

    fn node(&mut self, node: &'m Node, index: usize, names: &HashSet<&str>) -> Result<()> {
        self.builder.budget.count(Cost::Node, effort(node));
        if let Err(reason) = self.builder.budget.check() {
            return Err(CompileError::unsupported(&location_of(node, index, &self.scope().location), reason));
        }
        let site = self.site(node, index, names)?;
        self.builder.at(site.location.clone());
        let values = (self.compute)(self, &site)?;
        self.builder.check_data()?;
        for (index, name) in node.outputs.iter().enumerate() {
            match values.get(index) {
                Some(value) => self.define(name, value.clone()),
                None if site.used[index] => {
                    let reason = format!("the output {index}, '{name}', is not supported");
                    return Err(CompileError::unsupported(&site.location, reason));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Type and dimensions of a tensor.
    pub(super) fn type_of(&self, id: TensorId) -> (ElementType, Vec<Size>) {
        (self.builder.element(id), self.builder.sizes(id).to_vec())
    }

    /// A tensor of the model.
    pub(super) fn constant(&self, tensor: &'m Tensor, location: &SourceLocation) -> Result<Constant> {
        self.constants.moved(tensor, location, &self.builder)
    }

    /// A node with its inputs.
    pub(super) fn node_view(&self, site: &Site<'m>, inputs: Vec<Option<TensorId>>) -> NodeView<'m> {
        NodeView {
            version: site.version,
            inputs,
            used: site.used.clone(),
            location: site.location.clone(),
            attributes: site.attributes.clone(),
            constants: Rc::clone(&self.constants),
        }
    }

    fn site(&self, node: &'m Node, index: usize, names: &HashSet<&str>) -> Result<Site<'m>> {
        let scope = self.scope();
        let location = location_of(node, index, &scope.location);
        let domain = own_domain(&node.domain);
        let mut attributes = Vec::new();
        for attribute in &node.attributes {
            match &attribute.value {
                AttributeValue::Reference(name) => {
                    let given = scope.attributes.get(name.as_str());
                    attributes.extend(given.map(|value| (attribute.name.as_str(), *value)));
                }
                value => attributes.push((attribute.name.as_str(), value)),
            }
        }
        if domain == blocked::DOMAIN {
            attributes.extend(self.blocks.as_ref().map(|blocks| (blocked::SIZE, blocks.size())));
        }
        let used =
            node.outputs.iter().map(|name| !name.is_empty() && names.contains(name.as_str())).collect();
        let version = version_of(domain, scope.opsets);
        let is_old = version < *OPSETS.start() && UNCHANGED.contains(&node.op_type.as_str());
        if domain.is_empty() && !OPSETS.contains(&version) && !is_old {
            let (first, last) = (OPSETS.start(), OPSETS.end());
            let reason = format!(
                "the model uses version {version} of ONNX's operators; {first} to {last} are supported (the onnx package \
                 has a version converter)"
            );
            return Err(CompileError::unsupported(&location, reason));
        }
        Ok(Site { node, domain, version, location, used, attributes })
    }
}

/// What the import of a node costs: 1 without very many names, or very long ones.
fn effort(node: &Node) -> u64 {
    let names = node.inputs.iter().chain(&node.outputs);
    let bytes = names.fold(node.name.len(), |sum, name| sum + name.len());
    let count = node.inputs.len() + node.outputs.len() + node.attributes.len();
    1 + (count as u64) / 16 + (bytes as u64) / 1024
}
