//! A method's instructions as calls over values: operators outside of delegates get the names and arguments of those inside,
//! so that one table of importers is for both.

use halite_formats::pte::{Call, Instruction, Plan, Value as PlanValue};

use super::{
    names::functional,
    scope::read_values,
    types::element_of,
    value::{Declared, Value},
};

/// A step of a method.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An operator, an index of the plan's, under the name and with the arguments that importers know: the result is the
    /// last one.
    Call(usize, Call),
    /// A call of a delegate: which, and its inputs and outputs.
    Delegate(usize, Vec<usize>),
    /// A value becomes another name of the same.
    Move { from: usize, to: usize },
    /// Goes on elsewhere where a value is false.
    Jump { condition: usize, to: usize },
    /// Lets go of memory, which is not this side's matter.
    Nothing,
}

/// What a method does.
#[derive(Clone, Debug)]
pub(super) struct Method {
    /// The values of the plan, and behind them one that is none.
    pub(super) values: Vec<Value>,
    /// The steps, as many as there are instructions.
    pub(super) steps: Vec<Step>,
    /// Whether somebody reads a value.
    pub(super) read: Vec<bool>,
}

impl Method {
    /// The steps of a chain of a plan.
    pub(super) fn new(plan: &Plan, chain: &[Instruction]) -> Method {
        let none = plan.values.len();
        let mut values: Vec<Value> = plan.values.iter().map(|v| value(v, none)).collect();
        values.push(Value::Null);
        let steps: Vec<Step> = chain.iter().map(|instruction| step(instruction, plan, &values)).collect();
        let calls =
            steps.iter().filter_map(|step| if let Step::Call(_, call) = step { Some(call) } else { None });
        let mut read = read_values(&values, calls, &plan.outputs);
        for step in &steps {
            match step {
                Step::Delegate(_, args) => args.iter().for_each(|id| read[*id] = true),
                Step::Move { from: id, .. } | Step::Jump { condition: id, .. } => read[*id] = true,
                Step::Call(..) | Step::Nothing => {}
            }
        }
        Method { values, steps, read }
    }
}

/// A value of a plan; `none` is the index of one that is none.
fn value(value: &PlanValue, none: usize) -> Value {
    match value {
        PlanValue::Null => Value::Null,
        PlanValue::Int(number) => Value::Int(*number),
        PlanValue::Bool(truth) => Value::Bool(*truth),
        PlanValue::Double(number) => Value::Double(*number),
        PlanValue::String(text) => Value::String(text.clone()),
        PlanValue::DoubleList(items) => Value::DoubleList(items.clone()),
        PlanValue::BoolList(items) => Value::BoolList(items.clone()),
        PlanValue::IntList(items) | PlanValue::TensorList(items) => Value::List(items.clone()),
        PlanValue::OptionalTensorList(items) => {
            Value::List(items.iter().map(|item| item.unwrap_or(none)).collect())
        }
        PlanValue::Tensor(tensor) => Value::Tensor(Declared {
            element: element_of(tensor.scalar_type).ok_or(tensor.scalar_type),
            dims: tensor.sizes.clone(),
            dynamism: tensor.dynamism,
        }),
    }
}

fn step(instruction: &Instruction, plan: &Plan, values: &[Value]) -> Step {
    match instruction {
        Instruction::Kernel { operator, args } => {
            let name = functional(&plan.operators[*operator]);
            Step::Call(*operator, Call { node: 0, name, args: arguments(args, values) })
        }
        Instruction::Delegate { delegate, args } => Step::Delegate(*delegate, args.clone()),
        Instruction::Move { from, to } => Step::Move { from: *from, to: *to },
        Instruction::JumpFalse { condition, to } => Step::Jump { condition: *condition, to: *to },
        Instruction::Free { .. } => Step::Nothing,
    }
}

/// Arguments without those that say where results go: the result stands once more at the end.
fn arguments(args: &[usize], values: &[Value]) -> Vec<usize> {
    let Some((result, before)) = args.split_last() else { return Vec::new() };
    let outs = match (&values[*result], before.last()) {
        (_, Some(last)) if last == result => 1,
        (Value::List(items), _) if !items.is_empty() && before.ends_with(items) => items.len(),
        (Value::List(items), Some(last)) if values[*last] == Value::List(items.clone()) => 1,
        _ => 0,
    };
    let mut all = before[..before.len() - outs].to_vec();
    all.push(*result);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_results_are_no_arguments() {
        let list = || Value::List(vec![1, 2]);
        let values = [Value::Null, Value::Null, Value::Null, list(), list()];
        let of = |args: &[usize]| arguments(args, &values);
        assert_eq!(of(&[0, 0, 1, 1]), [0, 0, 1], "one result");
        assert_eq!(of(&[0, 1, 2, 3]), [0, 3], "a result of two");
        assert_eq!(of(&[0, 3, 4]), [0, 4], "a list of results");
        assert_eq!(of(&[0, 1]), [0, 1], "a number");
        assert!(of(&[]).is_empty());
    }
}
