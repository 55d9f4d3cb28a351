//! What a function is from outside: its exports, its reflection, and the choice of a version.

use std::collections::BTreeSet;

use halite_abi::{Code as StatusCode, attribute, export, import::hal, object};
use halite_formats::vmfb::Attr;
use halite_sizes::Size;
use halite_vm::{
    asm::{Reg, reference},
    isa::Op,
};

use super::{
    call::{self, convention},
    code::Code,
    globals::{DEVICE, Globals},
    load::{Recorders, memories},
    module::Writer,
    open::OpenChoice,
    recording,
    refusal::refusal,
    search::Search,
    slots::Slots,
    table::Table,
};
use crate::{
    CompileError, Function,
    graph::{Graph, Port},
    plan::{ModulePlan, group::by_sizes, schedule::Memory},
};

/// What functions are written from.
pub struct Functions<'a> {
    /// The module.
    pub writer: &'a mut Writer,
    /// What it does.
    pub plan: &'a ModulePlan,
    /// Where it keeps what.
    pub globals: &'a Globals,
    /// The binding table of each version.
    pub slots: &'a [Vec<Slots>],
    /// The functions that make recordings, of each target.
    pub recorders: &'a [Recorders],
    /// The function that tells whether an input has a value, where one is needed.
    pub equals: Option<u32>,
}

impl<'a> Functions<'a> {
    /// Writes a function: `NAME$async`, which takes fences, and `NAME`, which waits. `tables` are those of its groups.
    pub fn function(
        &mut self,
        index: usize,
        function: &Function,
        tables: &mut [Option<Table>],
    ) -> Result<(), CompileError> {
        let name = format!("{}{}", function.name, export::ASYNC_SUFFIX);
        let attrs = |kind| {
            declaration(kind, function)
                .into_iter()
                .chain(names(function))
                .chain(states(function))
                .collect::<Vec<_>>()
        };
        let mut asynchronous = attrs("async");
        asynchronous.push(Attr::new(attribute::CALL_MODEL, attribute::COARSE_FENCES));
        // But for states, all that a call writes is allocated by that call, so any number may be under way at one time.
        // Of calls that write a state, each waits for those before it, whoever owns the state.
        if self.plan.functions[index].iter().all(|flow| flow.states.is_empty()) {
            asynchronous.push(Attr::new(attribute::CALLS, attribute::INDEPENDENT));
        }
        let ordinal = match &function.versions[..] {
            [_] if !function.is_open() => {
                let version = self.version(&name, index, 0, function, self.equals);
                call::version(self.writer, self.globals, &version, &mut None, Some(asynchronous))?
            }
            _ => {
                let ordinals = self.groups(index, function, tables)?;
                if function.is_open() {
                    let choice = OpenChoice { function, ordinals: &ordinals };
                    choice.write(self.writer, &name, asynchronous)?
                } else if by_sizes(function) {
                    let groups = &self.plan.groups[index];
                    let search = Search { function, groups, tables, ordinals: &ordinals };
                    search.write(self.writer, &name, asynchronous)?
                } else {
                    self.choice(&name, function, &ordinals, asynchronous)?
                }
            }
        };
        self.synchronous(function, ordinal, attrs("sync"))
    }

    /// Writes a function for each group of versions, and for versions with states that grow what makes their recordings; gives the ordinals
    /// of the former.
    fn groups(
        &mut self,
        index: usize,
        function: &Function,
        tables: &mut [Option<Table>],
    ) -> Result<Vec<u32>, CompileError> {
        let mut ordinals = Vec::new();
        for (group, table) in tables.iter_mut().enumerate() {
            let inner = format!("{}.{group}", function.name);
            let version = self.version(&inner, index, group, function, None);
            ordinals.push(call::version(self.writer, self.globals, &version, table, None)?);
            if grows(function) {
                let name = format!("{}{}", function.name, export::RECORD_SUFFIX);
                recording::ahead(self.writer, self.globals, &version, &name)?;
            }
        }
        Ok(ordinals)
    }

