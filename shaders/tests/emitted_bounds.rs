//! Kernels that are made at run time touch nothing outside of their tensors, whatever the shapes: their code is run here,
//! instruction by instruction, with every access checked. Devices hide such faults, as they hold accesses within buffers.

use std::collections::HashMap;

use halite_ops::{DType, Operation, Values};
use halite_shaders::{Slot, Step, variants_of};
use halite_spirv::{Module, words_from_bytes};
use spirv::Op;

/// The code of a kernel, taken apart.
struct Machine {
    code: Vec<(Op, Vec<u32>)>,
    labels: HashMap<u32, usize>,
    /// Words of a value of a type; of a variable, words of an element of its array.
    words: HashMap<u32, u32>,
    binding: HashMap<u32, usize>,
    push: Option<u32>,
    entry: usize,
    lanes: u32,
}

/// A value: a scalar, the components of a vector or, flat, of a struct.
type Value = Vec<u32>;

impl Machine {
    fn new(words: &[u32]) -> Machine {
        let module = Module::parse(words).expect("a sound module");
        let code: Vec<(Op, Vec<u32>)> =
            module.insts().iter().map(|inst| (inst.op, module.words_of(inst)[1..].to_vec())).collect();
        let mut machine = Machine {
            labels: HashMap::new(),
            words: HashMap::new(),
            binding: HashMap::new(),
            push: None,
            entry: code.iter().position(|(op, _)| *op == Op::Label).expect("a block"),
            lanes: 0,
            code: Vec::new(),
        };
        for (place, (op, w)) in code.iter().enumerate() {
            machine.learn(place, *op, w);
        }
        Machine { code, ..machine }
    }

    fn learn(&mut self, place: usize, op: Op, w: &[u32]) {
        let of = |id: u32| self.words.get(&id).copied().unwrap_or(0);
        match op {
            Op::TypeInt | Op::TypeFloat | Op::TypeBool => drop(self.words.insert(w[0], 1)),
            Op::TypeVector => drop(self.words.insert(w[0], w[2])),
            Op::TypeRuntimeArray => drop(self.words.insert(w[0], of(w[1]))),
            Op::TypeStruct => drop(self.words.insert(w[0], of(w[1]))),
            Op::TypePointer => drop(self.words.insert(w[0], of(w[2]))),
            Op::Variable => {
                self.words.insert(w[1], of(w[0]));
                if w[2] == spirv::StorageClass::PushConstant as u32 {
                    self.push = Some(w[1]);
                }
            }
            Op::Decorate if w[1] == spirv::Decoration::Binding as u32 => {
                self.binding.insert(w[0], w[2] as usize);
            }
            Op::ExecutionMode => self.lanes = w[2],
            Op::Label => drop(self.labels.insert(w[0], place)),
            _ => {}
        }
    }

    fn constants(&self) -> HashMap<u32, Value> {
        let mut values: HashMap<u32, Value> = HashMap::new();
        for (op, w) in &self.code {
            match op {
                Op::Constant => drop(values.insert(w[1], vec![w[2]])),
                Op::ConstantTrue => drop(values.insert(w[1], vec![1])),
                Op::ConstantComposite => {
                    let parts = w[2..].iter().flat_map(|id| values[id].clone()).collect();
                    values.insert(w[1], parts);
                }
                _ => {}
            }
        }
        values
    }

