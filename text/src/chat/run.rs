//! Runs templates: their statements.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use super::{
    budget::{Budget, Builder, Done, Fault},
    eval::Machine,
    given::Given,
    show,
    tree::{Body, For, LOOP, Statement, Target, Template},
    value::{Items, Loop, Value},
};

/// How a row of statements ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

/// The text that a template makes with these values.
pub(super) fn run(template: &Template, budget: &Arc<Budget>, values: Vec<(&str, Value)>) -> Done<String> {
    let mut machine = Machine::new(template, budget, call)?;
    for (name, value) in values {
        if let Some(number) = template.names.iter().position(|known| **known == *name) {
            machine.scopes.set(number as u32, value)?;
        }
    }
    body(&mut machine, &template.body)?;
    Ok(machine.out.pop().map(Builder::end).unwrap_or_default())
}

fn body<'t>(machine: &mut Machine<'t>, statements: &'t Body) -> Done<Flow> {
    for (line, made) in statements {
        machine.budget.steps(1).map_err(|fault| fault.at(*line))?;
        let flow = match made {
            Statement::Raw(text) => write(machine, |out| out.push(text)).map(|()| Flow::On),
            Statement::Print(value) => machine
                .eval(value)
                .and_then(|value| write(machine, |out| show::print(&value, out)))
                .map(|()| Flow::On),
            other => machine.within(|machine| statement(machine, other)),
        };
        match flow.map_err(|fault| fault.at(*line))? {
            Flow::On => {}
            flow => return Ok(flow),
        }
    }
    Ok(Flow::On)
}

fn write(machine: &mut Machine<'_>, write: impl FnOnce(&mut Builder) -> Done<()>) -> Done<()> {
    match machine.out.last_mut() {
        Some(out) => write(out),
        None => Ok(()),
    }
}

fn statement<'t>(machine: &mut Machine<'t>, made: &'t Statement) -> Done<Flow> {
    match made {
        Statement::For(made) => repeat(machine, made),
        Statement::If(choices, otherwise) => {
            for (test, inner) in choices {
                if machine.eval(test)?.truth() {
                    return body(machine, inner);
                }
            }
            body(machine, otherwise)
        }
        Statement::Set(target, value) => {
            let value = machine.eval(value)?;
            set(machine, target, value).map(|()| Flow::On)
        }
        Statement::SetBlock(target, filters, inner) => {
            let mut value = captured(machine, inner)?;
            for filter in filters {
                value = machine.filtered(value, filter)?;
            }
            set(machine, target, value).map(|()| Flow::On)
        }
        Statement::Filter(filters, inner) => {
            let mut value = captured(machine, inner)?;
            for filter in filters {
                value = machine.filtered(value, filter)?;
            }
            write(machine, |out| show::print(&value, out)).map(|()| Flow::On)
        }
        Statement::With(all, inner) => {
            machine.scopes.push(&machine.budget.clone())?;
            for (target, value) in all {
                let value = machine.eval(value)?;
                set(machine, target, value)?;
            }
            let flow = body(machine, inner)?;
            machine.scopes.pop();
            Ok(flow)
        }
        Statement::Macro(number) => {
            let name = machine.template.macros[*number].name;
            machine.scopes.set(name, Value::Macro(*number)).map(|()| Flow::On)
        }
        Statement::Group(inner) => body(machine, inner),
        Statement::Break => Ok(Flow::Break),
        Statement::Continue => Ok(Flow::Continue),
        Statement::Raw(_) | Statement::Print(_) => Ok(Flow::On),
    }
}

/// What a body writes, as a text.
fn captured<'t>(machine: &mut Machine<'t>, inner: &'t Body) -> Done<Value> {
    let budget = machine.budget.clone();
    machine.out.push(Builder::new(&budget)?);
    machine.scopes.push(&budget)?;
    body(machine, inner)?;
    machine.scopes.pop();
    let made = machine.out.pop();
    made.map_or_else(|| Value::text(&budget, ""), |made| Ok(Value::Text(made.text())))
}