    /// What the code of a group of versions is written from.
    fn version<'b>(
        &self,
        name: &'b str,
        index: usize,
        group: usize,
        function: &'b Function,
        equals: Option<u32>,
    ) -> call::Version<'b>
    where
        'a: 'b,
    {
        let (plan, slots, recorders) = (self.plan, self.slots, self.recorders);
        let versions = &plan.groups[index][group];
        let slots = &slots[index][versions[0]];
        let segments = recorders[0][index][group].len();
        let of_segment = |segment| recorders.iter().map(|made| made[index][group][segment]).collect();
        call::Version {
            name,
            graphs: versions.iter().map(|v| &function.versions[*v]).collect(),
            flows: versions.iter().map(|v| &plan.functions[index][*v]).collect(),
            slots,
            function: index,
            versions,
            transient: slots.iter().any(|memory| memory == Memory::Transient(0)),
            open_transient: self.open_transient(index, versions[0], function),
            equals,
            used: (0..segments).map(|segment| self.used(index, versions, segment)).collect(),
            recorders: (!plan.is_recorded_at_load(index)).then(|| (0..segments).map(of_segment).collect()),
        }
    }

    /// The memories that the recordings of a segment name.
    fn used(&self, index: usize, versions: &[usize], segment: usize) -> BTreeSet<Memory> {
        let targets = self.plan.targets.iter().map(|target| &target.functions[index]);
        let lowered = targets.flat_map(|functions| versions.iter().map(|version| &functions[*version]));
        lowered.flat_map(|lowered| memories(&lowered.segments[segment])).collect()
    }

    /// Bytes of transient memory of each era of a version with open sizes: what it needs on any target.
    fn open_transient(&self, index: usize, version: usize, function: &Function) -> Vec<Size> {
        let Some(open) = function.versions[version].open.as_ref() else { return Vec::new() };
        let _entered = open.enter();
        let of_era = |era: usize| {
            let all = self.plan.targets.iter().map(|target| &target.functions[index][version]);
            all.map(|lowered| lowered.era_bytes(era)).fold(Size::constant(4), Size::max)
        };
        (0..=self.plan.functions[index][version].reads.len()).map(of_era).collect()
    }

    /// Waits for what the asynchronous function began.
    fn synchronous(
        &mut self,
        function: &Function,
        asynchronous: u32,
        attrs: Vec<Attr>,
    ) -> Result<(), CompileError> {
        let graph = &function.versions[0];
        let (inputs, outputs) = (graph.inputs.len(), graph.outputs.len());
        let mut code = Code::new(&convention(inputs, outputs), inputs as u16);
        let (device, fence, status) = (code.reference(), code.reference(), code.word());
        let results: Vec<Reg> = (0..outputs).map(|_| code.reference()).collect();
        self.writer.load(&mut code, DEVICE, object::DEVICE, device);
        self.writer.new_fence(&mut code, device, fence);
        let mut args: Vec<Reg> = (0..inputs).map(|index| reference(index as u16)).collect();
        args.extend([code.null(), fence]);
        code.call(asynchronous, &args, &results);
        self.writer.wait(&mut code, fence, status);
        code.op(Op::Return, &[results.into()]);
        self.writer.reflected_function(&function.name, true, code, attrs).map(drop)
    }

    /// Calls the first version that is for the inputs at hand.
    fn choice(
        &mut self,
        name: &str,
        function: &Function,
        versions: &[u32],
        attrs: Vec<Attr>,
    ) -> Result<u32, CompileError> {
        let graph = &function.versions[0];
        let (inputs, outputs) = (graph.inputs.len(), graph.outputs.len());
        let arguments = inputs + export::FENCES;
        let mut code = Code::new(&convention(arguments, outputs), arguments as u16);
        code.requirements |= halite_formats::vmfb::requirement::YIELD;
        let test = Test {
            fits: code.word(),
            equal: code.word(),
            dim: code.pair(),
            data: code.reference(),
            wait: reference(inputs as u16),
        };
        let results: Vec<Reg> = (0..outputs).map(|_| code.reference()).collect();
        let args: Vec<Reg> = (0..arguments as u16).map(reference).collect();
        let differing = differing(function);
        for (graph, version) in function.versions.iter().zip(versions) {
            let next = code.label();
            self.test(&mut code, &test, graph, &differing, next);
            code.call(*version, &args, &results);
            code.op(Op::Return, &[results.clone().into()]);
            code.block(next);
        }
        code.fail_with(StatusCode::InvalidArgument, &refusal(function));
        self.writer.reflected_function(name, true, code, attrs)
    }

    /// Goes on where the inputs have a version's dimensions and values, to `next` elsewhere.
    fn test(
        &mut self,
        code: &mut Code,
        test: &Test,
        graph: &Graph,
        differing: &[bool],
        next: halite_vm::asm::Label,
    ) {
        let one = code.i32(1);
        code.op(Op::OrI32, &[one.into(), one.into(), test.fits.into()]);
        let and = |code: &mut Code| {
            code.op(Op::AndI32, &[test.fits.into(), test.equal.into(), test.fits.into()]);
        };
        for index in (0..graph.inputs.len()).filter(|index| differing[*index]) {
            let (view, dims) = (reference(index as u16), dims(graph, index));
            self.writer.call(code, hal::BUFFER_VIEW_RANK, &[view], &[test.equal]);
            let rank = code.i32(dims.len() as i32);
            code.op(Op::CmpEqI32, &[test.equal.into(), rank.into(), test.equal.into()]);
            and(code);
            for (axis, dim) in dims.iter().enumerate() {
                let axis = code.i32(axis as i32);
                self.writer.call(code, hal::BUFFER_VIEW_DIM, &[view, axis], &[test.dim]);
                let wanted = code.size(*dim);
                code.op(Op::CmpEqI64, &[test.dim.into(), wanted.into(), test.equal.into()]);
                and(code);
            }
        }
        let values = graph.inputs.iter().enumerate();
        let values = values.filter_map(|(i, port)| Some((i, port.value.clone().filter(|v| !v.is_empty())?)));
        let go = code.label();
        code.branch(test.fits, go, next);
        code.block(go);
        for (index, value) in values {
            let Some(equals) = self.equals else { continue };
            let data = self.writer.data(value);
            code.op(Op::ConstRefRodata, &[data.into(), test.data.into()]);
            code.call(equals, &[reference(index as u16), test.data, test.wait], &[test.equal]);
            let go = code.label();
            code.branch(test.equal, go, next);
            code.block(go);
        }
    }
}

