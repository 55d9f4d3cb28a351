//! Reading what happens to the scores of attention between the product and the softmax: a factor, a cap, a mask.

use halite_ops::{
    elementwise::Elementwise,
    expression::{Expression, Function, Operand, Scalar, Type},
};

use super::{chain::factor, merge::Reader};

/// Values from here down are no scores: a query gives no weight to what has them.
pub(super) const NOTHING: f64 = -1e9;

/// What is added to scores where a model replaces them by a finite number: so far down that any score vanishes in the sum, and
/// that a query which sees nothing gives all keys the same weight. Of -1e9 a score of 40 is left, in steps of 64.
const VANISHING: f64 = -1e30;

/// `scale * factor * score` capped to `softcap`, and what is added to it: operands of a program without the scores.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Form {
    pub(super) scale: f64,
    /// What scores are multiplied by that is no number.
    pub(super) factor: Option<Operand>,
    pub(super) softcap: Option<f64>,
    pub(super) added: Option<Operand>,
}

/// What a program makes of its input with the scores, with the program that has what is added to them as a node. `None` if
/// it is nothing that attention does.
pub(super) fn form(reader: &Reader, scores: usize) -> Option<(Form, Expression)> {
    let [output] = reader.program.outputs[..] else { return None };
    let [from, to] = [reader.inputs[scores].1, output.dtype];
    if from != to && !(from.is_float() && to.is_float()) {
        return None;
    }
    let mut reading = Reading { program: reader.program.clone(), scores: Operand::Input(scores) };
    let form = reading.read(output.value)?;
    Some((form, reading.program))
}

/// Whether an operation only puts 0 in the place of NaN, as exporters write it behind a softmax: where a query sees nothing.
pub(super) fn is_guard(elementwise: &Elementwise) -> bool {
    let program = &elementwise.program;
    let node = |operand: Operand| match operand {
        Operand::Node(index) => program.nodes.get(index),
        _ => None,
    };
    let ([_], [output]) = (&elementwise.inputs.0[..], &program.outputs[..]) else { return false };
    let Some(select) = node(output.value).filter(|node| node.function == Function::Select) else {
        return false;
    };
    let [mut condition, zero, value] = select.operands[..] else { return false };
    while let Some(cast) = node(condition).filter(|node| node.function == Function::Cast) {
        condition = cast.operands[0];
    }
    let is_nan = node(condition)
        .is_some_and(|node| node.function == Function::IsNan && node.operands == [Operand::Input(0)]);
    is_nan && value == Operand::Input(0) && matches!(zero, Operand::Constant(Scalar::Float(0.0)))
}

struct Reading {
    /// Grows by nodes for what is added.
    program: Expression,
    scores: Operand,
}

impl Reading {
    fn has_scores(&self, operand: Operand) -> bool {
        let mut open = vec![operand];
        let mut seen = vec![false; self.program.nodes.len()];
        while let Some(operand) = open.pop() {
            if operand == self.scores {
                return true;
            }
            if let Operand::Node(index) = operand
                && !std::mem::replace(&mut seen[index], true)
            {
                open.extend(&self.program.nodes[index].operands);
            }
        }
        false
    }

    /// As deep as the expression, whose length is limited.
    fn read(&mut self, value: Operand) -> Option<Form> {
        if value == self.scores {
            return Some(Form { scale: 1.0, factor: None, softcap: None, added: None });
        }
        let Operand::Node(index) = value else { return None };
        let node = self.program.nodes[index].clone();
        let [with, without]: [Vec<Operand>; 2] = [true, false]
            .map(|has| node.operands.iter().copied().filter(|o| self.has_scores(*o) == has).collect());
        let [inner] = with[..] else { return None };
        if let Some(by) = factor(&node, inner) {
            let form = self.capped(inner, by);
            return form.or_else(|| {
                let form = self.read(inner)?;
                (form.added.is_none() && form.softcap.is_none())
                    .then_some(Form { scale: form.scale * by, ..form })
            });
        }
        let form = self.read(inner)?;
        match (node.function, &without[..]) {
            (Function::Mul, [other]) => {
                let plain = form.factor.is_none() && form.added.is_none() && form.softcap.is_none();
                plain.then_some(Form { factor: Some(*other), ..form })
            }
            (Function::Add, [other]) => {
                let added = match form.added {
                    None => *other,
                    Some(before) => self.program.call(Function::Add, &[before, *other]),
                };
                Some(Form { added: Some(added), ..form })
            }
            (Function::Select, [condition, Operand::Constant(Scalar::Float(nothing))]) => {
                let kept = node.operands[1] == inner;
                if form.added.is_some() || *nothing > NOTHING || node.operands[0] != *condition {
                    return None;
                }
                let zero = Operand::Constant(Scalar::Float(0.0));
                let nothing = if nothing.is_finite() { nothing.min(VANISHING) } else { *nothing };
                let nothing = Operand::Constant(Scalar::Float(nothing));
                let [yes, no] = if kept { [zero, nothing] } else { [nothing, zero] };
                let added = self.program.call(Function::Select, &[*condition, yes, no]);
                Some(Form { added: Some(added), ..form })
            }
            // Scores are computed with 32 bits in any case.
            (Function::Cast, []) if node.to.is_some_and(Type::is_float) => Some(form),
            _ => None,
        }
    }

