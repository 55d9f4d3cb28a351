//! What signs between values do.

use std::sync::Arc;

use super::{
    budget::{Budget, Builder, Charge, Done, Fault},
    show,
    tree::{Comparison, Operator},
    value::{Items, Value, joined},
};

fn refused(verb: &str, a: &Value, b: &Value) -> Fault {
    Fault::new(format!("a {} and a {} cannot be {verb}", a.kind(), b.kind()))
}

fn whole(number: Option<i64>) -> Done<Value> {
    number.map(Value::Int).ok_or_else(|| Fault::new("a number is too large, or divided by nothing"))
}

pub(super) fn operate(budget: &Arc<Budget>, operator: Operator, a: &Value, b: &Value) -> Done<Value> {
    match operator {
        Operator::Add => add(budget, a, b),
        Operator::Multiply => multiply(budget, a, b),
        Operator::Rest if a.as_text().is_some() => {
            Err(Fault::new("texts with % are not put together here; use ~ or the filter 'format'"))
        }
        _ => numbers(operator, a, b),
    }
}

fn add(budget: &Arc<Budget>, a: &Value, b: &Value) -> Done<Value> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => joined(budget, &[a, b]),
        (Value::List(a), Value::List(b)) if a.tuple == b.tuple => {
            let mut items = Items::new(budget)?;
            items.extend(a.iter().chain(b.iter()))?;
            Ok(Value::List(if a.tuple { items.tuple() } else { items.list() }))
        }
        _ => numbers(Operator::Add, a, b),
    }
}

fn multiply(budget: &Arc<Budget>, a: &Value, b: &Value) -> Done<Value> {
    let (many, times) = match (a, b) {
        (Value::Text(_) | Value::List(_), other) | (other, Value::Text(_) | Value::List(_)) => {
            let many = if matches!(a, Value::Text(_) | Value::List(_)) { a } else { b };
            (many, other.as_int().ok_or_else(|| refused("multiplied", a, b))?)
        }
        _ => return numbers(Operator::Multiply, a, b),
    };
    let times = usize::try_from(times).unwrap_or(0);
    if let Value::List(list) = many {
        let mut items = Items::new(budget)?;
        for _ in 0..if list.is_empty() { 0 } else { times } {
            items.extend(list.iter())?;
        }
        return Ok(Value::List(if list.tuple { items.tuple() } else { items.list() }));
    }
    let mut made = Builder::new(budget)?;
    made.repeat(many.as_text().unwrap_or_default(), times)?;
    Ok(Value::Text(made.text()))
}

fn numbers(operator: Operator, a: &Value, b: &Value) -> Done<Value> {
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
        let sign = |number: i64| if b < 0 { number.checked_neg() } else { Some(number) };
        return match operator {
            Operator::Add => whole(a.checked_add(b)),
            Operator::Subtract => whole(a.checked_sub(b)),
            Operator::Multiply => whole(a.checked_mul(b)),
            // As in Python, rounded down, and what is left has the sign of what is divided by.
            Operator::Whole if b < 0 => {
                whole(a.checked_neg().zip(b.checked_neg()).and_then(|(a, b)| a.checked_div_euclid(b)))
            }
            Operator::Whole => whole(a.checked_div_euclid(b)),
            Operator::Rest if b < 0 => whole(
                a.checked_neg()
                    .zip(b.checked_neg())
                    .and_then(|(a, b)| a.checked_rem_euclid(b))
                    .and_then(sign),
            ),
            Operator::Rest => whole(a.checked_rem_euclid(b)),
            Operator::Divide if b == 0 => whole(None),
            Operator::Divide => Ok(Value::Float(a as f64 / b as f64)),
            Operator::Power if b >= 0 => whole(u32::try_from(b).ok().and_then(|b| a.checked_pow(b))),
            Operator::Power => Ok(Value::Float((a as f64).powf(b as f64))),
        };
    }
    let verb = match operator {
        Operator::Add => "added",
        Operator::Subtract => "subtracted",
        Operator::Multiply => "multiplied",
        _ => "divided",
    };
    let (Some(x), Some(y)) = (a.as_float(), b.as_float()) else { return Err(refused(verb, a, b)) };
    Ok(Value::Float(match operator {
        Operator::Add => x + y,
        Operator::Subtract => x - y,
        Operator::Multiply => x * y,
        Operator::Power => x.powf(y),
        _ if y == 0.0 => return Err(Fault::new("a number is divided by nothing")),
        Operator::Divide => x / y,
        Operator::Whole => (x / y).floor(),
        Operator::Rest => x - y * (x / y).floor(),
    }))
}