/// Registers of the choice of a version.
struct Test {
    fits: Reg,
    equal: Reg,
    dim: Reg,
    data: Reg,
    wait: Reg,
}

/// Dimensions of an input as numbers, to which the graph is fixed from here on.
fn dims(graph: &Graph, index: usize) -> Vec<u64> {
    graph.port_sizes(&graph.inputs[index]).iter().map(|size| size.exact()).collect()
}

/// Which inputs have not the same dimensions in all versions, or have bound values. Of the rest, the version that is called
/// says what is wrong.
fn differing(function: &Function) -> Vec<bool> {
    let first = &function.versions[0];
    let one = |index: usize| {
        function.versions.iter().any(|graph| {
            let port = &graph.inputs[index];
            dims(graph, index) != dims(first, index) || port.value.is_some()
        })
    };
    (0..first.inputs.len()).map(one).collect()
}

/// The model's own names of inputs and outputs: declarations have identifiers only.
fn names(function: &Function) -> impl Iterator<Item = Attr> {
    let list = |key, ports: &[Port]| {
        let names: Vec<String> = ports.iter().map(|port| port.name.clone()).collect();
        Attr::list(key, &names)
    };
    let of = move |graph: &Graph| {
        [list(attribute::INPUTS, &graph.inputs), list(attribute::OUTPUTS, &graph.outputs)]
    };
    function.versions.first().map(of).into_iter().flatten()
}

/// Whether calls of a function make its states larger, so that sizes of a call tell those of the next: where it has one version, and data
/// decide none of its sizes.
fn grows(function: &Function) -> bool {
    let grows = |graph: &Graph| {
        graph.states.iter().any(|state| state.grows.is_some())
            && graph.open.as_ref().is_some_and(|open| open.data.is_empty())
    };
    matches!(&function.versions[..], [only] if grows(only))
}

/// The states of a function: names of inputs and of the outputs that replace them, in turns. Those of any version.
fn states(function: &Function) -> Option<Attr> {
    let mut pairs: Vec<[&str; 2]> = Vec::new();
    for graph in &function.versions {
        for state in &graph.states {
            let pair = [graph.inputs[state.input].name.as_str(), graph.outputs[state.output].name.as_str()];
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    let names: Vec<String> = pairs.iter().flatten().map(|name| (*name).to_owned()).collect();
    (!names.is_empty()).then(|| Attr::list(attribute::STATES, &names))
}

/// The declaration of a function, as compilers of IREE write it: dimensions that versions do not share are `?`.
fn declaration(kind: &str, function: &Function) -> Option<Attr> {
    let first = function.versions.first()?;
    let list = |what: &str, ports: fn(&Graph) -> &[Port]| {
        let one = |(index, port): (usize, &Port)| {
            let tensor = first.tensor(port.tensor);
            let mut text = String::new();
            for (axis, dim) in first.port_sizes(port).iter().enumerate() {
                let same = |graph: &Graph| {
                    let own = graph.port_sizes(&ports(graph)[index]).get(axis);
                    dim.is_constant() && own.is_some_and(|own| own.is(*dim))
                };
                let known = function.versions.iter().all(same);
                text += &if known { format!("{dim}x") } else { "?x".to_owned() };
            }
            format!(
                "%{}: tensor<{text}{}>",
                identifier(&port.name, what, index),
                halite_abi::ElementType::from(tensor.element)
            )
        };
        ports(first).iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    };
    let inputs = list("input", |graph| &graph.inputs);
    let outputs = list("output", |graph| &graph.outputs);
    let text = format!("{kind} func @{}({inputs}) -> ({outputs})", function.name);
    Some(Attr::new(attribute::DECLARATION, text))
}

/// A name in a declaration: the model's, where it can be one.
fn identifier(name: &str, what: &str, index: usize) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if first && name.chars().all(fits) { name.to_owned() } else { format!("{what}{index}") }
}
