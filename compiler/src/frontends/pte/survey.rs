//! The list of all operators of a method that nothing imports, for the error that one of them is met.

use halite_formats::pte::Plan;

use super::{
    back_ends,
    names::{delegate_name, instruction_location},
    ops,
    outside::{Method, Step},
};
use crate::{CompileError, SourceLocation, UnsupportedOperator};

/// The error that operators are not supported, with all of the method's in the place of the one that was met. Other errors
/// stay what they are.
pub(super) fn with_all(error: CompileError, plan: &Plan, method: &Method) -> CompileError {
    let CompileError::UnsupportedOperators { operators: met } = error else { return error };
    let mut operators = Vec::new();
    for (index, step) in method.steps.iter().enumerate() {
        match step {
            Step::Call(operator, call) if !ops::is_known_outside(&call.name) => {
                let name = &plan.operators[*operator];
                let place = instruction_location(index, plan);
                ops::unknown_outside(name, &call.name, place).add_to(&mut operators);
            }
            Step::Delegate(delegate, _) => in_delegate(*delegate, plan, &mut operators),
            _ => {}
        }
    }
    for operator in met {
        if !operators.iter().any(|own| own.is_same(&operator)) {
            operators.insert(0, operator);
        }
    }
    CompileError::UnsupportedOperators { operators }
}

/// Adds those of a delegate, if it can be read.
fn in_delegate(index: usize, plan: &Plan, operators: &mut Vec<UnsupportedOperator>) {
    let (delegate, name) = (&plan.delegates[index], delegate_name(index, plan));
    let Some(back_end) = back_ends::find(&delegate.id) else {
        back_ends::unknown(&delegate.id, SourceLocation::new(name)).add_to(operators);
        return;
    };
    let Ok(graph) = back_end.read(&delegate.data) else { return };
    graph.unsupported(&name).into_iter().for_each(|operator| operator.add_to(operators));
}

#[cfg(test)]
mod tests {
    use halite_formats::pte::{Delegate, Instruction, Program};

    use super::*;
    use crate::{Control, SourceLocation, build::Builder, frontends::pte::plan::import, signature::Bindings};

    #[test]
    fn all_operators_outside_of_delegates_are_told_together() {
        let operators =
            ["et_vk::adamw_step.default", "aten::mean.out", "aten::frobnicate.out"].map(str::to_owned);
        let call = |operator| Instruction::Kernel { operator, args: vec![0, 0] };
        let plan = Plan {
            name: "forward".to_owned(),
            values: vec![halite_formats::pte::Value::Null],
            inputs: Vec::new(),
            outputs: Vec::new(),
            chains: vec![vec![
                call(0),
                call(1),
                Instruction::Delegate { delegate: 0, args: Vec::new() },
                call(2),
                call(0),
            ]],
            operators: operators.to_vec(),
            // Damaged: what can be read is told.
            delegates: vec![Delegate { id: "VulkanBackend".to_owned(), data: bytes(), specs: Vec::new() }],
            memory: Vec::new(),
        };
        let control = Control::new();
        let making = (&(|| Builder::new()) as &dyn Fn() -> Builder, &control);
        let made = import(&Program::default(), (&plan, &[]), &[], &Bindings::default(), making);
        let error = made.unwrap_err();
        let text = error.to_string();
        let CompileError::UnsupportedOperators { operators } = error else { panic!("{text}") };
        let told: Vec<_> = operators.iter().map(|o| (o.name.as_str(), o.count)).collect();
        assert_eq!(told, [("et_vk::adamw_step.default", 2), ("aten::frobnicate.out", 1)]);
        assert_eq!(operators[0].first, SourceLocation::new("instruction 0 of method 'forward'"));
        assert!(text.contains("2 operators") && text.contains("it is for training"), "{text}");
    }

    fn bytes() -> bytes::Bytes {
        bytes::Bytes::from_static(b"VH00")
    }

    #[test]
    fn other_errors_stay_what_they_are() {
        let plan = Plan {
            name: String::new(),
            values: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            chains: Vec::new(),
            operators: Vec::new(),
            delegates: Vec::new(),
            memory: Vec::new(),
        };
        let error = with_all(CompileError::Request("no".to_owned()), &plan, &Method::new(&plan, &[]));
        assert!(matches!(error, CompileError::Request(_)));
    }
}
