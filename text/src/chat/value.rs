//! What templates compute with: Python's values, as far as a template can make them. Lists and tables do not change once they are
//! made and hold only such values, so that nothing contains itself; and they are not deep, so that no walk through them is.

use std::{
    cell::{Cell, RefCell},
    cmp::Ordering,
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};

use super::budget::{Budget, Builder, Charge, Done, Fault, OVERHEAD, Text};

/// Lists within lists.
const DEPTH: u8 = 64;
/// What an entry of a table takes besides its key and its value.
const ENTRY: usize = 96;

#[derive(Clone, Debug)]
pub(super) enum Value {
    Undefined,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<Text>),
    List(Rc<List>),
    Map(Rc<Map>),
    /// What `namespace` makes.
    Space(Rc<Space>),
    /// A macro, by its number.
    Macro(usize),
    /// A function of ours.
    Function(&'static str),
    Loop(Rc<Loop>),
}

/// A list or a tuple.
#[derive(Debug)]
pub(super) struct List {
    items: Vec<Value>,
    pub tuple: bool,
    depth: u8,
    _charge: Charge,
}

impl std::ops::Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

/// What a key is, so that equal ones are found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    None,
    Int(i64),
    Float(u64),
    Text(String),
}

impl Key {
    fn of(value: &Value, budget: &Budget) -> Done<Key> {
        Ok(match value {
            Value::None => Key::None,
            Value::Bool(truth) => Key::Int(i64::from(*truth)),
            Value::Int(number) => Key::Int(*number),
            Value::Float(number) if *number == *number as i64 as f64 => Key::Int(*number as i64),
            Value::Float(number) => Key::Float(number.to_bits()),
            Value::Text(text) => {
                budget.bytes(text.len())?;
                Key::Text(text.to_string())
            }
            other => return Err(Fault::new(format!("a {} is no key of a table", other.kind()))),
        })
    }
}

/// A table, in the order in which keys came.
#[derive(Debug)]
pub(super) struct Map {
    entries: Vec<(Value, Value)>,
    index: HashMap<Key, usize>,
    depth: u8,
    charge: Charge,
}

impl Map {
    pub fn new(budget: &Arc<Budget>) -> Done<Map> {
        let charge = Charge::new(budget, OVERHEAD + ENTRY)?;
        Ok(Map { entries: Vec::new(), index: HashMap::new(), depth: 1, charge })
    }

    pub fn insert(&mut self, key: Value, value: Value) -> Done<()> {
        let depth = part(&value)?;
        let known = Key::of(&key, self.charge.budget())?;
        if let Some(place) = self.index.get(&known) {
            self.entries[*place].1 = value;
        } else {
            let length = if let Key::Text(text) = &known { text.len() } else { 0 };
            self.charge.add(ENTRY + length)?;
            self.index.insert(known, self.entries.len());
            self.entries.push((key, value));
        }
        self.depth = self.depth.max(depth);
        Ok(())
    }

    pub fn get(&self, key: &Value) -> Done<Option<&Value>> {
        let key = Key::of(key, self.charge.budget())?;
        Ok(self.index.get(&key).map(|place| &self.entries[*place].1))
    }

    pub fn text(&self, key: &str) -> Option<&Value> {
        self.index.get(&Key::Text(key.to_owned())).map(|place| &self.entries[*place].1)
    }

    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }
}

/// The attributes of a `namespace`.
#[derive(Debug)]
pub(super) struct Space {
    values: RefCell<Vec<(Box<str>, Value)>>,
    charge: RefCell<Charge>,
}

impl Space {
    pub fn new(budget: &Arc<Budget>) -> Done<Space> {
        let charge = RefCell::new(Charge::new(budget, OVERHEAD)?);
        Ok(Space { values: RefCell::new(Vec::new()), charge })
    }