    /// One invocation.
    fn run(&self, constants: &HashMap<u32, Value>, id: [u32; 3], push: &[u32], memory: &mut [Vec<u32>]) {
        let mut values = constants.clone();
        // Of a pointer: its variable and index.
        let mut pointers: HashMap<u32, (u32, usize)> = HashMap::new();
        let (mut place, mut block, mut before) = (self.entry, 0, 0);
        loop {
            let (op, w) = &self.code[place];
            place += 1;
            match op {
                Op::Label => (before, block) = (block, w[0]),
                Op::SelectionMerge | Op::FunctionEnd => {}
                Op::Branch => place = self.labels[&w[0]],
                Op::BranchConditional => {
                    place = self.labels[&if values[&w[0]][0] != 0 { w[1] } else { w[2] }];
                }
                Op::Return => return,
                Op::Phi => {
                    let from = w[2..].chunks(2).find(|pair| pair[1] == before).expect("a way here");
                    values.insert(w[1], values[&from[0]].clone());
                }
                Op::AccessChain => {
                    let last = w.last().expect("an index");
                    pointers.insert(w[1], (w[2], values[last][0] as usize));
                }
                Op::Load => {
                    let value = match pointers.get(&w[2]) {
                        None => id.to_vec(),
                        Some((variable, index)) if Some(*variable) == self.push => vec![push[*index]],
                        Some((variable, index)) => self.slice(*variable, *index, memory).to_vec(),
                    };
                    values.insert(w[1], value);
                }
                Op::Store => {
                    let (variable, index) = pointers[&w[0]];
                    self.slice(variable, index, memory).copy_from_slice(&values[&w[1]]);
                }
                _ => {
                    let value = self.compute(*op, w, &values);
                    values.insert(w[1], value);
                }
            }
        }
    }

    fn slice<'a>(&self, variable: u32, index: usize, memory: &'a mut [Vec<u32>]) -> &'a mut [u32] {
        let (width, binding) = (self.words[&variable] as usize, self.binding[&variable]);
        let length = memory[binding].len();
        memory[binding].get_mut(index * width..(index + 1) * width).unwrap_or_else(|| {
            panic!("binding {binding} has {length} words; element {index} of {width} words is touched")
        })
    }

    fn compute(&self, op: Op, w: &[u32], values: &HashMap<u32, Value>) -> Value {
        let of = |place: usize| &values[&w[place]];
        let each = |f: fn(u32, u32) -> u32| of(2).iter().zip(of(3)).map(|(a, b)| f(*a, *b)).collect();
        match op {
            Op::IAdd => each(u32::wrapping_add),
            Op::ISub => each(u32::wrapping_sub),
            Op::IMul => each(u32::wrapping_mul),
            Op::BitwiseOr => each(|a, b| a | b),
            Op::BitwiseAnd => each(|a, b| a & b),
            Op::ShiftLeftLogical => each(|a, b| a << b),
            Op::ShiftRightLogical => each(|a, b| a >> b),
            Op::ShiftRightArithmetic => each(|a, b| ((a as i32) >> b) as u32),
            Op::ULessThan => each(|a, b| u32::from(a < b)),
            Op::UGreaterThan => each(|a, b| u32::from(a > b)),
            Op::UGreaterThanEqual => each(|a, b| u32::from(a >= b)),
            Op::IEqual => each(|a, b| u32::from(a == b)),
            Op::INotEqual => each(|a, b| u32::from(a != b)),
            Op::ConvertUToF => of(2).iter().map(|a| (*a as f32).to_bits()).collect(),
            Op::UMulExtended => {
                let products = of(2).iter().zip(of(3)).map(|(a, b)| u64::from(*a) * u64::from(*b));
                let products: Vec<u64> = products.collect();
                products.iter().map(|p| *p as u32).chain(products.iter().map(|p| (p >> 32) as u32)).collect()
            }
            Op::ExtInst => {
                assert_eq!(w[3], spirv::GlslStd450Op::UMin as u32);
                of(4).iter().zip(of(5)).map(|(a, b)| *a.min(b)).collect()
            }
            Op::Select => {
                let pick = |(i, c): (usize, &u32)| if *c != 0 { of(3)[i] } else { of(4)[i] };
                of(2).iter().enumerate().map(pick).collect()
            }
            Op::Bitcast => of(2).clone(),
            Op::CompositeConstruct => w[2..].iter().flat_map(|id| values[id].clone()).collect(),
            Op::CompositeExtract => {
                let count = self.words[&w[0]] as usize;
                of(2)[w[3] as usize * count..(w[3] as usize + 1) * count].to_vec()
            }
            Op::VectorShuffle => {
                let both = [of(2).as_slice(), of(3)].concat();
                w[4..].iter().map(|place| both[*place as usize]).collect()
            }
            other => panic!("{other:?} is not for this test"),
        }
    }
}

fn to_words(values: &Values, dtype: DType) -> Vec<u32> {
    let mut bytes = values.to_bytes(dtype);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    words_from_bytes(&bytes).expect("whole words")
}