fn set(machine: &mut Machine<'_>, target: &Target, value: Value) -> Done<()> {
    match target {
        Target::Name(name) => machine.scopes.set(*name, value),
        Target::Names(targets) => {
            let all = value.elements(&machine.budget)?;
            if all.len() != targets.len() {
                let text = format!(
                    "{} names are set to a {} of {} elements",
                    targets.len(),
                    value.kind(),
                    all.len()
                );
                return Err(Fault::new(text));
            }
            machine.budget.steps(all.len())?;
            targets.iter().zip(all.iter()).try_for_each(|(target, value)| set(machine, target, value.clone()))
        }
        Target::Attribute(name, attribute) => match machine.scopes.get(*name)? {
            Some(Value::Space(space)) => space.set(attribute, value),
            other => {
                let name = &machine.template.names[*name as usize];
                let kind = other.unwrap_or(Value::Undefined).kind();
                Err(Fault::new(format!(
                    "'{name}.{attribute}' is set, and '{name}' is a {kind} and no namespace"
                )))
            }
        },
    }
}

/// Those elements that a loop's condition takes.
fn chosen<'t>(machine: &mut Machine<'t>, made: &'t For) -> Done<Rc<super::value::List>> {
    let over = machine.eval(&made.over)?;
    let budget = machine.budget.clone();
    let all = over.elements(&budget)?;
    let Some(only) = &made.only else { return Ok(all) };
    let mut items = Items::new(&budget)?;
    for item in all.iter() {
        machine.scopes.push(&budget)?;
        set(machine, &made.target, item.clone())?;
        if machine.eval(only)?.truth() {
            items.push(item.clone())?;
        }
        machine.scopes.pop();
    }
    Ok(items.list())
}

fn repeat<'t>(machine: &mut Machine<'t>, made: &'t For) -> Done<Flow> {
    let items = chosen(machine, made)?;
    if items.is_empty() {
        return body(machine, &made.otherwise);
    }
    let budget = machine.budget.clone();
    let state = Rc::new(Loop { items: items.clone(), at: Cell::new(0), last: RefCell::new(None) });
    for (at, item) in items.iter().enumerate() {
        budget.steps(1)?;
        state.at.set(at);
        machine.scopes.push(&budget)?;
        machine.scopes.set(LOOP, Value::Loop(state.clone()))?;
        set(machine, &made.target, item.clone())?;
        let flow = body(machine, &made.body)?;
        machine.scopes.pop();
        if flow == Flow::Break {
            break;
        }
    }
    Ok(Flow::On)
}

/// Calls a macro: what it writes is what it gives.
fn call<'t>(machine: &mut Machine<'t>, number: usize, given: Given<'t>) -> Done<Value> {
    machine.within(|machine| {
        let template = machine.template;
        let made = &template.macros[number];
        let name = &template.names[made.name as usize];
        if given.places.len() > made.parameters.len() {
            let text = format!(
                "'{name}' takes {} arguments, and there are {}",
                made.parameters.len(),
                given.places.len()
            );
            return Err(Fault::new(text));
        }
        let budget = machine.budget.clone();
        let base = machine.scopes.enter(&budget)?;
        let mut names = given.names;
        let mut places = given.places.into_iter();
        for (parameter, otherwise) in &made.parameters {
            let parameter_name = &template.names[*parameter as usize];
            let named = names.iter().position(|(name, _)| **name == **parameter_name);
            let value = match (places.next(), named) {
                (Some(_), Some(_)) => {
                    return Err(Fault::new(format!("'{name}' is given '{parameter_name}' twice")));
                }
                (Some(value), None) => value,
                (None, Some(place)) => names.swap_remove(place).1,
                (None, None) => match otherwise {
                    Some(otherwise) => machine.eval(otherwise)?,
                    None => Value::Undefined,
                },
            };
            machine.scopes.set(*parameter, value)?;
        }
        if let Some((unknown, _)) = names.first() {
            return Err(Fault::new(format!("'{name}' takes no '{unknown}'")));
        }
        let value = captured(machine, &made.body)?;
        machine.scopes.leave(base);
        Ok(value)
    })
}