    pub fn set(&self, name: &str, value: Value) -> Done<()> {
        part(&value)?;
        let mut values = self.values.borrow_mut();
        self.charge.borrow().budget().steps(values.len() / 8)?;
        match values.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, old)) => *old = value,
            None => {
                self.charge.borrow_mut().add(ENTRY + name.len())?;
                values.push((name.into(), value));
            }
        }
        Ok(())
    }

    pub fn get(&self, name: &str) -> Done<Option<Value>> {
        let values = self.values.borrow();
        self.charge.borrow().budget().steps(values.len() / 8)?;
        Ok(values.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.clone()))
    }
}

/// What `loop` is in a loop.
#[derive(Debug)]
pub(super) struct Loop {
    pub items: Rc<List>,
    pub at: Cell<usize>,
    pub last: RefCell<Option<Rc<List>>>,
}

/// How deep a list with this in it is.
fn part(value: &Value) -> Done<u8> {
    let depth = match value {
        Value::List(list) => list.depth + 1,
        Value::Map(map) => map.depth + 1,
        Value::Space(_) | Value::Loop(_) => {
            let text = format!("a {} cannot be a part of something else", value.kind());
            return Err(Fault::new(text));
        }
        _ => 1,
    };
    if depth > DEPTH {
        return Err(Fault::limit(format!("makes lists within lists that are more than {DEPTH} deep")));
    }
    Ok(depth)
}

/// A list under way.
#[derive(Debug)]
pub(super) struct Items {
    items: Vec<Value>,
    depth: u8,
    charge: Charge,
}

impl Items {
    pub fn new(budget: &Arc<Budget>) -> Done<Items> {
        Ok(Items { items: Vec::new(), depth: 1, charge: Charge::new(budget, OVERHEAD)? })
    }

    pub fn push(&mut self, value: Value) -> Done<()> {
        self.charge.budget().steps(1)?;
        self.depth = self.depth.max(part(&value)?);
        let capacity = self.items.capacity();
        if self.items.len() == capacity {
            let more = capacity.max(4);
            self.charge.add(more * size_of::<Value>())?;
            self.items.reserve_exact(more);
        }
        self.items.push(value);
        Ok(())
    }

    pub fn push_text(&mut self, text: &str) -> Done<()> {
        let text = Text::new(self.charge.budget(), text)?;
        self.push(Value::Text(text))
    }