/// Runs a step on every invocation of its grid.
fn run(step: &Step, inputs: &[Vec<u32>], outputs: &[usize]) -> Vec<Vec<u32>> {
    let words = words_from_bytes(&step.module.to_bytes()).expect("whole words");
    let machine = Machine::new(&words);
    let constants = machine.constants();
    let poisoned = |slot: &Slot| match *slot {
        Slot::Input(i) => inputs[i].clone(),
        Slot::Output(i) | Slot::Scratch(i) => vec![0xA5A5_A5A5; outputs[i]],
    };
    let mut memory: Vec<Vec<u32>> = step.bindings.iter().map(poisoned).collect();
    let (grid, push) = (step.exact_grid(), step.exact_push());
    for y in 0..grid[1] {
        for x in 0..grid[0] * machine.lanes {
            machine.run(&constants, [x, y, 0], &push, &mut memory);
        }
    }
    memory.split_off(inputs.len())
}

fn check(operation: &Operation) {
    let descriptions = operation.inputs();
    let mut next = 0;
    let mut values = |count: u64| {
        let mut number = || {
            next = (next + 1) % 100;
            next
        };
        (0..count).map(|_| number()).collect::<Vec<i64>>()
    };
    let inputs: Vec<Values> = descriptions
        .iter()
        .map(|tensor| {
            let numbers = values(tensor.elements().exact());
            if tensor.dtype.is_float() {
                Values::Float(numbers.into_iter().map(|n| n as f64).collect())
            } else {
                Values::Int(numbers)
            }
        })
        .collect();
    let bytes: Vec<Vec<u32>> = inputs.iter().zip(&descriptions).map(|(v, t)| to_words(v, t.dtype)).collect();
    let outputs = operation.outputs();
    let sizes: Vec<usize> = outputs.iter().map(|t| t.bytes().div_ceil(4u64).exact_usize()).collect();
    let expected = operation.reference(&inputs);
    for variant in variants_of("elementwise") {
        let Ok(plan) = variant.plan(operation) else { continue };
        let got = run(&plan.steps[0], &bytes, &sizes);
        for ((got, expected), tensor) in got.iter().zip(&expected).zip(&outputs) {
            let found: Vec<u8> = got.iter().flat_map(|word| word.to_le_bytes()).collect();
            let found = Values::from_bytes(tensor.dtype, &found[..tensor.bytes().exact_usize()]);
            assert_eq!(&found, expected, "{} of {operation}", variant.name);
        }
    }
}

#[test]
fn nothing_outside_of_tables_is_touched() {
    for dtype in ["u8", "bf16", "i32", "i64", "i16", "u64", "f64"] {
        for (entries, other) in [(1, 2), (3, 5), (4, 1), (40, 129)] {
            for count in [1, 4, 5, 21] {
                // Numbers from below 0 to behind the end, and of all magnitudes.
                let text = format!(
                    "elementwise:inputs=i32[{count}],tables={dtype}[{entries}] {dtype}[{other}],program=\
                     sub $0 9i32; lookup:{dtype} %0 @0; mul $0 -50000000i32; lookup:{dtype} %2 @1; \
                     lookup:{dtype} 7i32 @0 -> %1:{dtype} %3:{dtype} %4:{dtype}"
                );
                check(&Operation::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}")));
            }
        }
    }
}

#[test]
fn nothing_outside_of_tensors_is_touched() {
    for dtype in ["u8", "bf16", "i32", "i64", "i16", "u64", "f64"] {
        for inner in [1, 2, 3, 4, 5, 8, 12, 16, 20] {
            for outer in [1, 2, 3, 5] {
                let shapes = [
                    format!("{dtype}[{outer}x{inner}] {dtype}[{inner}] {dtype}[{outer}x1] {dtype}[]"),
                    format!("{dtype}[{outer}x1x{inner}] {dtype}[3x1] {dtype}[{inner}]"),
                ];
                for inputs in shapes {
                    let count = inputs.split(' ').count();
                    let all: Vec<_> = (0..count).map(|i| format!("${i}:{dtype}")).collect();
                    let text = format!("elementwise:inputs={inputs},program=-> {}", all.join(" "));
                    check(&Operation::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}")));
                }
            }
        }
    }
}