pub(super) fn negative(value: &Value) -> Done<Value> {
    match (value.as_int(), value.as_float()) {
        (Some(number), _) => whole(number.checked_neg()),
        (None, Some(number)) => Ok(Value::Float(-number)),
        _ => Err(Fault::new(format!("a {} has no sign", value.kind()))),
    }
}

pub(super) fn compare(budget: &Budget, comparison: Comparison, a: &Value, b: &Value) -> Done<bool> {
    Ok(match comparison {
        Comparison::Equal => a.equals(b, budget)?,
        Comparison::Unequal => !a.equals(b, budget)?,
        Comparison::Less => a.compare(b, budget)?.is_lt(),
        Comparison::LessEqual => a.compare(b, budget)?.is_le(),
        Comparison::More => a.compare(b, budget)?.is_gt(),
        Comparison::MoreEqual => a.compare(b, budget)?.is_ge(),
        Comparison::In => a.is_in(b, budget)?,
        Comparison::NotIn => !a.is_in(b, budget)?,
    })
}

/// All of them printed, one behind the other.
pub(super) fn printed<'v>(budget: &Arc<Budget>, all: impl IntoIterator<Item = &'v Value>) -> Done<Value> {
    let mut made = Builder::new(budget)?;
    all.into_iter().try_for_each(|value| show::print(value, &mut made))?;
    Ok(Value::Text(made.text()))
}

/// Something's element at an index or with a key; not defined where there is none.
pub(super) fn item(budget: &Arc<Budget>, value: &Value, key: &Value) -> Done<Value> {
    let place = |length: usize| {
        let index = key.as_int()?;
        let index = if index < 0 { index + length as i64 } else { index };
        usize::try_from(index).ok().filter(|index| *index < length)
    };
    Ok(match value {
        Value::List(list) => place(list.len()).map_or(Value::Undefined, |place| list[place].clone()),
        Value::Text(text) => {
            budget.characters(text)?;
            let length = text.chars().count();
            match place(length).and_then(|place| text.chars().nth(place)) {
                Some(letter) => Value::text(budget, letter.encode_utf8(&mut [0; 4]))?,
                None => Value::Undefined,
            }
        }
        Value::Map(map) => map.get(key)?.cloned().unwrap_or(Value::Undefined),
        Value::Space(space) => match key.as_text() {
            Some(name) => space.get(name)?.unwrap_or(Value::Undefined),
            None => Value::Undefined,
        },
        _ => Value::Undefined,
    })
}

/// `value[start:stop:step]`.
pub(super) fn slice(budget: &Arc<Budget>, value: &Value, parts: [Option<Value>; 3]) -> Done<Value> {
    let number = |value: &Option<Value>| match value {
        None | Some(Value::None) => Ok(None),
        Some(value) => match value.as_int() {
            Some(number) => Ok(Some(number)),
            None => {
                Err(Fault::new(format!("a part is taken from or to a {}, and no whole number", value.kind())))
            }
        },
    };
    let [start, stop, step] = [number(&parts[0])?, number(&parts[1])?, number(&parts[2])?];
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Fault::new("a part is taken in steps of 0"));
    }
    match value {
        Value::List(list) => {
            let mut items = Items::new(budget)?;
            for place in places(list.len(), start, stop, step) {
                items.push(list[place].clone())?;
            }
            Ok(Value::List(if list.tuple { items.tuple() } else { items.list() }))
        }
        Value::Text(text) => {
            budget.characters(text)?;
            let mut made = Builder::new(budget)?;
            let length = text.chars().count();
            if step == 1 {
                let places = places(length, start, stop, 1);
                let at = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
                if let (Some(first), Some(last)) = (places.clone().next(), places.last()) {
                    made.push(&text[at(first)..at(last + 1)])?;
                }
            } else {
                let _letters = Charge::new(budget, length * size_of::<char>())?;
                let letters: Vec<char> = text.chars().collect();
                for place in places(length, start, stop, step) {
                    budget.steps(1)?;
                    made.push_char(letters[place])?;
                }
            }
            Ok(Value::Text(made.text()))
        }
        other => Err(Fault::new(format!("a {} has no parts", other.kind()))),
    }
}

/// The indices of a slice, as Python counts them.
fn places(
    length: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> impl Iterator<Item = usize> + Clone {
    let length = length as i64;
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let within = |place: i64| {
        let place = if place < 0 { place.saturating_add(length) } else { place };
        place.clamp(low, high)
    };
    let start = start.map_or(if step > 0 { low } else { high }, within);
    let stop = stop.map_or(if step > 0 { high } else { low }, within);
    let distance = if step > 0 { stop - start } else { start - stop };
    let count = if distance <= 0 { 0 } else { (distance - 1) / step.saturating_abs() + 1 };
    (0..count).map(move |turn| (start + turn * step) as usize)
}