    pub fn extend<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) -> Done<()> {
        values.into_iter().try_for_each(|value| self.push(value.clone()))
    }

    /// Whether an equal one is among them.
    pub fn contains(&self, value: &Value, budget: &Budget) -> Done<bool> {
        for item in &self.items {
            if item.equals(value, budget)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn list(self) -> Rc<List> {
        Rc::new(List { items: self.items, tuple: false, depth: self.depth, _charge: self.charge })
    }

    pub fn tuple(self) -> Rc<List> {
        Rc::new(List { items: self.items, tuple: true, depth: self.depth, _charge: self.charge })
    }
}

impl Value {
    pub fn text(budget: &Arc<Budget>, text: &str) -> Done<Value> {
        Ok(Value::Text(Text::new(budget, text)?))
    }

    /// What it is, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Undefined => "value that is not defined",
            Value::None => "none",
            Value::Bool(_) => "truth value",
            Value::Int(_) | Value::Float(_) => "number",
            Value::Text(_) => "text",
            Value::List(list) if list.tuple => "tuple",
            Value::List(_) => "list",
            Value::Map(_) => "table",
            Value::Space(_) => "namespace",
            Value::Macro(_) => "macro",
            Value::Function(_) => "function",
            Value::Loop(_) => "loop",
        }
    }

    pub fn truth(&self) -> bool {
        match self {
            Value::Undefined | Value::None => false,
            Value::Bool(truth) => *truth,
            Value::Int(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::List(list) => !list.is_empty(),
            Value::Map(map) => !map.entries.is_empty(),
            _ => true,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// A number that counts or is a place.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Bool(truth) => Some(i64::from(*truth)),
            _ => None,
        }
    }

    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(number) => Some(*number),
            other => other.as_int().map(|number| number as f64),
        }
    }

    /// What a loop over it goes through: keys of a table, characters of a text.
    pub fn elements(&self, budget: &Arc<Budget>) -> Done<Rc<List>> {
        let mut items = match self {
            Value::List(list) => return Ok(list.clone()),
            _ => Items::new(budget)?,
        };
        match self {
            Value::Map(map) => items.extend(map.entries.iter().map(|(key, _)| key))?,
            Value::Text(text) => {
                text.chars().try_for_each(|letter| items.push_text(letter.encode_utf8(&mut [0; 4])))?;
            }
            Value::Undefined => {}
            other => return Err(Fault::new(format!("a {} has no elements", other.kind()))),
        }
        Ok(items.list())
    }

    pub fn equals(&self, other: &Value, budget: &Budget) -> Done<bool> {
        budget.steps(1)?;
        Ok(match (self, other) {
            (Value::Undefined, Value::Undefined) | (Value::None, Value::None) => true,
            (Value::Text(a), Value::Text(b)) => {
                budget.bytes(if a.len() == b.len() { a.len() } else { 0 })?;
                ***a == ***b
            }
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.tuple == b.tuple && {
                    for (a, b) in a.iter().zip(b.iter()) {
                        if !a.equals(b, budget)? {
                            return Ok(false);
                        }
                    }
                    true
                }
            }
            (Value::Map(a), Value::Map(b)) => {
                a.entries.len() == b.entries.len() && {
                    for (key, value) in &a.entries {
                        match b.get(key)? {
                            Some(other) if value.equals(other, budget)? => {}
                            _ => return Ok(false),
                        }
                    }
                    true
                }
            }
            (Value::Space(a), Value::Space(b)) => Rc::ptr_eq(a, b),
            (Value::Macro(a), Value::Macro(b)) => a == b,
            (Value::Function(a), Value::Function(b)) => a == b,
            _ => match (self.as_int(), other.as_int()) {
                (Some(a), Some(b)) => a == b,
                _ => matches!((self.as_float(), other.as_float()), (Some(a), Some(b)) if a == b),
            },
        })
    }

    pub fn compare(&self, other: &Value, budget: &Budget) -> Done<Ordering> {
        budget.steps(1)?;
        let refused = || {
            let text = format!("a {} and a {} have no order", self.kind(), other.kind());
            Err(Fault::new(text))
        };
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => {
                budget.bytes(a.len().min(b.len()))?;
                Ok((***a).cmp(&***b))
            }
            (Value::List(a), Value::List(b)) => {
                for (a, b) in a.iter().zip(b.iter()) {
                    if !a.equals(b, budget)? {
                        return a.compare(b, budget);
                    }
                }
                Ok(a.len().cmp(&b.len()))
            }
            _ => match (self.as_int(), other.as_int()) {
                (Some(a), Some(b)) => Ok(a.cmp(&b)),
                _ => match (self.as_float(), other.as_float()) {
                    // As in Python, what is no number is neither less nor more.
                    (Some(a), Some(b)) => Ok(a.partial_cmp(&b).unwrap_or(Ordering::Equal)),
                    _ => refused(),
                },
            },
        }
    }

    /// Whether it is in something: a part of a text, an element, a key.
    pub fn is_in(&self, other: &Value, budget: &Budget) -> Done<bool> {
        match (other, self) {
            (Value::Text(whole), Value::Text(part)) => {
                budget.bytes(whole.len() + part.len())?;
                Ok(whole.contains(&***part))
            }
            (Value::List(list), _) => {
                for item in list.iter() {
                    if self.equals(item, budget)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Value::Map(map), _) => Ok(map.get(self)?.is_some()),
            (Value::Undefined, _) => Ok(false),
            _ => Err(Fault::new(format!("a {} is in no {}", self.kind(), other.kind()))),
        }
    }
}

/// A text of several parts.
pub(super) fn joined(budget: &Arc<Budget>, parts: &[&str]) -> Done<Value> {
    let mut made = Builder::new(budget)?;
    parts.iter().try_for_each(|part| made.push(part))?;
    Ok(Value::Text(made.text()))
}
