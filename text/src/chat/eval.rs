//! Computes expressions.

use std::{rc::Rc, sync::Arc};

use super::{
    budget::{Budget, Builder, Done, Fault},
    checks::check,
    filters,
    given::Given,
    lists, operators,
    scopes::Scopes,
    texts,
    tree::{Arguments, Behind, Expression, Template},
    value::{Items, Loop, Map, Value},
};

/// Blocks, brackets and calls within each other, while a template runs: the stack has room for them.
const DEPTH: usize = 160;

/// Runs a macro, by its number. What runs statements gives it.
pub(super) type Call = for<'t> fn(&mut Machine<'t>, usize, Given<'t>) -> Done<Value>;

/// A template that runs.
pub(super) struct Machine<'t> {
    pub template: &'t Template,
    pub budget: Arc<Budget>,
    pub scopes: Scopes,
    /// What is written: to the prompt, and to the texts of blocks.
    pub out: Vec<Builder>,
    depth: usize,
    call: Call,
}

impl<'t> Machine<'t> {
    pub fn new(template: &'t Template, budget: &Arc<Budget>, call: Call) -> Done<Machine<'t>> {
        Ok(Machine {
            template,
            budget: budget.clone(),
            scopes: Scopes::new(budget)?,
            out: vec![Builder::new(budget)?],
            depth: 0,
            call,
        })
    }

    /// Does something within something.
    pub fn within<T>(&mut self, work: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        if self.depth == DEPTH {
            return Err(Fault::limit(format!("goes more than {DEPTH} blocks, brackets and calls deep")));
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    pub fn eval(&mut self, expression: &'t Expression) -> Done<Value> {
        self.budget.steps(1)?;
        Ok(match expression {
            Expression::Text(text) => Value::Text(text.clone()),
            Expression::Int(number) => Value::Int(*number),
            Expression::Float(number) => Value::Float(*number),
            Expression::Bool(truth) => Value::Bool(*truth),
            Expression::None => Value::None,
            Expression::Name(name) => match self.scopes.get(*name)? {
                Some(value) => value,
                None => filters::function(&self.template.names[*name as usize]).unwrap_or(Value::Undefined),
            },
            _ => return self.within(|machine| machine.compound(expression)),
        })
    }

    fn compound(&mut self, expression: &'t Expression) -> Done<Value> {
        match expression {
            Expression::List(all) => Ok(Value::List(self.all(all)?.list())),
            Expression::Tuple(all) => Ok(Value::List(self.all(all)?.tuple())),
            Expression::Joined(all) => {
                let all = self.all(all)?.list();
                operators::printed(&self.budget, all.iter())
            }
            Expression::Map(entries) => {
                let mut map = Map::new(&self.budget)?;
                for (key, value) in entries {
                    let key = self.eval(key)?;
                    map.insert(key, self.eval(value)?)?;
                }
                Ok(Value::Map(Rc::new(map)))
            }
            Expression::Row(first, rest) => {
                let mut value = self.eval(first)?;
                for (operator, other) in rest {
                    let other = self.eval(other)?;
                    value = operators::operate(&self.budget, *operator, &value, &other)?;
                }
                Ok(value)
            }
            Expression::Compared(first, rest) => self.compared(first, rest),
            Expression::And(all) => self.first(all, false),
            Expression::Or(all) => self.first(all, true),
            Expression::Not(value) => Ok(Value::Bool(!self.eval(value)?.truth())),
            Expression::Minus(value) => operators::negative(&self.eval(value)?),
            Expression::Plus(value) => operators::negative(&operators::negative(&self.eval(value)?)?),
            Expression::Choice(parts, otherwise) => {
                if self.eval(&parts[0])?.truth() {
                    return self.eval(&parts[1]);
                }
                otherwise.as_ref().map_or(Ok(Value::Undefined), |otherwise| self.eval(otherwise))
            }
            Expression::With(value, behind) => self.with(value, behind),
            _ => self.eval(expression),
        }
    }

    fn all(&mut self, all: &'t [Expression]) -> Done<Items> {
        let mut items = Items::new(&self.budget)?;
        for expression in all {
            items.push(self.eval(expression)?)?;
        }
        Ok(items)
    }

    /// The first that is as wanted, or the last.
    fn first(&mut self, all: &'t [Expression], wanted: bool) -> Done<Value> {
        let mut value = Value::Undefined;
        for expression in all {
            value = self.eval(expression)?;
            if value.truth() == wanted {
                break;
            }
        }
        Ok(value)
    }

    fn compared(
        &mut self,
        first: &'t Expression,
        rest: &'t [(super::tree::Comparison, Expression)],
    ) -> Done<Value> {
        let mut value = self.eval(first)?;
        for (comparison, other) in rest {
            let other = self.eval(other)?;
            if !operators::compare(&self.budget, *comparison, &value, &other)? {
                return Ok(Value::Bool(false));
            }
            value = other;
        }
        Ok(Value::Bool(true))
    }

    /// A value, and what stands behind it.
    fn with(&mut self, first: &'t Expression, behind: &'t [Behind]) -> Done<Value> {
        let mut value = self.eval(first)?;
        let mut rest = behind.iter().peekable();
        let mut is_first = true;
        while let Some(next) = rest.next() {
            self.budget.steps(1)?;
            if matches!(value, Value::Undefined) && !matches!(next, Behind::Filter(..) | Behind::Test { .. })
            {
                return Err(self.missing(first, is_first, next));
            }
            value = match (next, rest.peek()) {
                (Behind::Attribute(name), Some(Behind::Call(arguments))) => {
                    rest.next();
                    self.method(&value, name, arguments)?
                }
                (Behind::Attribute(name), _) => self.attribute(&value, name)?,
                (Behind::Item(key), _) => {
                    let key = self.eval(key)?;
                    operators::item(&self.budget, &value, &key)?
                }
                (Behind::Slice(parts), _) => self.slice(&value, parts)?,
                (Behind::Call(arguments), _) => {
                    let given = self.given(arguments)?;
                    self.called(&value, given)?
                }
                (Behind::Filter(..) | Behind::Test { .. }, _) => self.filtered(value, next)?,
            };
            is_first = false;
        }
        Ok(value)
    }

    fn slice(&mut self, value: &Value, parts: &'t [Option<Expression>; 3]) -> Done<Value> {
        let mut found = [const { None }; 3];
        for (part, found) in parts.iter().zip(&mut found) {
            if let Some(part) = part {
                *found = Some(self.eval(part)?);
            }
        }
        operators::slice(&self.budget, value, found)
    }

    /// What a filter or a test makes of a value.
    pub fn filtered(&mut self, value: Value, behind: &'t Behind) -> Done<Value> {
        match behind {
            Behind::Filter(name, arguments) => {
                let given = self.given(arguments)?;
                filters::filter(&self.budget, name, &value, given)
            }
            Behind::Test { name, arguments, not } => {
                let given = self.given(arguments)?;
                Ok(Value::Bool(check(&self.budget, name, &value, given)? != *not))
            }
            _ => Ok(value),
        }
    }

    /// Something is asked of what is not there.
    fn missing(&self, first: &Expression, is_first: bool, next: &Behind) -> Fault {
        let of = match first {
            Expression::Name(name) if is_first => format!("'{}'", self.template.names[*name as usize]),
            _ => "something".to_owned(),
        };
        Fault::new(match next {
            Behind::Attribute(name) => format!("{of} is not defined, and its '{name}' is asked for"),
            Behind::Call(_) => format!("{of} is not defined, and is called"),
            _ => format!("{of} is not defined, and an element of it is asked for"),
        })
    }

    fn given(&mut self, arguments: &'t Arguments) -> Done<Given<'t>> {
        let mut given = Given::default();
        for argument in &arguments.places {
            given.places.push(self.eval(argument)?);
        }
        for (name, argument) in &arguments.names {
            given.names.push((name, self.eval(argument)?));
        }
        Ok(given)
    }

    fn attribute(&mut self, value: &Value, name: &'t str) -> Done<Value> {
        match value {
            Value::Loop(of) => self.of_loop(of, name),
            Value::List(list) if list.tuple => Ok(Value::Undefined),
            value => lists::attribute(&self.budget, value, name),
        }
    }

    fn of_loop(&self, of: &Loop, name: &str) -> Done<Value> {
        let (at, length) = (of.at.get(), of.items.len());
        let item = |place: Option<usize>| place.and_then(|place| of.items.get(place)).cloned();
        Ok(match name {
            "index" => Value::Int(at as i64 + 1),
            "index0" => Value::Int(at as i64),
            "revindex" => Value::Int((length - at) as i64),
            "revindex0" => Value::Int((length - at) as i64 - 1),
            "first" => Value::Bool(at == 0),
            "last" => Value::Bool(at + 1 == length),
            "length" => Value::Int(length as i64),
            // No loop calls itself here.
            "depth" => Value::Int(1),
            "depth0" => Value::Int(0),
            "previtem" => item(at.checked_sub(1)).unwrap_or(Value::Undefined),
            "nextitem" => item(Some(at + 1)).unwrap_or(Value::Undefined),
            _ => Value::Undefined,
        })
    }

    fn method(&mut self, value: &Value, name: &'t str, arguments: &'t Arguments) -> Done<Value> {
        let given = self.given(arguments)?;
        match value {
            Value::Text(text) => texts::method(&self.budget, text, name, given),
            Value::Map(map) if lists::METHODS.contains(&name) => {
                lists::method(&self.budget, map, name, given)
            }
            Value::List(list) => lists::list_method(&self.budget, list, name, given),
            Value::Loop(of) if name == "cycle" => {
                let count = given.places.len().max(1);
                Ok(given.places.into_iter().nth(of.at.get() % count).unwrap_or(Value::Undefined))
            }
            Value::Loop(of) if name == "changed" => {
                let mut items = Items::new(&self.budget)?;
                items.extend(&given.places)?;
                let now = Value::List(items.list());
                let before = of.last.borrow().clone().map_or(Value::Undefined, Value::List);
                let changed = !now.equals(&before, &self.budget)?;
                *of.last.borrow_mut() = Some(now.elements(&self.budget)?);
                Ok(Value::Bool(changed))
            }
            Value::Map(_) | Value::Space(_) => {
                let method = self.attribute(value, name)?;
                if matches!(method, Value::Undefined) {
                    let there = if matches!(value, Value::Map(_)) {
                        lists::METHODS.join(", ")
                    } else {
                        "those it was given".into()
                    };
                    return Err(Fault::new(format!(
                        "a {} has no method '{name}'; there are: {there}",
                        value.kind()
                    )));
                }
                self.called(&method, given)
            }
            other => Err(Fault::new(format!("a {} has no method '{name}'", other.kind()))),
        }
    }

    fn called(&mut self, value: &Value, given: Given<'t>) -> Done<Value> {
        match value {
            Value::Macro(number) => (self.call)(self, *number, given),
            Value::Function(name) => filters::call(&self.budget, name, given),
            other => Err(Fault::new(format!("a {} cannot be called", other.kind()))),
        }
    }
}