    /// `cap * tanh(x / cap)`, of which `inner` is the hyperbolic tangent.
    fn capped(&mut self, inner: Operand, cap: f64) -> Option<Form> {
        let Operand::Node(index) = inner else { return None };
        let node = self.program.nodes[index].clone();
        if node.function != Function::Tanh || cap <= 0.0 {
            return None;
        }
        let form = self.read(node.operands[0])?;
        let plain = form.added.is_none() && form.softcap.is_none();
        plain.then_some(Form { scale: form.scale * cap, softcap: Some(cap), ..form })
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;
    use crate::graph::TensorId;

    fn whole(program: &str) -> Option<(Form, Expression)> {
        let input = |n| (TensorId(n), DType::F32, vec![4.into()]);
        let mask = (TensorId(2), DType::U8, vec![4.into()]);
        let inputs = vec![input(0), input(1), mask];
        let reader = Reader { inputs, program: program.parse().unwrap(), tables: Vec::new() };
        form(&reader, 0)
    }

    fn read(program: &str) -> Option<(Form, String)> {
        let (form, program) = whole(program)?;
        let text = form.added.map(|added| super::super::chain::part(&program, added).0.to_string());
        Some((form, text.unwrap_or_default()))
    }

    #[test]
    fn factors_caps_and_masks_are_found() {
        let plain = |scale| Form { scale, factor: None, softcap: None, added: None };
        assert_eq!(read("div $0 8.0 -> %0:f32").unwrap().0, plain(0.125));
        assert_eq!(read("mul 0.5 $0; mul %0 0.5 -> %1:f32").unwrap().0, plain(0.25));
        let (form, _) = read("div $0 8.0; add $1 %0 -> %1:f32").unwrap();
        assert_eq!(form, Form { added: Some(Operand::Input(1)), ..plain(0.125) });
        let (form, _) = read("mul $0 $1; mul %0 0.5; div %1 20.0; tanh %2; mul %3 20.0 -> %4:f32").unwrap();
        assert_eq!((form.scale, form.factor, form.softcap), (0.5, Some(Operand::Input(1)), Some(20.0)));
        let (form, text) = read("neg $1; mul $0 0.5; add %1 %0; add %2 $1 -> %3:f32").unwrap();
        assert_eq!((form.scale, &text[..]), (0.5, "neg $0; add %0 $0 ->"));
        let (form, text) = read("mul $0 0.5; cast:bool $2; select %1 %0 -inf -> %2:f32").unwrap();
        assert_eq!((form.scale, &text[..]), (0.5, "cast:bool $0; select %0 0.0 -inf ->"));
        // The model's scores are gone where it masks: so they have to vanish in the sum.
        for (own, added) in [("-1000000000.0", -1e30), ("-3.4028234663852886e38", f64::from(f32::MIN))] {
            let (form, program) = whole(&format!("cast:bool $2; select %0 {own} $0 -> %1:f32")).unwrap();
            let Some(Operand::Node(index)) = form.added else { panic!("{own}: nothing is added") };
            assert_eq!(program.nodes[index].operands[1], Operand::Constant(Scalar::Float(added)), "{own}");
        }
        let (form, _) = read("mul $0 0.5; div %0 20.0; tanh %1; mul %2 20.0; add %3 $1 -> %4:f32").unwrap();
        assert_eq!((form.scale, form.softcap), (0.5, Some(20.0)));
    }

    #[test]
    fn zeros_for_nan_are_known() {
        let guards = |text: &str| is_guard(&Elementwise::new([(DType::F32, vec![4])], text.parse().unwrap()));
        assert!(guards("isnan $0; cast:u8 %0; cast:bool %1; select %2 0.0 $0 -> %3:f32"));
        assert!(guards("isnan $0; select %0 0.0 $0 -> %1:f32"));
        assert!(!guards("isnan $0; select %0 1.0 $0 -> %1:f32"));
        assert!(!guards("isinf $0; select %0 0.0 $0 -> %1:f32"));
    }

    #[test]
    fn other_computing_is_none() {
        for text in [
            "mul $0 $0 -> %0:f32",
            "mul $0 $1; mul %0 $2 -> %1:f32",
            "add $0 $1; mul %0 $2 -> %1:f32",
            "add $0 $1; mul %0 0.5 -> %1:f32",
            "exp $0 -> %0:f32",
            "cast:bool $2; select %0 $0 -1.0 -> %1:f32",
            "add $0 $1; cast:bool $2; select %1 %0 -inf -> %2:f32",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
